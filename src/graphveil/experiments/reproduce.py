"""Run the missing cells of experiments, report progress, and write their tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphveil.errors import OUT_OF_MEMORY, GraphveilError, is_out_of_memory, unknown
from graphveil.experiments.cell_embeddings import keep, read_kept, train
from graphveil.experiments.cells import Cell, finish, read_result
from graphveil.experiments.cluster import check_address
from graphveil.experiments.front import write_front
from graphveil.experiments.peers import PEERS
from graphveil.experiments.render import comma_separated, latex, markdown
from graphveil.experiments.result_file import experiment_record
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import Row, row
from graphveil.experiments.workers import Workers, finishing, workers
from graphveil.files import check_output_folder, hold_lock, write_text
from graphveil.formats.experiment import SWEEP
from graphveil.formats.store import write
from graphveil.pool import Pool
from graphveil.training.inputs import pick_device

OnDone = Callable[[int, int, str | None], None]

ROWS_AT_ONCE = 250_000
"""The maximum number of nodes in a batch, over all its runs."""
CELLS_AT_ONCE = 12
"""The maximum number of cells in a batch: the work for each cell alone would otherwise take longer than the rest."""
MOST_TRAINERS = 12
"""Processes that train on one GPU at most; more have to wait for each other."""
NOT_WRITTEN = "its worker wrote no result of this configuration: install the same versions on all machines"


@dataclass(frozen=True)
class Selection:
    """The part of an experiment to run; None selects everything.

    Args:
        datasets: names of graphs.
        encoders: names of encoders.
        variants: names of variants and peers.
        seeds: the number of seeds; None for that of the experiment.
        rounds: the number of rounds for a test run; None for that of the recipe.
    """

    datasets: Sequence[str] | None = None
    encoders: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    seeds: int | None = None
    rounds: int | None = None


def run_experiments(
    experiments: Mapping[str, Experiment],
    selection: Selection,
    out: Path,
    jobs: int = 1,
    device: str = "cpu",
    on_done: OnDone | None = None,
    reaudit: bool = False,
    ray: str | None = None,
) -> tuple[dict[str, list[Row]], list[tuple[Cell, str]]]:
    """Run the missing cells of experiments, and write their tables as Markdown, CSV and LaTeX.

    The embeddings of the cells on the front of a sweep are written too, as Parquet tables in `out / "front"`.

    A peer whose optional package is not installed is skipped, unless its results exist. If the selection sets the
    number of rounds, the results are not compared with the paper.

    Args:
        experiments: the experiments by the names of their files.
        selection: the part of them to run.
        out: the folder of the tables; cells are in its subfolder `cells`.
        jobs: the number of processes.
        device: "cpu", "cuda" or "auto".
        on_done: called with (done, total, error message or None), first with the number of existing results.
        reaudit: audit all stored embeddings again, also those of cells with a result.
        ray: the address of a Ray cluster that runs the cells; see `cluster.Cluster`.

    Returns:
        The rows of each table, and the cells that failed with their error messages.
    """
    check_address(ray)
    check_folder(out)
    groups = {name: cells(one, selection, str(pick_device(device))) for name, one in experiments.items()}
    folder = out / "cells"
    all_cells = dict.fromkeys(cell for of_one in groups.values() for group in of_one.values() for cell in group)
    todo = [cell for cell in all_cells if _can_run(cell) or _has_run(cell, folder)]
    busy = f"another process is writing to {out}: wait for it, or choose another folder."
    # taking the second lock removes the incomplete files that killed workers left in the folder
    with hold_lock(out / ".lock", 0, busy), hold_lock(folder / ".lock", 0, busy):
        again = {cell for cell in todo if reaudit and read_kept(cell, folder) is not None}
        done = sum(cell not in again and read_result(cell, folder) is not None for cell in todo)

        def count(_: Cell, fault: str | None) -> None:
            nonlocal done
            done += 1
            if on_done is not None:
                on_done(done, len(todo), fault)

        if on_done is not None:
            on_done(done, len(todo), None)
        failed = run_missing(todo, folder, jobs, count, again, ray)
        tables = {name: _write_tables(name, experiments[name], groups[name], selection, out, failed) for name in groups}
    return tables, failed


def _write_tables(
    name: str,
    experiment: Experiment,
    groups: Mapping[tuple[str, str, str, float], Sequence[Cell]],
    selection: Selection,
    out: Path,
    failed: Sequence[tuple[Cell, str]],
) -> list[Row]:
    """Write the tables of one experiment from the results of its cells; returns their rows."""
    found = {
        key: [result for cell in group if (result := read_result(cell, out / "cells")) is not None]
        for key, group in groups.items()
    }
    found = {key: results for key, results in found.items() if results}
    keys = [(key, secret) for key in found for secret in experiment.secrets]
    rows = [row(experiment, key, secret, found[key], judge=selection.rounds is None) for key, secret in keys]
    for suffix, text in (
        ("md", markdown(rows)),
        ("csv", comma_separated(rows)),
        ("tex", latex(rows, experiment.title)),
    ):
        write_text(out / f"{name}.{suffix}", text)
    results = [found[key] for key, _ in keys]
    own = {cell for group in groups.values() for cell in group}
    faults = [(cell, fault) for cell, fault in failed if cell in own]
    write(out / f"{name}.json", experiment_record(name, experiment, rows, results, faults, asdict(selection)))
    if name == SWEEP:
        write_front(rows, [groups[key] for key, _ in keys], out)
    return rows


def check_folder(out: Path) -> None:
    """Refuse a folder with other files; a folder with cells or with Table 1 is accepted."""
    check_output_folder(out, ("cells", "table1.json"))


def select(experiments: Mapping[str, Experiment], selection: Selection) -> dict[str, Experiment]:
    """The experiments that have a selected variant, reduced to the selected variants.

    Args:
        experiments: experiments by name.
        selection: the part of them to run.

    Raises:
        GraphveilError: if no experiment has a selected name.
    """
    known = {name for experiment in experiments.values() for name in (*experiment.variants, *experiment.peers)}
    _chosen("variant", selection.variants, sorted(known))
    chosen = {
        name: replace(
            experiment,
            variants=_only(experiment.variants, selection.variants),
            peers=_only(experiment.peers, selection.variants),
        )
        for name, experiment in experiments.items()
    }
    chosen = {name: experiment for name, experiment in chosen.items() if experiment.variants or experiment.peers}
    for experiment in chosen.values():
        cells(experiment, selection)  # refuse an unknown data set or encoder before anything runs
    return chosen


def cells(
    experiment: Experiment, selection: Selection, device: str = "cpu"
) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The cells of each (variant, data set, encoder, trade-off), one for each seed, and those of the peers.

    Args:
        experiment: the experiment.
        selection: the part of it to run.
        device: the device of the variants; peers run on the CPU.
    """
    found: dict[tuple[str, str, str, float], list[Cell]] = {}
    for dataset in _chosen("dataset", selection.datasets, experiment.datasets):
        for encoder in _chosen("encoder", selection.encoders, experiment.encoders):
            for name, variant in experiment.variants.items():
                for tradeoff in variant.tradeoffs:
                    found[name, dataset, encoder, tradeoff] = [
                        Cell(
                            dataset=dataset,
                            encoder=encoder,
                            utility=experiment.utility,
                            secrets=tuple(experiment.secrets),
                            objective=variant.objective,
                            tradeoff=tradeoff,
                            adversary=variant.adversary[encoder],
                            steps=variant.steps,
                            knows=variant.knows,
                            split=experiment.split,
                            message_edges=experiment.message_edges,
                            seed=seed,
                            device=device,
                            length=variant.length,
                            panel=variant.panel,
                            settings=tuple(variant.settings),
                            rounds=selection.rounds,
                            source=experiment.source,
                        )
                        for seed in range(selection.seeds or experiment.seeds)
                    ]
        found |= _peer_cells(experiment, selection, dataset)
    return found


