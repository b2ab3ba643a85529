"""What a person sees while waiting: one live line on a terminal, nothing anywhere else."""

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


@contextmanager
def show_attacks(console: Console) -> Iterator[Callable[[str, int, int], None] | None]:
    """Give an `on_attack` that names the attack that runs, or None where nobody is looking."""
    if not console.is_terminal:
        yield None
        return
    columns = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=None)]
    count = TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, count, TimeRemainingColumn(compact=True), console=console, transient=True) as progress:
        task = progress.add_task("attacking", total=None)

        def on_attack(name: str, done: int, total: int) -> None:
            progress.update(task, total=total, completed=done, description=name[: max(10, console.width - 40)])

        yield on_attack


@contextmanager
def show_cells(console: Console, title: str) -> Iterator[Callable[[int, int, str | None], None] | None]:
    """Give an `on_done` that counts cells and says how long the rest will take, or None where nobody is looking."""
    if not console.is_terminal:
        yield None
        return
    columns = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=None)]
    counts = [TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn(compact=True)]
    with Progress(*columns, *counts, console=console, transient=True, speed_estimate_period=600) as progress:
        task = progress.add_task(title, total=None)
        faults = 0

        def on_done(done: int, total: int, fault: str | None) -> None:
            nonlocal faults
            faults += fault is not None
            said = f"{title}, {faults} failed" if faults else title
            progress.update(task, total=total, completed=done, description=said)

        yield on_done


def describe(training: Training, wide: bool) -> str:
    """The readings of the last round that was evaluated and, where there is room, its two losses."""
    history = training.records[0].history
    evaluated = next((done for done in reversed(history) if not math.isnan(done.utility)), None)
    if evaluated is None:
        return ""
    read = "/".join(f"{told.adversary:.1%}" for told in evaluated.secrets)
    hidden = "/".join(f"{told.loss:.3f}" for told in evaluated.secrets)
    losses = f" loss {evaluated.utility_loss:.3f}/{hidden}" if wide else ""
    return f"utility {evaluated.utility:.1%} attack {read}{losses}"
