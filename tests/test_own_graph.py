"""Your own graph from two tables, from `data show` to the last file, on the command line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphveil import cli
from graphveil.auditing.secret import node_secret
from graphveil.data.origin import node_ids
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import graph_of

Call = Callable[..., tuple[int, str]]
QUICK = ("--set", "rounds=8", "--set", "warmup=0", "--device", "cpu")


@pytest.fixture
def graphveil(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    def call(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["graphveil", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out + err

    monkeypatch.setenv("COLUMNS", "200")
    return call


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Two hundred people with ids of their own; gender is unknown of every tenth, and the title gives it away."""
    random = np.random.default_rng(0)
    names = [f"p{number:03d}" for number in random.permutation(200)]
    gender, team, age = random.integers(0, 2, 200), random.integers(0, 3, 200), random.integers(18, 70, 200)
    rows = ["id,age,team,gender,title"]
    for i, name in enumerate(names):
        rows.append(f"{name},{age[i]},t{team[i]},{'' if i % 10 == 0 else 'fm'[gender[i]]},{('Ms', 'Mr')[gender[i]]}")
    links = ["from,to"]
    while len(links) < 801:
        a, b = random.integers(0, 200, 2)
        if random.random() < (0.8 if team[a] == team[b] else 0.2):
            links.append(f"{names[a]},{names[b]}")
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(rows))
    (folder / "edges.csv").write_text("\n".join(links))
    return folder


def test_two_secrets_from_two_tables_to_two_audits(people: Path, tmp_path: Path, graphveil: Call) -> None:
    run = tmp_path / "run"
    code, output = graphveil("protect", people, "--secret", "gender", "--secret", "team", "--out", run, *QUICK)
    assert code == 0, output
    assert "the column 'title' alone predicts 'gender' with a skill of 100%" in output
    record = RunFolder(run).record()
    assert record.encoding is not None
    assert [column["name"] for column in record.encoding["columns"]] == ["age", "title"], "secrets are no features"
    assert record.encoding["classes"] == {"gender": ["f", "m"], "team": ["t0", "t1", "t2"]}
    assert [score.secret for score in record.scores.secrets] == ["gender", "team"]
    table = pq.read_table(run / "embeddings.parquet")
    own = [line.split(",")[0] for line in (people / "nodes.csv").read_text().splitlines()[1:]]
    assert table["id"].to_pylist() == own, "the user's own ids in the user's own order"
    np.testing.assert_array_equal(table["z0"].to_numpy(), RunFolder(run).embeddings().z[:, 0])

    graph, split = graph_of(RunFolder(run), record)
    assert node_ids(graph).to_pylist() == own
    assert int((graph.gender == -1).sum()) == 20
    assert set(split.test_nodes.tolist()) & set((graph.gender == -1).nonzero().flatten().tolist()), (
        "their team is known"
    )

    code, output = graphveil("audit", run, "--panel", "quick")
    assert code == 0, output
    found = {json.loads((run / name).read_text())["secret"]: name for name in ("audit.json", "audit.team.json")}
    assert found == {"gender": "audit.json", "team": "audit.team.json"}
    record = json.loads((run / "audit.json").read_text())
    known = int((graph.gender[split.test_nodes] != -1).sum())
    assert record["test_examples"] == known, "unknown nodes are not tested on"
    assert list(node_secret(graph, split, "gender", 0).class_names) == ["f", "m"]
    assert graphveil("report", run)[0] == 0
    assert "hide gender and team" in (run / "report.html").read_text()


def test_a_changed_table_is_noticed(people: Path, tmp_path: Path, graphveil: Call) -> None:
    run = tmp_path / "run"
    assert graphveil("protect", people, "--secret", "team", "--out", run, *QUICK)[0] == 0
    text = (people / "nodes.csv").read_text()
    (people / "nodes.csv").write_text(text.replace(",t0,", ",t1,", 1))
    code, output = graphveil("audit", run, "--panel", "quick")
    assert code == 2
    assert "is not the graph that" in output
    assert not (run / "audit.json").exists()


