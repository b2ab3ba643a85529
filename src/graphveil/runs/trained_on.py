"""The nodes and links that an encoder was trained on, and splits of another graph that test on others.

An encoder hides best what it was trained to hide, and keeps best what it was trained to keep. Measured on the same
nodes again, the leak would be too small and the utility too high. So a run records by the nodes' own ids which classes
it was trained on and, if links are kept or hidden, which links. Both files are for the owner: they are in the run's
folder and never in a release.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import encode_pairs
from graphveil.data.origin import node_ids
from graphveil.errors import GraphveilError
from graphveil.files import write_atomically
from graphveil.target import LINKS, Target, without_links

TRAINED_ON, TRAINED_LINKS = "trained_on.parquet", "trained_links.parquet"
ENDS = ("one", "other")


@dataclass(frozen=True, eq=False)
class TrainedOn:
    """What an encoder was trained on, by the ids of nodes.

    Args:
        nodes: the nodes whose classes were used, in a column `id`; None if they are not recorded.
        links: the links that were used, with one end in each column of `ENDS`; None if they are not recorded.
    """

    nodes: pa.Table | None
    links: pa.Table | None

    @classmethod
    def of(cls, graph: Data, split: Split, targets: Sequence[str]) -> "TrainedOn":
        """What a training on these targets uses."""
        ids = node_ids(graph)
        if not pa.types.is_integer(ids.type):
            ids = ids.cast(pa.large_string())  # once for every end of a link they may be too much for a plain one
        nodes = pa.table({"id": ids.take(pa.array(split.defender_nodes("all").numpy()))})
        if LINKS not in targets:
            return cls(nodes, None)
        ends = zip(ENDS, split.train_links.numpy(), strict=True)
        return cls(nodes, pa.table({name: ids.take(pa.array(end)) for name, end in ends}))

    @classmethod
    def read(cls, folder: Path) -> "TrainedOn":
        """Read the files of a run's folder."""
        return cls(_read(folder / TRAINED_ON, ["id"]), _read(folder / TRAINED_LINKS, ENDS))

    def write(self, folder: Path) -> None:
        """Write a file for each table, and remove the file of a table that is None."""
        for name, table in ((TRAINED_ON, self.nodes), (TRAINED_LINKS, self.links)):
            if table is None:
                (folder / name).unlink(missing_ok=True)
            else:
                write_atomically(folder / name, partial(pq.write_table, table))

    def not_recorded(self, targets: Sequence[str]) -> list[str]:
        """What the training used and the files do not record: "nodes" or "links"."""
        of_links = ["links"] if self.links is None and LINKS in targets else []
        return [*(["nodes"] if self.nodes is None else []), *of_links]


def exclude_trained(split: Split, graph: Data, seen: TrainedOn) -> Split:
    """The same split without anything in its validation and test parts that the encoder was trained on."""
    return _other_links(_other_nodes(split, graph, seen.nodes), graph, seen.links)


def too_few(graph: Data, split: Split, name: str) -> str | None:
    """Why a target cannot be evaluated: the validation or the test part has nothing that is new to the encoder."""
    if Target.of(name).is_links:
        if split.val_links.size(1) and split.test_links.size(1):
            return None
        return "too few links are new to the encoder."
    known = node_classes(graph, name).cpu() != UNKNOWN
    if all(bool(known[part].any()) for part in (split.val_nodes, split.test_nodes)):
        return None
    return "it is known for too few nodes that are new to the encoder."


def _other_nodes(split: Split, graph: Data, seen: pa.Table | None) -> Split:
    """Exchange the trained nodes of the held-out parts for untrained nodes of the same class.

    A trained node for which there is no such exchange left becomes a spare node.
    """
    names = without_links(split.targets)
    if seen is None or not names:
        return split
    classes = node_classes(graph, names[0]).cpu()
    before = torch.zeros(split.num_nodes, dtype=torch.bool)
    numbers = _numbers(graph, seen["id"])
    before[numbers[numbers >= 0]] = True
    train, held_out_nodes = split.train_nodes.clone(), torch.cat([split.test_nodes, split.val_nodes])
    for number in classes[train].unique():
        new = ((classes[train] == number) & ~before[train]).nonzero().flatten()
        old = ((classes[held_out_nodes] == number) & before[held_out_nodes]).nonzero().flatten()
        new, old = new[: len(old)], old[: len(new)]
        train[new], held_out_nodes[old] = held_out_nodes[old], train[new]
    test, val = held_out_nodes.split([len(split.test_nodes), len(split.val_nodes)])
    return replace(
        split,
        train_nodes=train,
        val_nodes=val[~before[val]],
        test_nodes=test[~before[test]],
        spare_nodes=torch.cat([split.spare_nodes, held_out_nodes[before[held_out_nodes]]]),
    )


def _other_links(split: Split, graph: Data, seen: pa.Table | None) -> Split:
    """Move the trained links to the training part, and hold out untrained links instead, as far as there are any.

    A third of the held-out links is for validation. As many non-links are held out.
    """
    if seen is None:
        return split
    one, other = (_numbers(graph, seen[end]) for end in ENDS)
    low, high = torch.minimum(one, other), torch.maximum(one, other)
    before = encode_pairs(torch.stack([low, high])[:, low >= 0])
    links = torch.cat([split.test_links, split.val_links, split.train_links], dim=1)
    old = torch.isin(encode_pairs(links), before)
    links = links[:, torch.cat([(~old).nonzero(), old.nonzero()]).flatten()]  # new ones first
    held_out = min(split.test_links.size(1) + split.val_links.size(1), int((~old).sum()))
    val = held_out // 3
    test = held_out - val
    return replace(
        split,
        train_links=links[:, held_out:],
        val_links=links[:, test:held_out],
        val_nonlinks=split.val_nonlinks[:, :val],
        test_links=links[:, :test],
        test_nonlinks=split.test_nonlinks[:, :test],
    )


def _numbers(graph: Data, named: pa.ChunkedArray) -> Tensor:
    """The nodes that have these ids; -1 where none has."""
    ids = node_ids(graph)
    if ids.type != named.type:
        ids, named = ids.cast(pa.large_string()), named.cast(pa.large_string())
    found = pc.fill_null(pc.index_in(named, value_set=ids), -1)
    return torch.from_numpy(np.array(found, dtype=np.int64))


def _read(file: Path, columns: Sequence[str]) -> pa.Table | None:
    """A table of ids; None where there is none."""
    if not file.exists():
        return None
    try:
        if not file.is_file():
            raise ValueError("it is not a plain file")  # a pipe might never end
        table = pq.read_table(file, columns=list(columns))
        if not all(pa.types.is_integer(kind) or kind == pa.large_string() for kind in table.schema.types):
            raise ValueError("it holds no ids")
        return table.select(list(columns))
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise GraphveilError(f"{file} cannot be read as a list of ids: restore the file of the run.") from error
