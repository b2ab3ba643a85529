"""The lowest versions that the wheel is used with; `make wheel` does so."""

import re
import tomllib
from importlib.metadata import version

from tools.links import ROOT
from tools.wheel import lowest_versions


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))[:3]


def test_every_dependency_but_torch_is_at_its_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(text.split("==") for text in lowest_versions())
    assert len(pinned) == len(project["dependencies"]) - 1
    assert "torch" not in pinned, "there is one build of it"
    for name, lowest in pinned.items():
        assert numbers(lowest) <= numbers(version(name)), f"{name} {lowest} is not the lowest"
