"""Write embeddings and their ids in formats that other programs read.

| name | files | ids |
|---|---|---|
| `codes` | `codes.parquet`, `code_book.parquet`, `code_book.json` | column `id` of `codes.parquet`, as of `parquet` |
| `parquet` | `embeddings.parquet` | column `id`, in the ids' own type; then z0, z1, ... |
| `npy` | `embeddings.npy` | in `ids.jsonl`, one JSON value per line |
| `safetensors` | `embeddings.safetensors` with `z` | `id` if they are integers, else in `ids.jsonl` |
| `word2vec` | `embeddings.word2vec.txt` | the first word of each line, as a `token` |
| `projector` | `projector/`, a folder for TensorBoard | `metadata.tsv`, one `token` per line |
| `embedding-atlas` | `embeddings.atlas.parquet` | column `id`, as of `parquet`; then `vector`, a list |
"""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import safetensors.numpy
from numpy.typing import NDArray

from graphveil.files import write_atomically, write_json, write_text
from graphveil.formats.release import CodeBookRecord
from graphveil.release.codes import codes_of
from graphveil.runs.folder import Embeddings

BLOCK = 65536
"""Rows that are converted to text at once."""
LOOK_UP = "The embedding of a node is the row of code_book.parquet with the code that the node has in codes.parquet."
LINK_SCORE = (
    "The score of a link between nodes u and v is sum_i signs[i] * z_u[i] * z_v[i]: the higher the score, the more"
    " likely the link."
)
PROJECTOR = """\
embeddings {
  tensor_name: "embeddings"
  tensor_path: "tensors.tsv"
  metadata_path: "metadata.tsv"
}
"""


def as_codes(folder: Path, embeddings: Embeddings) -> None:
    """Write the code of each node, the row of each code, and how to use them.

    `codes.parquet` has the columns id and code, `code_book.parquet` the columns code, z0, z1, ..., and `code_book.json`
    says how to use both, with the signs of the columns if there are any.
    """
    codes = codes_of(embeddings.z)
    nodes = pa.table({"id": embeddings.ids, "code": codes.numbers.astype(codes.dtype)})
    book = pa.table({"code": np.arange(len(codes.rows), dtype=codes.dtype), **_columns(codes.rows)})
    write_atomically(folder / "codes.parquet", lambda temporary: pq.write_table(nodes, temporary))
    write_atomically(folder / "code_book.parquet", lambda temporary: pq.write_table(book, temporary))
    record = CodeBookRecord(LOOK_UP)
    if embeddings.signs is not None:
        record = CodeBookRecord(f"{LOOK_UP} {LINK_SCORE}", tuple(int(sign) for sign in embeddings.signs))
    write_json(folder / "code_book.json", record.to_dict())


def as_parquet(folder: Path, embeddings: Embeddings) -> None:
    """Write `embeddings.parquet` with the columns id, z0, z1, ..."""
    table = pa.table({"id": embeddings.ids, **_columns(embeddings.z)})
    write_atomically(folder / "embeddings.parquet", lambda temporary: pq.write_table(table, temporary))


