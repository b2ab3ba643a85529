"""Run the cells of an experiment that are not there yet, and say how it goes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib

from graphveil.errors import GraphveilError, unknown
from graphveil.experiments.cells import Cell, read_result, run_cell
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import Row, comma_separated, latex, markdown, row
from graphveil.files import hold_lock, write_text


@dataclass(frozen=True)
class Asked:
    """What of an experiment is asked for; None is all of it."""

    datasets: Sequence[str] | None = None
    encoders: Sequence[str] | None = None
    seeds: int | None = None
    rounds: int | None = None


def run_experiment(
    name: str,
    experiment: Experiment,
    asked: Asked,
    out: Path,
    jobs: int = 1,
    device: str = "cpu",
    on_done: Callable[[int, int, str | None], None] | None = None,
) -> tuple[list[Row], list[tuple[Cell, str]]]:
    """Run what is missing of an experiment, and write its table as Markdown, CSV and LaTeX into `out`.

    Args:
        on_done: called with (done, total, fault or None), first with what was there already.
    """
    groups = cells(experiment, asked)
    todo = [cell for group in groups.values() for cell in group]
    folder = out / "cells"
    busy = f"another process is writing to {out}: wait for it, or choose another folder."
    with hold_lock(out / ".lock", 0, busy):
        done = sum(read_result(cell, folder) is not None for cell in todo)

        def count(_: Cell, fault: str | None) -> None:
            nonlocal done
            done += 1
            if on_done is not None:
                on_done(done, len(todo), fault)

        if on_done is not None:
            on_done(done, len(todo), None)
        failed = run_missing(todo, folder, jobs, device, count)
        rows = []
        for key, group in groups.items():
            results = [result for cell in group if (result := read_result(cell, folder)) is not None]
            if results:
                rows.append(row(experiment, key, results))
        for suffix, text in (
            ("md", markdown(rows)),
            ("csv", comma_separated(rows)),
            ("tex", latex(rows, experiment.title)),
        ):
            write_text(out / f"{name}.{suffix}", text)
    return rows, failed


def cells(experiment: Experiment, asked: Asked) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The cells of each (variant, data set, encoder, trade-off), one a seed."""
    found: dict[tuple[str, str, str, float], list[Cell]] = {}
    for dataset in _chosen("dataset", asked.datasets, experiment.datasets):
        for encoder in _chosen("encoder", asked.encoders, experiment.encoders):
            for name, variant in experiment.variants.items():
                for tradeoff in variant.tradeoffs:
                    found[name, dataset, encoder, tradeoff] = [
                        Cell(
                            dataset=dataset,
                            encoder=encoder,
                            utility=experiment.utility,
                            secret=experiment.secret,
                            objective=variant.objective,
                            tradeoff=tradeoff,
                            adversary=variant.adversary[encoder],
                            steps=variant.steps,
                            knows=variant.knows,
                            split=experiment.split,
                            message_edges=experiment.message_edges,
                            seed=seed,
                            rounds=asked.rounds,
                        )
                        for seed in range(asked.seeds or experiment.seeds)
                    ]
    return found


def run_missing(
    todo: Sequence[Cell], folder: Path, jobs: int, device: str, on_done: Callable[[Cell, str | None], None]
) -> list[tuple[Cell, str]]:
    """Run every cell whose result is not there or cannot be trusted; gives those that failed, and why.

    Args:
        on_done: called after each with the fault, if there was one.
    """
    failed: list[tuple[Cell, str]] = []
    # the quick ones first would make the estimate of the time left too bright: spread them
    missing = sorted((cell for cell in todo if read_result(cell, folder) is None), key=lambda cell: cell.key)
    work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(
        joblib.delayed(_attempt)(cell, folder, device) for cell in missing
    )
    for cell, fault in work:
        if fault is not None:
            failed.append((cell, fault))
        on_done(cell, fault)
    return failed


def _attempt(cell: Cell, folder: Path, device: str) -> tuple[Cell, str | None]:
    """One cell in a worker with one thread; a fault is a sentence, so that the others go on."""
    import torch  # noqa: PLC0415 - set in the worker, not in the parent

    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        run_cell(cell, folder, device)
    except GraphveilError as error:
        return cell, str(error)
    except Exception as error:  # whatever it is, it must not cost the other cells
        return cell, f"{type(error).__name__}: {error}"
    return cell, None


def _chosen(kind: str, asked: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for name in asked or ():
        if name not in known:
            raise unknown(kind, name, known)
    return asked or known
