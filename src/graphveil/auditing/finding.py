"""The result of one attack: its raw answers, and every metric derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from graphveil.auditing.secret import LinkSecret, Queries, Secret
from graphveil.formats import Interval
from graphveil.formats import audit as formats
from graphveil.target import Metric

ENSEMBLE = "ensemble"
"""The name of the weighted combination of all attacks on z."""
WEIGHT_PENALTY = 0.003
"""Penalty on the squared weights of the ensemble, in nats: without it, many attacks overfit few examples."""


@dataclass(frozen=True, eq=False)
class Finding:
    """The answers of one attack, kept raw so that any metric can be computed without running the attack again.

    Args:
        subject: what was attacked: "embeddings", or the name of a control.
        attack: the name of the attack.
        needs: what the attacker knows.
        secret: the secret that was attacked.
        answers: what the attack returned.
        seconds: how long the attack took when it ran, which may have been in an earlier audit.
    """

    subject: str
    attack: str
    needs: tuple[Need, ...]
    secret: Secret
    answers: Answers
    seconds: float

    @property
    def metric(self) -> Metric:
        """The metric of the headline."""
        return self.secret.target.metric

    @cached_property
    def headline(self) -> Interval:
        """The accuracy or AUC on the test part."""
        return self._headline_metric(self.answers.test, self.secret.test)

    @cached_property
    def validation(self) -> Interval:
        """The accuracy or AUC on the validation part, where the strongest attack is chosen."""
        return self._headline_metric(self.answers.val, self.secret.val)

    def _headline_metric(self, answers: Array, queries: Queries) -> Interval:
        if self.secret.target.is_links:
            return auc(answers, queries.y, queries.index)
        return accuracy(answers, queries.y)

    @cached_property
    def balanced(self) -> Interval:
        """The balanced accuracy of a node secret, when each node is assigned the class of the largest p(z | class)."""
        return balanced_accuracy(self._log_likelihood(self.answers.test), self.secret.test.y)

    @cached_property
    def balanced_validation(self) -> Interval:
        """The same on the validation part."""
        return balanced_accuracy(self._log_likelihood(self.answers.val), self.secret.val.y)

    def _log_likelihood(self, log_p: Array) -> Array:
        """log p(z | class) up to a constant: the calibrated posterior divided by the prior of the validation part.

        The most probable class is nearly always a frequent one. Dividing by the prior shows what z reveals about rare
        classes.
        """
        y = self.secret.val.y
        share = np.bincount(y, minlength=log_p.shape[1]) / len(y)
        return calibrate(self.answers.val, y)(log_p) - np.log(np.maximum(share, 0.5 / len(y)))

    @cached_property
    def matched(self) -> Interval | None:
        """The class-matched AUC of a link secret; None for a node secret, or without class-matched answers."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_test is None:
            return None
        return auc(self.answers.matched_test, self.secret.matched.test.y, self.secret.matched.test.index)

    @cached_property
    def matched_validation(self) -> Interval | None:
        """The same on the validation part."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched is None or self.answers.matched_val is None:
            return None
        return auc(self.answers.matched_val, self.secret.matched.val.y, self.secret.matched.val.index)

    @property
    def second(self) -> Interval | None:
        """The second metric: the class-matched AUC of a link secret, the balanced accuracy of a node secret."""
        return self.matched if self.secret.target.is_links else self.balanced

    @cached_property
    def metrics(self) -> dict[str, Interval]:
        """All metrics on the test part, by name."""
        answers, test = self.answers.test, self.secret.test
        if isinstance(self.secret, LinkSecret):
            matched = {} if self.matched is None else {"class_matched_auc": self.matched}
            return {"auc": self.headline} | matched | precision_and_rates(answers, test.y, test.index)
        chance, value = self.secret.chance, self.headline
        return {
            "accuracy": value,
            "gain": Interval(value.value - chance, (value.low - chance, value.high - chance)),
            "balanced_accuracy": self.balanced,
            "macro_f1": macro_f1(answers, test.y),
        }

    @property
    def on_z_alone(self) -> bool:
        """Whether the attacker holds neither the features, nor the public graph, nor the graph of the known links."""
        return not BEYOND_Z & set(self.needs)

    @property
    def constant(self) -> bool:
        """Whether all test examples got the same answer."""
        test = self.answers.test
        return len(np.unique(test.argmax(axis=1) if test.ndim == 2 else test)) == 1

    @property
    def influence(self) -> Array:
        """The influence of each test example on the headline, (n,)."""
        y = self.secret.test.y
        if self.secret.target.is_links:
            return placements(self.answers.test, y)[1]
        correct = (self.answers.test.argmax(axis=1) == y).astype(np.float64)
        influence: Array = (correct - correct.mean()) / len(y)
        return influence

    def minus(self, other: "Finding") -> Interval:
        """The accuracy or AUC of this attack minus that of another attack on the same test examples."""
        y = self.secret.test.y
        if self.secret.target.is_links:
            return auc_difference(self.answers.test, other.answers.test, y, self.secret.test.index)
        correct = [(finding.answers.test.argmax(axis=1) == y).astype(np.float64) for finding in (self, other)]
        return mean(correct[0] - correct[1])

    def record(self) -> formats.Attack:
        """The entry of this attack in audit.json."""
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
    """The attack with the best validation value, or the ensemble if it is within the 95 % interval of that value.

    The best of many validation values is partly luck, and its attack may be below chance level on the test part. The
    ensemble is fitted to log-probabilities, which are more informative than the number of hits.
    """
    candidates = fully_informed(findings)
    best = max(candidates, key=lambda finding: finding.validation.value)
    for finding in candidates:
        if finding.attack == ENSEMBLE and finding.validation.value >= best.validation.low:
            return finding
    return best


def fully_informed(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The attacks that know all known secrets; all attacks if there are none.

    An attacker who knows more secrets may ignore them, so an attack that knows few of them is never the strongest.
    """
    return [finding for finding in findings if "few secrets" not in finding.needs] or findings


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """The strongest attack first, the others in their order."""
    best = strongest(findings)
    return [best, *(finding for finding in findings if finding is not best)]


