"""Keyed pseudonyms: only the holder of the key can link a pseudonym to its id.

A pseudonym is the first 128 bits of HMAC-SHA256(key, kind:id) in hexadecimal. The kind is `int` for integers, `text`
for strings, and Arrow's name for any other type. So 1 and "1" have different pseudonyms, and 1 has the same pseudonym
in every integer type. A hash without a key is not enough: anyone can hash guessed ids and compare.
"""

import hmac
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphveil.errors import GraphveilError
from graphveil.runs.folder import Embeddings

SHORTEST = 16
"""Minimum length of a key in bytes."""
LONGEST = 65536
"""Maximum length of a key in bytes."""
BYTES = 16
"""Length of a pseudonym: among a billion ids, the probability of a collision is 1e-21."""


def read_key(file: Path, apart_from: Sequence[Path]) -> bytes:
    """Read the key in a file, without surrounding whitespace.

    Args:
        file: the file with the key.
        apart_from: folders that must not contain the file, because others may read them.
    """
    place = file.resolve()
    for folder in apart_from:
        if place.is_relative_to(folder.resolve()):
            raise GraphveilError(f"the key {file} is inside {folder}: keep it elsewhere, where only you can read it.")
    if file.exists() and not file.is_file():  # reading a pipe would block
        raise GraphveilError(f"the key {file} is not a regular file: give a file that holds a key.")
    try:
        with file.open("rb") as opened:
            key = opened.read(LONGEST + 1).strip()
    except FileNotFoundError as error:
        make = f"create it with `openssl rand -hex 32 > {shlex.quote(str(file))}`, and keep it secret"
        raise GraphveilError(f"the key {file} does not exist: {make}.") from error
    except OSError as error:
        raise GraphveilError(
            f"the key {file} cannot be read ({error.strerror}): give a file that holds a key."
        ) from error
    if len(key) < SHORTEST:
        raise GraphveilError(
            f"the key in {file} has {len(key)} bytes, expected at least {SHORTEST}: create one with"
            " `openssl rand -hex 32`."
        )
    if len(key) > LONGEST:
        raise GraphveilError(f"{file} is too large for a key: give a file that holds a key.")
    return key


def pseudonyms(ids: pa.Array, key: bytes) -> pa.Array:
    """The pseudonym of each id, in hexadecimal.

    Args:
        ids: the ids, (num_nodes,).
        key: the secret key.
    """
    if pa.types.is_integer(ids.type):
        kind = b"int:"
    elif pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        kind = b"text:"
    else:
        kind = f"{ids.type}:".encode()
    return pa.array(hmac.digest(key, kind + text, "sha256")[:BYTES].hex() for text in _bytes(ids))


def under_pseudonyms(embeddings: Embeddings, key: bytes) -> Embeddings:
    """Replace ids by pseudonyms and sort the rows by them; the original order would identify each row."""
    names = pseudonyms(embeddings.ids, key)
    order = pc.sort_indices(names)
    return replace(embeddings, ids=names.take(order), z=embeddings.z[np.asarray(order)])


def _bytes(ids: pa.Array) -> list[bytes]:
    texts: list[bytes] = ids.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return texts
