"""Progress of long operations: a live line on a terminal; otherwise a line at the start, then one in ten seconds."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from graphveil.data.sentences import plural
from graphveil.training.loop import Training

INTERVAL = 10.0
"""Seconds between two lines if the output is not a terminal."""

OnRound = Callable[[Training], None]
OnAttack = Callable[[str, int, int], None]
OnCell = Callable[[int, int, str | None], None]


class Lines:
    """Prints plain lines, such as into a log.

    Args:
        console: Where to print.
    """

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, -math.inf

    def show(self, line: Callable[[], str]) -> None:
        """Print a line, unless the last one is less than `INTERVAL` seconds old.

        Args:
            line: Called for the text if it is printed.
        """
        if time.monotonic() >= self._next:
            self.always(line())

    def always(self, line: str) -> None:
        """Print a line."""
        self._next = time.monotonic() + INTERVAL
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def show_rounds(console: Console, title: str) -> Iterator[OnRound]:
    """Yield an `on_round` callback that shows validation values and, if there is room, losses."""
    if not console.is_terminal:
        lines = Lines(console)

        def print_round(training: Training) -> None:
            lines.show(lambda: _logged(title, training))

        yield print_round
        return
    with _live(console, expand=True) as progress:
        task = progress.add_task(title, visible=False)

        def on_round(training: Training) -> None:
            values = describe(training, wide=console.width >= 80)
            total, done = training.recipe.rounds, training.round
            progress.update(task, total=total, completed=done, description=f"{title} {values}", visible=True)

        yield on_round


@contextmanager
def show_attacks(console: Console) -> Iterator[OnAttack]:
    """Yield an `on_attack` callback that shows the running attack."""
    if not console.is_terminal:
        lines = Lines(console)
        yield lambda name, done, total: lines.show(lambda: f"audit: {done} of {total} attacks done, now {name}")
        return
    with _live(console) as progress:
        task = progress.add_task("attacking", total=None)

        def on_attack(name: str, done: int, total: int) -> None:
            progress.update(task, total=total, completed=done, description=name[: max(10, console.width - 40)])

        yield on_attack


@contextmanager
def show_cells(console: Console, title: str, noun: str, jobs: int) -> Iterator[OnCell]:
    """Yield an `on_done` callback that shows how many cells there are, how long they will take, and those finished.

    Args:
        console: Where to print.
        title: The name of the command or the experiment.
        noun: What a cell is called.
        jobs: The number of parallel processes, for the estimate.
    """
    estimate, lines, faults = Estimate(title, noun, jobs), Lines(console), 0
    with nullcontext() if not console.is_terminal else _live(console, speed_estimate_period=600) as progress:
        task = None if progress is None else progress.add_task(title, total=None)

        def on_done(done: int, total: int, fault: str | None) -> None:
            nonlocal faults
            faults += fault is not None
            if (sentence := estimate.after(done, total)) is not None:
                lines.always(sentence)
            description = f"{title}, {faults} failed" if faults else title
            if progress is not None and task is not None:
                progress.update(task, total=total, completed=done, description=description)
            else:
                lines.show(lambda: f"{description}: {done} of {plural(total, noun)} done")

        yield on_done


class Estimate:
    """How many cells there are and, after the first one, how long the others will take.

    Args:
        title: The name of the command or the experiment.
        noun: What a cell is called.
        jobs: The number of parallel processes.
    """

    def __init__(self, title: str, noun: str, jobs: int) -> None:
        self._title, self._noun, self._jobs = title, noun, jobs
        self._started: float | None = None
        self._stated = False

    def after(self, done: int, total: int) -> str | None:
        """Return a sentence at the start and after the first cell, and None after that.

        Args:
            done: The number of finished cells; at the start, of those that had been finished before.
            total: The number of all cells.
        """
        now, left = time.monotonic(), total - done
        if self._started is None:
            self._started = now
            before = f", {done:,} of them finished before" if done else ""
            return f"{self._title}: {plural(total, self._noun)}{before}"
        if self._stated or not left:
            return None
        self._stated = True
        seconds = (now - self._started) * math.ceil(left / self._jobs)
        return f"{self._title}: the remaining {plural(left, self._noun)} will take about {_duration(seconds)}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _live(console: Console, expand: bool = False, speed_estimate_period: float = 30) -> Progress:
    """A live line: a description, a bar, a count and the remaining time."""
    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=None)]
    columns += [TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn(compact=True)]
    return Progress(
        *columns, console=console, transient=True, expand=expand, speed_estimate_period=speed_estimate_period
    )


def _logged(title: str, training: Training) -> str:
    count = f"round {training.round:,} of {training.recipe.rounds:,}"
    return f"{title}: {count} {describe(training, wide=True)}".rstrip()


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
