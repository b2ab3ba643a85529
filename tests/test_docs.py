"""The pages of docs/: their commands and examples run as they stand, and the reference has every public name.

docs/your-own-graph.md has a test of its own, and the notebooks run when the pages are built (`make docs`).
"""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from tools.links import ROOT

import graphveil as gv
from graphveil import auditing
from tests.forked import Forks, Shell

DOCS = ROOT / "docs"
HOW_TO = ("audit-a-file", "choose-by-a-limit", "export-with-a-limit", "choose-a-tradeoff")


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run_commands(page: str, forks: Forks, folder: Path) -> None:
    """One after the other, as somebody would who reads from the top."""
    for line in commands(page):
        program = forks.start(*line.split()[1:], before=Shell(folder))
        assert program.wait(500) == 0, (line, program.said)


def commands(page: str) -> list[str]:
    return [line for block in blocks(page, "") for line in block.splitlines() if line.startswith("graphveil ")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables of examples/people.py, and embeddings of somebody else for them."""
    monkeypatch.setattr(sys, "argv", ["people.py", str(tmp_path / "people")])
    runpy.run_path(str(ROOT / "examples" / "people.py"), run_name="__main__")
    np.save(tmp_path / "theirs.npy", np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32))
    return tmp_path


def test_the_example_of_a_batch(forks: Forks, tmp_path: Path) -> None:
    (example,) = blocks("how-to/gpu-and-batches.md", "python")
    lines = forks.script(example, Shell(tmp_path)).splitlines()
    assert [line.split()[:2] for line in lines] == [["0.5", "0"], ["0.5", "1"], ["1.0", "0"], ["1.0", "1"]]


def test_the_example_of_a_recipe_changes_one_number_and_no_other(forks: Forks, tmp_path: Path) -> None:
    (example,) = blocks("how-to/change-settings.md", "python")
    said = forks.script(example, Shell(tmp_path))
    assert said == f"{gv.Veil(utility='links', secret='labels').recipe.but(rounds=1600)}\n"
    assert "out_channels=32" in said, "the recipe's own, and not that of a new one"


def test_the_examples_of_an_encoder_and_an_attack(forks: Forks, tmp_path: Path) -> None:
    encoder, attack = blocks("how-to/extend.md", "python")
    assert forks.script(encoder, Shell(tmp_path)) == "True\n"
    found = dict(re.findall(r"^(.*?) (\d+\.\d) \[", forks.script(attack, Shell(tmp_path)), re.MULTILINE))
    assert {"nearest class mean", "GaussianNB, few", "GaussianNB, all"} <= set(found)
    assert float(found["nearest class mean"]) > 60, "the features tell the classes; the chance level is 20 to 26 %"


def test_the_example_of_an_audit(forks: Forks, folder: Path) -> None:
    (example,) = blocks("how-to/audit-a-file.md", "python")
    said = forks.script(example, Shell(folder))
    assert said.startswith("flagged "), "noise tells nothing, and the quick panel is flagged"


@pytest.mark.slow
@pytest.mark.parametrize("page", HOW_TO)
def test_the_commands_of_a_guide(page: str, forks: Forks, folder: Path) -> None:
    assert commands(f"how-to/{page}.md")
    run_commands(f"how-to/{page}.md", forks, folder)


@pytest.mark.slow
def test_the_commands_of_the_reference(forks: Forks, tmp_path: Path) -> None:
    assert len(commands("reference/command-line.md")) >= 4
    run_commands("reference/command-line.md", forks, tmp_path)


def test_the_reference_has_every_public_name() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^\.\. auto(?:class|function|exception):: (?:[\w.]+\.)?(\w+)$", text, re.MULTILINE))
    assert {*gv.__all__, *auditing.__all__} - listed == set()
