"""Embeddings and secrets with a known amount of leakage."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from graphveil.auditing.metrics import Integers
from graphveil.auditing.secret import FEW, FOLDS, MIN_VALIDATION, NodeSecret, Queries, stratified

Rows = NDArray[np.floating]
World = tuple[Rows, Integers]
"""Embeddings, (2 n, columns), and a secret, (2 n,), which is known for the first n nodes."""


def secret_of(y: Integers, seed: int) -> NodeSecret:
    """A secret that is known for the first half of the nodes and queried for the second, on a graph without links."""
    half = len(y) // 2
    index = np.arange(len(y))
    order = np.random.default_rng(seed).permutation(half)
    few = np.concatenate([order[y[order] == c][:FEW] for c in np.unique(y)])
    known, classes = Queries(index[:half], y[:half]), int(y.max()) + 1
    return NodeSecret(
        name="secret",
        num_nodes=len(y),
        num_classes=classes,
        known={"few": Queries(few, y[few]), "all": known},
        fold=stratified(known.y, FOLDS, seed),
        val_folds=min(FOLDS, math.ceil(FOLDS * MIN_VALIDATION / half)),
        test=Queries(index[half:], y[half:]),
        links=np.zeros((2, 0), dtype=np.int64),
        class_names=[f"class {number}" for number in range(classes)],
    )


def line(bayes: float, n: int, random: np.random.Generator) -> World:
    """A coin shifts one of two directions; the best rule is right with probability `bayes`."""
    y, z = random.integers(0, 2, 2 * n), random.standard_normal((2 * n, 2))
    angle = random.random() * 2 * np.pi
    return z + norm.ppf(bayes) * np.outer(2 * y - 1, [np.cos(angle), np.sin(angle)]), y


def line_among_eight(bayes: float, n: int, random: np.random.Generator) -> World:
    """The same in one of eight directions, which is harder to estimate from few examples."""
    y, z = random.integers(0, 2, 2 * n), random.standard_normal((2 * n, 8))
    direction = random.standard_normal(8)
    return z + norm.ppf(bayes) * np.outer(2 * y - 1, direction / np.linalg.norm(direction)), y


def codes(bayes: float, n: int, random: np.random.Generator) -> World:
    """Four codes, two for each side of a coin."""
    y = random.integers(0, 2, 2 * n)
    side = np.where(random.random(2 * n) < bayes, y, 1 - y)
    return np.eye(4)[2 * side + random.integers(0, 2, 2 * n)], y


def ring(bayes: float, n: int, random: np.random.Generator) -> World:
    """Points of two columns within the median distance from the centre have one side of the coin more often."""
    z = random.standard_normal((2 * n, 2))
    side = (np.square(z).sum(axis=1) > 2 * np.log(2)).astype(np.int64)
    return z, np.where(random.random(2 * n) < bayes, side, 1 - side)


LEAKS: dict[str, Callable[[float, int, np.random.Generator], World]] = {
    "line": line,
    "codes": codes,
    "ring": ring,
    "line among eight": line_among_eight,
}


# ----- planted secrets: a share of the nodes carries the coin, the others a random coin --------------------------


def planted(name: str, share: float, n: int, random: np.random.Generator) -> World:
    """Noise in eight columns with a hidden coin; nodes outside the share carry a random coin instead."""
    y = random.integers(0, 2, 2 * n)
    coin = np.where(random.random(2 * n) < share, y, random.integers(0, 2, 2 * n))
    z = random.standard_normal((2 * n, 8)).astype(np.float32)
    return PLANTS[name](z, coin), y


def _last_bit(z: Rows, coin: Integers) -> Rows:
    bits = z.view(np.uint32)
    bits[:, 3] = (bits[:, 3] & ~np.uint32(1)) | coin.astype(np.uint32)
    return z


def _decimal(z: Rows, coin: Integers) -> Rows:
    """The parity of the fourth decimal; other digits follow it."""
    values = np.abs(z.astype(np.float64))
    fourth = np.floor(values[:, 5] * 1e4)
    values[:, 5] = (fourth - fourth % 2 + coin + 0.3) / 1e4
    return values


def _pairs_of(coin: Integers) -> tuple[Integers, Integers]:
    ones = np.flatnonzero(coin)[: coin.sum() // 2 * 2]
    return ones[::2], ones[1::2]


def _ties(z: Rows, coin: Integers) -> Rows:
    one, other = _pairs_of(coin)
    z[one, 7] = z[other, 7]
    return z


def _duplicate_rows(z: Rows, coin: Integers) -> Rows:
    one, other = _pairs_of(coin)
    z[one] = z[other]
    return z


def _length(z: Rows, coin: Integers) -> Rows:
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    rows: Rows = (unit * (1 + 1e-3 * coin[:, None])).astype(np.float32)
    return rows


def _faint(z: Rows, coin: Integers) -> Rows:
    """One column is the sum of the others plus a millionth of the coin."""
    exact = z.astype(np.float64)
    exact[:, 7] = exact[:, :7].sum(axis=1) + 1e-6 * (2 * coin - 1)
    return exact.astype(np.float32)


def _shift(z: Rows, coin: Integers) -> Rows:
    z[:, 2] += 4 * coin
    return z


def _signs(columns: int) -> Callable[[Rows, Integers], Rows]:
    """The product of the signs of some columns: XOR of two, parity of three."""

    def plant(z: Rows, coin: Integers) -> Rows:
        wrong = (z[:, :columns] > 0).sum(axis=1) % 2 != coin
        z[:, 0] = np.where(wrong, -z[:, 0], z[:, 0])
        return z

    return plant


def _ring(z: Rows, coin: Integers) -> Rows:
    z[:, :2] *= np.where(coin, 2.0, 0.7)[:, None].astype(np.float32)
    return z


def _sine(z: Rows, coin: Integers) -> Rows:
    """One side of the coin has a positive sine of a column."""
    phase = np.floor(z[:, 4] / 0.5) % 2 != coin
    z[:, 4] += np.where(phase, 0.5, 0.0)
    return z


PLANTS: dict[str, Callable[[Rows, Integers], Rows]] = {
    "last bit of a column": _last_bit,
    "parity of a decimal": _decimal,
    "ties in a column": _ties,
    "duplicate rows": _duplicate_rows,
    "length of a row, by a thousandth": _length,
    "a direction of a millionth": _faint,
    "shift of a column": _shift,
    "scale of two columns (rings)": _ring,
    "sine of a column": _sine,
    "sign of a product of two columns (XOR)": _signs(2),
    "sign of a product of three columns": _signs(3),
}
