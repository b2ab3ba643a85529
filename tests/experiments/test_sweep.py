"""`gv.sweep`: the sweep of the command line as a function."""

from pathlib import Path

import pytest

import graphveil as gv
from graphveil.formats.experiment import front


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_a_sweep_has_a_row_for_each_tradeoff_and_keeps_all_embeddings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = gv.sweep("karate", tmp_path, tradeoffs=[0.5, 1], seeds=1, rounds=2)
    assert [row.tradeoff for row in rows] == [0.5, 1.0]
    assert capfd.readouterr() == ("", "")
    kept = list((tmp_path / "cells" / "embeddings").glob("*.npz"))
    assert len(kept) == 2, "of the front, and of all other cells"
    points = [(row.fresh.value, row.utility.value) for row in rows]
    on_front = {f"{row.tradeoff:g}" for row, point in zip(rows, points, strict=True) if point in front(points)}
    tables = [file.stem for file in (tmp_path / "front").iterdir()]
    assert {name.split("-")[4] for name in tables} == on_front
    assert set(tables) <= {file.stem for file in kept}


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"tradeoffs": [2]}, "from 0"), ({"encoder": "gnc"}, "unknown encoder"), ({"secret": "links"}, "both 'links'")],
)
def test_wrong_settings_are_refused(settings: dict[str, object], says: str, tmp_path: Path) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.sweep("karate", tmp_path, **settings)  # type: ignore[arg-type]
