"""When the loops are used and when the reference is, and that both train alike."""

import importlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch
from numba.core.event import Listener, install_listener
from torch_geometric.data import Data

import graphveil as gv
from graphveil import kernels
from graphveil.models.codes import CodeShape, soft_codes
from graphveil.models.sparse import Pattern, attention_shares
from graphveil.training.loop import Training
from graphveil.training.recipes import default_recipe
from graphveil.veil import Fitting

ROUNDS = 3


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    kernels.is_installed.cache_clear()
    yield
    kernels.is_installed.cache_clear()


def trained(graph: Data, split: gv.Split, encoder: str, objective: str) -> Training:
    recipe = default_recipe("links", encoder, objective)
    veil = gv.Veil(encoder=encoder, objective=objective, recipe=recipe, seed=0, device="cpu")
    training = Fitting([veil], graph, [split]).training
    for _ in range(ROUNDS):
        training.advance()
    return training


def same(one: Training, other: Training) -> bool:
    return all(value.equal(other.state()[name]) for name, value in one.state().items())


@pytest.mark.parametrize("objective", ["club", "codes"])
@pytest.mark.parametrize("encoder", ["gcn", "gat", "hgcn"])
def test_loops_and_reference_train_alike_and_each_repeats(
    small: Data, small_split: gv.Split, encoder: str, objective: str
) -> None:
    ours = trained(small, small_split, encoder, objective)
    assert same(ours, trained(small, small_split, encoder, objective))
    with kernels.reference():
        exact = trained(small, small_split, encoder, objective)
    assert not same(ours, exact), "otherwise the loops were not used"
    losses = slice(0, 2)  # weights say less: Adam moves one by 0.01 however small its gradient is
    assert torch.allclose(ours._log[:ROUNDS, losses], exact._log[:ROUNDS, losses], rtol=0, atol=2e-6)
    assert torch.allclose(ours._log[0], exact._log[0], rtol=1e-4, atol=1e-6), "the norms of all gradients"


@pytest.mark.parametrize("objective", ["club", "codes"])
def test_a_resumed_training_with_loops_ends_with_the_same_bits(
    small: Data, small_split: gv.Split, tmp_path: Path, objective: str
) -> None:
    def veil() -> gv.Veil:
        recipe = default_recipe("links", "gcn", objective).but(rounds=45, warmup=5)
        return gv.Veil(objective=objective, recipe=recipe, seed=0, device="cpu")

    def stop(training: Training) -> None:
        if training.round == 30:
            raise KeyboardInterrupt

    file = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        Fitting([veil()], small, [small_split]).run(stop, file)
    assert file.exists(), "saved in round 20"
    resumed, whole = veil(), veil()
    Fitting([resumed], small, [small_split]).run(None, file)
    Fitting([whole], small, [small_split]).run()
    assert resumed.transform(small, small_split).equal(whole.transform(small, small_split))
    assert [r.utility_loss for r in resumed.history_] == [r.utility_loss for r in whole.history_]


def test_without_numba_the_reference_trains(small: Data, small_split: gv.Split, without_numba: None) -> None:
    assert not kernels.usable(torch.zeros(1))
    without = trained(small, small_split, "gcn", "club")
    with kernels.reference():
        assert same(without, trained(small, small_split, "gcn", "club"))


