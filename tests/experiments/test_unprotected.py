"""The table of unprotected cells: complete, made from saved results only, and honest about what falls short."""

import json
from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments import unprotected
from graphveil.experiments.unprotected import Cell, markdown, run_cell
from graphveil.training import recipes


def save(cell: Cell, folder: Path, score: float) -> None:
    folder.mkdir(exist_ok=True)
    cell.file(folder).write_text(json.dumps({"score": score, "adversary_score": 0.7, "rounds": 1}))


def test_the_verdict_is_from_the_mean(tmp_path: Path) -> None:
    cells = [Cell("links", "cora", "gcn", seed) for seed in range(2)]  # the paper has 89.33, so 88.33 will do
    for cell, score in zip(cells, (0.8800, 0.8868), strict=True):
        save(cell, tmp_path, score)
    assert "| links | cora | gcn | 89.3 | 88.3 (0.5) | -1.0 | yes | 72.0 | 70.0 |" in markdown(cells, tmp_path)
    save(cells[0], tmp_path, 0.8700)
    assert "**no, 0.5 short**" in markdown(cells, tmp_path)


def test_only_what_stands_between_the_marks_is_written_anew() -> None:
    between = unprotected.marks("one")
    first, second = between
    other = "\n".join(unprotected.marks("another"))
    text = f"# Results\n{first}\nold\n{second}\n{other}\n"
    assert unprotected.put_between_marks(text, between, "new") == f"# Results\n{first}\nnew\n{second}\n{other}\n"
    with pytest.raises(GraphveilError, match="no place for the table"):
        unprotected.put_between_marks(f"# Results\n{other}\n", between, "new")


def test_a_result_is_known_by_all_that_decides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("links", "cora", "gcn", 0)
    before = cell.file(tmp_path)
    assert before == cell.file(tmp_path)
    assert Cell("links", "cora", "gcn", 1).file(tmp_path) != before
    recipe = recipes.default_recipe("links", "gcn").but(dropout=0.123)
    monkeypatch.setattr(recipes, "RECIPES", {**recipes.RECIPES, ("links", "gcn"): recipe})
    assert cell.file(tmp_path) != before


def test_a_finished_cell_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("links", "cora", "gcn", 0)
    save(cell, tmp_path, 0.9)
    monkeypatch.setattr(unprotected, "load", lambda _: pytest.fail("it was run again"))
    run_cell(cell, tmp_path)
