"""The codes of a release: one for each distinct row of the embeddings.

A code is a number from 0, the rank of its row by SHA-256. So the numbers depend on the released rows alone: neither the
order of the nodes nor the training shows in them.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphveil.auditing.certify import is_discrete
from graphveil.codes import distinct_codes

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Codes:
    """The code of each node, (num_nodes,), and the row of each code, (codes, channels) float32."""

    numbers: Integers
    rows: NDArray[np.float32]

    @property
    def are_few(self) -> bool:
        """Whether a release of these codes can have a certificate."""
        return is_discrete(self.numbers)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned integer type that holds every code."""
        return np.min_scalar_type(len(self.rows) - 1)


def codes_of(z: NDArray[np.float32]) -> Codes:
    """The codes of embeddings, (num_nodes, channels)."""
    numbers, first = distinct_codes(z)
    rows = z[first]
    order = np.array(sorted(range(len(rows)), key=lambda code: hashlib.sha256(rows[code].tobytes()).digest()))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Codes(rank[numbers].astype(np.int64), rows[order])
