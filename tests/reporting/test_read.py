"""Files that cannot be shown are refused with one sentence that names the file and the place."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphveil.errors import GraphveilError
from graphveil.reporting import report
from tests.formats.made import run
from tests.reporting import made
from tests.reporting.conftest import Show, parse, table


def change_chance(value: str) -> Callable[[str], str]:
    return lambda text: text.replace('"chance": 0.302', f'"chance": {value}', 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "cannot be shown"),
        (lambda _: "", "cannot be shown"),
        (lambda _: "[]", "expected an object, got a list"),
        (lambda _: "[" * 100_000, "it is nested too deeply"),
        (
            lambda text: text.replace("audit/9", "audit/8"),
            "its schema is 'graphveil/audit/8', expected 'graphveil/audit/9'",
        ),
        (change_chance('"much"'), "chance: expected a number, got a text"),
        (change_chance("30.2"), "chance: expected a number <= 1.000001"),
        (change_chance("true"), "chance: expected a number, got true or false"),
        (change_chance("NaN"), "it contains NaN, which is not a number in JSON"),
        (change_chance("1e400"), "chance: expected a number <= 1.000001"),
        (change_chance(f"1{'0' * 400}"), "chance: number out of range"),
        (change_chance(f"1{'0' * 5000}"), "cannot be shown"),
        (lambda text: text.replace('"leaks"', '"fine"'), "verdict has the unknown value 'fine'"),
        (
            lambda text: text.replace('"needs": ["z"', '"needs": [7', 1),
            "attacks[0].needs[0]: expected a text, got a whole number",
        ),
        (lambda text: text.replace('"x": [', '"x": [0.5, ', 1), "map: it has 401 x, 400 y and 400 classes"),
        (lambda text: text.replace('"ci": [', '"ci": [0.1, ', 1), "strongest.ci: expected a list of length 2, got 3"),
        (
            lambda text: text.replace('"rows": [["', '"rows": [["x", "', 1),
            "certificate.rows[0]: expected a list of length 2, got 3",
        ),
        (lambda text: text.replace('"test_examples"', '"tests"'), "test_examples is missing"),
    ],
)
def test_a_wrong_audit_is_one_sentence(tmp_path: Path, change: Callable[[str], str], sentence: str) -> None:
    before = json.dumps(made.audit())
    assert change(before) != before
    (tmp_path / "audit.json").write_text(change(before))
    with pytest.raises(GraphveilError, match=re.escape(sentence)) as refused:
        report(tmp_path / "audit.json", tmp_path / "report.html")
    assert str(tmp_path / "audit.json") in str(refused.value)
    assert len(str(refused.value)) < 500
    assert not (tmp_path / "report.html").exists()


def test_wrong_experiments_and_histories(tmp_path: Path, show: Show) -> None:
    whole = made.experiment("table2", variants=["club"])
    for change, sentence in (
        ({"paper": [0.5]}, "rows[0].paper: expected a list of length 2, got 1"),
        (
            {"history": {"round": [1, 2], "utility": [0.5], "adversary": [0.5, 0.5], "probe": [0.5, 0.5]}},
            "rows[0].history: its columns have different lengths",
        ),
        ({"history": [1]}, "rows[0].history: expected an object or null, got a list"),
        ({"verdict": "fine"}, "rows[0].verdict has the unknown value 'fine'"),
    ):
        with pytest.raises(GraphveilError, match=re.escape(sentence)):
            show(table2=whole | {"rows": [whole["rows"][0] | change]})
    with pytest.raises(GraphveilError, match="not every row has 3 texts"):
        show(table1=made.table1() | {"rows": [["one"]]}, table2=whole)
    made.write(tmp_path / "run" / "run.json", run())
    (tmp_path / "run" / "history.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(GraphveilError, match=r"history\.parquet cannot be shown"):
        report(tmp_path / "run", tmp_path / "report.html")
    pq.write_table(pa.table({"round": [0, 5], "utility": [float("nan"), 0.75]}), tmp_path / "run" / "history.parquet")
    report(tmp_path / "run", tmp_path / "report.html")
    assert table(parse(tmp_path / "report.html"), "Training curves, in percent").cells()[0][1:3] == ["5", "75.0"]


@pytest.mark.parametrize("name", ["nothing", "empty", "other.txt"])
def test_what_cannot_be_reported_on(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(GraphveilError, match=name):
        report(tmp_path / name, tmp_path / "report.html")