def as_npy(folder: Path, embeddings: Embeddings) -> None:
    """Write `embeddings.npy` and `ids.jsonl`."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # given a path, np.save would add a suffix
            np.save(file, embeddings.z, allow_pickle=False)

    write_atomically(folder / "embeddings.npy", write)
    _ids_beside(folder, embeddings.ids)


def as_safetensors(folder: Path, embeddings: Embeddings) -> None:
    """Write `embeddings.safetensors` with z, and with id if ids are integers; other ids go to `ids.jsonl`."""
    arrays = {"z": np.ascontiguousarray(embeddings.z)}
    if pa.types.is_integer(embeddings.ids.type):
        arrays["id"] = np.ascontiguousarray(embeddings.ids.to_numpy(zero_copy_only=False))
    else:
        _ids_beside(folder, embeddings.ids)
    data = safetensors.numpy.save(arrays)
    write_atomically(folder / "embeddings.safetensors", lambda temporary: temporary.write_bytes(data))


def as_word2vec(folder: Path, embeddings: Embeddings) -> None:
    """Write `embeddings.word2vec.txt`: the shape, then one line per row with a token and its numbers."""
    head = "{} {}\n".format(*embeddings.z.shape).encode()
    table = pa.table({"id": tokens(embeddings.ids), **_columns(embeddings.z)})
    write_atomically(folder / "embeddings.word2vec.txt", lambda temporary: _write_lines(temporary, table, b" ", head))


def as_projector(folder: Path, embeddings: Embeddings) -> None:
    """Write `projector/`, which `tensorboard --logdir projector` shows."""
    numbers, names = pa.table(_columns(embeddings.z)), pa.table({"id": tokens(embeddings.ids)})
    projector = folder / "projector"
    write_atomically(projector / "tensors.tsv", lambda temporary: _write_lines(temporary, numbers, b"\t"))
    write_atomically(projector / "metadata.tsv", lambda temporary: _write_lines(temporary, names, b"\t"))
    write_text(projector / "projector_config.pbtxt", PROJECTOR)


def as_embedding_atlas(folder: Path, embeddings: Embeddings) -> None:
    """Write `embeddings.atlas.parquet`, which `embedding-atlas --vector vector` shows: a table of id and vector."""
    rows, width = embeddings.z.shape
    vectors = pa.ListArray.from_arrays(np.arange(0, (rows + 1) * width, width, dtype=np.int32), embeddings.z.ravel())
    table = pa.table({"id": embeddings.ids, "vector": vectors})
    write_atomically(folder / "embeddings.atlas.parquet", lambda temporary: pq.write_table(table, temporary))


FORMATS: Mapping[str, Callable[[Path, Embeddings], None]] = {
    "codes": as_codes,
    "parquet": as_parquet,
    "npy": as_npy,
    "safetensors": as_safetensors,
    "word2vec": as_word2vec,
    "projector": as_projector,
    "embedding-atlas": as_embedding_atlas,
}
"""The writer of each format: a function of a folder and embeddings."""


def tokens(ids: pa.Array) -> pa.Array:
    """Ids as words without whitespace or quotes; different ids of one type give different words."""
    texts = ids.cast(pa.string())
    unsafe = pc.or_(pc.match_substring_regex(texts, r"[^\x21\x23-\x24\x26-\x7e]"), pc.equal(texts, ""))
    if not pc.any(unsafe).as_py():
        return texts
    return pc.replace_with_mask(texts, unsafe, pa.array([token(text) for text in texts.filter(unsafe).to_pylist()]))


def token(text: str) -> str:
    """Percent-encode unsafe characters, as in a URL; the empty string becomes `%`."""
    return "".join(letter if _is_safe(letter) else quote(letter, safe="") for letter in text) or "%"


def _is_safe(letter: str) -> bool:
    """Whether a character is printable and neither whitespace, a quote nor a percent sign."""
    return letter.isprintable() and letter not in ' %"'


def _columns(z: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    return {f"z{i}": np.ascontiguousarray(z[:, i]) for i in range(z.shape[1])}


def _write_lines(path: Path, table: pa.Table, delimiter: bytes, head: bytes = b"") -> None:
    """Write one line per row; each number is the shortest text that parses to the same float32."""
    options = pyarrow.csv.WriteOptions(
        include_header=False, batch_size=BLOCK, delimiter=delimiter.decode(), quoting_style="none"
    )
    with path.open("wb") as file:
        file.write(head)
        pyarrow.csv.write_csv(table, file, options)


def _ids_beside(folder: Path, ids: pa.Array) -> None:
    """Write `ids.jsonl`: JSON distinguishes 1 from "1" and escapes line breaks."""
    plain = ids if pa.types.is_integer(ids.type) else ids.cast(pa.string())
    lines = io.StringIO()
    lines.writelines(f"{json.dumps(value)}\n" for value in plain.to_pylist())
    write_text(folder / "ids.jsonl", lines.getvalue())
