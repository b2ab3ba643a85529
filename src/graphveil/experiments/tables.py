"""What the paper printed, what its protocol gives here, and what a fresh attacker reads, side by side."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from graphveil.experiments.spec import Experiment, papers_attacker
from graphveil.formats import Interval
from graphveil.formats.experiment import (
    CellRecord,
    CellWithFeatures,
    Certified,
    CertifiedCell,
    Verdict,
    WithFeatures,
)

UTILITY_MARGIN = {"unprotected": 0.01, "protected": 0.02}
SECRET_MARGIN = 0.03
WIDEST = 0.05
"""Half-width of an interval over seeds above which its mean says nothing."""


@dataclass(frozen=True)
class Row:
    """What is kept and what is told of one secret, in one cell over its seeds.

    Args:
        protocol: the reading of the paper's own attacker: fresh on unprotected embeddings, trained along otherwise,
            and there from float32 probabilities, as is usual. An AUC below one half counts as much above: who is
            reliably wrong about links tells as much as who is right.
        fresh_attack: the one that was the strongest most often.
        finer: the class-matched AUC of links, the balanced accuracy of a node secret.
        floor: what the utility implies if it is perfect, where that is known.
        flagged: the share of runs with a flag.
        equal_classes: of links, the AUC of comparing the true classes for equality.
        certified: None if a release has no certificate.
        with_features: None if the panel has no attackers with features.
        tradeoff, epsilon: of a variant of ours and of a peer; the other is None.
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
        """The trade-off as a number, or epsilon with its name."""
        return f"{self.tradeoff:g}" if self.epsilon is None else f"epsilon {self.epsilon:g}"

    @property
    def verdict(self) -> Verdict:
        """From the intervals and not by eye: of utility and secret the worse; nothing where nothing can be said."""
        if self.paper is None or self.utility.ci is None or self.protocol.ci is None:
            return ""
        unprotected = self.variant == "unprotected"
        margin = UTILITY_MARGIN["unprotected" if unprotected else "protected"]
        kept = _judge(self.utility, self.paper[0], margin)
        # A leak that is not found where nothing is hidden means a weak attacker; where it is hidden, less is better.
        sign = 1 if unprotected else -1
        told = _judge(_times(self.protocol, sign), sign * self.paper[1], SECRET_MARGIN)
        verdict = max(kept, told, key=("better", "reproduced", "", "not reproduced").index)
        return "reproduced" if verdict == "better" and self.flagged else verdict


def row(
    experiment: Experiment,
    key: tuple[str, str, str, float],
    secret: str,
    results: Sequence[CellRecord],
    judge: bool = True,
) -> Row:
    """What is told of a secret, from the saved results of all seeds.

    Args:
        judge: whether to hold it against the paper.
    """
    variant, dataset, encoder, level = key
    is_peer = variant in experiment.peers
    told = [result.secrets[secret] for result in results]
    if variant == "unprotected":
        protocol = [one.attacks[papers_attacker(secret)] for one in told]
    else:
        protocol = [one.joint_rounded for one in told]
        if secret == "links":
            protocol = [max(value, 1 - value) for value in protocol]
    floor = _over_all([one.floor for one in told])
    equal = _over_all([one.equal_classes for one in told])
    return Row(
        variant=variant,
        dataset=dataset,
        encoder=encoder,
        secret=secret,
        tradeoff=None if is_peer else level,
        seeds=len(results),
        utility=over_seeds([result.utility for result in results]),
        protocol=over_seeds(protocol),
        fresh=over_seeds([one.fresh for one in told]),
        fresh_attack=statistics.mode(one.fresh_attack for one in told),
        finer=_over_all([one.class_matched if secret == "links" else one.balanced for one in told]),
        utility_chance=statistics.fmean(result.utility_chance for result in results),
        chance=statistics.fmean(one.chance for one in told),
        floor=None if floor is None else floor.value,
        flagged=statistics.fmean(bool(one.flags) for one in told),
        paper=experiment.paper(variant, dataset, encoder) if judge and not is_peer else None,
        equal_classes=None if equal is None else equal.value,
        certified=_certified([one.certificate for one in told]),
        with_features=_with_features([one.with_features for one in told]),
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
    """None if the value is missing for a seed."""
    every = [value for value in values if value is not None]
    return over_seeds(every) if len(every) == len(values) else None


def over_seeds(values: Sequence[float]) -> Interval:
    """Interval and 95 % interval over runs, by Student's t."""
    centre = statistics.fmean(values)
    if len(values) < 2:
        return Interval(centre)
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(centre, (centre - half, centre + half))


def _judge(ours: Interval, paper: float, margin: float) -> Verdict:
    """Better if the whole interval is above the paper's, reproduced or not if it is on one side of the margin.

    Across the margin the mean decides if the interval is narrow; but what holds the paper's own number is never called
    not reproduced.
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
