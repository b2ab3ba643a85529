"""Threads that would spin are not used, and the number of threads is restored."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from graphveil.training import threads
from graphveil.training.threads import LARGE, suitable_threads

ORDER = "import {0}, {1}, os, graphveil; print(graphveil.THREADS_SPIN, os.environ['GOMP_SPINCOUNT'])"


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("spin", "links", "inside"), [(True, 10, 1), (False, 10, 2), (True, LARGE + 1, 2)])
def test_one_thread_if_several_would_spin(
    spin: bool, links: int, inside: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "THREADS_SPIN", spin)

    def train() -> None:
        with suitable_threads(links):
            assert torch.get_num_threads() == inside
            raise KeyError

    with caplog.at_level(logging.INFO), pytest.raises(KeyError):
        train()
    assert torch.get_num_threads() == 2
    assert ("training uses 1 thread" in caplog.text) == (inside == 1)


@pytest.mark.parametrize(("first", "second", "spin"), [("torch", "graphveil", True), ("graphveil", "torch", False)])
def test_the_order_of_imports_decides(first: str, second: str, spin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    script = ORDER.format(first, second)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(spin), "1000"]
