"""On a CPU a function is called as it is; `tests/test_cuda.py` states what is recorded on a GPU."""

import torch

from graphveil.training.replay import recorded


def test_on_a_cpu_nothing_is_recorded() -> None:
    calls: list[int] = []

    def step() -> None:
        calls.append(len(calls))

    again = recorded(step, torch.device("cpu"))
    for _ in range(5):
        again()
    assert again is step
    assert calls == [0, 1, 2, 3, 4]
