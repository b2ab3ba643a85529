"""The map in CONTRIBUTING.md is true: its packages are those of the import rules, and verbs import what it names."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
VERBS = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*→.*) \|$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("graphveil")


def test_the_packages_are_those_of_the_import_rules() -> None:
    drawing = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)
    assert drawing is not None
    drawn = [set(re.split(r"\s*\|\s*", re.split(r"\s{2,}", line)[0])) for line in drawing[1].splitlines()]
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in rules[0]["layers"]]
    assert drawn == [layer for layer in layers if layer != {"__main__"}]


def test_the_map_has_every_verb() -> None:
    from graphveil.cli import app

    named = {verb for words, _ in VERBS for verb in re.findall(r"`(\w+)`", words)}
    verbs = {(command.name or command.callback.__name__) for command in app.registered_commands if command.callback}
    groups = {group.name for group in app.registered_groups}
    assert named == (verbs | groups) - {"demo"}


@pytest.mark.parametrize(("words", "path"), VERBS, ids=[words for words, _ in VERBS])
def test_each_module_of_a_verb_is_imported_by_one_before_it(words: str, path: str, imports: grimp.ImportGraph) -> None:
    modules = [f"graphveil.{name}" for name in re.findall(r"`([\w.]+)`", path)]
    for place, module in enumerate(modules[1:], start=1):
        assert any(_imports(imports, before, module) for before in modules[:place]), f"{words}: {module}"


def _imports(imports: grimp.ImportGraph, importer: str, module: str) -> bool:
    """Whether one module imports another, itself or from the package that the other is in."""
    found = imports.find_modules_directly_imported_by(importer)
    package = module.rpartition(".")[0]
    through = package in found and module in imports.find_modules_directly_imported_by(package)
    return module in found or through
