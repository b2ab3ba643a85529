"""Open the graph and the split of a run again, with further columns where an audit needs them."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphveil.auditing.groups import check_columns
from graphveil.data import Split, digest, node_classes
from graphveil.data.datasets.catalog import open_graph
from graphveil.data.origin import Encoding, ReadOptions, node_ids, origin_of
from graphveil.data.splits.split import draw_split
from graphveil.errors import GraphveilError
from graphveil.formats.run import RunRecord
from graphveil.runs.folder import RunFolder
from graphveil.runs.trained_on import exclude_trained
from graphveil.target import BUILT_IN


@dataclass(frozen=True)
class Source:
    """How to open a graph again.

    Args:
        graph: its name or path.
        reading: the fields of `ReadOptions`; None for a named graph.
        encoding: how columns are encoded, if an earlier graph decides it.
    """

    graph: str
    reading: Mapping[str, Any] | None
    encoding: Encoding | None = None

    @classmethod
    def of(cls, record: RunRecord) -> "Source":
        """The source of a run's graph."""
        earlier = record.embedded is not None and record.encoding is not None
        return cls(record.graph, record.reading, Encoding.from_plain(record.encoding or {}) if earlier else None)


def graph_of(folder: RunFolder, record: RunRecord, root: Path | None = None) -> tuple[Data, Split]:
    """The graph and the split of a run, refused if they are not those that it was trained on.

    Args:
        folder: the folder of the run.
        record: the content of its `run.json`.
        root: the folder of the graph's raw files.
    """
    reading = None if record.reading is None else ReadOptions(**record.reading)
    graph = _open(Source.of(record), reading, root)
    if digest(graph) != record.graph_digest:
        raise GraphveilError(
            f"{record.graph} is not the graph that {folder.path} was trained on: restore that graph, or apply the"
            " run to the new one with `graphveil embed`."
        )
    seed = record.config.seed if record.split_seed is None else record.split_seed
    split = draw_split(record.split, graph, seed, record.message_edges, record.targets)
    if record.embedded is not None:
        split = exclude_trained(split, graph, folder.trained_on())
    if split.digest() != record.split_digest:
        raise GraphveilError(
            f"the split of {folder.path} cannot be drawn again, because another version of graphveil made it: use that"
            " version, or train the run again."
        )
    return graph, split


def with_columns(
    graph: Data, source: Source, targets: Sequence[str], by: Sequence[str], bins: Mapping[str, int]
) -> Data:
    """The same graph with more columns of its tables as node classes; features and all else stay as they are.

    Args:
        graph: the graph as it was opened.
        source: how to open it again.
        targets: secrets to add, where the graph does not have them yet.
        by: columns to group by.
        bins: as in `ReadOptions`, for these columns.
    """
    check_columns(graph, by, () if source.reading is None else origin_of(graph).columns)
    wanted = [name for name in dict.fromkeys((*targets, *by)) if name not in (*BUILT_IN, *graph.keys())]
    if others := [name for name in bins if name not in wanted]:
        raise GraphveilError(
            f"bins are given for {others[0]!r}: give bins only for audited columns that are no target of the run."
        )
    if not wanted or source.reading is None:
        return graph
    reading = ReadOptions(**source.reading).with_targets(*wanted)
    features = [name for name in reading.features or () if name not in wanted] or None
    again = _open(source, replace(reading, features=features, bins={**reading.bins, **bins}))
    if not node_ids(again).equals(node_ids(graph)):
        raise GraphveilError(f"{source.graph} changed while it was read: try again.")
    found, origin = copy.copy(graph), origin_of(graph)
    for name in wanted:
        found[name] = node_classes(again, name)
    classes = {**origin_of(again).encoding.classes, **origin.encoding.classes}
    found.origin = replace(origin, encoding=replace(origin.encoding, classes=classes))
    return found


def _open(source: Source, reading: ReadOptions | None, root: Path | None = None) -> Data:
    return open_graph(source.graph, reading, root, source.encoding)