def test_an_audit_of_other_embeddings_of_your_own_graph(people: Path, tmp_path: Path, graphveil: Call) -> None:
    """Rows come in another order, with ids; the first column is the secret itself."""
    lines = [line.split(",") for line in (people / "nodes.csv").read_text().splitlines()[1:]]
    rows = ["id,a,b"] + [f"{line[0]},{line[4] == 'Ms':d},{number % 7}" for number, line in enumerate(lines[::-1])]
    (tmp_path / "z.csv").write_text("\n".join(rows))
    out = tmp_path / "audit.json"
    given = ("--embeddings", tmp_path / "z.csv", "--graph", people, "--out", out, "--panel", "quick")
    code, output = graphveil("audit", *given, "--secret", "gender")
    assert code == 0, output
    assert json.loads(out.read_text())["strongest"]["value"] > 0.95
    code, output = graphveil("audit", *given, "--secret", "links")
    assert code == 0, output
    assert json.loads(out.read_text())["secret"] == "links"


@pytest.mark.usefixtures("one_process")
def test_a_sweep_over_your_own_graph_continues(people: Path, tmp_path: Path, graphveil: Call) -> None:
    given = ("sweep", people, "--secret", "gender", "--drop", "title", "--seeds", "1", "--rounds", "3", "--jobs", "1")
    assert graphveil(*given, "--tradeoff", "0.5", "--out", tmp_path / "out")[0] == 0
    (kept,) = (tmp_path / "out" / "front").glob("*.parquet")
    own = [line.split(",")[0] for line in (people / "nodes.csv").read_text().splitlines()[1:]]
    assert pq.read_table(kept)["id"].to_pylist() == own
    words = ("--embeddings", kept, "--graph", people, "--secret", "gender", "--panel", "quick")
    code, output = graphveil("audit", *words, "--out", tmp_path / "audit.json")
    assert code == 0, output
    (first,) = (tmp_path / "out" / "cells").glob("[!.]*.json")
    written = first.stat().st_mtime_ns
    code, output = graphveil(*given, "--tradeoff", "0.5,1", "--out", tmp_path / "out")
    assert code == 0, output
    assert first.stat().st_mtime_ns == written
    assert len(list((tmp_path / "out" / "cells").glob("[!.]*.json"))) == 2
    (people / "edges.csv").write_text((people / "edges.csv").read_text() + "\np000,p001\np001,p007")
    assert graphveil(*given, "--tradeoff", "0.5", "--out", tmp_path / "out")[0] == 0
    assert len(list((tmp_path / "out" / "cells").glob("[!.]*.json"))) == 3, "another graph is another cell"
    code, output = graphveil(*given, "--secret", "gender", "--out", tmp_path / "out")
    assert code == 2
    assert "named twice" in output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--secret", "salary"], "salary"),
        (["--secret", "age"], "--bins age=4"),
        (["--utility", "team", "--secret", "team"], "what is kept cannot be hidden"),
        (["--secret", "gender", "--secret", "gender"], "named twice"),
        (["--label", "team", "--utility", "labels", "--secret", "team"], "the same classes of the same nodes"),
        (["--secret", "gender", "--split", "paper"], "--split proportional"),
        (["--secret", "gender", "--objective", "club", "--adversary", "bilinear"], "unknown node head"),
    ],
)
def test_wrong_options_are_one_sentence(
    people: Path, tmp_path: Path, graphveil: Call, options: list[str], sentence: str
) -> None:
    code, output = graphveil("protect", people, "--out", tmp_path / "run", *QUICK, *options)
    assert code == 2
    assert sentence in output
    assert "Traceback" not in output
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_number_is_hidden_in_bins(people: Path, tmp_path: Path, graphveil: Call) -> None:
    run = tmp_path / "run"
    given = ("--utility", "team", "--secret", "age", "--bins", "age=3", "--secret", "links")
    code, output = graphveil("protect", people, *given, "--out", run, *QUICK)
    assert code == 0, output
    record = RunFolder(run).record()
    assert record.encoding is not None
    assert len(record.encoding["classes"]["age"]) == 3
    assert [score.metric for score in record.scores.secrets] == ["accuracy", "auc"]
    assert record.message_edges == "all"


def test_a_run_remembers_which_column_was_the_id(people: Path, tmp_path: Path, graphveil: Call) -> None:
    """Its name is no usual one, so that it was the first column; the newer tables have their columns turned round."""
    nodes, edges = people / "nodes.csv", people / "edges.csv"
    nodes.write_text(nodes.read_text().replace("id,", "person,", 1))
    edges.write_text(edges.read_text().replace("from,to", "payer,payee", 1))
    run, newer = tmp_path / "run", tmp_path / "newer"
    assert graphveil("protect", people, "--secret", "gender", "--out", run, *QUICK)[0] == 0
    reading = RunFolder(run).record().reading or {}
    assert [reading[key] for key in ("id", "source", "target")] == [
        "person",
        "payer",
        "payee",
    ]
    newer.mkdir()
    for file in (nodes, edges):
        lines = [",".join(line.split(",")[::-1]) for line in file.read_text().splitlines()]
        (newer / file.name).write_text("\n".join(lines))
    code, output = graphveil("embed", run, newer, "--out", tmp_path / "out", "--no-audit", "--device", "cpu")
    assert code == 0, output
    assert "200 nodes, of which 200 are in the run too" in output
    record = RunFolder(tmp_path / "out").record()
    assert record.embedded is not None
    assert record.embedded.warnings == (), "this graph is like the run's"
    assert record.graph_digest == RunFolder(run).record().graph_digest


