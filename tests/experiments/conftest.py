"""Audits that take seconds."""

from collections.abc import Iterator

import pytest

import graphveil as gv
from graphveil.auditing import classifiers, links
from graphveil.data.datasets import catalog
from graphveil.experiments import cells as cells_module
from graphveil.training import distil
from tests.cheap import untuned_regression, weaken_networks


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
