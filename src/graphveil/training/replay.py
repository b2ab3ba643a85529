"""Record the work of a function on a GPU once, and replay it without Python.

A round on a small graph is hundreds of kernels of a few microseconds each, and launching them one by one takes longer
than running them. A CUDA graph launches all of them at once.
"""

import gc
from collections.abc import Callable

import torch

WARM_UP = 3
"""Calls before recording, in which libraries and optimisers allocate their state."""


def recorded(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Return a function for many calls: recorded on a GPU, unchanged on a CPU."""
    return Replay(function, device) if device.type == "cuda" else function


class Replay:
    """A function without arguments or result that works in place on the same tensors in every call."""

    def __init__(self, function: Callable[[], None], device: torch.device) -> None:
        self._function, self._device = function, device
        self._stream = torch.cuda.Stream(device)  # recording needs a stream other than the default one
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Call the function, or replay its recording."""
        with torch.cuda.device(self._device):
            if self._calls < WARM_UP:
                self._warm_up()
            elif self._graph is None:
                self._graph = self._record()
            if self._graph is not None:
                self._graph.replay()
        self._calls += 1

    def _record(self) -> torch.cuda.CUDAGraph:
        """Record the function without running it.

        Recording fails if Python frees the memory of an earlier graph meanwhile.
        """
        graph, was_enabled = torch.cuda.CUDAGraph(), gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._function()
        finally:
            if was_enabled:
                gc.enable()
        return graph

    def _warm_up(self) -> None:
        default = torch.cuda.current_stream()
        self._stream.wait_stream(default)
        with torch.cuda.stream(self._stream):
            self._function()
        default.wait_stream(self._stream)