def test_without_a_secret_the_columns_are_named(people: Path, tmp_path: Path, graphveil: Call) -> None:
    code, output = graphveil("protect", people, "--out", tmp_path / "run", *QUICK)
    assert code == 2
    assert "no 'labels'" in output
    assert "'age', 'team', 'gender', 'title'" in output
    assert "--secret NAME" in output


def test_a_run_is_audited_for_another_column_of_its_graph(people: Path, tmp_path: Path, graphveil: Call) -> None:
    """The team was a feature, and the age was too; the title was left out, and is known of few."""
    nodes = (people / "nodes.csv").read_text().splitlines()
    (people / "nodes.csv").write_text("\n".join([nodes[0], *(line.rpartition(",")[0] + "," for line in nodes[1:])]))
    run = tmp_path / "run"
    given = ("--secret", "gender", "--features", "team,age", "--out", run)
    assert graphveil("protect", people, *given, *QUICK)[0] == 0
    before = (run / "run.json").read_bytes()
    options = ("--secret", "team", "--secret", "age", "--bins", "age=3", "--panel", "quick")
    code, output = graphveil("audit", run, *options)
    assert code == 0, output
    graph, split = graph_of(RunFolder(run), RunFolder(run).record())
    for name in ("team", "age"):
        record = json.loads((run / f"audit.{name}.json").read_text())
        assert record["secret"] == name
        assert record["origin"]["split"] == split.digest()
        assert record["test_examples"] == len(split.test_nodes), "the split is the run's own"
        assert f"{name} is one of the features that the encoder was given" in " ".join(output.split())
        assert record["chance"] < 0.5, "of three classes"
    assert "team" not in graph
    assert (run / "run.json").read_bytes() == before
    for secret, sentence in (
        ("age", "--bins age=4"),
        ("salary", "no column 'salary'"),
        ("title", "'title' is known for none of the training nodes of this run, which was split by links and gender"),
        ("id", "'id' is the id of nodes.csv"),
    ):
        code, output = graphveil("audit", run, "--secret", secret, "--panel", "quick")
        assert (code, sentence in output) == (2, True), output
    code, output = graphveil("audit", run, "--secret", "gender", "--bins", "gender=2", "--panel", "quick")
    assert code == 2
    assert "bins are given for 'gender'" in output
    assert sorted(file.name for file in run.glob("audit*.json")) == ["audit.age.json", "audit.team.json"]


def test_a_run_is_audited_by_other_columns_of_its_graph(people: Path, tmp_path: Path, graphveil: Call) -> None:
    """The team and the age were features, and stay so."""
    run = tmp_path / "run"
    assert graphveil("protect", people, "--secret", "gender", "--drop", "title", "--out", run, *QUICK)[0] == 0
    code, output = graphveil("audit", run, "--panel", "quick", "--by", "team", "--by", "age", "--bins", "age=2")
    assert code == 0, output
    record = json.loads((run / "audit.json").read_text())
    assert list(dict.fromkeys(one["by"] for one in record["groups"])) == ["gender", "degree", "team", "age"]
    assert [one["group"] for one in record["groups"] if one["by"] == "team"] == ["t0", "t1", "t2"]
    _, split = graph_of(RunFolder(run), RunFolder(run).record())
    assert sum(one["examples"] for one in record["groups"] if one["by"] == "team") == record["test_examples"]
    assert record["origin"]["split"] == split.digest()
    assert "The strongest attack" in output
    (run / "audit.json").unlink()
    for column, sentence in (
        ("salary", "unknown column to group by 'salary': choose one of gender, age, team, title"),
        ("age", "--bins age=4"),
    ):
        code, output = graphveil("audit", run, "--panel", "quick", "--by", column)
        assert (code, sentence in " ".join(output.split())) == (2, True), output
    assert not (run / "audit.json").exists()
