"""Code that runs in several processes which have joined, as torchrun's do, but forked and on one machine."""

import secrets
from pathlib import Path

from tests.forked import Forks, Program

JOIN = """
import torch
from torch import distributed
torch.set_num_threads(1)
distributed.init_process_group("gloo", store=distributed.FileStore({store!r}, {size}), rank={rank}, world_size={size})
"""
LEAVE = """
distributed.barrier()
distributed.destroy_process_group()
"""


def start_together(forks: Forks, code: str, folder: Path, size: int = 2, leave: str = LEAVE) -> list[Program]:
    """Start the code in processes that have joined; its variable `rank` is the number of the process."""
    store = str(folder / secrets.token_hex(4))
    join = [JOIN.format(store=store, size=size, rank=rank) + f"rank = {rank}\n" for rank in range(size)]
    return [forks.start_script(start + code + leave) for start in join]


def run_together(forks: Forks, code: str, folder: Path, size: int = 2) -> list[str]:
    """Run the code to its end; what each process printed."""
    programs = start_together(forks, code, folder, size)
    for program in programs:
        assert program.wait() == 0, program.said
    return [program.printed for program in programs]