def ensemble(findings: Sequence[Finding]) -> list[Finding]:
    """Combine attacks with the weights that explain the validation part best (van der Laan et al., 2007).

    A small graph has too few examples to choose among attacks by accuracy; log-probabilities are more informative. If
    the ensemble of a node secret is not above the largest class on the validation part, it predicts that class.

    Args:
        findings: the findings of one subject and one secret.

    Returns:
        One finding, or none if there are fewer than two attacks.
    """
    findings = fully_informed(findings)
    if len(findings) < 2:
        return []
    secret = findings[0].secret
    answers = _combined(findings, ("val", "test"), secret.val.y)
    if isinstance(secret, LinkSecret) and secret.matched is not None:
        matched = [finding for finding in findings if finding.answers.matched_val is not None]
        answers += _combined(matched, ("matched_val", "matched_test"), secret.matched.val.y)
    combined = Finding(findings[0].subject, ENSEMBLE, ("z", "secrets"), secret, Answers(*answers), 0.0)
    if isinstance(secret, LinkSecret):
        return [combined]
    share = np.bincount(secret.val.y, minlength=secret.num_classes) / len(secret.val.y)
    if combined.validation.value > share.max():
        return [combined]
    log_share = np.log(np.maximum(share, 0.5 / len(secret.val.y)))
    constant = (np.tile(log_share, (len(part.y), 1)) for part in (secret.val, secret.test))
    return [replace(combined, answers=Answers(*constant))]


def _combined(findings: Sequence[Finding], parts: tuple[str, str], y: Integers) -> list[Array]:
    """The weighted answers for both parts; the weights are fitted on the first part, whose classes are y."""
    if not findings:
        return []
    first, second = ([getattr(finding.answers, part) for finding in findings] for part in parts)
    calibrations = [calibrate(answers, y) for answers in first]
    val, test = (
        [calibration(one) for calibration, one in zip(calibrations, answers, strict=True)]
        for answers in (first, second)
    )
    is_nodes = first[0].ndim == 2
    weights = combine(val, y, penalty=WEIGHT_PENALTY)
    return [one if is_nodes else one[:, 1] - one[:, 0] for one in (weights(val), weights(test))]


def signed(estimate: Interval) -> str:
    """A difference in points, with signs: "-0.5 [-1.8, +0.8]"."""
    return f"{100 * estimate.value:+.1f} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]"


def most_balanced(findings: Sequence[Finding]) -> Finding:
    """The attack with the best balanced accuracy on the validation part."""
    return max(fully_informed(findings), key=lambda finding: finding.balanced_validation.value)


def best_matched(findings: Sequence[Finding]) -> Finding | None:
    """The attack with the best class-matched AUC on the validation part; None if none has one."""
    values = [(one.matched_validation.value, i) for i, one in enumerate(findings) if one.matched_validation]
    return findings[max(values)[1]] if values else None
