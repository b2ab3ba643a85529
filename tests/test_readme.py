"""The README: its example runs as it stands, and it has what a first look needs."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphveil.training.recipes import Recipe, default_recipe
from graphveil.veil import estimator
from tests.forked import Forks, Shell

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


def test_the_readme_has_the_two_commands_and_its_picture() -> None:
    for target in ("make demo", "make test"):
        assert re.search(rf"^{target} ", README, re.MULTILINE)
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 10_000


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 80, "more belongs into docs/"
