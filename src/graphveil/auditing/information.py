"""How many nats an embedding tells about a secret: a lower bound, and vCLUB.

Both are read off one attack's answers q on the test part, after its confidence was set right on the validation part,
which it explains best of all. The lower bound H(y) - CE holds whatever q is. vCLUB,

    E log q(y | z) over true pairs  -  E log q(y | z) over y drawn without looking at z,

is an upper bound only if q is nearly the true posterior, which nobody can check; what can be checked is, and an
estimate that fails is marked as one not to be trusted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from graphveil.auditing.metrics import Array, Integers, mean
from graphveil.formats import Interval

ENOUGH = 100
"""Examples below which no estimate is trusted."""


@dataclass(frozen=True)
class Nats:
    """An estimate of a mutual information, and why it is not to be trusted, if so."""

    estimate: Interval
    doubt: str = ""


@dataclass(frozen=True)
class Information:
    """What z tells about the secret, in nats, beside the secret's entropy."""

    entropy: float
    lower: Nats
    vclub: Nats


def information(answers: Array, y: Integers, val: tuple[Array, Integers], pairs: Integers | None) -> Information:
    """Both estimates from answers as an `Answers` has them.

    Args:
        val: answers and classes of the validation part. pairs: (2, n) where examples are pairs.
    """
    log_q = calibrate(val[0], val[1])(answers)
    share = np.maximum(np.bincount(y, minlength=log_q.shape[1]) / len(y), 1e-300)
    entropy = float(-(share * np.log(share)).sum())
    told = log_q[np.arange(len(y)), y]
    lower = mean(told - np.log(share)[y], pairs)
    vclub = mean(told - log_q @ share, pairs)
    value, low, high = (min(max(v, 0.0), entropy) for v in (lower.value, lower.low, lower.high))
    clipped = Interval(value, (low, high))
    few = f"only {len(y)} examples" if len(y) < ENOUGH else ""
    return Information(
        entropy, Nats(clipped, few or _doubt_lower(lower)), Nats(vclub, few or _doubt(vclub, lower, log_q, share))
    )


def explained(answers: Array, y: Integers) -> float:
    """How well answers explain these examples once their confidence is set right: the mean of log q(y | z)."""
    log_q = calibrate(answers, y)(answers)
    return float(log_q[np.arange(len(y)), y].mean())


def calibrate(answers: Array, y: Integers, wary: bool = False) -> Callable[[Array], Array]:
    """Set confidence right: log q = a * answers + b a class, with a and b that explain these examples best.

    Args:
        wary: as of `combine`.
    """
    alone = combine([answers], y, least=-np.inf, wary=wary)
    return lambda others: alone([others])


def combine(
    answers: Sequence[Array], y: Integers, least: float = 0.0, shrink: float = 0.0, wary: bool = False
) -> "Combination":
    """The same of several answers: log q = sum of a * answers + b a class.

    Args:
        least: of each a. shrink: what the square of each a costs, in nats.
        wary: where answers explain no more than chance gives to as many numbers a (Akaike, 1974), each a is 0.
    """
    columns = [_two_columns(one) for one in answers]
    scale = np.array([max(float(one.std()), 1e-12) for one in columns])
    x = np.stack(columns) / scale[:, None, None]
    classes, count = x.shape[2], len(columns)
    costs = np.concatenate([shrink / scale**2, np.full(classes, 1e-3)])  # no shift where a class was never seen

    def surprise(parameters: Array) -> tuple[float, Array]:
        slope, shift = parameters[:count], parameters[count:]
        log_q = log_softmax(np.tensordot(slope, x, axes=1) + shift, axis=1)
        error = np.exp(log_q)
        error[np.arange(len(y)), y] -= 1
        gradient = np.concatenate([(error * x).sum(axis=(1, 2)), error.sum(axis=0)]) / len(y)
        value = -log_q[np.arange(len(y)), y].mean() + costs @ parameters**2
        return float(value), gradient + 2 * costs * parameters

    bounds = [(least, np.inf)] * count + [(-np.inf, np.inf)] * classes
    found = minimize(surprise, np.zeros(count + classes), jac=True, method="L-BFGS-B", bounds=bounds).x
    if wary:
        share = (np.bincount(y, minlength=classes) + 1) / (len(y) + classes)
        nothing = np.concatenate([np.zeros(count), np.log(share)])
        before, after = (surprise(one)[0] - costs @ one**2 for one in (nothing, found))
        found = found if len(y) * (before - after) > np.count_nonzero(found[:count]) else nothing
    return Combination(found[:count] / scale, found[count:], 1 / (len(y) + 2))


@dataclass(frozen=True, eq=False)
class Combination:
    """A slope for each attack and a shift for each class, and the share of answers expected to be plainly wrong.

    Where all examples were explained, the slopes have no end, and one more that is not would be an endless surprise;
    that it may come is as likely as Laplace's rule says.
    """

    slopes: Array
    shift: Array
    doubt: float

    def __call__(self, answers: Sequence[Array]) -> Array:
        x = sum(slope * _two_columns(one) for slope, one in zip(self.slopes, answers, strict=True))
        sure = log_softmax(x + self.shift, axis=1)
        log_q: Array = np.logaddexp(np.log1p(-self.doubt) + sure, np.log(self.doubt / len(self.shift)))
        return log_q


def _two_columns(answers: Array) -> Array:
    """A score of a pair is the log-odds of a link."""
    return answers if answers.ndim == 2 else np.stack([np.zeros(len(answers)), answers], axis=1)


def _doubt_lower(lower: Interval) -> str:
    return "the attack is surer than it is right: the bound is below 0" if lower.high < 0 else ""


def _doubt(vclub: Interval, lower: Interval, log_q: Array, share: Array) -> str:
    """What can be checked of an upper bound."""
    if vclub.value < lower.value - 1e-9:
        return "it is below the lower bound"
    if vclub.value > -(share * np.log(share)).sum():
        return "it is above the entropy, which is the better bound"
    without_looking = -(log_q @ share)
    largest = np.sort(without_looking)[-max(1, len(without_looking) // 100) :].sum()
    if largest > 0.5 * without_looking.sum():
        return "one example in a hundred decides it"
    if np.allclose(log_q, log_q[0], atol=1e-3):
        return "the attack gives every example the same answer, so its q tells nothing about z"
    return ""
