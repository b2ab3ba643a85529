"""Read the embeddings of a run, their ids, and how links are scored from them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from graphveil.errors import GraphveilError
from graphveil.formats.run import Config
from graphveil.release.formats import Embeddings
from graphveil.training.objectives import CODES


def read_embeddings(file: Path) -> Embeddings:
    """Read the ids and rows that a run wrote."""
    try:
        table = pq.read_table(file)
        columns = [f"z{i}" for i in range(table.num_columns - 1)]
        if not columns or table.column_names != ["id", *columns]:
            strange = [name for name in table.column_names if name not in ("id", *columns)] or table.column_names
            raise ValueError(f"expected the columns id, z0, z1, ..., found {strange[0][:40]!r}")
        ids = table["id"].combine_chunks()
        if pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        if ids.null_count or len(ids.unique()) != len(ids):
            raise ValueError("some ids are missing or not unique")
        ids.cast(pa.large_string())  # most formats write ids as text
        z = np.stack([table[name].to_numpy() for name in columns], axis=1)
        if z.dtype != np.float32 or not len(z):
            raise ValueError(f"expected rows of float32, found {len(z)} rows of {z.dtype}")
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphveilError(
            f"{file} cannot be read as the embeddings of a run ({reason}): expected the file of `graphveil protect`."
        ) from error
    return Embeddings(ids, z)


def read_signs(run: Path, config: Config, channels: int) -> NDArray[np.float32] | None:
    """The signs of the columns, (channels,), with which a run of codes scores links; None for other runs."""
    if config.objective != CODES or config.utility != "links":
        return None
    file = run / "model.safetensors"
    try:
        with safe_open(file, "np") as tensors:
            signs = np.asarray(tensors.get_tensor("book.signs"), dtype=np.float32)
        if signs.shape != (channels,) or not np.isin(signs, (-1, 1)).all():
            raise ValueError(f"expected {channels} signs")
    except (OSError, ValueError, SafetensorError) as error:
        raise GraphveilError(
            f"{file} has no signs for the {channels} columns of the embeddings ({error}), so links cannot be scored:"
            " restore the file, or train the run again."
        ) from error
    return signs


def is_the_same(file: Path, embeddings: Embeddings) -> bool:
    """Whether an array on disk equals the embeddings, or does not exist."""
    try:
        return np.array_equal(np.load(file, allow_pickle=False), embeddings.z)
    except FileNotFoundError:
        return True  # then embeddings.parquet was audited
    except (OSError, ValueError, EOFError):
        return False
