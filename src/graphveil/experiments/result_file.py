"""The results of an experiment as one JSON file, from which the report is made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from graphveil.experiments.cells import Cell, made_with
from graphveil.experiments.spec import Experiment, papers_attacker
from graphveil.experiments.tables import Row

SCHEMA = "graphveil/experiment/2"


def experiment_record(
    name: str,
    experiment: Experiment,
    rows: Sequence[Row],
    results: Sequence[Sequence[Mapping[str, Any]]],
    failed: Sequence[tuple[Cell, str]],
) -> dict[str, Any]:
    """The content of the file: configuration, failures, and all rows with what the report draws of the first seed.

    Args:
        name: the name of the experiment.
        experiment: the experiment.
        rows: its rows.
        results: for each row, the saved results of its seeds.
        failed: the cells that failed, with their error messages.
    """
    shown = []
    for row, of_seeds in zip(rows, results, strict=True):
        first, audit = of_seeds[0], of_seeds[0]["secrets"][row.secret]
        drawn = audit["map"] if row in _worth_a_picture(rows, row) else None
        points = drawn and drawn["after"] | {"class": drawn["class"], "names": drawn["names"]}
        history = first["history"] | audit["history"]
        shown.append(asdict(row) | {"verdict": row.verdict, "history": history, "map": points})
    return {
        "schema": SCHEMA,
        "name": name,
        "title": experiment.title,
        "utility": experiment.utility,
        "metric": _metric(experiment.utility),
        "secrets": [
            {"secret": secret, "metric": _metric(secret), "papers_attacker": papers_attacker(secret)}
            for secret in experiment.secrets
        ],
        "versions": made_with(),
        "config": asdict(experiment) | {"source": experiment.source and experiment.source.digest},  # without the path
        "failed": [{"cell": str(cell), "fault": fault} for cell, fault in failed],
        "rows": shown,
    }


def _metric(target: str) -> str:
    return "auc" if target == "links" else "accuracy"


def _worth_a_picture(rows: Sequence[Row], row: Row) -> list[Row]:
    """Of the rows that differ from `row` only in the trade-off: the one that hides least, and the middle one."""
    alike = [one for one in rows if _cell(one) == _cell(row)]
    return [max(alike, key=_number), min(alike, key=lambda one: abs(_number(one) - 0.5))]


def _number(row: Row) -> float:
    """The trade-off, or epsilon; the larger either is, the less is hidden."""
    return row.tradeoff if row.tradeoff is not None else row.epsilon or 0.0


def _cell(row: Row) -> tuple[str, ...]:
    return row.variant, row.dataset, row.encoder, row.secret
