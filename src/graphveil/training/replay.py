"""Recording a function's work on a GPU once, and replaying it without Python.

A round on a small graph is hundreds of kernels of a few microseconds each, and launching them one by one takes longer
than they run. A CUDA graph launches all of them at once.
"""

from collections.abc import Callable

import torch

WARM_UP = 3
"""Calls before recording; in them, libraries and optimisers allocate what they keep."""


class Replay:
    """A function without arguments or result that works in place on the same tensors in every call."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do once what the function does."""
        self._calls += 1
        if self._graph is None and self._calls > WARM_UP:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):  # records, and does not run
                self._function()
        if self._graph is not None:
            self._graph.replay()
            return
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # recording wants a warm-up on a stream that is not the default one
            self._function()
        torch.cuda.current_stream().wait_stream(aside)