def _peer_cells(
    experiment: Experiment, selection: Selection, dataset: str
) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The cells of each (peer, data set, encoder of the peer, epsilon); selected encoders do not matter."""
    return {
        (name, dataset, PEERS[name].encoder, epsilon): [
            Cell(
                dataset=dataset,
                encoder=PEERS[name].encoder,
                utility=experiment.utility,
                secrets=tuple(experiment.secrets),
                objective=name,
                tradeoff=1.0,
                adversary=None,
                steps=1,
                knows="all",
                split=experiment.split,
                message_edges=experiment.message_edges,
                seed=seed,
                rounds=selection.rounds,
                source=experiment.source,
                epsilon=epsilon,
            )
            for seed in range(selection.seeds or experiment.seeds)
        ]
        for name, epsilons in experiment.peers.items()
        for epsilon in epsilons
    }


def _has_run(cell: Cell, folder: Path) -> bool:
    return read_result(cell, folder) is not None or read_kept(cell, folder) is not None


def _can_run(cell: Cell) -> bool:
    return cell.epsilon is None or PEERS[cell.objective].is_installed


def run_missing(
    todo: Sequence[Cell],
    folder: Path,
    jobs: int,
    on_done: Callable[[Cell, str | None], None],
    again: Collection[Cell] = (),
    ray: str | None = None,
) -> list[tuple[Cell, str]]:
    """Run every cell without a valid result.

    A cell with stored embeddings is audited without training. On a CPU every process trains and audits. On a GPU some
    processes of this machine train batches of cells, the largest graphs first, and others audit at the same time.

    Args:
        todo: the cells to run.
        folder: the folder of the results.
        jobs: the number of processes; on a GPU, at most `MOST_TRAINERS` more of them train.
        on_done: called after each cell with the error message, or None.
        again: cells to audit even if they have a result.
        ray: the address of a Ray cluster, whose processes take the place of those of this machine.

    Returns:
        The cells that failed, with their error messages.
    """
    failed: list[tuple[Cell, str]] = []

    def settle(cell: Cell, result: str | GraphveilError | None) -> None:
        fault = None if result is None else str(result)
        if fault is None and ray is not None and not cell.file(folder).exists():
            fault = NOT_WRITTEN
        if fault is not None:
            failed.append((cell, fault))
        on_done(cell, fault)

    # in random order, because quick cells first would make the estimate of the remaining time too low
    missing = [cell for cell in todo if cell in again or read_result(cell, folder) is None]
    missing.sort(key=lambda cell: cell.key)
    alike: dict[str, list[Cell]] = {}  # cells to train on a GPU; those of one list differ only in their audit
    for cell in missing:
        if cell.device != "cpu" and read_kept(cell, folder) is None:
            alike.setdefault(cell.training_key, []).append(cell)
    to_train = batches([same[0] for same in alike.values()])

    def trained(batch: Sequence[Cell], result: str | GraphveilError | None) -> None:
        """Audit the cells of a batch; if it failed, train its cells one by one."""
        for cell in batch:
            if result is not None and len(batch) > 1:
                trainers.submit([cell], partial(train_batch, [cell]))
                continue
            for same in alike[cell.training_key]:
                if result is not None:
                    settle(same, result)
                else:
                    audit(same)

    def audit(cell: Cell) -> None:
        auditors.submit(cell, partial(run_cell, cell), [cell.embeddings_file(folder)])

    auditors: Workers[Cell, str | None] = workers(max(1, min(jobs, len(missing))), folder, settle, ray)
    trainers = Pool(max(1, min(jobs, MOST_TRAINERS, len(to_train))), folder, trained, on_gpu=True)
    with finishing(trainers, auditors):
        for batch in to_train:
            trainers.submit(batch, partial(train_batch, batch))
        for cell in missing:
            if cell not in alike.get(cell.training_key, ()):
                audit(cell)
    return failed


def batches(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Group cells that differ only in seed and trade-off, those on the largest graphs first.

    A batch has at most `ROWS_AT_ONCE` nodes and `CELLS_AT_ONCE` cells. The trade-offs of a seed stay together, since
    they may share the training of teachers.
    """
    alike: dict[Cell, dict[int, list[Cell]]] = {}
    for cell in cells:
        alike.setdefault(replace(cell, seed=0, tradeoff=0.0, panel="quick"), {}).setdefault(cell.seed, []).append(cell)
    found: list[tuple[int, list[Cell]]] = []
    for like, by_seed in alike.items():
        nodes = like.graph().x.size(0)
        size = max(1, min(CELLS_AT_ONCE, ROWS_AT_ONCE // nodes))
        parts = [group[first : first + size] for group in by_seed.values() for first in range(0, len(group), size)]
        batch: list[Cell] = []
        for part in parts:
            if len(batch) + len(part) > size:
                found.append((nodes, batch))
                batch = []
            batch = [*batch, *part]
        found.append((nodes, batch))
    found.sort(key=lambda one: one[0] * len(one[1]), reverse=True)
    return [batch for _, batch in found]


def train_batch(batch: Sequence[Cell], folder: Path) -> str | None:
    """Train cells as one batch and store their embeddings; return the error message, or None."""
    try:
        for trained in train(batch):
            keep(trained, folder)
    except Exception as error:  # no error may stop the other cells
        return _sentence(error)
    return None


def run_cell(cell: Cell, folder: Path) -> str | None:
    """Train one cell, if its embeddings are not stored, and audit it; return the error message, or None."""
    try:
        if (kept := read_kept(cell, folder)) is None:
            if (fault := train_batch([cell], folder)) is not None:
                return fault
            kept = read_kept(cell, folder)
        assert kept is not None, "its file was written a moment ago"
        finish(kept, folder)
    except Exception as error:
        return _sentence(error)
    return None


def _sentence(error: Exception) -> str:
    if is_out_of_memory(error):
        return OUT_OF_MEMORY
    return str(error) if isinstance(error, GraphveilError) else f"{type(error).__name__}: {error}"


def _only(variants: Mapping[str, Any], selection: Sequence[str] | None) -> dict[str, Any]:
    return {name: variant for name, variant in variants.items() if selection is None or name in selection}


def _chosen(kind: str, selection: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for name in selection or ():
        if name not in known:
            raise unknown(kind, name, known)
    return selection or known
