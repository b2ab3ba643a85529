"""Mutual information of channels for which it is known or can be integrated."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from graphveil.auditing.information import Information, calibrate, combine, information

COUNT = 20_000


def estimates(log_q: np.ndarray, y: np.ndarray) -> Information:
    """From the first half as the validation part and the second as the test part."""
    half = len(y) // 2
    return information(log_q[half:], y[half:], (log_q[:half], y[:half]), None)


@pytest.mark.parametrize("error", [0.05, 0.2, 0.4])
def test_a_symmetric_channel(error: float) -> None:
    """z is y, replaced by another of four classes with probability `error`: I = ln 4 - H(noise)."""
    random = np.random.default_rng(0)
    y = random.integers(0, 4, COUNT)
    z = np.where(random.random(COUNT) < error, (y + random.integers(1, 4, COUNT)) % 4, y)
    posterior = np.full((COUNT, 4), error / 3)
    posterior[np.arange(COUNT), z] = 1 - error
    truth = np.log(4) + (1 - error) * np.log(1 - error) + error * np.log(error / 3)
    result = estimates(np.log(posterior), y)
    assert result.lower.estimate.covers(truth)
    assert result.lower.estimate.value == pytest.approx(truth, abs=0.03)
    # Both terms under the true posterior: KL from the product to the joint comes on top of I.
    both = (1 - error) * np.log(1 - error) + error * np.log(error / 3)
    both -= np.log(1 - error) / 4 + 3 * np.log(error / 3) / 4
    assert result.vclub.estimate.value == pytest.approx(both, abs=0.06)
    assert result.vclub.estimate.value >= truth
    assert result.entropy == pytest.approx(np.log(4), abs=1e-3)


@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0])
def test_two_gaussians(distance: float) -> None:
    """y is a coin and z is Gaussian around +-distance / 2: the log-odds are distance * z, whatever their scale is."""
    random = np.random.default_rng(1)
    y = random.integers(0, 2, COUNT)
    z = random.normal(size=COUNT) + distance * (y - 0.5)

    def integrand(at: float) -> float:
        density = 0.5 * norm.pdf(at, -distance / 2) + 0.5 * norm.pdf(at, distance / 2)
        return -float(density * np.log(density))

    truth = quad(integrand, -12, 12)[0] - 0.5 * np.log(2 * np.pi * np.e)
    result = estimates(7.0 * z, y)  # seven times too confident: calibrated on the validation part
    assert result.lower.estimate.covers(truth)
    assert result.lower.estimate.value == pytest.approx(truth, abs=0.02)
    assert result.vclub.estimate.value == pytest.approx(distance**2 / 4, rel=0.05), "E[(y - 1/2) distance z]"
    assert result.lower.warning == ""


def test_noise_has_no_information() -> None:
    random = np.random.default_rng(2)
    y = random.integers(0, 3, COUNT)
    result = estimates(np.log(random.dirichlet(np.ones(3), COUNT)), y)
    assert result.lower.estimate.value == pytest.approx(0, abs=2e-3)
    assert result.lower.estimate.low == 0, "clipped"
    assert result.vclub.estimate.value == pytest.approx(0, abs=5e-3)


def test_perfect_answers_are_clipped_at_the_entropy() -> None:
    y = np.arange(4000) % 2
    result = estimates(100.0 * (2 * y - 1), y)
    assert result.lower.estimate.value <= result.entropy
    assert result.lower.estimate.value == pytest.approx(np.log(2), abs=1e-2)
    assert "above the entropy" in result.vclub.warning


def test_unreliable_estimates_have_a_warning() -> None:
    y = np.arange(60) % 2
    assert "only 30 test examples" in estimates(y.astype(float), y).lower.warning
    y = np.arange(4000) % 2
    assert "same answer" in estimates(np.zeros(4000), y).vclub.warning
    wrong = np.where(np.arange(4000) < 2000, 3.0 * (2 * y - 1), -3.0 * (2 * y - 1))
    reversed_ = estimates(wrong, y)  # right on the validation part and wrong on the test part
    assert reversed_.lower.estimate.value == 0
    assert "overconfident" in reversed_.lower.warning


def test_pairs_that_share_a_node_widen_the_interval() -> None:
    random = np.random.default_rng(3)
    y = random.integers(0, 2, 400)
    score = y + random.normal(size=400) + np.repeat(random.normal(size=10), 40)
    alone = information(score, y, (score, y), None)
    hubs = np.stack([np.repeat(np.arange(10), 40), np.arange(400) + 10])
    shared = information(score, y, (score, y), hubs)
    width = {name: one.lower.estimate.high - one.lower.estimate.low for name, one in (("a", alone), ("s", shared))}
    assert width["s"] >= width["a"]


def test_calibration_finds_slope_and_shift() -> None:
    """Logits drawn from known odds: q = sigmoid(2 s - 1)."""
    random = np.random.default_rng(4)
    score = random.normal(size=200_000)
    y = (random.random(200_000) < 1 / (1 + np.exp(-(2 * score - 1)))).astype(np.int64)
    result = combine([score], y)
    assert result.slopes[0] == pytest.approx(2, abs=0.05)
    assert result.shift[1] - result.shift[0] == pytest.approx(-1, abs=0.05)


def test_answers_without_information_get_no_weight() -> None:
    random = np.random.default_rng(5)
    score, noise = random.normal(size=50_000), random.normal(size=50_000)
    y = (random.random(50_000) < 1 / (1 + np.exp(-2 * score))).astype(np.int64)
    result = combine([noise, score, -score], y)
    assert result.slopes[0] < 0.03
    assert result.slopes[1] == pytest.approx(2, abs=0.1)
    assert result.slopes[2] == 0, "weights are not negative"
    assert np.allclose(combine([score], y)([score]), calibrate(score, y)(score), atol=1e-3)


def test_a_confident_error_does_not_hide_a_nearly_complete_leak() -> None:
    """All 500 known answers are right and very confident; two of 1,000 test answers are wrong."""
    random = np.random.default_rng(0)
    known, test = random.integers(0, 2, 500), random.integers(0, 2, 1000)
    predicted = np.where(np.arange(1000) < 2, 1 - test, test)

    def confident(classes: np.ndarray) -> np.ndarray:
        return np.where(np.arange(2) == classes[:, None], 0.0, -14.0)

    result = information(confident(predicted), test, (confident(known), known), None)
    assert result.lower.estimate.value > 0.65
    assert result.lower.estimate.high <= result.entropy


@pytest.mark.parametrize("distance", [0.3, 0.7, 1.5, 3.0, 6.0])
def test_the_lower_bound_of_the_true_posterior_is_the_information(distance: float) -> None:
    """For two normal distributions at this distance; the truth is integrated."""
    random = np.random.default_rng(1)
    y = random.integers(0, 2, 60_000)
    odds = distance * (random.standard_normal(60_000) + distance * (y - 0.5))
    answers = np.stack([np.zeros(60_000), 3 * odds + 1], axis=1)  # too confident, and shifted
    points = np.linspace(-12, 12, 20_001) + distance / 2
    density = np.exp(-((points - distance / 2) ** 2) / 2) / np.sqrt(2 * np.pi)
    truth = np.log(2) - np.trapezoid(density * np.log1p(np.exp(-distance * points)), points)
    result = information(answers[:40_000], y[:40_000], (answers[40_000:], y[40_000:]), None)
    assert result.lower.estimate.value == pytest.approx(truth, rel=0.1)
