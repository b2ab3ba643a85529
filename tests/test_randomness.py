"""Noise is uniform, and a function of (seed, name, step, position) alone."""

import pytest
import torch

from graphveil.randomness import Noise, draw, hashed_names, uniform_by_name


def noise(seeds: list[int], name: str = "test", step: int = 0) -> Noise:
    return Noise(seeds, name, 10, torch.tensor([step]))


def test_bits_are_balanced_and_do_not_repeat() -> None:
    """Each of 32 bits of a million integers is a fair coin, within five standard deviations of 1/2000.

    Every step of the hash can be undone, so that a step's first 2^32 integers are all different.
    """
    bits = noise([0]).bits(1_000_000)[0]
    shares = torch.stack([((bits >> position) & 1).double().mean() for position in range(32)])
    assert (shares - 0.5).abs().max() < 5 * 0.0005
    assert bits.unique().numel() == 1_000_000


@pytest.mark.parametrize("lag", [1, 2, 64, 500_000])
def test_neighbouring_positions_are_independent(lag: int) -> None:
    coins = noise([3]).coins(0.5, 1_000_000)[0].double() - 0.5
    correlation = 4 * (coins[lag:] * coins[:-lag]).mean()
    assert abs(float(correlation)) < 5 / (1_000_000 - lag) ** 0.5


@pytest.mark.parametrize("other", [noise([1]), noise([0], "other"), noise([0], step=1)])
def test_seed_name_and_step_each_give_other_numbers(other: Noise) -> None:
    """Not the same, not correlated, and not the same at a shift."""
    ours, theirs = noise([0]).bits(200_000)[0], other.bits(200_000)[0]
    assert (ours == theirs).sum() <= 2
    same_sign = ((ours >> 31) == (theirs >> 31)).double().mean()
    assert abs(float(same_sign) - 0.5) < 5 * 0.5 / 200_000**0.5
    assert torch.isin(ours, theirs).sum() < 50, "a shifted copy would hold all of them; chance gives about ten"


def test_a_run_draws_the_same_alone_and_in_a_batch() -> None:
    batch = noise([5, 6, 7])
    for run, seed in enumerate([5, 6, 7]):
        alone = noise([seed])
        assert batch.bits(101)[run].equal(alone.bits(101)[0])
        assert batch.coins(0.3, 101)[run].equal(alone.coins(0.3, 101)[0])
        assert batch.ascending_integers(1000, 101)[run].equal(alone.ascending_integers(1000, 101)[0])


def test_numbers_are_pinned() -> None:
    """A run that is resumed on another machine, or with another version, draws what it would have drawn."""
    assert noise([0]).bits(4).tolist() == PINNED_BITS
    assert noise([0]).ascending_integers(10**9, 3).tolist() == PINNED_INTEGERS


PINNED_BITS = [[-1708907620, 178654838, -1503386516, 794265030]]
PINNED_INTEGERS = [[79648327, 358791371, 735080052]]


@pytest.mark.parametrize("probability", [1e-5, 0.1, 0.5, 0.9, 1 - 1e-6, 1.0])
def test_coins_have_their_probability(probability: float) -> None:
    coins = noise([0]).coins(probability, 400_001)
    assert coins.shape == (1, 400_001)
    assert set(coins.unique().tolist()) <= {0, 1}
    deviation = max(probability * (1 - probability), 1e-9) ** 0.5 / 400_001**0.5
    assert abs(float(coins.double().mean()) - probability) <= 5 * deviation + 2**-16


def test_integers_are_uniform_and_ascending() -> None:
    drawn = noise([0, 1]).ascending_integers(7, 70_000)
    assert (drawn.diff(dim=1) >= 0).all()
    for run in drawn:
        counts = torch.bincount(run, minlength=7)
        assert counts.numel() == 7
        chi_squared = float(((counts - 10_000.0) ** 2 / 10_000).sum())
        assert chi_squared < 6 + 5 * 12**0.5, "six degrees of freedom, five standard deviations"
    large = noise([0]).ascending_integers(2**52, 100_000)[0].double() / 2**52
    assert abs(float(large.mean()) - 0.5) < 5 * 12**-0.5 / 100_000**0.5


def test_numbers_by_name_are_uniform_and_each_its_own() -> None:
    names = [str(number) for number in range(20_000)]
    drawn = uniform_by_name("key", names)
    assert drawn[7:9].equal(uniform_by_name("key", ["7", "8"])), "wherever it stands"
    assert 0 <= float(drawn.min()) < float(drawn.max()) < 1
    quantiles = (torch.arange(20_000).double() + 0.5) / 20_000
    assert float((drawn.sort().values - quantiles).abs().max()) < 1.95 / 20_000**0.5, "Kolmogorov and Smirnov, p < .001"
    for other in (drawn.roll(1), uniform_by_name("another", names)):
        assert abs(float(torch.corrcoef(torch.stack([drawn, other]))[0, 1])) < 5 / 20_000**0.5
    assert len(hashed_names("", names).unique()) == 20_000


def test_codes_are_drawn_as_often_as_they_are_probable() -> None:
    q = torch.tensor([0.2, 0.5, 0.3]).expand(10_000, 3)
    uniform = (torch.arange(10_000).double() + 0.5) / 10_000
    assert (draw(q, uniform).bincount() - torch.tensor([2000, 5000, 3000])).abs().max() <= 1


def test_normal_numbers_are_normal() -> None:
    drawn = Noise([0, 1], "normal", 2, torch.tensor([1])).normal(100_001).double()
    assert drawn.shape == (2, 100_001)
    assert drawn.mean(dim=1).abs().max() < 0.015
    assert (drawn.var(dim=1) - 1).abs().max() < 0.02
    assert ((drawn.abs() < 1.959964).double().mean(dim=1) - 0.95).abs().max() < 0.004
    assert torch.corrcoef(drawn).abs()[0, 1] < 0.015, "runs draw independently"
