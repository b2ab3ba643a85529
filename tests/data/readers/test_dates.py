"""Dates are numbers of days, in every way of writing them."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from tests.data.readers.made import people, tables

DATES = ["2024-01-01", "2024-01-31", "", "2024-03-01"]


TIMES = ["2024-01-01T12:00:00", "2024-01-31 12:00:00", "", "2024-03-01 12:00:00"]


@pytest.mark.parametrize("values", [DATES, TIMES, [time and f"{time}Z" for time in TIMES]])
@pytest.mark.parametrize("kind", ["csv", "quoted", "date", "timestamp"])
def test_dates_are_counted_in_days(tmp_path: Path, values: list[str], kind: str) -> None:
    rows = [f"{name},{date}" for name, date in zip("abcd", values, strict=True)]
    folder = tables(tmp_path, "source,target\na,b\n", "\n".join(["id,since", *rows]) + "\n")
    if kind == "quoted":  # a number that is none at last makes text of every column at first
        rows = [f'{row},"{word}"' for row, word in zip(rows, ["1", "2", "3", "x"], strict=True)]
        (folder / "nodes.csv").write_text("\n".join(["id,since,word", *rows]))
    elif kind != "csv":
        (folder / "nodes.csv").unlink()
        plain = [datetime.fromisoformat(value.removesuffix("Z")) if value else None for value in values]
        if kind == "date":
            since = pa.array([moment and moment.date() for moment in plain], pa.date32())
        else:
            since = pa.array(plain, pa.timestamp("ms"))
        pq.write_table(pa.table({"id": list("abcd"), "since": since}), folder / "nodes.parquet")
    graph = gv.read_graph(folder, drop=["word"] if kind == "quoted" else [])
    numbers = np.array([0, 30, 60.0])  # days from the first of January, 2024 being a leap year
    expected = (numbers - 30) / numbers.std()
    assert np.allclose(graph.x[[0, 1, 3], 0], expected, atol=1e-5)
    assert graph.x[2].tolist() == [0]
    assert "The dates of 'since' are converted to days." in graph.origin.notes
    cut = gv.read_graph(folder, attributes=["since"], bins={"since": 2})
    assert cut["since"].tolist() == [0, 1, -1, 1]
    first, last = (name.split()[0] for name in cut.origin.encoding.classes["since"])
    assert (first, last) == ("2024-01-01", "2024-01-31")
    few = gv.read_graph(folder, attributes=["since"])
    assert few["since"].tolist() == [0, 1, -1, 2]
    assert [name[:10] for name in few.origin.encoding.classes["since"]] == ["2024-01-01", "2024-01-31", "2024-03-01"]
    again = gv.read_graph(folder, attributes=["since"], encoding=few.origin.encoding)
    assert again["since"].equal(few["since"])


def test_what_is_not_all_dates_is_words(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "since: 2024-01-01 never 2024-01-01 2024-13-01"))
    assert [column.kind for column in graph.origin.encoding.columns] == ["category"]
