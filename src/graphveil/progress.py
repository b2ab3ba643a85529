"""What a person sees while training: one live line on a terminal, nothing anywhere else."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from graphveil.training.loop import Training


@contextmanager
def show_rounds(console: Console, title: str) -> Iterator[Callable[[Training], None] | None]:
    """Give an `on_round` that draws losses and validation readings, or None where nobody is looking."""
    if not console.is_terminal:
        yield None
        return
    left = TextColumn("{task.description}", markup=False)
    bar = [BarColumn(bar_width=None), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn(compact=True)]
    with Progress(left, *bar, console=console, transient=True, expand=True) as progress:
        task = progress.add_task(title, visible=False)

        def on_round(training: Training) -> None:
            told = describe(training, wide=console.width >= 80)
            total, done = training.recipe.rounds, training.round
            progress.update(task, total=total, completed=done, description=f"{title} {told}", visible=True)

        yield on_round


def describe(training: Training, wide: bool) -> str:
    """The readings of the last round that was evaluated and, where there is room, its two losses."""
    history = training.records[0].history
    evaluated = next((done for done in reversed(history) if not math.isnan(done.utility)), None)
    if evaluated is None:
        return ""
    losses = f" loss {evaluated.utility_loss:.3f}/{evaluated.secret_loss:.3f}" if wide else ""
    return f"utility {evaluated.utility:.1%} adversary {evaluated.adversary:.1%}{losses}"
