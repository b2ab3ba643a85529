"""The README: its example runs as it stands, and it has what a first look needs."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import people

from graphveil.training.recipes import Recipe, default_recipe
from graphveil.veil import estimator
from tests.forked import Forks, Shell
from tests.program import CommandLine

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@dataclass(frozen=True)
class FewRounds(Shell):
    """A shell in which the default recipes have a tenth of their rounds; the example names no result."""

    def __call__(self) -> None:
        super().__call__()

        def shorter(*given: Any) -> Recipe:
            recipe = default_recipe(*given)
            return recipe.but(rounds=recipe.rounds // 10, warmup=recipe.warmup // 10, ramp=recipe.ramp // 10)

        pytest.MonkeyPatch().setattr(estimator, "default_recipe", shorter)


def test_the_example(forks: Forks, tmp_path: Path) -> None:
    certificate, score, *_ = forks.script(EXAMPLES[0], FewRounds(tmp_path)).splitlines()
    assert certificate.startswith(
        "An attacker who sees only the released codes, with any method, predicts the label of at"
    )
    assert re.match(r"utility \d\d\.\d\d% auc; majority class per code on labels \d\d\.\d\d% accuracy \(chance", score)
    for file in ("model.safetensors", "run.json", "audit.json"):
        assert (tmp_path / "runs" / "cora" / file).exists()
    assert len(EXAMPLES) == 1


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has two candidates with a fifth of their rounds; its audit is the full one."""

    def shorter(*given: Any) -> Recipe:
        recipe = default_recipe(*given)
        return recipe.but(rounds=recipe.rounds // 5, warmup=recipe.warmup // 5, ramp=recipe.ramp // 5)

    monkeypatch.setattr("graphveil.experiments.candidates.default_recipe", shorter)
    monkeypatch.setattr("graphveil.experiments.candidates.ENCODERS", ("gcn",))
    monkeypatch.setattr("graphveil.experiments.tune.TRADEOFFS", (0.7,))
    monkeypatch.setattr("graphveil.experiments.tune.SEEDS", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # processes would import everything again


@pytest.mark.usefixtures("short_search")
def test_the_commands_for_a_graph_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graphveil: CommandLine
) -> None:
    """From two tables of the stated form to an audit by the full panel, a report and a release."""
    assert "`links.csv` (columns `from` and `to`) and `nodes.csv` (a column `id`, and one for each" in README
    monkeypatch.setattr(people, "PEOPLE", 500)
    people.write_people(tmp_path / "people")
    (tmp_path / "people" / "people.csv").rename(tmp_path / "people" / "nodes.csv")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line, comments=True)[1:] for line in README.splitlines() if line.startswith("graphveil ")]
    own = [words for words in commands if any("people" in word for word in words)]
    assert [words[0] for words in own] == ["data", "tune", "report", "export"]
    for words in own:
        done = graphveil(*words)
        assert done.returncode == 0, (words, done.stderr)
    audit = json.loads((tmp_path / "runs" / "people" / "chosen" / "audit.json").read_text())
    assert (audit["secret"], audit["origin"]["panel"]) == ("gender", "full")
    assert (tmp_path / "runs" / "people" / "chosen" / "report.html").exists()
    card = (tmp_path / "release-people" / "CARD.md").read_text()
    assert "Limit of the search that chose the run: 0.5" in card
    assert "This release was forced" not in card


def test_the_readme_has_the_two_commands_and_its_picture() -> None:
    for target in ("make demo", "make test"):
        assert re.search(rf"^{target} ", README, re.MULTILINE)
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 10_000


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 90, "more belongs into docs/"
