"""Columns as features and classes, and a newer table encoded like an older one."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import graphveil as gv
from graphveil.data import check_targets, node_classes
from graphveil.data.origin import Encoding
from tests.data.readers.made import EDGES, refusal, tables


def people(folder: Path, *columns: str) -> Path:
    """Tables whose nodes a, b, ... have these columns, each given as "name: value value ..."; a dot is nothing."""
    split = [column.split(":") for column in columns]
    values = [["" if value == "." else value for value in text.split()] for _, text in split]
    names = [chr(ord("a") + number) for number in range(len(values[0]))]
    rows = [",".join(row) for row in zip(names, *values, strict=True)]
    header = ",".join(["id", *(name for name, _ in split)])
    return tables(folder, "source,target\na,b\n", "\n".join([header, *rows]) + "\n")


def test_numbers_are_classes_in_the_order_of_numbers(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "size: 10 9 . 10 -1 nan"), attributes=["size"])
    assert graph["size"].tolist() == [2, 1, -1, 2, 0, -1]
    assert graph.origin.encoding.classes["size"] == ["-1", "9", "10"]


def test_words_are_classes_in_the_order_of_their_names(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "team: red Blue . blue red"), label="team")
    assert graph.y.tolist() == [2, 0, -1, 1, 2]
    assert graph.origin.encoding.classes["labels"] == ["Blue", "blue", "red"]


def test_a_word_for_nothing_is_a_class_and_an_empty_cell_is_none(tmp_path: Path) -> None:
    folder = people(tmp_path, "illness: None flu None . cancer NA", "k: NA 1 2 None 1 null", "w: u NA v u v None")
    graph = gv.read_graph(folder, attributes=["illness", "k"])
    assert graph.origin.encoding.classes == {"illness": ["NA", "None", "cancer", "flu"], "k": ["1", "2"]}
    assert graph["illness"].tolist() == [1, 3, 1, -1, 2, 0]
    assert graph["k"].tolist() == [-1, 0, 1, -1, 0, -1], "among numbers such a word is none"
    assert graph.x.tolist() == [[1, 0], [0, 0], [0, 1], [1, 0], [0, 1], [0, 0]], "and among features"
    expected = "'NA', 'None' of 'illness' count as classes; leave a cell empty if its value is unknown."
    assert [note for note in graph.origin.notes if "leave a cell empty" in note] == [expected]
    newer = people(tmp_path, "illness: None . NA", "k: 1 1 2", "w: u u v")
    again = gv.read_graph(newer, attributes=["illness"], encoding=graph.origin.encoding)
    assert again["illness"].tolist() == [1, -1, 0], "though a table has no other words"
    cut = gv.read_graph(people(tmp_path, "k: 1 2 3 4"), attributes=["k"], bins={"k": 2})
    empty = gv.read_graph(people(tmp_path, "k: NA . NA"), attributes=["k"], encoding=cut.origin.encoding)
    assert empty["k"].tolist() == [-1, -1, -1]
    words = people(tmp_path, "k: NA old NA")
    assert "'k' held numbers, which were cut into bins" in refusal(
        words, attributes=["k"], encoding=cut.origin.encoding
    )


def test_one_word_for_nothing_in_a_typed_table(tmp_path: Path) -> None:
    column = pa.array(["None", None, "flu", "None"])
    pq.write_table(pa.table({"id": [0, 1, 2, 3], "illness": column}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\n0,1\n")
    graph = gv.read_graph(tmp_path, attributes=["illness"])
    assert graph["illness"].tolist() == [0, -1, 1, 0]
    assert "'None' of 'illness' counts as a class; leave a cell empty if its value is unknown." in (graph.origin.notes)


def test_many_numbers_need_bins_of_equal_size(tmp_path: Path) -> None:
    ages = list(range(18, 50))
    folder = people(tmp_path, "age: " + " ".join(map(str, [*ages, "."])))
    sentence = refusal(folder, attributes=["age"])
    assert "'age' has 32 different numbers" in sentence
    assert "--bins age=4" in sentence
    graph = gv.read_graph(folder, attributes=["age"], bins={"age": 4})
    assert graph["age"].tolist() == [*[0] * 8, *[1] * 8, *[2] * 8, *[3] * 8, -1]
    assert graph.origin.encoding.classes["age"] == ["18 to 25", "26 to 33", "34 to 41", "42 to 49"]
    assert graph.origin.encoding.cuts["age"] == [26, 34, 42]


def test_bins_of_values_that_repeat_are_never_empty(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "k: 0 0 0 0 0 1 2"), attributes=["k"], bins={"k": 4})
    assert graph["k"].tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert graph.origin.encoding.classes["k"] == ["0", "1 to 2"]
    one = gv.read_graph(people(tmp_path, "k: 5 5 5"), attributes=["k"], bins={"k": 3})
    assert one["k"].tolist() == [0, 0, 0]


def test_columns_become_features_by_what_they_hold(tmp_path: Path) -> None:
    folder = people(tmp_path, "n: 1 3 . 5", "b: true false . true", "c: 7 7 7 7", "w: u . v u", "empty: . . . .")
    graph = gv.read_graph(folder)
    spread = float(np.std([1, 3, 5]))
    expected: list[list[float]] = [
        [-2 / spread, 0, 1, 1, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [2 / spread, 0, 1, 1, 0],
    ]
    assert np.allclose(graph.x, expected)
    kinds = [(column.name, column.kind, column.width) for column in graph.origin.encoding.columns]
    assert kinds == [("n", "number", 1), ("b", "category", 2), ("w", "category", 2)]
    notes = " ".join(graph.origin.notes)
    assert "'c' is not used as a feature: all its values are equal." in notes
    assert "'empty' is not used as a feature: it is empty." in notes
    assert "1 value of 'n' is missing or infinite and is replaced by the mean." in notes


def test_features_can_be_chosen(tmp_path: Path) -> None:
    folder = people(tmp_path, "n: 1 3 5", "m: 2 2 8", "g: x y x")
    assert gv.read_graph(folder, features=["m"], attributes=["g"]).x.size(1) == 1
    assert gv.read_graph(folder, drop=["m", "g"]).x.size(1) == 1
    assert "'g' is a target and cannot also be a feature" in refusal(folder, features=["g"], attributes=["g"])
    assert "nodes.csv has no column 'nn': it has 'n', 'm', 'g'. Did you mean 'n'?" in refusal(folder, features=["nn"])


def test_names_are_no_features(tmp_path: Path) -> None:
    words = [f"person-{number}" for number in range(60)] * 2
    nodes = "id,word,name\n" + "".join(f"{row},{word},p{row}\n" for row, word in enumerate(words))
    graph = gv.read_graph(tables(tmp_path, "u,v\n0,1\n", nodes))
    assert graph.origin.structural
    assert any("'word' is not used as a feature: it has 60 different values." in note for note in graph.origin.notes)
    assert any("'name' is not used as a feature: every value is different." in note for note in graph.origin.notes)


def bag(folder: Path, counts: np.ndarray) -> Path:
    columns = {"id": pa.array(np.arange(len(counts)))}
    columns |= {f"w{number}": pa.array(column) for number, column in enumerate(counts.T)}
    columns["age"] = pa.array(np.arange(len(counts)) + 20.0)
    pq.write_table(pa.table(columns), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("u,v\n0,1\n")
    return folder


def test_many_counts_stay_as_they_are_and_sparse(tmp_path: Path) -> None:
    counts = np.zeros((40, 80), dtype=np.int64)
    counts[np.arange(40), np.arange(40)] = 3
    graph = gv.read_graph(bag(tmp_path, counts))
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense()[:, :80].long().tolist() == counts.tolist()
    assert graph.x.shape == (40, 81), "a number beside them is standardised"
    again = gv.read_graph(bag(tmp_path, counts[:, :70]), encoding=graph.origin.encoding)
    assert again.x.to_dense()[:, :70].long().tolist() == counts[:, :70].tolist()
    assert again.x.shape == (40, 81)
    assert "filled with 0: 'w70', 'w71'," in " ".join(again.origin.notes)


def test_lists_of_numbers_are_a_matrix(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0], [0.5, float("nan")], None], pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": ["a", "b", "c"], "vector": vectors}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\na,b\n")
    graph = gv.read_graph(tmp_path)
    assert graph.x.tolist() == [[1, 2], [0.5, 0], [0, 0]]
    pq.write_table(pa.table({"id": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}), tmp_path / "nodes.parquet")
    assert "from 1 to 2 values" in refusal(tmp_path)


OLD = ("n: 1 3 5 7", "w: u v u v", "g: f m f m", "age: 20 30 40 50")


def test_a_newer_table_is_encoded_like_the_older_one(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, *OLD), attributes=["g", "age"], bins={"age": 2})
    same = gv.read_graph(people(tmp_path, *OLD), attributes=["g", "age"], encoding=old.origin.encoding)
    assert torch.equal(same.x, old.x)
    assert torch.equal(same["age"], old["age"])
    plain = json.loads(json.dumps(asdict(old.origin.encoding)))
    kept = Encoding.from_plain(plain)
    newer = people(tmp_path, "w: v z .", "g: m x f", "age: 0 99 35", "extra: 1 2 3")
    graph = gv.read_graph(newer, attributes=["g", "age"], encoding=kept)
    assert graph.x.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]], "n is missing; z is new"
    assert graph["g"].tolist() == [1, -1, 0]
    assert graph["age"].tolist() == [0, 1, 0], "cut at 40 as before"
    notes = " ".join(graph.origin.notes)
    assert "Columns that the encoder expects are missing and filled with 0: 'n'." in notes
    assert "1 value of 'w' is new to the encoder" in notes
    assert "1 value of 'g' is new to the encoder and counts as unknown." in notes
    assert "ignored: 'extra'" in notes


def test_a_newer_table_may_lack_the_secret(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, *OLD), attributes=["g"])
    graph = gv.read_graph(people(tmp_path, *OLD[:2], OLD[3]), attributes=["g"], encoding=old.origin.encoding)
    assert torch.equal(graph.x, old.x)
    assert "g" not in graph
    assert any("The column 'g' is missing" in note for note in graph.origin.notes)


def test_numbers_of_new_classes_are_noted(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, "k: 1 2 1"), attributes=["k"])
    graph = gv.read_graph(people(tmp_path, "k: 2 3 ."), attributes=["k"], encoding=old.origin.encoding)
    assert graph["k"].tolist() == [1, -1, -1]
    assert any("1 value of 'k' is new to the encoder" in note for note in graph.origin.notes)


@pytest.mark.parametrize("name", ["x", "y", "edge_index", "num_nodes", "origin", "links", "labels"])
def test_an_attribute_is_not_called_like_a_part_of_a_graph(tmp_path: Path, name: str) -> None:
    assert f"cannot be called '{name}'" in refusal(people(tmp_path, f"{name}: a b a"), attributes=[name])


def test_labels_are_detected_unless_they_are_identifiers(tmp_path: Path) -> None:
    assert gv.read_graph(people(tmp_path, "Class: a b a a")).y.tolist() == [0, 1, 0, 0]
    assert gv.read_graph(people(tmp_path, "labels: a b a a")).y.tolist() == [0, 1, 0, 0]
    graph = gv.read_graph(people(tmp_path, "label: Ann Bob Cid Dee"))
    assert "y" not in graph
    assert any("'label' is not used as labels" in note for note in graph.origin.notes)


def test_missing_features_are_the_degree_or_to_be_learned(tmp_path: Path) -> None:
    folder = tables(tmp_path, EDGES, nodes=None)
    graph = gv.read_graph(folder)
    assert graph.origin.structural
    assert graph.x[:, 1].tolist() == pytest.approx(np.log([2, 3, 3, 2]))
    learned = gv.read_graph(folder, missing="embedding")
    assert learned.x.layout == torch.sparse_csr
    assert learned.x.to_dense().tolist() == np.eye(4).tolist()
    assert not learned.origin.structural


def test_a_column_that_looks_like_numbers_at_first(tmp_path: Path) -> None:
    """pyarrow guesses the type of a column from its first eight megabytes."""
    rows = [f"{row},{row % 7}{'0' * 400}1" for row in range(25_000)]
    rows.append("25000,word")
    nodes = "id,k\n" + "\n".join(rows) + "\n"
    graph = gv.read_graph(tables(tmp_path, "u,v\n0,1\n", nodes), attributes=["k"])
    assert len(graph.origin.encoding.classes["k"]) == 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"direction": "both"}, "unknown direction 'both': choose one of either, mutual"),
        ({"missing": "zero"}, "unknown missing 'zero'"),
        ({"attributes": "gender"}, "attributes is 'gender': give a list of names"),
        ({"bins": {"age": 1}}, "1 bins are given for 'age'"),
        ({"bins": {"age": True}}, "True bins are given"),
        ({"min_weight": float("nan")}, "min_weight is nan"),
        ({"colour": 1}, "unknown option 'colour'"),
        ({"bins": {"age": 3}}, "bins are given for 'age', which is not an attribute"),
        ({"attributes": ["sex"]}, "nodes.csv has no column 'sex': it has 'age', 'city', 'gender', 'label'."),
        ({"min_weight": 1}, "the links have no weight"),
        ({"source": "who"}, "edges.csv has no column 'who': it has 'source', 'target'."),
    ],
)
def test_invalid_options(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(tables(tmp_path), **options)


def test_numbers_whose_squares_overflow_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,huge,size\n1,1e300,1\n2,-1e300,2\n3,2,4\n")
    graph = gv.read_graph(tmp_path)
    assert [column.name for column in graph.origin.encoding.columns] == ["size"]
    assert any("huge" in note for note in graph.origin.notes)


def test_columns_that_were_left_out_are_not_new(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, "n: 1 2 3", "same: 7 7 7", "mail: a b c", "gone: 1 2 3"), drop=["gone"])
    kept = Encoding.from_plain(json.loads(json.dumps(asdict(old.origin.encoding))))
    assert kept.left_out == ["same", "mail", "gone"]
    again = gv.read_graph(tmp_path, encoding=kept)
    assert again.origin.differences == ()
    newer = people(tmp_path, "n: 1 2 3", "same: 7 7 8", "mail: a b c", "shoe: 1 2 3")
    assert gv.read_graph(newer, encoding=kept).origin.differences == (
        "Columns unknown to the encoder are ignored: 'shoe'.",
    )


def test_detected_columns_are_recorded(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, nodes="node,label,age\nann,x,1\nbob,y,2\ncid,x,3\ndee,y,4\n"))
    reading = graph.origin.reading
    assert (reading.source, reading.target, reading.id, reading.label) == ("source", "target", "node", "label")
    bare = gv.read_graph(tables(tmp_path, "ann,bob\nbob,ann\nbob,cid\n", nodes=None))
    reading = bare.origin.reading
    assert (reading.source, reading.target, reading.id, reading.label) == (None, None, None, None), (
        "columns without a name"
    )
    again = gv.read_graph(tmp_path, reading)
    assert again.edge_index.equal(bare.edge_index)


def test_the_error_for_a_missing_target_lists_the_columns(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, nodes="id,age,city\nann,1,u\nbob,2,v\ncid,3,u\ndee,4,v\n"))
    for ask in (lambda: check_targets(graph, "links", ["labels"]), lambda: node_classes(graph, "labels")):
        with pytest.raises(
            gv.GraphveilError, match=r"no 'labels'.*columns 'age', 'city'\..* --secret NAME .*attributes="
        ):
            ask()
    read = gv.read_graph(tmp_path, attributes=["city"])
    with pytest.raises(gv.GraphveilError, match="no 'labels': it has 'city', and its table has the columns 'age'"):
        node_classes(read, "labels")


@pytest.mark.parametrize("field", ["attributes", "features", "drop"])
def test_the_id_is_nothing_else(tmp_path: Path, field: str) -> None:
    assert "'id' is the id of nodes.csv" in refusal(tables(tmp_path), **{field: ["id"]})


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


def test_names_are_no_classes(tmp_path: Path) -> None:
    """Of 40 people 24 have a name of their own, and the others one of four."""
    words = [f"n{number}" if number < 24 else f"team{number % 4}" for number in range(40)]
    days = [f"2024-{1 + number % 12:02d}-{1 + number // 12:02d}" for number in range(40)]
    rows = [f"p{number},{word},{day}" for number, (word, day) in enumerate(zip(words, days, strict=True))]
    folder = tables(tmp_path, "source,target\np0,p1\n", "\n".join(["id,who,since", *rows]))
    assert "'who' has 28 different values for 40 nodes, which are identifiers" in refusal(folder, attributes=["who"])
    assert "'since' has 40 different dates: cut it into bins" in refusal(folder, attributes=["since"])
    fewer = "\n".join(["id,who,since", *rows]).replace("n1,", "n0,").replace("n3,", "n2,").replace("n5,", "n4,")
    assert len(gv.read_graph(tables(tmp_path, "source,target\np0,p1\n", fewer), attributes=["who"])["who"]) == 40
