"""Training in several processes that torchrun has started: who this process is, and sums over all of them.

All processes have the same weights and draw the same mini-batches, and each works on its share of the examples of a
batch. Every sum over the examples of a batch, such as a gradient or a table of codes, is a sum over processes, so a
batch means the same for one process and for many.

torch is imported where it is needed, so that the command line can ask who it is without waiting for torch.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import DivergedError, GraphveilError, first_line

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for another one; torchrun notices a process that ended much earlier."""
REPORT_TIMEOUT = timedelta(minutes=1)
"""How long a process waits for the report of another one; writing the last good state comes before it."""


@dataclass(frozen=True)
class Processes:
    """The processes of one training.

    Args:
        rank: The number of this process, from 0.
        size: The number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and the messages."""
        return self.rank == 0

    def share(self, count: int) -> tuple["Tensor", float]:
        """Return the places of every n-th example, and their weight; see `weighted`."""
        import torch  # noqa: PLC0415

        return self.weighted(torch.arange(self.rank, count, self.size), count)

    def weighted(self, places: "Tensor", count: int) -> tuple["Tensor", float]:
        """Return the places of this process's examples, and how much of all examples these are.

        A process without examples gets the first one, with a weight of 0.

        Args:
            places: The places.
            count: The number of examples of all processes.
        """
        return (places, len(places) / count) if len(places) else (places.new_zeros(1), 0.0)

    def total(self, part: "Tensor") -> "Tensor":
        """Return the sum of a tensor over all processes.

        The gradient of the sum is passed to the part of this process, so the gradients of weights must then be summed
        over processes, too; see `add`.
        """
        import torch  # noqa: PLC0415

        if self.size == 1:
            return part
        summed = part.detach().clone()
        self._call(torch.distributed.all_reduce, summed)
        return summed + (part - part.detach())  # the sum exactly, with the gradient of this part

    def add(self, tensors: "Sequence[Tensor]") -> None:
        """Replace tensors by their sums over all processes."""
        import torch  # noqa: PLC0415

        if self.size == 1 or not tensors:
            return
        together = torch.cat([tensor.flatten() for tensor in tensors])
        self._call(torch.distributed.all_reduce, together)
        for tensor, summed in zip(tensors, together.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(summed.view(tensor.shape))

    def of_first(self, tensor: "Tensor") -> "Tensor":
        """Return the tensor of the first process; those of the others have the same shape and type."""
        import torch  # noqa: PLC0415

        if self.size > 1:
            tensor = tensor.contiguous()
            self._call(torch.distributed.broadcast, tensor, 0)
        return tensor

    def bytes_of_first(self, content: bytes) -> bytes:
        """Return the bytes of the first process."""
        import torch  # noqa: PLC0415

        if self.size == 1:
            return content
        length = int(self.of_first(torch.tensor(len(content))))
        received = torch.zeros(length, dtype=torch.uint8)
        if self.is_first:
            received = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else received
        return self.of_first(received).numpy().tobytes()

    def wait(self) -> None:
        """Wait until all processes have come here."""
        import torch  # noqa: PLC0415

        if self.size > 1:
            self._call(torch.distributed.barrier)

    def _call(self, collective: Callable[..., object], *arguments: Any) -> None:
        try:
            collective(*arguments)
        except RuntimeError as error:
            raise GraphveilError(
                f"process {self.rank} of {self.size} lost the connection to another one, which has probably ended"
                f" ({first_line(error)}): see its message, and run the same command again with --resume."
            ) from error


ALONE = Processes()


def launched() -> Processes:
    """Return which of torchrun's processes this is; without torchrun, it is alone."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return ALONE
    return Processes(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def has_begun(folder: Path) -> bool:
    """Return whether torchrun has restarted this process, which had come to `begin` with a folder before.

    An unfinished run in the folder is then of this launch of torchrun.
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return False
    with suppress(RuntimeError, ValueError):
        return bool(_store_of_launch().check([f"graphveil/begun/{folder}"]))
    return False


def begin(folder: Path) -> None:
    """Remember, until this launch of torchrun ends, that its run writes to a folder."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        with suppress(RuntimeError, ValueError):
            _store_of_launch().set(f"graphveil/begun/{folder}", "")


def current() -> Processes:
    """Return the processes that have joined, by `joined` or by the user's own `init_process_group`."""
    from torch import distributed  # noqa: PLC0415

    if not (distributed.is_available() and distributed.is_initialized()):
        return ALONE
    return Processes(distributed.get_rank(), distributed.get_world_size())


@contextmanager
def joined(device: "torch.device") -> Iterator[None]:
    """Connect the processes that torchrun has started inside; does nothing without torchrun.

    Args:
        device: The device of the training; GPU number n of a machine belongs to its process n.
    """
    import torch  # noqa: PLC0415
    from torch import distributed  # noqa: PLC0415

    processes = launched()
    if processes.size == 1 or distributed.is_initialized():
        yield
        return
    backend = "gloo"
    if device.type == "cuda":
        backend = "cpu:gloo,cuda:nccl"
        number, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if number >= count:
            raise GraphveilError(
                f"torchrun started {os.environ['LOCAL_WORLD_SIZE']} processes on a machine with {count} GPUs: expected"
                f" at most one for each GPU; lower --nproc-per-node to {count}, or give --device cpu."
            )
        torch.cuda.set_device(number)
    try:
        distributed.init_process_group(
            backend, store=_store(), rank=processes.rank, world_size=processes.size, timeout=TIMEOUT
        )
    except (RuntimeError, ValueError) as error:
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise GraphveilError(
            f"the processes of torchrun could not connect at {address} ({first_line(error)}): choose a free"
            " --master-port and an address that every machine reaches."
        ) from error
    try:
        yield
        processes.wait()  # a process that leaves early would end the others
    except (DivergedError, KeyboardInterrupt) as error:  # all processes have it, and the first knows what was kept
        if processes.is_first:
            claim_report()
        elif isinstance(error, DivergedError):
            wait_for_report()
        raise
    except BaseException:
        claim_report()
        raise
    finally:
        distributed.destroy_process_group()


def claim_report() -> bool:
    """Return whether this process reports its error: the first one that asks.

    An error of one process ends the connections of the others, so it is claimed before: the cause is reported, and not
    a lost connection.
    """
    processes = launched()
    if processes.size == 1:
        return True
    with suppress(RuntimeError, ValueError):  # the store ends with the first machine
        return int(_store().compare_set("reporter", "", str(processes.rank))) == processes.rank
    return processes.is_first


def finish_report() -> None:
    """Let the processes end that wait for the report of this one."""
    if launched().size > 1:
        with suppress(RuntimeError, ValueError):
            _store().set("reported", "")


def wait_for_report() -> None:
    """Wait until another process has reported its error: torchrun ends all processes as soon as one has ended."""
    with suppress(RuntimeError, ValueError):
        _store().wait(["reported"], REPORT_TIMEOUT)


@cache
def _store() -> Any:
    """What torchrun's processes share before they have joined.

    Its names are those of this start: after a restart, the addresses of the ended processes may still be in the store.
    """
    from torch import distributed  # noqa: PLC0415

    prefix = f"graphveil/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}"
    return distributed.PrefixStore(prefix, _store_of_launch())  # type: ignore[attr-defined]


@cache
def _store_of_launch() -> Any:
    """What the processes share that one launch of torchrun starts, also after restarts."""
    from torch import distributed  # noqa: PLC0415

    store, *_ = next(distributed.rendezvous("env://", timeout=TIMEOUT))  # type: ignore[attr-defined]
    return store