def test_a_process_without_numba_or_with_it_switched_off_does_not_import_it(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('this numba must not be imported')", encoding="utf-8")
    code = (
        "import torch, json, sys; from graphveil import kernels; from graphveil.models.codes import *;"
        "q = soft_codes(torch.zeros(2, 4), CodeShape(2, 2));"
        "print(json.dumps([kernels.usable(q), q.sum().item(), 'numba' in sys.modules]))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, 2.0, False]


def test_only_numbers_of_32_bits_on_a_cpu_are_for_the_loops() -> None:
    assert kernels.usable(torch.zeros(1), torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int64))
    assert not kernels.usable(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    assert not kernels.usable(torch.zeros(1, dtype=torch.float16))
    assert not kernels.usable(torch.zeros(1, device="meta"))
    with kernels.reference(), kernels.reference():
        assert not kernels.usable(torch.zeros(1))
    assert kernels.usable(torch.zeros(1))


def test_the_reference_of_one_thread_is_not_that_of_another() -> None:
    with kernels.reference(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(kernels.usable, torch.zeros(1)).result()
        assert not kernels.usable(torch.zeros(1))


def test_float64_keeps_its_precision() -> None:
    x = torch.randn(20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda logits: soft_codes(logits, CodeShape(2, 3)), (x,))
    pattern = Pattern.from_rows(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), (2, 2))
    ends = [torch.randn(2, 1, dtype=torch.float64).requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(lambda s, r: attention_shares(s, r, pattern), tuple(ends))


def doubled(x: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    out[start:stop] = 2 * x[start:stop]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_ranges_cover_every_row_once(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(kernels.compiling, "WORTH_A_THREAD", 1)
    for entries in ([0, 0], [0, 3], [0, 0, 900, 900, 901], list(range(100))):
        crow = np.array(entries)
        x, out = np.arange(len(crow) - 1), np.full(len(crow) - 1, -1)
        kernels.compiling.over_rows(crow, doubled, x, out)
        assert out.tolist() == (2 * x).tolist()
        out[:] = -1
        kernels.compiling.over(len(x), len(x), doubled, x, out)
        assert out.tolist() == (2 * x).tolist()


def test_an_error_in_another_thread_is_raised_here() -> None:
    def fails(start: int, stop: int) -> None:
        if start > 0:
            raise ValueError(f"rows {start} to {stop}")

    with pytest.raises(ValueError, match="rows 2 to 4"):
        kernels.compiling.run_ranges([0, 2, 4], fails)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    out = np.zeros(4)
    kernels.compiling.run_ranges([0, 2, 4], doubled, np.ones(4), out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about a fork beside threads
        child = os.fork()
    if child == 0:
        kernels.compiling.run_ranges([0, 2, 4], doubled, np.ones(4), out)
        os._exit(int(out.sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8


class Interrupt(Listener):
    """Ctrl-C as soon as numba begins."""

    def on_start(self, event: object) -> None:  # noqa: ARG002 - numba passes it
        signal.raise_signal(signal.SIGINT)

    def on_end(self, event: object) -> None:
        pass


def test_an_interrupt_while_a_loop_is_compiled_comes_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM calls back into Python, and a KeyboardInterrupt there would be printed and lost."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # an earlier run of this test has stored the loop

    def interrupted(x: np.ndarray) -> float:
        return float(x[0])

    loop: Any = kernels.compiling.compiled(interrupted)
    with pytest.raises(KeyboardInterrupt), install_listener("numba:compile", Interrupt()):
        loop(np.ones(1))
    assert len(loop.signatures) == 1
    assert loop(np.ones(1)) == 1


LOOP = """
def loop(x):
    return x[0]
"""


def test_a_stored_loop_is_compiled_again_after_a_change_in_any_file_of_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may call functions of another file."""
    (tmp_path / "loops_of_a_test.py").write_text(LOOP, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    source = importlib.import_module("loops_of_a_test").loop

    def hits() -> int:
        loop = kernels.compiling.compiled(source)
        assert loop(np.ones(1)) == 1
        return sum(loop.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    monkeypatch.setattr(kernels.compiling, "_digest_of_loops", lambda: "of changed files")
    assert [hits(), hits()] == [0, 1]


@pytest.mark.parametrize(("encoder", "rate"), [("hgcn", 1e3), ("gat", 1e15), ("gcn", 1e20)])
def test_a_diverging_training_ends_in_its_sentence(
    small: Data, small_split: gv.Split, encoder: str, rate: float
) -> None:
    recipe = default_recipe("links", encoder, "club").but(rounds=40, lr_encoder=rate)
    veils = [gv.Veil(encoder=encoder, objective="club", recipe=recipe, seed=seed, device="cpu") for seed in (0, 1)]
    with pytest.raises(gv.GraphveilError, match="training diverged in round"):
        veils[0].fit(small, small_split)
    with pytest.raises(gv.GraphveilError, match="2 of 2 runs diverged"):
        gv.fit_together(veils, small, [small_split, small_split])
