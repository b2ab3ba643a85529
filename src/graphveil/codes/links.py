"""The certificate of links: how well any attacker who sees only the codes can separate links from non-links.

As for a node secret, no attack is trained, and there are two statements: one about this release, which is exact, and
one about other nodes, with 95 % confidence. `link_auc` defines and computes the AUCs.
"""

import numpy as np
from msgspec.structs import replace

from graphveil.codes.link_auc import calibrated_auc, chance_auc, matched_aucs, release_auc
from graphveil.codes.measures import link_information
from graphveil.codes.tables import Integers, cell_pairs, code_sizes, link_cells
from graphveil.codes.words import NOT_COVERED, at_most, confident, percent
from graphveil.errors import GraphveilError
from graphveil.formats.certificate import LinkCalibration, LinkCertificate

MIN_CALIBRATION_LINKS = 20
"""With fewer calibration links there is no statement about other nodes."""


def link_certificate(
    codes: Integers,
    pairs: Integers,
    y: Integers | None = None,
    calibration: Integers | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LinkCertificate:
    """Compute what codes can reveal about links.

    Args:
        codes: (n,), from 0.
        pairs: (2, links) with u < v, each link once.
        y: the classes of class-matched pairs, (n,), -1 where unknown.
        calibration: columns of `pairs`: links drawn at random that neither training nor selection used; None for all.
        confidence: the confidence of the statement about other nodes.
        seed: the seed of the resamples.
    """
    _check(codes, pairs)
    total = len(codes) * (len(codes) - 1) // 2
    sizes = code_sizes(codes, int(codes.max()) + 1)
    cells, cell_of = link_cells(codes, pairs)
    links, inside = np.bincount(cell_of), cell_pairs(cells, sizes)
    matched = None if y is None else matched_aucs(codes, pairs, y)
    chosen = np.arange(pairs.shape[1]) if calibration is None else calibration
    used = int((sizes > 0).sum())
    counted = LinkCertificate(
        secret="links",
        nodes=len(codes),
        links=pairs.shape[1],
        nonlinks=total - pairs.shape[1],
        codes=used,
        smallest_code=int(sizes[sizes > 0].min()),
        auc=release_auc(links, inside, total),
        auc_by_chance=chance_auc(codes, pairs, seed),
        class_matched_auc=None if matched is None else matched[0],
        within_class_auc=None if matched is None else matched[1],
        information=link_information(links, inside, total),
        bits_per_node=float(np.log2(used)),
        confidence=confidence,
        calibration=None
        if len(chosen) < MIN_CALIBRATION_LINKS
        else LinkCalibration(len(chosen), *calibrated_auc(codes, pairs, chosen, confidence, seed)),
        sentence="",
        rows=(),
        not_covered=NOT_COVERED,
    )
    sentence = f"{_this_release(counted)} {_other_nodes(counted)}"
    return replace(counted, sentence=sentence, rows=tuple(_rows(counted)))


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


def _check(codes: Integers, pairs: Integers) -> None:
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.shape[1] == 0:
        raise GraphveilError(f"the links have shape {pairs.shape}: expected (2, links) and at least one link.")
    if pairs.min() < 0 or pairs.max() >= len(codes) or not (pairs[0] < pairs[1]).all():
        raise GraphveilError(f"expected links as (u, v) with u < v among nodes 0 to {len(codes) - 1}, each link once.")
    distinct = len(np.unique(pairs[0] * len(codes) + pairs[1]))
    if distinct < pairs.shape[1]:
        raise GraphveilError(f"{pairs.shape[1] - distinct:,} links occur twice: expected each link once.")
    if distinct == len(codes) * (len(codes) - 1) // 2:
        raise GraphveilError("every two nodes are linked: there is no non-link to compare with.")
