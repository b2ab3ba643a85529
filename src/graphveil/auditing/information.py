"""The mutual information between an embedding and a secret, in nats: a lower bound, and vCLUB.

Both are computed from the log-probabilities log q of one attack on the test part, calibrated on the validation part.
The attack is the one that explains the validation part best. The lower bound

    H(y) + mean of log q(y | z)

holds for every q. vCLUB,

    mean of log q(y | z) over the true pairs (y, z)  -  mean of log q(y' | z) over y' drawn independently of z,

is an upper bound only if q is close to the true posterior, which cannot be verified. Some failures can be detected:
the estimate then has a warning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from graphveil.auditing.metrics import Array, Integers, mean
from graphveil.formats import Interval

MIN_EXAMPLES = 100
"""Estimates from fewer test examples are unreliable."""


@dataclass(frozen=True)
class Nats:
    """An estimate of a mutual information.

    Args:
        estimate: the value in nats, with its 95 % interval.
        warning: why the estimate is unreliable; empty if no reason is known.
    """

    estimate: Interval
    warning: str = ""


@dataclass(frozen=True)
class Information:
    """What z reveals about the secret.

    Args:
        entropy: the entropy of the secret, in nats.
        lower: the lower bound of the mutual information.
        vclub: the vCLUB estimate of the mutual information.
    """

    entropy: float
    lower: Nats
    vclub: Nats


def information(answers: Array, y: Integers, val: tuple[Array, Integers], pairs: Integers | None) -> Information:
    """Compute both estimates from the answers of an attack.

    Args:
        answers: the answers on the test part, (n, classes), or (n,) for pairs.
        y: classes of the test part, (n,).
        val: the answers and the classes of the validation part.
        pairs: the test pairs, (2, n), for a link secret; None for a node secret.
    """
    log_q = calibrate(val[0], val[1])(answers)
    share = np.maximum(np.bincount(y, minlength=log_q.shape[1]) / len(y), 1e-300)
    entropy = float(-(share * np.log(share)).sum())
    log_q_of_y = log_q[np.arange(len(y)), y]
    lower = mean(log_q_of_y - np.log(share)[y], pairs)
    vclub = mean(log_q_of_y - log_q @ share, pairs)
    value, low, high = (min(max(v, 0.0), entropy) for v in (lower.value, lower.low, lower.high))
    clipped = Interval(value, (low, high))
    few = f"only {len(y)} test examples" if len(y) < MIN_EXAMPLES else ""
    return Information(
        entropy,
        Nats(clipped, few or _warning_of_lower_bound(lower)),
        Nats(vclub, few or _warning_of_vclub(vclub, lower, log_q, share)),
    )


def mean_log_likelihood(answers: Array, y: Integers) -> float:
    """The mean of log q(y | z) over these examples, after calibration on the same examples."""
    log_q = calibrate(answers, y)(answers)
    return float(log_q[np.arange(len(y)), y].mean())


def calibrate(answers: Array, y: Integers) -> Callable[[Array], Array]:
    """Correct the confidence of answers: log q = a * answers + b, with one b per class, fitted on these examples.

    For nodes, a is at least 0. An answer is slightly less probable where its own example was held out, and with a
    negative a this effect of cross-validation would pass for a leak. Scores of pairs may have either sign.

    Args:
        answers: log-probabilities, (n, classes), or log-odds of a link, (n,).
        y: classes, (n,).

    Returns:
        A function from answers to log-probabilities, (n, classes).
    """
    combination = combine([answers], y, min_slope=0.0 if answers.ndim == 2 else -np.inf)
    return lambda others: combination([others])


def combine(answers: Sequence[Array], y: Integers, min_slope: float = 0.0, penalty: float = 0.0) -> "Combination":
    """Fit log q = sum over attacks of a * answers, + b per class, by maximum likelihood.

    Args:
        answers: the answers of each attack, (n, classes) or (n,) as in `calibrate`.
        y: classes, (n,).
        min_slope: lower bound on each a.
        penalty: the penalty on the square of each a, in nats.
    """
    columns = [_two_columns(one) for one in answers]
    scale = np.array([max(float(one.std()), 1e-12) for one in columns])
    x = np.stack(columns) / scale[:, None, None]
    classes, count = x.shape[2], len(columns)
    penalties = np.concatenate(
        [penalty / scale**2, np.full(classes, 1e-3)]
    )  # keeps b finite for a class without examples

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, shift = parameters[:count], parameters[count:]
        log_q = log_softmax(np.tensordot(slope, x, axes=1) + shift, axis=1)
        error = np.exp(log_q)
        error[np.arange(len(y)), y] -= 1
        gradient = np.concatenate([(error * x).sum(axis=(1, 2)), error.sum(axis=0)]) / len(y)
        value = -log_q[np.arange(len(y)), y].mean() + penalties @ parameters**2
        return float(value), gradient + 2 * penalties * parameters

    bounds = [(min_slope, np.inf)] * count + [(-np.inf, np.inf)] * classes
    fitted = minimize(loss, np.zeros(count + classes), jac=True, method="L-BFGS-B", bounds=bounds).x
    return Combination(fitted[:count] / scale, fitted[count:], 1 / (len(y) + 2))


@dataclass(frozen=True, eq=False)
class Combination:
    """A fitted combination of attacks, mixed with the uniform distribution.

    If the attacks are right on all fitted examples, the slopes grow without bound, and one wrong answer would have an
    infinite loss. The mixture bounds the loss.

    Args:
        slopes: one for each attack.
        shift: one for each class.
        uniform: the weight of the uniform distribution, by Laplace's rule of succession: 1 / (examples + 2).
    """

    slopes: Array
    shift: Array
    uniform: float

    def __call__(self, answers: Sequence[Array]) -> Array:
        """Log-probabilities, (n, classes), from the answers of each attack."""
        x = sum(slope * _two_columns(one) for slope, one in zip(self.slopes, answers, strict=True))
        fitted = log_softmax(x + self.shift, axis=1)
        log_q: Array = np.logaddexp(np.log1p(-self.uniform) + fitted, np.log(self.uniform / len(self.shift)))
        return log_q


def _two_columns(answers: Array) -> Array:
    """The log-odds of a link as unnormalised log-probabilities of both classes, (n, 2)."""
    return answers if answers.ndim == 2 else np.stack([np.zeros(len(answers)), answers], axis=1)


def _warning_of_lower_bound(lower: Interval) -> str:
    return "the attack is overconfident: the bound is below 0" if lower.high < 0 else ""


def _warning_of_vclub(vclub: Interval, lower: Interval, log_q: Array, share: Array) -> str:
    """A failure of the upper bound that can be detected; empty if there is none."""
    if vclub.value < lower.value - 1e-9:
        return "it is below the lower bound"
    if vclub.value > -(share * np.log(share)).sum():
        return "it is above the entropy, which is a better upper bound"
    independent = -(log_q @ share)
    largest = np.sort(independent)[-max(1, len(independent) // 100) :].sum()
    if largest > 0.5 * independent.sum():
        return "1 % of the examples contribute more than half of it"
    if np.allclose(log_q, log_q[0], atol=1e-3):
        return "the attack gives every example the same answer"
    return ""
