"""The certificate of links: how well any attacker who sees only the codes can separate links from non-links.

As for a node secret, no attack is trained, and there are two statements: one about this release, which is exact, and
one about other nodes, with 95 % confidence. `link_auc` defines and computes the AUCs. The links are read once, block by
block (`counting`), so that they need not fit in memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from graphveil.codes.counting import CellCounter, LinkCells, LinkSample, checked_blocks
from graphveil.codes.link_auc import (
    CodesAndClasses,
    calibrated_auc,
    chance_auc,
    chance_draws,
    release_auc,
    resampled_columns,
)
from graphveil.codes.measures import link_information
from graphveil.codes.tables import Integers, cell_pairs, code_sizes
from graphveil.codes.words import NOT_COVERED, at_most, confident, percent
from graphveil.formats.certificate import LinkCalibration, LinkCertificate

MIN_CALIBRATION_LINKS = 20
"""With fewer calibration links there is no statement about other nodes."""


def link_certificate(
    codes: Integers,
    pairs: NDArray[Any],
    y: Integers | None = None,
    calibration: Integers | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LinkCertificate:
    """Compute what codes can reveal about links.

    Args:
        codes: (n,), from 0.
        pairs: (2, links) with u < v, each link once; of any integer type, and in any order. It may be memory-mapped.
        y: the classes of class-matched pairs, (n,), -1 where unknown.
        calibration: columns of `pairs`: links drawn at random that neither training nor selection used; None for all.
        confidence: the confidence of the statement about other nodes.
        seed: the seed of the resamples.
    """
    random = np.random.default_rng(seed)
    shuffled = chance_draws(codes, max(1, pairs.shape[-1]), seed)
    joined = None if y is None else CodesAndClasses.of(codes, y)
    sampled = resampled_columns(pairs.shape[-1], random)
    chosen = None if calibration is None else np.unique(calibration)
    counts = _count(codes, pairs, [*shuffled, *([] if joined is None else [joined.codes])], chosen, sampled)
    sizes = code_sizes(codes, counts.links.width)
    num_links, total = pairs.shape[1], len(codes) * (len(codes) - 1) // 2
    links, inside = counts.links.links, cell_pairs(counts.links.codes, sizes)
    matched = None if joined is None else joined.aucs(counts.others[-1])
    calibrated = num_links if chosen is None else len(chosen)
    in_sample = np.ones(len(sampled), dtype=bool) if chosen is None else np.isin(sampled, chosen)
    used = int((sizes > 0).sum())
    counted = LinkCertificate(
        secret="links",
        nodes=len(codes),
        links=num_links,
        nonlinks=total - num_links,
        codes=used,
        smallest_code=int(sizes[sizes > 0].min()),
        auc=release_auc(links, inside, total),
        auc_by_chance=chance_auc(sizes, counts.others[: len(shuffled)]),
        class_matched_auc=None if matched is None else matched[0],
        within_class_auc=None if matched is None else matched[1],
        information=link_information(links, inside, total),
        bits_per_node=float(np.log2(used)),
        confidence=confidence,
        calibration=None
        if calibrated < MIN_CALIBRATION_LINKS
        else LinkCalibration(
            calibrated,
            *calibrated_auc(codes, counts.links, counts.calibration, (counts.sample, in_sample), confidence, random),
        ),
        sentence="",
        rows=(),
        not_covered=NOT_COVERED,
    )
    sentence = f"{_this_release(counted)} {_other_nodes(counted)}"
    return replace(counted, sentence=sentence, rows=tuple(_rows(counted)))


@dataclass(frozen=True, eq=False)
class _Counts:
    """What one pass over the links counts.

    Args:
        links: the links by the codes of their ends.
        others: the links by other codes of the nodes.
        calibration: the calibration links by codes.
        sample: a sample of the links, (2, sample).
    """

    links: LinkCells
    others: list[LinkCells]
    calibration: LinkCells
    sample: Integers


def _count(
    codes: Integers, pairs: NDArray[Any], others: list[Integers], calibration: Integers | None, sampled: Integers
) -> _Counts:
    """Check and count links (2, links) in one pass.

    Args:
        codes: (n,), from 0.
        pairs: (2, links).
        others: other codes of the nodes, (n,) each.
        calibration: ascending columns of `pairs`; None for all.
        sampled: the columns of the sample.
    """
    own, chosen, more = CellCounter(codes), CellCounter(codes), [CellCounter(other) for other in others]
    sample = LinkSample(sampled)
    for start, block in checked_blocks(pairs, len(codes)):
        for counter in (own, *more):
            counter.add(block)
        sample.add(start, block)
        if calibration is not None:
            first, end = np.searchsorted(calibration, [start, start + block.shape[1]])
            chosen.add(block[:, calibration[first:end] - start])
    links = own.cells()
    return _Counts(
        links=links,
        others=[counter.cells() for counter in more],
        calibration=links if calibration is None else chosen.cells(),
        sample=sample.pairs,
    )


def _rows(one: LinkCertificate) -> list[tuple[str, str]]:
    """The certificate as (name, sentence), in the order of display."""
    rows = [
        ("this release", _this_release(one)),
        ("other nodes", _other_nodes(one)),
        (
            "chance",
            f"Codes unrelated to the links would allow an AUC of {percent(one.auc_by_chance)} on average.",
        ),
    ]
    if one.class_matched_auc is not None and one.within_class_auc is not None:
        rows.append(
            (
                "class-matched AUC",
                f"Against non-links between the same classes the AUC is at most {at_most(one.class_matched_auc)},"
                f" and at most {at_most(one.within_class_auc)} for attackers who know the classes.",
            )
        )
    rows += [
        ("information", f"{one.information:.3f} nats of evidence for a link, on average over the links."),
        ("rarest code", f"{one.smallest_code:,} nodes."),
        ("any secret", f"At most {one.bits_per_node:.2f} bits per node, from {one.codes:,} codes in use."),
    ]
    return rows


def _this_release(one: LinkCertificate) -> str:
    return (
        "An attacker who sees only the released codes, with any method, ranks a link above a non-link in at most"
        f" {at_most(one.auc)} of cases (AUC over {one.links:,} links and {one.nonlinks:,} non-links); the chance"
        " level is 50.0 %."
    )


def _other_nodes(one: LinkCertificate) -> str:
    if one.calibration is None:
        return "There are too few calibration links for a statement about other nodes."
    limit = one.calibration
    sampled = f", resampled with {limit.resampled_links:,} links" if limit.resampled_links < one.links else ""
    return (
        f"{confident(one.confidence)} the AUC is at most {at_most(limit.auc_limit)}"
        f" ({limit.links:,} calibration links{sampled})."
    )
