"""Table 1: the sizes of the graphs."""

from pathlib import Path

from graphveil.experiments.table1 import table1


def test_table_1_equals_the_paper_except_for_the_number_of_edges(tmp_path: Path) -> None:
    (row,) = table1(tmp_path, ["cora"])
    assert row == ["cora", "2,708", "2,708", "5,429", "5,278", "1,433", "1,433", "7", "7"]
    assert {file.name for file in tmp_path.iterdir()} == {"table1.md", "table1.csv", "table1.tex", "table1.json"}
