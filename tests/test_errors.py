"""Which errors are faults of the user, and the sentences for them."""

import pytest
import torch

from graphveil.errors import first_line, is_out_of_memory, printable, shortened, unknown


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 25600000000 bytes."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_which_errors_are_out_of_memory(error: Exception, memory: bool) -> None:
    assert is_out_of_memory(error) is memory


def test_a_name_that_is_not_in_a_table_is_answered_with_the_choices() -> None:
    assert str(unknown("encoder", "gnc", ["gcn", "gat"])) == (
        "unknown encoder 'gnc': choose one of gcn, gat. Did you mean 'gcn'?"
    )
    assert str(unknown("panel", 7, ["full"])) == "unknown panel '7': choose one of full."


def test_a_long_sentence_keeps_its_ends() -> None:
    assert shortened("a" * 20, longest=20) == "a" * 20
    short = shortened("a" * 50 + "b" * 50, longest=20)
    assert short == "aaaaaaa ... bbbbbbb"
    assert len(short) <= 20


def test_the_first_line_of_an_error_or_its_type() -> None:
    assert first_line(ValueError("\n  one \ntwo")) == "one "
    assert first_line(ValueError("")) == first_line(ValueError(" \n")) == "ValueError"


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert printable("a\x1b[2J\nü") == "a\ufffd[2J\ufffdü"
