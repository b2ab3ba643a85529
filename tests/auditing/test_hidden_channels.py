"""Hidden channels: every way to hide a coin in a file is found, and noise raises no alarm."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.attacks import directions
from graphveil.auditing.hidden_channels import NAME, LinkChannelAttack, NodeChannelAttack, channels
from graphveil.auditing.metrics import accuracy, auc
from graphveil.auditing.secret import link_secret, node_secret

Rows = NDArray[np.float32]
Plant = Callable[[Rows, NDArray[np.int64]], NDArray[np.floating]]


def last_bit(z: Rows, coin: NDArray[np.int64]) -> Rows:
    bits = z.view(np.uint32)
    bits[:, 3] = (bits[:, 3] & ~np.uint32(1)) | coin.astype(np.uint32)
    return z


def last_step(z: Rows, coin: NDArray[np.int64]) -> Rows:
    """The parity of the steps of a grid of 2 ** -10."""
    steps = np.rint(z[:, 2] * 1024).astype(np.int64)
    z[:, 2] = (steps - steps % 2 + coin) / 1024
    return z


def decimal(z: Rows, coin: NDArray[np.int64]) -> NDArray[np.float64]:
    """The parity of the fourth decimal; other digits follow it."""
    values = np.abs(z.astype(np.float64))
    fourth = np.floor(values[:, 5] * 1e4)
    values[:, 5] = (fourth - fourth % 2 + coin + 0.3) / 1e4
    return values


def sign_of_zero(z: Rows, coin: NDArray[np.int64]) -> Rows:
    z[:, 1] = np.where(coin == 1, -0.0, 0.0)
    return z


def ties(z: Rows, coin: NDArray[np.int64]) -> Rows:
    ones = np.flatnonzero(coin)[: coin.sum() // 2 * 2]
    z[ones[::2], 7] = z[ones[1::2], 7]
    return z


def duplicate_rows(z: Rows, coin: NDArray[np.int64]) -> Rows:
    ones = np.flatnonzero(coin)[: coin.sum() // 2 * 2]
    z[ones[::2]] = z[ones[1::2]]
    return z


def length(z: Rows, coin: NDArray[np.int64]) -> Rows:
    unit: Rows = z / np.linalg.norm(z, axis=1, keepdims=True)
    return (unit * (1 + 1e-3 * coin[:, None])).astype(np.float32)


def faint(size: float) -> Plant:
    """One column is the sum of others plus a small multiple of the coin."""

    def plant(z: Rows, coin: NDArray[np.int64]) -> Rows:
        exact = z.astype(np.float64)
        exact[:, 7] = exact[:, :7].sum(axis=1) + size * (2 * coin - 1)
        return exact.astype(np.float32)

    return plant


def noise(seed: int = 0) -> Rows:
    return np.random.default_rng(seed).standard_normal((1500, 8)).astype(np.float32)


@pytest.mark.parametrize(
    "plant", [last_bit, last_step, decimal, sign_of_zero, ties, duplicate_rows, length, faint(1e-6), faint(3e-7)]
)
def test_a_coin_hidden_in_a_file_is_found(plant: Plant, town: Data, town_split: gv.Split) -> None:
    z = plant(noise(), town.coin.numpy())
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert audit.strongest.attack in (NAME, "ensemble")
    assert audit.strongest.headline.value > 0.95
    assert audit.verdict == "unprotected"


def test_weak_channels_of_many_columns_are_combined(town: Data, town_split: gv.Split) -> None:
    """Each last bit is right 62 % of the time; the eight of them together are right 85 %."""
    z, coin, random = noise(), town.coin.numpy(), np.random.default_rng(1)
    noisy = np.where(random.random((1500, 8)) < 0.62, coin[:, None], 1 - coin[:, None]).astype(np.uint32)
    bits = z.view(np.uint32)
    bits[:] = (bits & ~np.uint32(1)) | noisy
    secret = node_secret(town, town_split, "coin", 0)
    result = accuracy(NodeChannelAttack()(z.astype(np.float64), secret, 0).test, secret.test.y)
    assert result.value > 0.7


def test_noise_rarely_has_an_informative_channel(town: Data, town_split: gv.Split) -> None:
    """Also for links, where nodes of high degree are in many pairs."""
    nodes, links = node_secret(town, town_split, "coin", 0), link_secret(town, town_split, 0)
    alarms = 0
    for seed in range(40):
        z = noise(seed).astype(np.float64)
        alarms += accuracy(NodeChannelAttack()(z, nodes, seed).test, nodes.test.y).low > nodes.chance
        answers = LinkChannelAttack()(z, links, seed)
        alarms += auc(answers.test, links.test.y, links.test.index).low > 0.5
    assert alarms <= 4


def test_links_hidden_in_last_bits_are_found(town: Data, town_split: gv.Split) -> None:
    z, y = noise(), town.y.numpy()
    bits = z.view(np.uint32)
    for place in range(2):
        bits[:, place] = (bits[:, place] & ~np.uint32(1)) | ((y >> place) & 1).astype(np.uint32)
    audit = gv.audit(z, town, town_split, "links", attacks="quick")
    by_name = {finding.attack: finding for finding in audit.findings}
    others = [finding.headline.value for name, finding in by_name.items() if name not in (NAME, "ensemble")]
    assert by_name[NAME].headline.low > 0.6
    assert max(others) < 0.56, "attacks on the values find nothing"
    assert audit.verdict == "leaks"


def test_channels_by_hand() -> None:
    rows, column = channels(np.array([[0.5], [0.25], [0.5], [-0.5]]))
    assert rows[:, 0].tolist() == [2, 1, 2, 1], "how many nodes have the same row"
    assert column[:, -1].tolist() == [2, 1, 2, 1], "how many have the same value"
    assert any(channel.tolist() == [0, 0, 0, 1] for channel in column.T), "the sign"
    assert any(channel.tolist() == [5, 2, 5, 5] for channel in column.T), "the first decimal"
    assert any(channel.tolist() == [0, 1, 0, 0] for channel in column.T), "odd multiples of a quarter"


def test_codes_have_no_attack_on_hidden_channels(town: Data, town_split: gv.Split) -> None:
    z = noise()[town.y.numpy()]
    attacks = [finding.attack for finding in gv.audit(z, town, town_split, "coin", attacks="quick").findings]
    assert NAME not in attacks
    assert "table of distinct rows" in attacks


def test_a_huge_column_does_not_hide_others(town: Data, town_split: gv.Split) -> None:
    z = noise().astype(np.float64)
    z[:, 0] += 1.5 * town.coin.numpy()
    alone = gv.audit(z, town, town_split, "coin", attacks="quick").strongest.headline.value
    z[:, 1] *= 2.0**700
    assert gv.audit(z, town, town_split, "coin", attacks="quick").strongest.headline.value > alone - 0.03


def test_more_columns_than_nodes() -> None:
    wide = np.random.default_rng(0).standard_normal((34, 64))
    rows, spread = directions(wide)
    assert rows.shape[1] == len(spread) == 33, "centring removes one"
    np.testing.assert_allclose(rows.astype(np.float64).T @ rows / 34, np.eye(33), atol=1e-5)
    assert sum(block.shape[1] for block in channels(wide)) > 64


def test_channels_are_computed_one_block_at_a_time() -> None:
    blocks = channels(np.random.default_rng(0).standard_normal((5000, 60)))
    tracemalloc.start()
    next(blocks)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5_000_000
