"""docs/your-own-graph.md, run command by command from the top."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.forked import Forks, Shell

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "your-own-graph.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command, and the lines that the text shows of what it prints."""

    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        return any(line.startswith("graphveil: ") for line in self.shown)


def steps() -> list[Step]:
    found: list[Step] = []
    for block in re.findall(r"```\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:]))
            elif found:
                found[-1].shown.append(line.rstrip())
    return found


def run(command: str, forks: Forks, folder: Path) -> tuple[int, str]:
    """Its exit code, and all that it prints."""
    if command.startswith("graphveil "):
        program = forks.start(*shlex.split(command)[1:], before=Shell(folder, columns=115))
        return program.wait(500), program.printed + program.said
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def head(line: str) -> str:
    """What a line begins with, whatever was read: up to a number, a colon, a gap or the end of a cell."""
    return re.split(r"  |[\d:]| ?[│┃]", line.strip(" │┃"))[0].strip()


def test_every_command_does_what_the_text_shows(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for step in steps():
        code, output = run(step.command, forks, tmp_path)
        assert code == (2 if step.refused else 0), (step.command, output)
        printed = output.splitlines()
        if "data show" in step.command:  # nothing random: every line as it is
            assert set(step.shown) <= {line.rstrip() for line in printed}
        missing = {head(line) for line in step.shown} - {head(line) for line in printed}
        assert not missing, (step.command, output)
        if " embed " in step.command:
            assert "salutation" not in output, "the run has left that column out, and need not warn about it"
    check_the_embeddings(tmp_path)
    said = forks.script(EXAMPLES[0], Shell(tmp_path))
    assert re.search(r"the first row is that of p-\d{4}$", said)


def check_the_embeddings(folder: Path) -> None:
    """Own ids in their own order within the house, pseudonyms outside it; and the results are those of the text."""
    people = pyarrow.csv.read_csv(folder / "people" / "people.csv")
    assert pq.read_table(folder / "runs" / "a" / "embeddings.parquet")["id"].to_pylist() == people["id"].to_pylist()
    released = pq.read_table(folder / "release" / "codes.parquet")
    assert released.num_rows == people.num_rows
    assert not set(released["id"].to_pylist()) & set(people["id"].to_pylist())
    audit = json.loads((folder / "runs" / "a" / "audit.json").read_text())
    protected, unprotected = audit["strongest"]["value"], audit["controls"]["unprotected encoder"]
    assert max(one["value"] for one in unprotected) > 0.74, "the text says 79 %"
    assert protected < 0.66, "the text says 50 %"
    assert audit["flags"] == []
    assert not (folder / "release-newer").exists()


def test_the_text_has_all_verbs_and_its_links_lead_somewhere() -> None:
    commands = [step.command for step in steps()]
    for verb in ("data show", "protect", "audit", "report", "export", "embed"):
        assert any(command.startswith(f"graphveil {verb} ") for command in commands)
    assert len(EXAMPLES) == 1
    for page in ("your-own-graph.md", "graphs.md", "threat-model.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert link.startswith("http") or (ROOT / "docs" / link).exists(), (page, link)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("│ logistic regression, all │ 57.5 [52.9, 61.9] │", "logistic regression, all"),
        ("  strongest attack       ensemble: accuracy 52.0", "strongest attack"),
        ("Audit of gender: protected", "Audit of gender"),
        ("┃ file              ┃ bytes  ┃", "file"),
    ],
)
def test_lines_are_compared_by_how_they_begin(line: str, expected: str) -> None:
    assert head(line) == expected
