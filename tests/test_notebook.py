"""What a notebook and a console show for results: short texts, and tables whose texts are escaped."""

import logging
from pathlib import Path

import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.notebook import table
from graphveil.training.score import Joint
from tests.data.readers.made import tables

SCORE = gv.Score(0.75, "auc", 0.5, (Joint("<b>", "accuracy", 0.4, 0.4, 0.3, "joint adversary"),))


def test_a_table_escapes_every_text() -> None:
    expected = "<table><caption>&lt;a&gt;</caption><tr><th>&lt;b&gt;</th><td>&lt;c&gt;</td></tr></table>"
    assert table("<a>", {"<b>": "<c>"}) == expected


def test_a_score_is_short() -> None:
    assert repr(SCORE) == f"Score({SCORE})"
    assert (
        "<th>attack on &lt;b&gt;</th><td>40.00% accuracy (chance 30.00%), joint adversary</td>" in SCORE._repr_html_()
    )
    assert "75.00% auc (chance 50.00%)" in SCORE._repr_html_()


def test_a_split_is_short(small_split: gv.Split) -> None:
    assert repr(small_split).startswith("Split(nodes: ")
    shown = small_split._repr_html_()
    assert f"<th>train</th><td>{len(small_split.train_nodes)} nodes, " in shown
    assert "<caption>Split for labels</caption>" in shown


def test_progress_of_fit_is_on_stderr_and_calls_on_round(
    small: Data, small_split: gv.Split, quick: gv.Recipe, capfd: pytest.CaptureFixture[str]
) -> None:
    rounds = list[int]()
    veil = gv.Veil(recipe=quick, device="cpu")
    veil.fit(small, small_split, on_round=lambda training: rounds.append(training.round))
    assert capfd.readouterr() == ("", "")
    again = list[int]()
    veil.fit(small, small_split, on_round=lambda training: again.append(training.round), progress=True)
    assert again == rounds
    out, err = capfd.readouterr()
    assert (out, err) == ("", "training: round 1 of 12\n")


def test_what_is_read_and_trained_is_logged(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="graphveil"):
        gv.read_graph(tables(tmp_path))
        gv.Veil(recipe=quick, device="cpu").fit(small, small_split)
    assert f"Read {tmp_path}: 4 nodes, 3 links, 5 features." in caplog.messages
    assert "Links are read from the columns 'source' and 'target' of edges.csv." in caplog.messages
    assert "Training gcn on 150 nodes: links kept, labels hidden, trade-off 0.5, seed 0, at most 12 rounds." in (
        caplog.messages
    )
    assert any(message.startswith("Trained 12 rounds; round ") for message in caplog.messages)
