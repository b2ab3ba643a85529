"""The certificate of a node secret: how well any attacker who sees only the codes can predict the class of a node.

No attack is trained. The certificate is computed from the table of nodes by code and class. It makes two statements:

1. For this release, exactly: over all released nodes with a known class, without assumptions.
2. For nodes like these, with 95 % confidence: from calibration nodes, drawn at random, whose classes neither training
   nor selection used.

Nodes with the same code cannot be distinguished, so an attacker who treats them differently gains nothing on average.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from scipy.stats import random_table

from graphveil.codes.measures import (
    accuracy_limit,
    balanced_limit,
    best_accuracy,
    best_balanced_accuracy,
    class_information,
    entropy,
    majority_share,
)
from graphveil.codes.tables import Integers, class_table, code_sizes
from graphveil.codes.words import NOT_COVERED, at_most, confident, percent
from graphveil.errors import GraphveilError
from graphveil.formats.certificate import ClassCalibration, ClassCertificate, Stratum, WorstCode

MAX_CELLS = 20_000_000
"""Cells of the largest table of codes and classes."""
CHANCE_TABLES = 200
"""Random tables with the same margins, for the mean values by chance; fewer if the table is large."""


def class_certificate(
    codes: Integers,
    y: Integers,
    calibration: Integers | None = None,
    strata: Mapping[str, Integers] | None = None,
    confidence: float = 0.95,
    secret: str = "class",
    names: Sequence[str] | None = None,
) -> ClassCertificate:
    """Compute what codes can reveal about a class.

    Args:
        codes: (n,), from 0.
        y: classes, (n,), from 0; -1 where unknown.
        calibration: indices of nodes drawn at random whose classes neither training nor selection used.
        strata: columns by name, (n,) integers each; nodes with a negative value are left out.
        confidence: the confidence of the statement about other nodes.
        secret: the name of the class in sentences.
        names: the names of the values of the class.
    """
    sizes = code_sizes(codes, int(codes.max(initial=0)) + 1)
    table = _known_table(codes, y, len(sizes), secret)
    num_classes = table.shape[1]
    present = table.sum(axis=0) > 0
    counts = table[:, present]
    accuracy_by_chance, information_by_chance = _by_chance(counts)
    balanced = best_balanced_accuracy(counts)
    counted = ClassCertificate(
        secret=secret,
        nodes=len(codes),
        known=int(counts.sum()),
        codes=int((sizes > 0).sum()),
        classes=int(present.sum()),
        smallest_code=int(sizes[sizes > 0].min()),
        majority=majority_share(counts),
        accuracy=best_accuracy(counts),
        accuracy_by_chance=accuracy_by_chance,
        balanced_accuracy=balanced,
        balanced_guessing=1 / int(present.sum()),
        information=class_information(counts),
        information_by_chance=information_by_chance,
        entropy=entropy(counts.sum(axis=0)),
        maximal_leakage=float(np.log(present.sum() * balanced)),
        worst=_worst(table),
        bits_per_node=float(np.log2((sizes > 0).sum())),
        confidence=confidence,
        calibration=None
        if calibration is None
        else _calibrated(
            class_table(codes[calibration], y[calibration], len(sizes), num_classes)[:, present], confidence
        ),
        strata=tuple(_strata(codes, y, table.shape, strata or {})),
        sentence="",
        rows=(),
        not_covered=NOT_COVERED,
    )
    sentence = f"{_this_release(counted)} {_other_nodes(counted)}"
    return replace(counted, sentence=sentence, rows=tuple(_rows(counted, names)))


def _rows(one: ClassCertificate, names: Sequence[str] | None) -> list[tuple[str, str]]:
    """The certificate as (name, sentence), in the order of display."""
    worst = one.worst
    name = f"class {worst.likely_class}" if names is None else names[worst.likely_class]
    rows = [
        ("this release", _this_release(one)),
        ("other nodes", _other_nodes(one)),
        ("chance", f"Codes unrelated to the classes would allow {percent(one.accuracy_by_chance)} on average."),
        (
            "balanced accuracy",
            f"At most {at_most(one.balanced_accuracy)} on average over the {one.classes} classes; the chance"
            f" level is {percent(one.balanced_guessing)}.",
        ),
        (
            "information",
            f"{one.information:.3f} of {one.entropy:.3f} nats; codes unrelated to the classes have"
            f" {one.information_by_chance:.3f} on average. Maximal leakage: {one.maximal_leakage:.3f} nats.",
        ),
        (
            "worst code",
            f"{percent(worst.share)} of the {worst.nodes:,} known nodes with code {worst.code} have {one.secret} ="
            f" {name}. The rarest code has {one.smallest_code:,} nodes, known or not.",
        ),
        ("any secret", f"At most {one.bits_per_node:.2f} bits per node, from {one.codes:,} codes in use."),
    ]
    for stratum in one.strata:
        rows.append(
            (
                f"{stratum.column} = {stratum.value}",
                f"At most {at_most(stratum.accuracy)} of {stratum.nodes:,} nodes ({percent(stratum.share)} of all);"
                f" the chance level is {percent(stratum.majority)}.",
            )
        )
    return rows


def _this_release(one: ClassCertificate) -> str:
    noun = "label" if one.secret == "labels" else one.secret
    return (
        f"An attacker who sees only the released codes, with any method, predicts the {noun} of at most"
        f" {at_most(one.accuracy)} of these {one.known:,} nodes correctly; the chance level is"
        f" {percent(one.majority)}."
    )


def _other_nodes(one: ClassCertificate) -> str:
    if one.calibration is None:
        return "There are no calibration nodes, so the certificate makes no statement about other nodes."
    return (
        f"{confident(one.confidence)} the share is at most {at_most(one.calibration.accuracy_limit)}, and at most"
        f" {at_most(one.calibration.balanced_limit)} on average over the classes"
        f" ({one.calibration.nodes:,} calibration nodes)."
    )


def _known_table(codes: Integers, y: Integers, num_codes: int, secret: str) -> Integers:
    """The table of all nodes with a known class; raises an error if there is none."""
    if codes.shape != y.shape or codes.ndim != 1:
        raise GraphveilError(f"codes have shape {codes.shape} and classes {y.shape}: expected one of each per node.")
    if not (y >= 0).any():
        raise GraphveilError(f"{secret!r} is known for none of the {len(y):,} nodes: fill in some values.")
    num_classes = int(y.max()) + 1
    if num_codes * num_classes > MAX_CELLS:
        raise GraphveilError(
            f"{num_codes:,} codes and {num_classes:,} classes of {secret!r} make a table of more than {MAX_CELLS:,}"
            " cells: release fewer codes, or merge classes."
        )
    return class_table(codes, y, num_codes, num_classes)


def _by_chance(table: Integers) -> tuple[float, float]:
    """The mean best accuracy and information of random tables with the same margins."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    rows = rows[rows > 0]
    if len(rows) == 1 or len(columns) == 1:  # the margins determine the table, and random_table would return zeros
        return best_accuracy(table), 0.0
    draws = int(np.clip(MAX_CELLS // table.size, CHANCE_TABLES // 10, CHANCE_TABLES))
    random, law = np.random.default_rng(0), random_table(rows, columns)
    tables = (law.rvs(random_state=random).astype(np.int64) for _ in range(draws))
    values = [(best_accuracy(drawn), class_information(drawn)) for drawn in tables]
    accuracy, information = np.mean(values, axis=0)
    return float(accuracy), float(information)


def _worst(table: Integers) -> WorstCode:
    nodes = table.sum(axis=1)
    share = table.max(axis=1) / np.maximum(nodes, 1)
    code = int(np.lexsort((nodes, share))[-1])
    return WorstCode(code, int(table[code].argmax()), float(share[code]), int(nodes[code]))


def _calibrated(table: Integers, confidence: float) -> ClassCalibration | None:
    """From the table of the calibration nodes; None if none of them has a known class."""
    if not table.any():
        return None
    return ClassCalibration(
        nodes=int(table.sum()),
        accuracy=best_accuracy(table),
        accuracy_limit=accuracy_limit(table, confidence),
        balanced_limit=balanced_limit(table, confidence),
    )


def _strata(codes: Integers, y: Integers, shape: tuple[int, ...], strata: Mapping[str, Integers]) -> list[Stratum]:
    known, result = y >= 0, []
    for column, values in strata.items():
        if values.shape != y.shape:
            raise GraphveilError(f"column {column!r} has shape {values.shape}: expected one value per node, {y.shape}.")
        for value in np.unique(values[known & (values >= 0)]):
            inside = known & (values == value)
            table = class_table(codes[inside], y[inside], shape[0], shape[1])
            result.append(
                Stratum(
                    column=column,
                    value=int(value),
                    nodes=int(inside.sum()),
                    share=float(inside.sum() / known.sum()),
                    majority=majority_share(table),
                    accuracy=best_accuracy(table),
                )
            )
    return result
