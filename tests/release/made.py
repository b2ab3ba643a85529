"""Two tables with distinctive values, and helpers that change the files of a run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphveil as gv
from graphveil.auditing.certify import certify
from graphveil.data.origin import ReadOptions, node_ids
from graphveil.files import sealed
from graphveil.models.codes import CodeBook
from graphveil.randomness import hashed_names
from graphveil.release import Limits
from graphveil.runs.audit import audit_run
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import graph_of

NODES = 160
NAMES = [f"person-{number:03d}-{(number * 7919) % 1000:03d}" for number in range(NODES)]
CLASSES = {
    "tribe": ("xylophone", "quokka"),
    "guild": ("zeppelin", "mangrove", "obelisk"),
    "home_town": ("ulaanbaatar", "reykjavik"),
}
READING = ReadOptions(label="guild", attributes=["tribe"])
SECRETS = ["tribe", "links"]
PROTECTED: dict[str, Any] = {"verdict": "protected", "reasons": [], "flags": [], "origin": {"panel": "full"}}
"""The fields of an audit by the full panel that found nothing, for `change`."""
CODES = np.random.default_rng(1).integers(0, 6, NODES)
"""Codes that are unrelated to everything, for a run of codes."""
ROWS = np.array([[1, 0, 2], [0, 1, -1], [1, 1, 0], [0, 0, 0.5], [2, -1, 1], [-1, 0.25, 0]], dtype=np.float32)
SIGNS = np.array([1, 1, -1], dtype=np.float32)


def drawn(seed: int) -> tuple[dict[str, list[Any]], list[tuple[str, str]]]:
    """Columns of nodes, in which everything depends a little on the tribe, and links."""
    random = np.random.default_rng(seed)
    tribe = random.integers(0, 2, NODES)
    guild = (tribe + random.integers(0, 2, NODES)) % 3
    town = np.where(random.random(NODES) < 0.7, tribe, 1 - tribe)
    income = 40000 + 31.4159 * np.round(random.normal(size=NODES) * 200 + 150 * guild)
    columns: dict[str, list[Any]] = {
        "id": NAMES,
        "tribe": [CLASSES["tribe"][code] for code in tribe],
        "guild": [CLASSES["guild"][code] for code in guild],
        "home_town": [CLASSES["home_town"][code] for code in town],
        "income": [f"{value:.4f}" for value in income],
    }
    links = set[tuple[str, str]]()
    while len(links) < 500:
        one, other = random.integers(0, NODES, 2)
        if one != other and random.random() < (0.9 if guild[one] == guild[other] else 0.2):
            links.add((NAMES[min(one, other)], NAMES[max(one, other)]))
    return columns, sorted(links)


def write_tables(folder: Path, columns: dict[str, list[Any]], links: list[tuple[str, str]]) -> Path:
    folder.mkdir()
    rows = [columns.keys(), *zip(*columns.values(), strict=True)]
    (folder / "nodes.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in links))
    return folder


def tribes() -> "np.typing.NDArray[np.int64]":
    """The tribe of each node, 0 or 1, in the order in which the classes are read."""
    return np.unique(drawn(0)[0]["tribe"], return_inverse=True)[1].astype(np.int64)


def give_codes(run: Path, codes: "np.typing.NDArray[np.int64]") -> None:
    """Give the nodes of a run of codes other codes, with the rows in `ROWS`, and audit it anew.

    The audits are by the full panel that found nothing, and have the certificate of these codes.
    """
    graph, split = graph_of(RunFolder(run), record := RunFolder(run).record())
    veil = gv.Veil.load(run)
    merged = torch.arange(veil.code_shape_.codes) % len(ROWS)
    nodes = hashed_names("", NAMES)
    tables = (merged, *map(torch.from_numpy, (ROWS, SIGNS)), nodes, torch.from_numpy(codes))
    veil.modules_["book"] = CodeBook.of(*tables)
    z = veil.transform(graph, split)
    remade = ("schema", "config", "shapes", "versions", "ids_digest", "audited_as", "scores")
    kept = {key: value for key, value in record.to_dict().items() if key not in remade}
    folder = RunFolder(run)
    folder.write(veil, node_ids(graph), z, folder.trained_on(), kept | {"scores": asdict(veil.score(graph, split))})
    audit_run(run, attacks="quick", controls=False)
    certificate = certify(z, graph, split, "tribe")
    change(run / "audit.json", **PROTECTED, certificate=certificate.to_dict())


def audit_files(run: Path) -> dict[str, Path]:
    return {"tribe": run / "audit.json", "links": run / "audit.links.json"}


def change(file: Path, **fields: Any) -> None:
    """Change values of a JSON file, and update its digest if it has one; dictionaries are merged."""
    content = json.loads(file.read_text())
    for name, value in fields.items():
        old = content.get(name)
        content[name] = old | value if isinstance(old, dict) and isinstance(value, dict) else value
    file.write_text(json.dumps(sealed(content) if "sha256" in content else content))


def best_accuracy(codes: "np.typing.NDArray[np.int64]", y: "np.typing.NDArray[np.int64]") -> float:
    """The share of nodes that the best rule from code to class names correctly, counted one by one."""
    right = [max(int(((codes == code) & (y == one)).sum()) for one in (0, 1)) for code in np.unique(codes)]
    return sum(right) / len(codes)


def limits(*words: str) -> Limits:
    return Limits.parsed(words)


def ledger(run: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((run / "releases.json").read_text())["releases"]
    return entries


FILES = ["CARD.md", "SHA256SUMS", "code_book.json", "code_book.parquet", "codes.parquet"]
