"""NumPy's files, `.npz` and `.npy`.

They are read without unpickling, and only after the declared sizes have been compared with the actual ones.
"""

import math
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.arrays import read_arrays
from graphveil.data.readers.assemble import Contents
from graphveil.data.readers.find import plain_suffix
from graphveil.data.readers.safe_open import BAD_ZIP, MAX_BYTES, brief, check_expansion, check_file, unreadable
from graphveil.errors import GraphveilError

MAX_MEMBERS = 1000
"""How many arrays a file may hold."""


def read_array_file(file: Path, reading: ReadOptions) -> Contents:
    """Read an `.npz` or `.npy` file."""
    size = check_file(file)
    try:
        stream = file.open("rb")
    except OSError as error:
        raise unreadable(file, error) from error
    with stream:
        if plain_suffix(file) == ".npy":
            return read_arrays(_member(file, stream, size, file.name), reading, str(file))
        try:
            arrays = _members(file, zipfile.ZipFile(stream), size)
        except (*BAD_ZIP, OSError) as error:
            raise GraphveilError(f"{file} cannot be unpacked ({brief(error)}): save it again.") from error
    return read_arrays(arrays, reading, str(file))


def _members(file: Path, archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise GraphveilError(f"{file} holds {len(members):,} arrays: at most {MAX_MEMBERS:,} are allowed.")
    check_expansion(file, size, sum(member.file_size for member in members))
    arrays = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        with archive.open(member) as stream:
            arrays[name] = _member(file, stream, member.file_size, name)
    return arrays


def _member(file: Path, stream: Any, size: int, name: str) -> Any:
    """Read one array, after its header has been compared with the size of the file."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            shape, fortran, kind = read(stream)
    except Exception as error:  # the header is parsed as Python source, which can fail in any way
        raise GraphveilError(f"{file}: {name!r} is not a NumPy array ({brief(error)}): save it again.") from error
    if kind.hasobject:
        raise GraphveilError(f"{file}: {name!r} holds Python objects, which could run code: save numbers or text.")
    expected = math.prod(shape) * kind.itemsize
    if expected > MAX_BYTES or expected > size:
        raise GraphveilError(f"{file}: {name!r} declares {expected:,} bytes, but the file has {size:,}: save it again.")
    data = stream.read(expected)
    if len(data) < expected:
        raise GraphveilError(f"{file}: {name!r} is truncated: save it again.")
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if fortran else "C")
