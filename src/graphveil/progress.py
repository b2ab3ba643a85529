"""What a person sees while training: one live line on a terminal, nothing anywhere else."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphveil.training.loop import Training


@contextmanager
def show_rounds(console: Console, title: str) -> Iterator[Callable[[Training], None] | None]:
    """Give an `on_round` that draws losses and validation readings, or None where nobody is looking."""
    if not console.is_terminal:
        yield None
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed}/{task.total}"),
    ]
    columns += [TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)

        def on_round(training: Training) -> None:
            progress.update(
                task,
                total=training.recipe.rounds,
                completed=len(training.history),
                description=f"{title}  {describe(training)}",
            )

        yield on_round


def describe(training: Training) -> str:
    """The two losses of the last round, and the readings of the last round that was evaluated."""
    last = training.history[-1]
    text = f"loss {last.utility_loss:.3f} | {last.secret_loss:.3f}"
    evaluated = next((r for r in reversed(training.history) if not math.isnan(r.utility)), None)
    if evaluated is None:
        return text
    return f"{text}  utility {evaluated.utility:.1%}  adversary {evaluated.adversary:.1%}"
