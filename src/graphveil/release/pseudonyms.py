"""Keyed pseudonyms: who holds the key can tell whose row it is, and nobody else.

A pseudonym is the first 128 bits of HMAC-SHA256(key, kind:id) in hexadecimal, where the kind is `int` of whole numbers,
`text` of texts, and Arrow's name of any other type: so 1 and "1" have pseudonyms that differ, and 1 has the same one in
whatever width of integer it comes. A plain hash would not do: ids can be guessed, and hashed by whoever guesses.
"""

import hmac
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphveil.errors import GraphveilError
from graphveil.release.formats import Embeddings

SHORTEST = 16
"""Bytes of a key."""
LONGEST = 65536
BYTES = 16
"""Of a pseudonym: two of a billion ids have the same one with a probability of 1e-21."""


def read_key(file: Path, apart_from: Sequence[Path]) -> bytes:
    """The key in a file, without the blanks around it.

    Args:
        apart_from: folders in which it must not lie, since they are handed on or lie about.
    """
    place = file.resolve()
    for folder in apart_from:
        if place.is_relative_to(folder.resolve()):
            raise GraphveilError(f"the key {file} lies inside {folder}: keep it apart, where only you can read it.")
    if file.exists() and not file.is_file():  # a pipe would keep us waiting
        raise GraphveilError(f"the key {file} is no ordinary file: name a file that holds one, or a new one.")
    try:
        with file.open("rb") as opened:
            key = opened.read(LONGEST + 1).strip()
    except FileNotFoundError as error:
        make = f"make one with `openssl rand -hex 32 > {shlex.quote(str(file))}`, and keep it to yourself"
        raise GraphveilError(f"there is no key in {file}: {make}.") from error
    except OSError as error:
        raise GraphveilError(
            f"the key {file} cannot be read ({error.strerror}): give a file that holds one."
        ) from error
    if len(key) < SHORTEST:
        raise GraphveilError(
            f"the key in {file} has {len(key)} bytes, and at least {SHORTEST} are needed: `openssl rand -hex 32` makes"
            " one."
        )
    if len(key) > LONGEST:
        raise GraphveilError(f"{file} is too large for a key: name a file that holds one, or a new one.")
    return key


def pseudonyms(ids: pa.Array, key: bytes) -> pa.Array:
    """One for each id, in hexadecimal."""
    if pa.types.is_integer(ids.type):
        kind = b"int:"
    elif pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        kind = b"text:"
    else:
        kind = f"{ids.type}:".encode()
    return pa.array(hmac.digest(key, kind + text, "sha256")[:BYTES].hex() for text in _bytes(ids))


def under_pseudonyms(embeddings: Embeddings, key: bytes) -> Embeddings:
    """With pseudonyms in place of ids, and in their order: the order of a table would give each row away."""
    names = pseudonyms(embeddings.ids, key)
    order = pc.sort_indices(names)
    return Embeddings(names.take(order), embeddings.z[np.asarray(order)])


def _bytes(ids: pa.Array) -> list[bytes]:
    texts: list[bytes] = ids.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return texts
