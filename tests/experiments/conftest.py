"""Workers that import nothing."""

import pytest

from graphveil.experiments import workers
from tests.forked import Forks


@pytest.fixture
def forked_workers(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from the server of `forks`; it is their parent, so they do not watch the parent."""
    monkeypatch.setattr("joblib.externals.loky.backend.context._DEFAULT_START_METHOD", "forkserver")
    monkeypatch.setattr(workers, "_watch", watch_nothing)


def watch_nothing(parent: int) -> None:
    """An initializer of a worker."""
