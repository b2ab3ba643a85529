"""One candidate of `tune`: a run in a folder of its own, and what it keeps and leaks outside the test part."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.auditing.certify import link_bound, row_codes
from graphveil.auditing.map import count_codes, count_pairs
from graphveil.auditing.metrics import Integers
from graphveil.data import UNKNOWN, Split, check_targets, digest, node_classes
from graphveil.data.datasets.catalog import default_split, open_graph
from graphveil.data.origin import ReadOptions, class_names, node_ids
from graphveil.data.splits.split import draw_split
from graphveil.errors import GraphveilError, unknown
from graphveil.experiments.forecast import forecast
from graphveil.experiments.validation import without_test_part
from graphveil.formats.audit import CodeCounts
from graphveil.runs.folder import RECORD, RunFolder
from graphveil.runs.protect import protect
from graphveil.target import CHANCE_AUC, Target, gain_over_chance
from graphveil.training.objectives import CODES
from graphveil.training.recipes import default_recipe
from graphveil.veil import Veil, versions

ENCODERS = ("gcn", "gat", "hgcn")


@dataclass(frozen=True)
class Limit:
    """A limit for the leak.

    Args:
        value: an attack accuracy or AUC from 0 to 1, or the points above the chance level, from 0 to 1.
        above_chance: which of the two it is.
    """

    value: float
    above_chance: bool = False

    @classmethod
    def parsed(cls, word: str) -> "Limit":
        """Parse `+2` as two points above the chance level, and `0.6` as an accuracy or AUC of 60 %."""
        above = word.startswith("+")
        try:
            value = float(word) / (100 if above else 1)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise GraphveilError(
                f"--max-leak {word!r} is not a limit: expected points above the chance level, such as +2, or an"
                " accuracy or AUC from 0 to 1, such as 0.6."
            )
        return cls(value, above)

    def over(self, chance: float) -> float:
        """The limit as an accuracy or AUC."""
        return min(1.0, chance + self.value) if self.above_chance else self.value


@dataclass(frozen=True)
class Candidate:
    """One training of a search.

    Args:
        encoder: the name of the encoder.
        tradeoff: lambda.
        gain: how far codes may predict a hidden class better than chance in training, from 0 to 1.
        seed: the seed of the training.
    """

    encoder: str
    tradeoff: float
    gain: float
    seed: int

    def __str__(self) -> str:
        """The name of its folder, which no other candidate has: all digits of the numbers are in it."""
        return f"{self.encoder}-{self.tradeoff}-{self.gain}-{self.seed}"


@dataclass(frozen=True)
class Point:
    """What a candidate keeps and leaks outside the test part.

    Args:
        candidate: the training.
        utility: AUC or accuracy on the validation part.
        leaks: by secret, what a limit is compared with: for a class the forecast of the certificate of all nodes, for
            links the certificate of those outside the test part.
        codes: by secret, the nodes counted by code and class; for links, pairs by two codes.
    """

    candidate: Candidate
    utility: float
    leaks: Mapping[str, float]
    codes: Mapping[str, CodeCounts | None] = field(default_factory=dict)

    def excess(self, limits: Mapping[str, float]) -> float:
        """How far the worst of the secrets with a limit is above it; not above 0 if all limits hold."""
        return max((self.leaks[secret] - limit for secret, limit in limits.items()), default=0.0)

    def worst_leak(self, chance: Mapping[str, float]) -> float:
        """The largest gain over chance: accuracies of secrets with different chance levels cannot be compared."""
        return max(gain_over_chance(leak, chance[secret]) for secret, leak in self.leaks.items())


@dataclass(frozen=True)
class Search:
    """How to search.

    Args:
        encoders: the names of the encoders to try.
        seed: the seed of the split and of the first candidates.
        split: "paper" or "proportional"; None for the default of the graph.
        reading: how to read a graph from files.
        jobs: the number of processes.
        device: "cpu", "cuda" or "auto".
        rounds: the number of rounds for a test run; None for that of the recipe.
        ray: the address of a Ray cluster that trains the candidates, on CPUs; see `cluster.Cluster`.
    """

    encoders: Sequence[str] = ENCODERS
    seed: int = 0
    split: str | None = None
    reading: ReadOptions | None = None
    jobs: int = 1
    device: str = "cpu"
    rounds: int | None = None
    ray: str | None = None


@dataclass(frozen=True)
class Task:
    """What to search for.

    Args:
        graph: a name, a file or a folder.
        utility: the target to keep.
        secrets: the targets to hide.
        max_leak: the limit; None for `min_utility`.
        min_utility: the smallest utility to accept; None for `max_leak`.
        search: how to search.
        graph_digest: the digest of the graph on the driver's machine, which every worker compares with that of its own;
            None before the driver has opened the graph.
    """

    graph: str
    utility: str
    secrets: tuple[str, ...]
    max_leak: Limit | None
    min_utility: float | None
    search: Search
    graph_digest: str | None = None

    @classmethod
    def of(
        cls,
        graph: str,
        utility: str,
        secrets: tuple[str, ...],
        max_leak: str | float | None,
        min_utility: float | None,
        search: Search,
    ) -> "Task":
        """Check the arguments, and parse the limit; see `graphveil.experiments.tune.tune`."""
        if max_leak is not None and min_utility is not None:
            raise GraphveilError(
                "max_leak and min_utility (--max-leak and --min-utility) were both given: give one of the two."
            )
        if min_utility is not None and not 0 <= min_utility <= 1:
            raise GraphveilError(f"the smallest utility is {min_utility:g}: expected an accuracy or AUC from 0 to 1.")
        for name in search.encoders:
            if name not in ENCODERS:
                raise unknown("encoder", name, ENCODERS)
        if search.ray is not None and search.device != "cpu":
            raise GraphveilError(
                f"candidates on a Ray cluster are trained on CPUs, but the device is {search.device!r}: omit --device."
            )
        limit = None if min_utility is not None else Limit.parsed(str("+2" if max_leak is None else max_leak))
        once = replace(search, encoders=tuple(dict.fromkeys(search.encoders)))
        return cls(graph, utility, secrets, limit, min_utility, once)


def run_candidate(task: Task, candidate: Candidate, folder: Path, threads: int | None = None) -> Point:
    """Train a candidate in a folder of its own, or read the folder if it is finished, and measure it on validation.

    Args:
        task: what all candidates have in common.
        candidate: what to train.
        folder: the folder of all candidates.
        threads: the number of threads to use meanwhile; None for those of this process.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        return _trained(task, candidate, folder)
    finally:
        torch.set_num_threads(before)  # with one job, this is the process of the caller


