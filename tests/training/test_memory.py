"""Freed memory is kept inside, and returned to the system at the end, whatever happens inside."""

import ctypes
import sys
from types import SimpleNamespace

import pytest

from graphveil.training.memory import keep_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has mallopt")
def test_memory_is_returned_after_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """M_TRIM_THRESHOLD is -1 and M_MMAP_MAX is -4 in malloc.h."""
    options: dict[int, int] = {}
    trimmed: list[int] = []
    library = SimpleNamespace(mallopt=options.__setitem__, malloc_trim=trimmed.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)

    def fail_inside() -> None:
        with keep_freed_memory():
            assert options == {-1: -1, -4: 0}
            assert trimmed == []
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_inside()
    assert options == {-1: 64 << 20, -4: 65536}
    assert trimmed == [0]
