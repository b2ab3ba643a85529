"""Find the tables of a graph by the names of files."""

import re
from pathlib import Path

from graphveil.errors import GraphveilError

TEXT = (".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".el")
PARQUET = (".parquet", ".pq")
MAPPED = ("features.npy", "features.parquet")
"""Files of features, which are mapped; see `graphveil.data.readers.mapped`."""
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
LINK_FILES = ("edges", "edge", "links", "link", "edgelist", "relations", "relationships")
NODE_FILES = ("nodes", "node", "vertices", "vertex", "people", "persons", "users", "members")

_TEXTS = ("readme", "license", "licence", "changelog", "citation")
"""Names of files for people, which may end in .txt like a table."""


def find_tables(folder: Path, nodes: str | None = None) -> tuple[Path, Path | None]:
    """Return the tables of links and of nodes in a folder, found by their names.

    Args:
        folder: The folder.
        nodes: The path of the table of nodes; None searches for it.
    """
    files = sorted(
        file
        for file in folder.iterdir()
        if (is_table(file) or is_spreadsheet(file)) and not _is_text(file) and file.name not in MAPPED
    )
    kinds = {file: _kind(file)[0] if is_table(file) else "" for file in files}
    links = [file for file, kind in kinds.items() if kind == "links"]
    found = [file for file, kind in kinds.items() if kind == "nodes"]
    if len(links) != 1 or (len(found) > 1 and nodes is None):
        existing = ", ".join(file.name for file in files[:10]) or "no table"
        save = " Save spreadsheets as CSV." if any(map(is_spreadsheet, files)) else ""
        raise GraphveilError(
            f"{folder} holds {existing}: expected one edges.csv (or .tsv, .txt, .parquet) and at most one nodes.csv; or"
            f" give the table of links, and that of nodes with --nodes.{save}"
        )
    if nodes is not None:
        return links[0], find_nodes(links[0], nodes)
    if not found and (others := [file for file in files if file not in links]):
        raise GraphveilError(_question(folder, links[0], others[0]))
    return links[0], found[0] if found else None


def _question(folder: Path, links: Path, other: Path) -> str:
    """What to do about a table whose name does not say whether it has the nodes."""
    alone = f"if the graph has no table of nodes, give {links} instead of its folder."
    if is_spreadsheet(other):
        return f"{folder} holds {other.name}, a spreadsheet, which is not read: save it as nodes.csv; {alone}"
    return f"{folder} holds {other.name}: if it is the table of nodes, give --nodes {other.name}; {alone}"


def find_nodes(links: Path, nodes: str | None) -> Path | None:
    """Return the table of nodes that belongs to a table of links.

    Args:
        links: The table of links.
        nodes: The path of the table of nodes; None searches for a table with a matching name beside the links.
    """
    if nodes is not None:
        path = Path(nodes).expanduser()
        beside = links.parent / path.name
        return beside if not path.exists() and beside.exists() else path
    kind, rest = _kind(links)
    if kind != "links":
        return None
    try:
        beside_links = [file for file in sorted(links.parent.iterdir()) if is_table(file)]
    except OSError:
        return None
    matches = [file for file in beside_links if _kind(file) == ("nodes", rest)]
    if len(matches) > 1:
        names = ", ".join(file.name for file in matches)
        raise GraphveilError(f"several tables may hold the nodes of {links.name} ({names}): choose one with --nodes.")
    return matches[0] if matches else None


def is_table(file: Path) -> bool:
    """Return whether a file is a table, by its suffix."""
    return plain_suffix(file) in (*TEXT, *PARQUET)


def is_spreadsheet(file: Path) -> bool:
    """Return whether a file is a spreadsheet, by its suffix; the lock files of Excel are none."""
    return file.suffix.lower() in SPREADSHEETS and not file.name.startswith("~$")


def check_spreadsheet(file: Path) -> None:
    """Refuse a spreadsheet, with what to do."""
    if is_spreadsheet(file):
        raise GraphveilError(f"{file} is a spreadsheet, which is not read: save the sheet as CSV, and give that file.")


def are_tables(path: Path) -> bool:
    """Return whether a path is a table or a folder of tables, even if it no longer exists."""
    return plain_suffix(path) in ("", *TEXT, *PARQUET) or path.is_dir()


def plain_suffix(file: Path) -> str:
    """Return the suffix of a name in lower case, without .gz."""
    name = file.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _is_text(file: Path) -> bool:
    return file.name.lower().startswith(_TEXTS)


def _kind(file: Path) -> tuple[str, str]:
    """ "links", "nodes" or "" by the name of a file, and the rest of the name."""
    stem = file.name.lower().removesuffix(".gz").rpartition(".")[0]
    parts = [part for part in re.split(r"[ _.\-]+", stem) if part]
    for kind, words in (("links", LINK_FILES), ("nodes", NODE_FILES)):
        if parts and (parts[-1] in words or parts[0] in words):
            rest = parts[:-1] if parts[-1] in words else parts[1:]
            return kind, "_".join(rest)
    return "", stem
