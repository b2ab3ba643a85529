"""The results of an experiment as one JSON file, from which the report is made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from graphveil.experiments.cells import Cell, made_with
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import Row, over_seeds
from graphveil.formats import Interval
from graphveil.formats import experiment as formats
from graphveil.formats.experiment import SWEEP, CellRecord, ExperimentRecord, Failed, Hidden, History
from graphveil.target import Target


def experiment_record(
    name: str,
    experiment: Experiment,
    rows: Sequence[Row],
    results: Sequence[Sequence[CellRecord]],
    failed: Sequence[tuple[Cell, str]],
    selection: Mapping[str, Any],
) -> ExperimentRecord:
    """The content of the file: configuration, failures, and all rows with what the report draws of the first seed.

    Args:
        name: the name of the experiment.
        experiment: the experiment.
        rows: its rows.
        results: for each row, the saved results of its seeds.
        failed: the cells that failed, with their error messages.
        selection: the part of the experiment that was run.
    """
    shown = []
    for row, of_seeds in zip(rows, results, strict=True):
        first, secret = of_seeds[0], of_seeds[0].secrets[row.secret]
        rounds, curves = first.history, secret.history
        shown.append(
            formats.Row(
                **{one.name: getattr(row, one.name) for one in fields(row)},
                verdict=row.verdict,
                history=History(rounds.round, rounds.utility, curves.adversary, curves.probe),
                map=secret.map if name == SWEEP or row in _worth_a_picture(rows, row) else None,
                attacks=_attacks([one.secrets[row.secret].attacks for one in of_seeds]),
            )
        )
    return ExperimentRecord(
        name=name,
        title=experiment.title,
        utility=experiment.utility,
        metric=Target.of(experiment.utility).metric,
        secrets=tuple(Hidden(one.name, one.metric, one.papers_attacker) for one in map(Target.of, experiment.secrets)),
        versions=made_with(),
        config=asdict(experiment) | {"source": experiment.source and experiment.source.digest},  # without the path
        failed=tuple(Failed(str(cell), fault) for cell, fault in failed),
        rows=tuple(shown),
        selection=dict(selection),
    )


def _attacks(of_seeds: Sequence[Mapping[str, float]]) -> dict[str, Interval]:
    """The mean of every attack that all seeds have."""
    shared = [name for name in of_seeds[0] if all(name in one for one in of_seeds)]
    return {name: over_seeds([one[name] for one in of_seeds]) for name in shared}


def _worth_a_picture(rows: Sequence[Row], row: Row) -> list[Row]:
    """Of the rows that differ from `row` only in the trade-off: the one that hides least, and the middle one."""
    alike = [one for one in rows if _cell(one) == _cell(row)]
    return [max(alike, key=_number), min(alike, key=lambda one: abs(_number(one) - 0.5))]


def _number(row: Row) -> float:
    """The trade-off, or epsilon; the larger either is, the less is hidden."""
    return row.tradeoff if row.tradeoff is not None else row.epsilon or 0.0


def _cell(row: Row) -> tuple[str, ...]:
    return row.variant, row.dataset, row.encoder, row.secret
