"""What tests of several verbs share."""

import pytest
from torch_geometric.data import Data

from graphveil.auditing import Audit, audit, classifiers
from graphveil.data import Split
from graphveil.experiments import cells
from tests.cheap import untuned_regression


@pytest.fixture
def cheap_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells have the quick panel and no map: `experiments/test_reproduce.py` says which of them have the full one."""

    def quick(z: object, graph: Data, split: Split, secret: str, panel: str, *rest: object, **more: object) -> Audit:
        assert panel in ("quick", "full")
        return audit(z, graph, split, secret, "quick", *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "audit", quick)
    monkeypatch.setattr(cells, "draw", lambda *_: None)
    monkeypatch.setattr(classifiers, "logistic_regression", untuned_regression)
