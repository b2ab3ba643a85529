"""Cheap stand-ins, for tests whose facts do not depend on them: a pool without processes, and weak attacks."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from joblib.externals.loky.cloudpickle_wrapper import dumps, loads

from graphveil.auditing import classifiers, networks

LOGISTIC_REGRESSION = classifiers.logistic_regression()


class InThisProcess:
    """A pool that runs work at once in this process, after sending it through the pickle of the real pool.

    A worker of the real pool is a new interpreter, which imports everything for seconds.
    """

    def submit(self, work: Callable[[Path], Any], folder: Path) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(loads(dumps(work))(folder))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None:
        """There is no process to end."""


def untuned_regression() -> classifiers.Sklearn:
    """Logistic regression with one setting; tuning it takes most of the time of a quick panel on a small graph."""
    return classifiers.Sklearn(LOGISTIC_REGRESSION.grid[:1])


def weaken_networks(patch: pytest.MonkeyPatch) -> None:
    """Give networks one setting and two epochs; on separable data they would use all of their 200."""
    for name in ("mlp", "untuned_mlp", "bilinear"):
        network = getattr(networks, name)()
        weak = replace(network, grid=network.grid[:1], epochs=2)
        patch.setattr(networks, name, lambda weak=weak: weak)


def untuned_attacks() -> None:
    """Audits with untuned attacks, as `before` of a forked program."""
    classifiers.logistic_regression = untuned_regression  # type: ignore[assignment]
