"""Progress of long operations: one live line on a terminal, and nothing if the output is not a terminal."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from graphveil.training.loop import Training


@contextmanager
def show_rounds(console: Console, title: str) -> Iterator[Callable[[Training], None] | None]:
    """Yield an `on_round` callback that shows validation values and losses; None if there is no terminal."""
    if not console.is_terminal:
        yield None
        return
    left = TextColumn("{task.description}", markup=False)
    bar = [BarColumn(bar_width=None), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn(compact=True)]
    with Progress(left, *bar, console=console, transient=True, expand=True) as progress:
        task = progress.add_task(title, visible=False)

        def on_round(training: Training) -> None:
            values = describe(training, wide=console.width >= 80)
            total, done = training.recipe.rounds, training.round
            progress.update(task, total=total, completed=done, description=f"{title} {values}", visible=True)

        yield on_round


@contextmanager
def show_attacks(console: Console) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield an `on_attack` callback that shows the running attack; None if there is no terminal."""
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
    """Yield an `on_done` callback that shows finished cells and the remaining time; None if there is no terminal."""
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
            description = f"{title}, {faults} failed" if faults else title
            progress.update(task, total=total, completed=done, description=description)

        yield on_done


def describe(training: Training, wide: bool) -> str:
    """Return the validation values of the last evaluated round and, if `wide`, its losses."""
    history = training.records[0].history
    evaluated = next((record for record in reversed(history) if not math.isnan(record.utility)), None)
    if evaluated is None:
        return ""
    attacks = "/".join(f"{secret.adversary:.1%}" for secret in evaluated.secrets)
    secret_losses = "/".join(f"{secret.loss:.3f}" for secret in evaluated.secrets)
    losses = f" loss {evaluated.utility_loss:.3f}/{secret_losses}" if wide else ""
    return f"utility {evaluated.utility:.1%} attack {attacks}{losses}"
