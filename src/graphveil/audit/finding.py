"""One attack's answers, kept raw, and every metric derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from graphveil.audit.attacks import BEYOND_Z, Answers, Need
from graphveil.audit.information import calibrate
from graphveil.audit.metrics import (
    Array,
    Estimate,
    Integers,
    accuracy,
    auc,
    auc_difference,
    balanced_accuracy,
    macro_f1,
    mean,
    placements,
    precision_and_rates,
)
from graphveil.audit.secret import Asked, LinkSecret, Secret

TOGETHER = 3
CONTENDERS = 5
ENSEMBLE = "the best together"


@dataclass(frozen=True, eq=False)
class Finding:
    """What one attack answered, so that any metric can be had later without running it again.

    Args:
        subject: what was attacked: "embeddings", or the name of a control.
    """

    subject: str
    attack: str
    needs: tuple[Need, ...]
    secret: Secret
    answers: Answers
    seconds: float

    @property
    def metric(self) -> str:
        """The one that decides."""
        return "auc" if isinstance(self.secret, LinkSecret) else "accuracy"

    @cached_property
    def headline(self) -> Estimate:
        """The metric that decides, on the test part."""
        return self._decisive(self.answers.test, self.secret.test)

    @cached_property
    def validation(self) -> Estimate:
        """The same on the validation part, where the strongest attack is chosen."""
        return self._decisive(self.answers.val, self.secret.val)

    def _decisive(self, answers: Array, asked: Any) -> Estimate:
        if isinstance(self.secret, LinkSecret):
            return auc(answers, asked.y, asked.index)
        return accuracy(answers, asked.y)

    @cached_property
    def balanced(self) -> Estimate:
        """Of a node secret: the balanced accuracy of naming the class that z speaks for most, however rare it is."""
        return balanced_accuracy(self._evidence(self.answers.test), self.secret.test.y)

    @cached_property
    def balanced_validation(self) -> Estimate:
        """The same on the validation part."""
        return balanced_accuracy(self._evidence(self.answers.val), self.secret.val.y)

    def _evidence(self, log_p: Array) -> Array:
        """log p(z | class) up to a constant: the posterior, set right on the validation part, over the prior there.

        The most probable class is nearly always a frequent one; what is told about the rare ones shows only here.
        """
        y = self.secret.val.y
        share = np.bincount(y, minlength=log_p.shape[1]) / len(y)
        return calibrate(self.answers.val, y)(log_p) - np.log(np.maximum(share, 0.5 / len(y)))

    @cached_property
    def matched(self) -> Estimate | None:
        """Of a link secret: the AUC against class-matched non-links."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_test is None:
            return None
        return auc(self.answers.matched_test, self.secret.matched.test.y, self.secret.matched.test.index)

    @cached_property
    def matched_validation(self) -> Estimate | None:
        """The same on the validation part."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_val is None:
            return None
        return auc(self.answers.matched_val, self.secret.matched.val.y, self.secret.matched.val.index)

    @cached_property
    def metrics(self) -> dict[str, Estimate]:
        """All metrics on the test part."""
        answers, test = self.answers.test, self.secret.test
        if isinstance(self.secret, LinkSecret):
            matched = {} if self.matched is None else {"class_matched_auc": self.matched}
            return {"auc": self.headline} | matched | precision_and_rates(answers, test.y, test.index)
        chance, read = self.secret.chance, self.headline
        return {
            "accuracy": read,
            "gain": Estimate(read.value - chance, read.low - chance, read.high - chance),
            "balanced_accuracy": self.balanced,
            "macro_f1": macro_f1(answers, test.y),
        }

    @property
    def on_z_alone(self) -> bool:
        """Whether the attack held neither the features nor a graph, be it the public one or that of the known links."""
        return not BEYOND_Z & set(self.needs)

    @property
    def constant(self) -> bool:
        """Whether every example got the same answer."""
        test = self.answers.test
        return len(np.unique(test.argmax(axis=1) if test.ndim == 2 else test)) == 1

    @property
    def influence(self) -> Array:
        """How much each test example moves the headline, (n,)."""
        y = self.secret.test.y
        if isinstance(self.secret, LinkSecret):
            return placements(self.answers.test, y)[1]
        right = (self.answers.test.argmax(axis=1) == y).astype(np.float64)
        influence: Array = (right - right.mean()) / len(y)
        return influence

    def over(self, other: "Finding") -> Estimate:
        """The accuracy of this one minus that of another on the same nodes; of pairs, the difference of their AUCs."""
        y = self.secret.test.y
        if isinstance(self.secret, LinkSecret):
            return auc_difference(self.answers.test, other.answers.test, y, self.secret.test.index)
        right = [(finding.answers.test.argmax(axis=1) == y).astype(np.float64) for finding in (self, other)]
        return mean(right[0] - right[1])

    def summary(self) -> dict[str, Any]:
        """As it stands in audit.json."""
        return {
            "attack": self.attack,
            "needs": list(self.needs),
            "metric": self.metric,
            **plain(self.headline),
            "metrics": {name: plain(estimate) for name, estimate in self.metrics.items()},
            "validation": self.validation.value,
            "seconds": round(self.seconds, 3),
        }


def strongest(findings: Sequence[Finding]) -> Finding:
    """The one that reads most on the validation part; of near-equals the ensemble, which owes least to luck there.

    An attacker who knows more secrets may always ignore some: one that knows few is not chosen over one that knows all.
    Of those, the contenders were asked for all that they may know, the others for a part of it: a contender is chosen.
    """
    able = most_asked(findings)
    best = max(able, key=lambda finding: finding.validation.value)
    steady = [finding for finding in able if finding.attack == ENSEMBLE and _near(finding.validation, best.validation)]
    return steady[0] if steady else best


def most_asked(findings: Sequence[Finding]) -> list[Finding]:
    """Those that know all they may, and were asked for the most of it."""
    able = [finding for finding in findings if "few secrets" not in finding.needs] or list(findings)
    most = max((len(finding.secret.val.y) for finding in able), default=0)
    return [finding for finding in able if len(finding.secret.val.y) == most]


def contenders(findings: Sequence[Finding]) -> list[Finding]:
    """Those that may be the strongest: within two standard errors of the best on the validation part."""
    able = [finding for finding in findings if finding.on_z_alone and "few secrets" not in finding.needs]
    able.sort(key=lambda finding: -finding.validation.value)
    return [
        one for one in able[:CONTENDERS] if one.validation.value >= able[0].validation.value - able[0].validation.half
    ]


def over_folds(first: Finding, others: Sequence[Finding]) -> Finding:
    """One attack's findings on other validation parts as one on all of them; answers for the test are the first's."""
    every = [first, *others]
    val = reduce(Asked.and_also, (one.secret.val for one in every))
    answers = Answers(np.concatenate([one.answers.val for one in every]), first.answers.test)
    seconds = sum(one.seconds for one in every)
    return replace(first, secret=replace(first.secret, val=val), answers=answers, seconds=seconds)


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """The strongest first, the others in their order."""
    best = strongest(findings)
    return [best, *(finding for finding in findings if finding is not best)]


def together(findings: Sequence[Finding]) -> list[Finding]:
    """One more finding: the best on the validation part and up to two near-equals, their log-odds averaged."""
    findings = most_asked(findings)
    secret = findings[0].secret if findings else None
    answers = [] if secret is None else _average(findings, ("val", "test"), "validation", secret.val.y)
    if secret is None or not answers:
        return []
    if isinstance(secret, LinkSecret) and secret.matched is not None:
        y = secret.matched.val.y
        matched = _average(findings, ("matched_val", "matched_test"), "matched_validation", y, at_least=1)
        answers += matched
    return [Finding(findings[0].subject, ENSEMBLE, ("z", "secrets"), secret, Answers(*answers), 0.0)]


def _average(
    findings: Sequence[Finding], parts: tuple[str, str], rank: str, y: Integers, at_least: int = 2
) -> list[Array]:
    """Both parts' answers averaged over the near-equals by `rank`, each set right on the first part; [] if too few."""
    able = [finding for finding in findings if getattr(finding, rank) is not None]
    able.sort(key=lambda finding: -getattr(finding, rank).value)
    best = [finding for finding in able[:TOGETHER] if _near(getattr(finding, rank), getattr(able[0], rank))]
    if len(best) < at_least:
        return []
    set_right = [calibrate(getattr(finding.answers, parts[0]), y) for finding in best]
    averages = []
    for part in parts:
        each = [right(getattr(finding.answers, part)) for right, finding in zip(set_right, best, strict=True)]
        log_q: Array = np.mean(each, axis=0)
        averages.append(log_q[:, 1] - log_q[:, 0] if isinstance(best[0].secret, LinkSecret) else log_q)
    return averages


def _near(one: Estimate, best: Estimate) -> bool:
    """Within a standard error of the best, which is a quarter of its interval."""
    return one.value >= best.value - best.half / 2


def plain(estimate: Estimate) -> dict[str, Any]:
    """For JSON."""
    return {"value": estimate.value, "ci": [estimate.low, estimate.high]}
