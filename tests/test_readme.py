"""The README's own commands, run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphveil as gv

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_example(tmp_path: Path) -> None:
    certificate, score, *_ = run_python(EXAMPLES[0], tmp_path).splitlines()
    assert certificate.startswith(
        "Whoever sees only the released codes, whatever method they use, names the label of at"
    )
    assert re.match(r"utility \d\d\.\d\d% auc; counted rule on labels", score)
    for file in ("model.safetensors", "run.json", "audit.json"):
        assert (tmp_path / "runs" / "cora" / file).exists()


def test_the_example_of_a_batch(tmp_path: Path) -> None:
    lines = run_python(EXAMPLES[1], tmp_path).splitlines()
    assert [line.split()[:2] for line in lines] == [["0.5", "0"], ["0.5", "1"], ["1.0", "0"], ["1.0", "1"]]


def test_the_example_of_a_recipe_changes_one_number_and_no_other(tmp_path: Path) -> None:
    said = run_python(EXAMPLES[2], tmp_path)
    assert said == f"{gv.Veil(utility='links', secret='labels').recipe.but(rounds=800)}\n"
    assert "out_channels=32" in said, "the recipe's own, and not that of a new one"
    assert len(EXAMPLES) == 3


COMMANDS = [line for line in README.splitlines() if line.startswith("graphveil ")]


@pytest.mark.slow
def test_the_commands(tmp_path: Path) -> None:
    """One after the other, as somebody would who reads from the top."""
    for line in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", *line.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)


def test_the_readme_has_the_two_commands_and_its_picture() -> None:
    assert len(COMMANDS) >= 4
    for target in ("make demo", "make test"):
        assert target in README
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (Path(__file__).parent.parent / picture).stat().st_size > 10_000
