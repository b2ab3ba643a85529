"""Workers that import nothing, and audits that take seconds."""

from collections.abc import Iterator

import pytest

import graphveil as gv
from graphveil.auditing import classifiers, links
from graphveil.data.datasets import catalog
from graphveil.experiments import cells as cells_module
from graphveil.experiments import workers
from graphveil.training import distil
from tests.cheap import untuned_regression, weaken_networks


@pytest.fixture
def forked_workers(forked_pool: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from a server; it is their parent, so they do not watch the parent."""
    monkeypatch.setattr(workers, "_watch", watch_nothing)


def watch_nothing(parent: int) -> None:
    """An initializer of a worker."""


@pytest.fixture
def small_audits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`synthetic` has a third of its links, students learn in few steps, attacks are weak, and no map is drawn."""
    monkeypatch.setattr(distil, "STUDENT_STEPS", 10)
    weaken_networks(monkeypatch)
    monkeypatch.setattr(classifiers, "logistic_regression", untuned_regression)
    monkeypatch.setattr(links, "MAX_KNOWN_PAIRS_QUICK", 600)
    monkeypatch.setattr(cells_module, "draw", lambda *_: None)
    spec = gv.GraphSpec(num_nodes=1700, num_edges=2000, num_features=100)
    monkeypatch.setitem(catalog.BUILT_IN, "synthetic", (lambda: gv.generate(spec), "a smaller one"))
    cells_module._open.cache_clear()
    yield
    cells_module._open.cache_clear()
