"""What tests of several packages share: three generated graphs, programs, and a trained run on two tables."""

import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil import cli, pool
from graphveil.auditing import Audit, audit, classifiers
from graphveil.data import Split
from graphveil.data.datasets.catalog import open_graph
from graphveil.experiments import cells
from graphveil.runs.audit import audit_run
from graphveil.runs.protect import protect
from tests.cheap import InThisProcess, untuned_regression
from tests.forked import Forks
from tests.program import Done
from tests.release.made import READING, SECRETS, drawn, write_tables

torch.set_num_threads(1)  # like the other libraries, see tests/__init__.py
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would children


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Forks:
    """Starts programs that have imported everything already."""
    return Forks(tmp_path_factory.mktemp("said"))


@pytest.fixture
def forked_pool(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of joblib are forked from the server of `forks`, which has imported everything."""
    monkeypatch.setattr("joblib.externals.loky.backend.context._DEFAULT_START_METHOD", "forkserver")


@pytest.fixture
def forked_workers(forked_pool: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from a server; it is their parent, so they do not watch the parent."""
    monkeypatch.setattr(pool, "_watch", watch_nothing)


def watch_nothing(parent: int) -> None:
    """An initializer of a worker."""


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells and candidates run in this process; `test_pool.py` has real workers."""
    monkeypatch.setattr(pool, "ProcessPoolExecutor", lambda **_: InThisProcess())


@pytest.fixture
def cheap_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells have the quick panel and no map: `experiments/test_reproduce.py` says which of them have the full one."""

    def quick(z: object, graph: Data, split: Split, secret: str, panel: str, *rest: object, **more: object) -> Audit:
        assert panel in ("quick", "full")
        return audit(z, graph, split, secret, "quick", *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "audit", quick)
    monkeypatch.setattr(cells, "draw", lambda *_: None)
    monkeypatch.setattr(classifiers, "logistic_regression", untuned_regression)


@pytest.fixture(scope="session")
def graph() -> Data:
    """A generated graph that is large enough for the paper's split."""
    return gv.generate(gv.GraphSpec(num_nodes=1800, num_edges=5000, num_features=120, num_classes=4), seed=3)


@pytest.fixture(scope="session")
def split(graph: Data) -> gv.Split:
    return gv.Split.paper(graph, seed=1)


@pytest.fixture(scope="session")
def small() -> Data:
    """A generated graph on which a hundred rounds take a second."""
    return gv.generate(gv.GraphSpec(num_nodes=150, num_edges=500, num_features=40, num_classes=3), seed=5)


@pytest.fixture(scope="session")
def small_split(small: Data) -> gv.Split:
    return gv.Split.proportional(small, seed=2)


@pytest.fixture(scope="session")
def planted() -> Data:
    """600 nodes of three classes, whose links say more than the classes do."""
    return gv.generate(gv.GraphSpec(num_nodes=600, num_edges=2400, num_features=60, num_classes=3), seed=2)


@pytest.fixture(scope="session")
def parts(planted: Data) -> gv.Split:
    return gv.Split.proportional(planted, 0)


@pytest.fixture(scope="session")
def quick() -> gv.Recipe:
    """A recipe for a training of a second."""
    return gv.Recipe(rounds=12, hidden_channels=8, out_channels=4, evaluate_every=3, warmup=3, patience=12)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("own") / "tables", *drawn(0))


@pytest.fixture(scope="session")
def trained(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps the guild, hides tribe and links, and passes messages along all links."""
    out = tmp_path_factory.mktemp("run") / "trained"
    graph = open_graph(str(tables), READING)
    split = Split.proportional(graph, 4, message_edges="all", targets=["labels", *SECRETS])
    short = {"rounds": 30, "hidden_channels": 16, "out_channels": 6, "evaluate_every": 5, "warmup": 5, "patience": 30}
    recipe = gv.Veil(utility="labels", secret=SECRETS, objective="club").recipe.but(**short)
    veil = gv.Veil("labels", SECRETS, objective="club", recipe=recipe, seed=4, device="cpu")
    source = {"graph": str(tables), "reading": asdict(READING), "split": "proportional"}
    protect(veil, graph, split, out, source=source)
    audit_run(out, attacks="quick")
    return out


@pytest.fixture
def graphveil(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The program in this process, since importing torch anew takes seconds."""

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["graphveil", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.run()
        out, err = capfd.readouterr()
        return Done(int(left.value.code or 0), out, err)

    monkeypatch.setenv("COLUMNS", "200")
    return call
