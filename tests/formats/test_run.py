"""`run.json`, and the sentence for a folder without a readable one."""

import json
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.formats.run import RunRecord, VeilRecord, read_run
from graphveil.formats.store import read
from graphveil.runs.protect import protect
from tests.formats import made


def write(folder: Path, **changes: object) -> Path:
    (folder / "run.json").write_text(json.dumps(made.run() | changes))
    return folder


def test_a_run_is_read(tmp_path: Path) -> None:
    record = read_run(write(tmp_path))
    assert (record.config.secrets, record.scores.secrets[0].value) == (("labels",), 0.4)
    assert record.embedded is None
    assert record.certificates["town"] is None


def test_a_folder_of_embed_is_read(tmp_path: Path) -> None:
    content = {key: value for key, value in made.run().items() if key not in ("seconds", "rounds")}
    nothing = dict.fromkeys(("utility", "utility_metric", "utility_chance")) | {"secrets": ()}
    embedded = {"run": "abc", "warnings": ["A node has 9 links."], "not_recorded": ["nodes"]}
    (tmp_path / "run.json").write_text(json.dumps(content | {"scores": nothing, "embedded": embedded}))
    record = read_run(tmp_path)
    assert record.embedded is not None
    assert record.embedded.not_recorded == ("nodes",)
    assert (record.seconds, record.rounds, record.scores.utility) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": "graphveil/run/7"}, "its schema is 'graphveil/run/7', expected 'graphveil/run/8'"),
        ({"split": None}, "split: expected a text, got null"),
        ({"config": made.run()["config"] | {"secrets": []}}, "config.secrets: expected a list of length >= 1"),
    ],
)
def test_a_record_that_does_not_match_is_one_sentence(changes: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError) as refused:
        read_run(write(tmp_path, **changes))
    assert str(refused.value).startswith(
        f"{tmp_path} is not a finished run of `graphveil protect` (run.json: {reason})"
    )


def test_a_folder_without_a_record_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(GraphveilError, match=r"is not a finished run .* \(run\.json is missing\)"):
            read_run(folder)


def test_what_a_real_run_writes_is_read(quick: gv.Recipe, tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 0)
    veil = gv.Veil(utility="links", secret="secret", recipe=quick, device="cpu")
    run = protect(veil, graph, split, tmp_path / "run", source={"graph": "synthetic", "split": "paper"})
    record = read_run(tmp_path / "run")
    assert record.config.to_dict() == json.loads(json.dumps(veil.config()))
    assert record.scores.utility == run.score.utility
    assert record.certificates["secret"] == run.certificates["secret"]
    assert read(tmp_path / "run" / "run.json", RunRecord) == record
    veil.save(tmp_path / "veil")
    assert read(tmp_path / "veil" / "run.json", VeilRecord).shapes == record.shapes
