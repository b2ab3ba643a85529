"""NumPy's files: adjacencies of SciPy are read, and sizes that a file declares are checked."""

import io
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import graphveil as gv
from tests.data.readers.made import links, refusal


def test_an_array_that_announces_more_than_there_is(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<i8", "fortran_order": False, "shape": (2, 10**15)})
    (tmp_path / "huge.npy").write_bytes(content.getvalue())
    assert "declares 16,000,000,000,000,000 bytes, but the file has" in refusal(tmp_path / "huge.npy")


def test_a_scipy_matrix_and_its_file(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.array([[0, 2, 0], [0, 0, 0.5], [0, 0, 7]]))
    for kind in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / "matrix.npz", matrix.asformat(kind))
        for source in (matrix, tmp_path / "matrix.npz"):
            assert links(gv.read_graph(source)) == [(0, 1), (1, 2)]
            assert links(gv.read_graph(source, min_weight=1)) == [(0, 1)]
