"""One attack's answers, kept raw, and every metric derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from graphveil.auditing.attacks import BEYOND_Z, Answers, Need
from graphveil.auditing.information import calibrate, combine
from graphveil.auditing.metrics import (
    Array,
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
from graphveil.auditing.secret import LinkSecret, Secret
from graphveil.formats import Interval
from graphveil.formats import audit as formats

ENSEMBLE = "the best together"
SHRINK = 0.01
"""What the square of a weight in it costs, in nats: with few examples many attacks would explain them by chance."""


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
    def metric(self) -> formats.Metric:
        """The one that decides."""
        return "auc" if isinstance(self.secret, LinkSecret) else "accuracy"

    @cached_property
    def headline(self) -> Interval:
        """The metric that decides, on the test part."""
        return self._decisive(self.answers.test, self.secret.test)

    @cached_property
    def validation(self) -> Interval:
        """The same on the validation part, where the strongest attack is chosen."""
        return self._decisive(self.answers.val, self.secret.val)

    def _decisive(self, answers: Array, asked: Any) -> Interval:
        if isinstance(self.secret, LinkSecret):
            return auc(answers, asked.y, asked.index)
        return accuracy(answers, asked.y)

    @cached_property
    def balanced(self) -> Interval:
        """Of a node secret: the balanced accuracy of naming the class that z speaks for most, however rare it is."""
        return balanced_accuracy(self._evidence(self.answers.test), self.secret.test.y)

    @cached_property
    def balanced_validation(self) -> Interval:
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
    def matched(self) -> Interval | None:
        """Of a link secret: the AUC against class-matched non-links."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_test is None:
            return None
        return auc(self.answers.matched_test, self.secret.matched.test.y, self.secret.matched.test.index)

    @cached_property
    def matched_validation(self) -> Interval | None:
        """The same on the validation part."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_val is None:
            return None
        return auc(self.answers.matched_val, self.secret.matched.val.y, self.secret.matched.val.index)

    @cached_property
    def metrics(self) -> dict[str, Interval]:
        """All metrics on the test part."""
        answers, test = self.answers.test, self.secret.test
        if isinstance(self.secret, LinkSecret):
            matched = {} if self.matched is None else {"class_matched_auc": self.matched}
            return {"auc": self.headline} | matched | precision_and_rates(answers, test.y, test.index)
        chance, read = self.secret.chance, self.headline
        return {
            "accuracy": read,
            "gain": Interval(read.value - chance, (read.low - chance, read.high - chance)),
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

    def over(self, other: "Finding") -> Interval:
        """The accuracy of this one minus that of another on the same nodes; of pairs, the difference of their AUCs."""
        y = self.secret.test.y
        if isinstance(self.secret, LinkSecret):
            return auc_difference(self.answers.test, other.answers.test, y, self.secret.test.index)
        right = [(finding.answers.test.argmax(axis=1) == y).astype(np.float64) for finding in (self, other)]
        return mean(right[0] - right[1])

    def record(self) -> formats.Attack:
        """As it stands in audit.json."""
        return formats.Attack(
            value=self.headline.value,
            ci=self.headline.ci,
            attack=self.attack,
            needs=self.needs,
            metric=self.metric,
            metrics=self.metrics,
            validation=self.validation.value,
            seconds=round(self.seconds, 3),
        )


def strongest(findings: Sequence[Finding]) -> Finding:
    """The one that reads most on the validation part; of near-equals all together, which owes least to luck there."""
    able = fully_informed(findings)
    best = max(able, key=lambda finding: finding.validation.value)
    steady = [finding for finding in able if finding.attack == ENSEMBLE and _near(finding.validation, best.validation)]
    return steady[0] if steady else best


def fully_informed(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Those that know all they may. An attacker who knows more may ignore it: one that knows few is never chosen."""
    return [finding for finding in findings if "few secrets" not in finding.needs] or findings


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """The strongest first, the others in their order."""
    best = strongest(findings)
    return [best, *(finding for finding in findings if finding is not best)]


def together(findings: Sequence[Finding]) -> list[Finding]:
    """One more finding: all of them, weighted as explains the validation part best (van der Laan et al., 2007).

    With the few examples of a small graph no attack can be told from the next by how often it is right; how sure each
    was where it was right tells more. Where this is no clearer than naming the largest class, it names that.
    """
    findings = fully_informed(findings)
    if len(findings) < 2:
        return []
    secret = findings[0].secret
    answers = _weighted(findings, ("val", "test"), secret.val.y)
    if isinstance(secret, LinkSecret) and secret.matched is not None:
        able = [finding for finding in findings if finding.answers.matched_val is not None]
        answers += _weighted(able, ("matched_val", "matched_test"), secret.matched.val.y)
    found = Finding(findings[0].subject, ENSEMBLE, ("z", "secrets"), secret, Answers(*answers), 0.0)
    if isinstance(secret, LinkSecret):
        return [found]
    share = np.bincount(secret.val.y, minlength=secret.num_classes) / len(secret.val.y)
    if found.validation.value > share.max() + found.validation.half / 2:
        return [found]
    guess = np.log(np.maximum(share, 0.5 / len(secret.val.y)))  # not more than naming the largest class, as all may
    return [replace(found, answers=Answers(*(np.tile(guess, (len(part.y), 1)) for part in (secret.val, secret.test))))]


def _weighted(findings: Sequence[Finding], parts: tuple[str, str], y: Integers) -> list[Array]:
    """Both parts' answers, weighted by what explains the first part best."""
    if not findings:
        return []
    first, second = ([getattr(finding.answers, part) for finding in findings] for part in parts)
    right = [calibrate(answers, y) for answers in first]
    val, test = ([each(one) for each, one in zip(right, answers, strict=True)] for answers in (first, second))
    weights = combine(val, y, shrink=SHRINK, wary=first[0].ndim == 2)  # tied scores of pairs would be no answer
    return [one[:, 1] - one[:, 0] if first[0].ndim == 1 else one for one in (weights(val), weights(test))]


def _near(one: Interval, best: Interval) -> bool:
    """Within a standard error of the best, which is a quarter of its interval."""
    return one.value >= best.value - best.half / 2