def _trained(task: Task, candidate: Candidate, folder: Path) -> Point:
    graph, split = opened(task)
    path, veil = folder / str(candidate), _veil(task, candidate)
    if (path / RECORD).exists():
        _check_same(veil, path, graph, split)
        veil = RunFolder(path).veil()
    else:
        reading = None if task.search.reading is None else asdict(task.search.reading)
        source = {"graph": task.graph, "reading": reading, "split": _split_kind(task), "split_seed": task.search.seed}
        protect(veil, graph, split, path, resume=True, source=source)
    return _measured(veil, candidate, graph, split, RunFolder(path).embeddings_of(node_ids(graph)))


def _veil(task: Task, candidate: Candidate) -> Veil:
    recipe = default_recipe(task.utility, candidate.encoder, CODES, task.secrets)
    odds = candidate.tradeoff / (1 - candidate.tradeoff)
    recipe = recipe.but(leak_limit=candidate.gain / odds)
    if task.search.rounds is not None:
        recipe = recipe.but(rounds=task.search.rounds, warmup=0)
    return Veil(
        task.utility,
        task.secrets,
        candidate.encoder,
        candidate.tradeoff,
        CODES,
        recipe=recipe,
        seed=candidate.seed,
        device=task.search.device,
    )


def _measured(veil: Veil, candidate: Candidate, graph: Data, split: Split, z: Any) -> Point:
    seen, inner = without_test_part(graph, split)
    utility = veil.score(seen, inner).utility
    matched_by = Target.of(veil.utility).matched_by
    leaks, codes = {}, {}
    for secret in veil.secrets:
        if Target.of(secret).is_links:
            leaks[secret] = link_bound(row_codes(z), seen, inner, matched_by)
        else:
            counted = node_classes(graph, secret).numpy() != UNKNOWN  # by the certificate
            y = node_classes(seen, secret).numpy()
            leaks[secret] = forecast(row_codes(z)[counted], y[counted], _chance(graph, secret), candidate.seed)
        codes[secret] = _counted(seen, inner, secret, row_codes(z))
    return Point(candidate, utility, leaks, codes)


def _counted(graph: Data, split: Split, secret: str, codes: Integers) -> CodeCounts | None:
    """The nodes with a known class, counted by code, or the test pairs of `split`, counted by two codes."""
    if Target.of(secret).is_links:
        pairs = torch.cat([split.test_nonlinks, split.test_links], dim=1).numpy()
        y = np.repeat([0, 1], [split.test_nonlinks.size(1), split.test_links.size(1)])
        return count_pairs(codes, pairs, y)
    y = node_classes(graph, secret).numpy()
    return count_codes(codes, y, class_names(graph, secret, int(y.max()) + 1))


def opened(task: Task) -> tuple[Data, Split]:
    """The graph and the split of all candidates; another graph than the driver's is refused."""
    graph, search = open_graph(task.graph, task.search.reading), task.search
    if task.graph_digest not in (None, digest(graph)):
        raise GraphveilError(
            f"{task.graph} on the machine {platform.node()} is another graph than when the search was started: put"
            " the same files on all machines, and start a new search in another folder if they have changed."
        )
    check_targets(graph, task.utility, task.secrets)
    edges, targets = Target.of(task.utility).message_edges, (task.utility, *task.secrets)
    return graph, draw_split(_split_kind(task), graph, search.seed, edges, targets)


def _split_kind(task: Task) -> str:
    return task.search.split or default_split(task.graph)


def _check_same(veil: Veil, path: Path, graph: Data, split: Split) -> None:
    """Refuse a finished candidate that is not what `veil` would become on this graph and this split."""
    record = RunFolder(path).record()
    is_same = {
        "graph": record.graph_digest == digest(graph),
        "split": record.split_digest == split.digest(),
        "settings": record.config.to_dict() == veil.config(),
        "versions of graphveil or libraries": record.versions == versions(),
    }
    others = [f"other {name}" for name, same in is_same.items() if not same]
    if others:
        raise GraphveilError(
            f"the candidate {path.name} in the output folder is of another search ({', '.join(others)}): choose another"
            " output folder."
        )


def limits_of(task: Task, graph: Data) -> tuple[dict[str, float], dict[str, float]]:
    """The limit and the chance level of each secret in the graph, as accuracy or AUC."""
    chance = {secret: _chance(graph, secret) for secret in task.secrets}
    return {name: 1.0 if task.max_leak is None else task.max_leak.over(chance[name]) for name in chance}, chance


def _chance(graph: Data, secret: str) -> float:
    if Target.of(secret).is_links:
        return CHANCE_AUC
    classes = node_classes(graph, secret)
    counts = classes[classes != UNKNOWN].bincount()
    return int(counts.max()) / int(counts.sum())  # a quotient of tensors has only 7 digits, and a limit is exact
