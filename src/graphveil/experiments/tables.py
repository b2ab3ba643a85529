"""Rows of the tables: the paper's values, those of its protocol here, and those of the strongest attack of an audit."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from graphveil.experiments.spec import Experiment
from graphveil.formats import Interval
from graphveil.formats.experiment import (
    CellRecord,
    CellWithFeatures,
    Certified,
    CertifiedCell,
    Verdict,
    WithFeatures,
)
from graphveil.target import Target

UTILITY_MARGIN = {"unprotected": 0.01, "protected": 0.02}
SECRET_MARGIN = 0.03
WIDEST = 0.05
"""Half-width of an interval over seeds above which its mean does not decide a verdict."""


@dataclass(frozen=True)
class Row:
    """The utility and the attacks on one secret, for one variant, graph, encoder and trade-off, over all seeds.

    Args:
        variant: the name of the variant, or of the peer.
        dataset: the name of the graph.
        encoder: the name of the encoder.
        secret: the secret that is attacked.
        tradeoff: the trade-off; None for a peer.
        seeds: the number of seeds.
        utility: accuracy or AUC of the utility.
        protocol: accuracy or AUC of the paper's own attack. On unprotected embeddings it is trained on the finished
            embeddings; otherwise it is the joint adversary, evaluated on float32 probabilities as is usual. An AUC
            below 0.5 is replaced by 1 minus it, because inverted predictions reveal links too.
        fresh: accuracy or AUC of the strongest attack of the audit.
        fresh_attack: the attack that was the strongest for most seeds.
        finer: the class-matched AUC of links, or the balanced accuracy of a node secret.
        utility_chance: the chance level of the utility.
        chance: the chance level of the secret.
        floor: for links, the AUC of the best rule on pairs of true classes; for a node secret, the accuracy of attacks
            on the public graph; None if unknown.
        flagged: the share of runs with a flag.
        paper: utility and attack value that the paper prints; None if it prints nothing.
        equal_classes: the AUC of comparing the true classes for equality; None for a secret other than links.
        certified: the certificate; None if the release has none.
        with_features: attacks on z and the features; None if the panel has none.
        epsilon: the epsilon of a peer; None for a variant.
    """

    variant: str
    dataset: str
    encoder: str
    secret: str
    tradeoff: float | None
    seeds: int
    utility: Interval
    protocol: Interval
    fresh: Interval
    fresh_attack: str
    finer: Interval | None
    utility_chance: float
    chance: float
    floor: float | None
    flagged: float
    paper: tuple[float, float] | None
    equal_classes: float | None = None
    certified: Certified | None = None
    with_features: WithFeatures | None = None
    epsilon: float | None = None

    @property
    def level(self) -> str:
        """The trade-off as text, or `epsilon` with its value."""
        return f"{self.tradeoff:g}" if self.epsilon is None else f"epsilon {self.epsilon:g}"

    @property
    def verdict(self) -> Verdict:
        """The worse of the verdicts on utility and secret, by their intervals; empty if the intervals do not decide."""
        if self.paper is None or self.utility.ci is None or self.protocol.ci is None:
            return ""
        unprotected = self.variant == "unprotected"
        margin = UTILITY_MARGIN["unprotected" if unprotected else "protected"]
        utility = _judge(self.utility, self.paper[0], margin)
        # A low attack value is a weak attack on unprotected embeddings, and good protection otherwise.
        sign = 1 if unprotected else -1
        secret = _judge(_times(self.protocol, sign), sign * self.paper[1], SECRET_MARGIN)
        verdict = max(utility, secret, key=("better", "reproduced", "", "not reproduced").index)
        return "reproduced" if verdict == "better" and self.flagged else verdict


def row(
    experiment: Experiment,
    key: tuple[str, str, str, float],
    secret: str,
    results: Sequence[CellRecord],
    judge: bool = True,
) -> Row:
    """Aggregate the saved results of all seeds to a row.

    Args:
        experiment: the experiment of the results.
        key: variant, data set, encoder and trade-off, or epsilon for a peer.
        secret: the secret of the row.
        results: the saved result of each seed.
        judge: whether to compare the row with the paper.
    """
    variant, dataset, encoder, level = key
    is_peer, target = variant in experiment.peers, Target.of(secret)
    audits = [result.secrets[secret] for result in results]
    if variant == "unprotected":
        protocol = [one.attacks[target.papers_attacker] for one in audits]
    else:
        protocol = [one.joint_rounded for one in audits]
        if target.is_links:
            protocol = [max(value, 1 - value) for value in protocol]
    floor = _over_all([one.floor for one in audits])
    equal = _over_all([one.equal_classes for one in audits])
    return Row(
        variant=variant,
        dataset=dataset,
        encoder=encoder,
        secret=secret,
        tradeoff=None if is_peer else level,
        seeds=len(results),
        utility=over_seeds([result.utility for result in results]),
        protocol=over_seeds(protocol),
        fresh=over_seeds([one.fresh for one in audits]),
        fresh_attack=statistics.mode(one.fresh_attack for one in audits),
        finer=_over_all([one.class_matched if target.is_links else one.balanced for one in audits]),
        utility_chance=statistics.fmean(result.utility_chance for result in results),
        chance=statistics.fmean(one.chance for one in audits),
        floor=None if floor is None else floor.value,
        flagged=statistics.fmean(bool(one.flags) for one in audits),
        paper=experiment.paper(variant, dataset, encoder) if judge and not is_peer else None,
        equal_classes=None if equal is None else equal.value,
        certified=_certified([one.certificate for one in audits]),
        with_features=_with_features([one.with_features for one in audits]),
        epsilon=level if is_peer else None,
    )


def _certified(found: Sequence[CertifiedCell | None]) -> Certified | None:
    every = [one for one in found if one is not None]
    if len(every) < len(found):
        return None
    return Certified(
        best=over_seeds([one.best for one in every]),
        excess=over_seeds([one.best - one.guessing for one in every]),
        limit=_over_all([one.limit for one in every]),
        class_matched=_over_all([one.class_matched for one in every]),
    )


def _with_features(found: Sequence[CellWithFeatures | None]) -> WithFeatures | None:
    every = [one for one in found if one is not None]
    if len(every) < len(found):
        return None
    return WithFeatures(
        value=over_seeds([one.value for one in every]),
        alone=over_seeds([one.alone for one in every]),
        z_adds=over_seeds([one.z_adds for one in every]),
        true_classes=_over_all([one.true_classes for one in every]),
        over_true_classes=_over_all([one.over_true_classes for one in every]),
    )


def _over_all(values: Sequence[float | None]) -> Interval | None:
    """The mean over seeds; None if the value is missing for a seed."""
    every = [value for value in values if value is not None]
    return over_seeds(every) if len(every) == len(values) else None


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean over seeds and its 95 % interval by Student's t; a single seed has no interval."""
    centre = statistics.fmean(values)
    if len(values) < 2:
        return Interval(centre)
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(centre, (centre - half, centre + half))


def _judge(ours: Interval, paper: float, margin: float) -> Verdict:
    """Compare an interval with the paper's value minus a margin.

    *Better*: the whole interval is above the paper's value. *Reproduced* or *not reproduced*: the whole interval is on
    one side of the margin. If the margin is inside the interval, the mean decides, unless the interval is too wide. A
    result whose interval contains the paper's value is never called not reproduced.
    """
    if ours.low > paper:
        return "better"
    if ours.low >= paper - margin:
        return "reproduced"
    if ours.high < paper - margin:
        return "not reproduced"
    if ours.high - ours.low > 2 * WIDEST:
        return ""
    if ours.value >= paper - margin:
        return "reproduced"
    return "" if ours.high >= paper else "not reproduced"


def _times(mean: Interval, sign: int) -> Interval:
    low, high = sorted((sign * mean.low, sign * mean.high))
    return Interval(sign * mean.value, (low, high))
