"""Workers that import nothing."""

import pytest

from graphveil.experiments import workers


@pytest.fixture
def forked_workers(forked_pool: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked from a server; it is their parent, so they do not watch the parent."""
    monkeypatch.setattr(workers, "_watch", watch_nothing)


def watch_nothing(parent: int) -> None:
    """An initializer of a worker."""
