"""Where the time of a round goes on a CPU: `python -m benchmarks.kernels pubmed gcn`.

Prints the operations of a round with the bytes of their operands and their time, for docs/explanation/kernels.md.
"""

import math
import sys
from contextlib import nullcontext
from typing import Annotated

import torch
import typer
from torch.profiler import ProfilerActivity, profile

import graphveil as gv
from benchmarks.cell import PAPERS_ADVERSARY, load_graph
from graphveil import kernels
from graphveil.training.memory import keep_freed_memory
from graphveil.training.recipes import default_recipe
from graphveil.veil import Fitting

WARM_UP, ROUNDS = 5, 20


def main(
    graph: Annotated[str, typer.Argument(help="A graph as of `benchmarks.cell`.")],
    encoder: Annotated[str, typer.Argument(help="The name of the encoder.")],
    objective: Annotated[str, typer.Option(help="The objective.")] = "club",
    rows: Annotated[int, typer.Option(help="How many operations to print.")] = 12,
    reference: Annotated[bool, typer.Option(help="Profile the reference instead of the loops.")] = False,
) -> None:
    """Print a Markdown table of the operations that take longest, with one thread."""
    torch.set_num_threads(1)
    data = load_graph(graph)
    recipe = default_recipe("links", encoder, objective).but(rounds=2000)
    adversary = PAPERS_ADVERSARY if objective == "club" else None
    veil = gv.Veil(encoder=encoder, objective=objective, adversary=adversary, recipe=recipe, device="cpu")
    training = Fitting([veil], data, [gv.Split.paper(data, 0)]).training
    with keep_freed_memory(), kernels.reference() if reference else nullcontext():
        for _ in range(WARM_UP):
            training.advance()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
            for _ in range(ROUNDS):
                training.advance()
    found = sorted(
        profiled.key_averages(group_by_input_shape=True), key=lambda event: event.self_cpu_time_total, reverse=True
    )
    sys.stdout.write("| operation | operands | calls | MB | ms | % |\n|---|---|---|---|---|---|\n")
    total = sum(event.self_cpu_time_total for event in found) / 1000 / ROUNDS
    for event in found[:rows]:
        shapes = [shape for shape in event.input_shapes if shape]
        megabytes = 4e-6 * sum(math.prod(shape) for shape in shapes) * event.count / ROUNDS
        named = " ".join("x".join(map(str, shape)) for shape in shapes[:3])
        name = event.key.removeprefix("aten::").strip("_")
        milliseconds = event.self_cpu_time_total / 1000 / ROUNDS
        calls, share = event.count / ROUNDS, 100 * milliseconds / total
        sys.stdout.write(f"| {name} | {named} | {calls:.0f} | {megabytes:.1f} | {milliseconds:.2f} | {share:.0f} |\n")
    sys.stdout.write(f"| all | | | | {total:.2f} | |\n")


if __name__ == "__main__":
    typer.run(main)
