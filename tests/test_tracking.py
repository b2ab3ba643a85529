"""What is logged to MLflow, that a second log is the same run, and that nothing else leaves."""

import importlib.util
import json
import math
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.runs.folder import RunFolder
from graphveil.runs.protect import protect
from graphveil.tracking import PATIENCE, check_address, log_run, read_entry

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

WHERE = "/home/anna/people"
SECRETS = ("secret", "labels")

needs_mlflow = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs the extra [mlflow]")
# MLflow warns of its own things, such as the age of the store that needs no server.
pytestmark = pytest.mark.filterwarnings("ignore:::mlflow", "ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve rounds with two secrets, both audited, of a graph that is somebody's own."""
    folder = tmp_path_factory.mktemp("run") / "a"
    graph = gv.generate(gv.GraphSpec(num_nodes=300, num_edges=900, num_features=40, num_classes=3), seed=5)
    split = gv.Split.proportional(graph, seed=2, targets=["links", *SECRETS])
    recipe = gv.Veil(objective="club").recipe.but(
        rounds=12, hidden_channels=8, out_channels=4, evaluate_every=3, warmup=3
    )
    veil = gv.Veil("links", SECRETS, objective="club", recipe=recipe, device="cpu")
    source = {"graph": WHERE, "split": "proportional", "reading": {"nodes": f"{WHERE}.csv"}, "encoding": None}
    done = protect(veil, graph, split, folder, source=source)
    for secret in SECRETS:
        gv.audit(done.z, graph, split, secret, attacks="quick").save(RunFolder(folder).audit_file(secret, SECRETS))
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """MLflow's own store in a folder, which its client has without a server."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "store").as_uri()


@pytest.fixture
def client(store: str) -> "MlflowClient":
    from mlflow.tracking import MlflowClient

    return MlflowClient(store)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_is_logged_is_what_the_files_say(run: Path) -> None:
    entry, record = read_entry(run), RunFolder(run).record()
    assert entry.params["secrets"] == "secret, labels"
    assert entry.params["recipe.rounds"] == "12"
    history = pq.read_table(run / "history.parquet").to_pydict()
    assert list(entry.metrics["utility_loss"].values()) == history["utility_loss"]
    evaluated = {
        step: value for step, value in zip(history["round"], history["utility"], strict=True) if not math.isnan(value)
    }
    assert entry.metrics["utility"] == evaluated
    assert 0 < len(evaluated) < 12, "rounds that were not evaluated have no reading"
    assert entry.metrics["utility_test"] == {0: record.scores.utility}
    for score in record.scores.secrets:
        assert entry.metrics[f"{score.secret}/joint_adversary"] == {0: score.value}
    for secret in SECRETS:
        low, value, high = (
            entry.metrics[f"{secret}/{name}"][0] for name in ("strongest_low", "strongest", "strongest_high")
        )
        assert low <= value <= high
        group = json.loads(RunFolder(run).audit_file(secret, SECRETS).read_text())["worst_group"]
        logged = [entry.metrics[f"{secret}/worst_group{end}"][0] for end in ("", "_low", "_reference")]
        assert logged == [group["value"], group["ci"][0], group["reference"]]
        assert entry.tags[f"audit.{secret}.verdict"] in ("leaks", "flagged")
        assert "not the full panel" in entry.tags[f"audit.{secret}.flags"]


def test_a_known_graph_is_named_and_ones_own_is_not(run: Path) -> None:
    assert read_entry(run).params["graph"] == "(own)"
    assert "anna" not in repr(read_entry(run)) + str(run)
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace(f'"{WHERE}"', '"karate"'))
    assert read_entry(run).params["graph"] == "karate"
    before = read_entry(run).metrics
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"audited_as": "of other embeddings"}))
    assert set(before) - set(read_entry(run).metrics), "an audit of other embeddings is none of this run's"


def test_names_that_a_metric_may_not_have_stay_apart(run: Path) -> None:
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(
        text.replace('"secret": "labels"', '"secret": "a/../?"').replace('"secret": "secret"', '"secret": "a/../!"')
    )
    keys = [name for name in read_entry(run).metrics if name.endswith("/joint_adversary")]
    assert len(set(keys)) == 2
    assert not any(".." in key or key.count("/") > 1 for key in keys)


def test_a_folder_of_embed_has_no_history_and_perhaps_no_utility(run: Path) -> None:
    (run / "history.parquet").unlink()
    record = json.loads((run / "run.json").read_text())
    record["scores"] |= {"utility": None, "secrets": []}
    (run / "run.json").write_text(json.dumps(record))
    metrics = read_entry(run).metrics
    assert "labels/strongest" in metrics
    assert not {"utility_test", "utility_loss", "labels/joint_adversary"} & set(metrics)


def test_the_attack_with_the_known_links_is_logged(run: Path) -> None:
    audit = json.loads((run / "audit.json").read_text())
    assert audit["with_links"] is None
    held = {"attack": "trees", "metric": "auc", "value": 0.8, "ci": [0.7, 0.9], "chance": 0.5, "excess": None}
    (run / "audit.json").write_text(json.dumps(audit | {"with_links": held}))
    assert read_entry(run).metrics[f"{audit['secret']}/with_links"] == {0: 0.8}


@pytest.mark.parametrize("damage", ["{", '{"schema": "graphveil/audit/9"}', "[]", '{"schema": "other"}'])
def test_a_torn_audit_is_one_sentence(run: Path, damage: str) -> None:
    (run / "audit.json").write_text(damage)
    with pytest.raises(GraphveilError, match=r"cannot be logged \(audit\.json: "):
        read_entry(run)


@needs_mlflow
def test_a_run_is_logged_once_and_then_brought_up_to_date(run: Path, store: str, client: "MlflowClient") -> None:
    later = (run / "audit.json").rename(run / "later")
    first = log_run(store, run)
    assert "secret/strongest" not in client.get_run(first).data.metrics
    later.rename(run / "audit.json")
    for _ in range(2):
        assert log_run(store, run) == first
    entry, logged = read_entry(run), client.get_run(first)
    experiment = client.get_experiment_by_name("graphveil")
    assert experiment is not None
    assert len(client.search_runs([experiment.experiment_id])) == 1
    assert logged.data.params == entry.params
    assert logged.data.tags == entry.tags
    assert logged.info.status == "FINISHED"
    assert set(logged.data.metrics) == set(entry.metrics)
    for name, values in entry.metrics.items():
        assert [(one.step, one.value) for one in client.get_metric_history(first, name)] == list(values.items())


@needs_mlflow
def test_nothing_else_leaves(run: Path, store: str, tmp_path: Path) -> None:
    """Neither a path nor a user nor a file: every word of the store is read."""
    before = contents(run)
    log_run(store, run)
    assert contents(run) == before
    words = b"".join(file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())
    for forbidden in (WHERE.encode(), run.name.encode() + b"/", b"anna", b"embeddings"):
        assert forbidden not in words
    z = RunFolder(run).embeddings().z
    long = [str(value) for value in z[:, 0] if len(str(value)) > 6]  # 0.5 may stand anywhere
    assert len(long) > 10
    assert not any(value.encode() in words for value in long)
    assert not list((tmp_path / "store").rglob("artifacts/*"))


@needs_mlflow
def test_mlflows_makers_are_not_told(run: Path, store: str) -> None:
    """A name is looked up before anybody is called; the client's telemetry would look one up in a thread of its own."""
    code = (
        "import socket, sys, threading; from pathlib import Path\n"
        "resolved = []\n"
        "def refuse(host, *rest, **more): resolved.append(host); raise OSError('no network')\n"
        "socket.getaddrinfo = refuse\n"
        "from graphveil.tracking import log_run\n"
        "log_run(sys.argv[1], Path(sys.argv[2]))\n"
        "others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]\n"
        "for thread in others: thread.join(60)\n"
        "assert not resolved, resolved\n"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_CURRENT_TEST")}
    done = subprocess.run(
        [sys.executable, "-c", code, store, run], env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://anna:pass-word@127.0.0.1:{server.getsockname()[1]}"


@needs_mlflow
@pytest.mark.parametrize("address", ["closed", "silent", "gopher://somewhere", "http://nowhere.invalid"])
def test_a_fault_is_one_sentence_and_costs_nothing(
    run: Path, silent: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(run)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    uri = {"closed": "http://127.0.0.1:9", "silent": silent}.get(address, address)
    with pytest.raises(GraphveilError) as error:
        log_run(uri, run)
    sentence = str(error.value)
    assert "was not logged to" in sentence
    assert "Its files are complete" in sentence
    assert "\n" not in sentence
    assert "pass-word" not in sentence
    assert contents(run) == before
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "1"
    assert "MLFLOW_DISABLE_TELEMETRY" not in os.environ


def test_mlflow_does_not_wait_for_minutes() -> None:
    retries, seconds = (int(PATIENCE[f"MLFLOW_HTTP_REQUEST_{name}"]) for name in ("MAX_RETRIES", "TIMEOUT"))
    assert (retries + 1) * seconds <= 60


def test_without_the_package_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(GraphveilError, match=r"install the extra mlflow \(.*'\.\[mlflow\]'\)"):
        check_address("http://localhost:5000")


@pytest.mark.parametrize("between", ["", "@", "/", "/@", "@/", ":", "?#", "//", " "])
def test_nothing_of_a_password_is_said(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    with pytest.raises(GraphveilError, match="not the address of an MLflow server") as error:
        check_address(f"http://ANNA:SE{between}CRET@host:port")
    assert not [word for word in ("ANNA", "SE", "CRET") if word in str(error.value)], error.value


@pytest.mark.parametrize(
    "uri", ["", "  ", "http://", "https:///x", "http://host:port", "http://[::1", "http://anna:pw@"]
)
def test_what_is_no_address_is_refused_before_anything_runs(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    with pytest.raises(GraphveilError, match="not the address of an MLflow server") as error:
        check_address(uri)
    assert "pw" not in str(error.value)
