"""Two tables with values that would be recognised anywhere, and what tests do to a run's files."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.data.origin import Reading
from graphveil.files import sealed

NODES = 160
NAMES = [f"person-{number:03d}-{(number * 7919) % 1000:03d}" for number in range(NODES)]
CLASSES = {
    "tribe": ("xylophone", "quokka"),
    "guild": ("zeppelin", "mangrove", "obelisk"),
    "home_town": ("ulaanbaatar", "reykjavik"),
}
READING = Reading(label="guild", attributes=["tribe"])
SECRETS = ["tribe", "links"]
PROTECTED: dict[str, Any] = {"verdict": "protected", "told_by": [], "flags": [], "origin": {"panel": "full"}}
"""The fields of an audit by the full panel that found nothing, for `change`."""


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


def audit_files(run: Path) -> dict[str, Path]:
    return {"tribe": run / "audit.json", "links": run / "audit.links.json"}


def change(file: Path, **fields: Any) -> None:
    """Put other values into a JSON file, and seal it anew if it was; a dictionary is merged."""
    content = json.loads(file.read_text())
    for name, value in fields.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    file.write_text(json.dumps(sealed(content) if "sha256" in content else content))
