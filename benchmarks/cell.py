"""One measurement in its own process, which has its own peak memory: `python -m benchmarks.cell JSON`.

Our implementation and the plain one are timed alternately, because absolute times on a shared machine are not
comparable.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles

import torch
from torch_geometric.data import Data

import graphveil as gv
from benchmarks.bound import INDEX, copy_bandwidth, round_bytes
from benchmarks.plain import PlainTraining
from graphveil.auditing import Effort
from graphveil.runs.audit import audit_run
from graphveil.runs.protect import protect
from graphveil.training.memory import keep_freed_memory
from graphveil.training.recipes import default_recipe
from graphveil.veil import Fitting

BATCH_SIZE, FANOUT = 12_288, 5
HIDDEN = {"audit, labels hidden": ("links", "labels"), "audit, links hidden": ("labels", "links")}
"""The utility and the secret of each kind of audit."""
SEED = 100
"""The seed of audited runs; those of the results, 0 to 4, are not used in development."""
PAPERS_ADVERSARY = gv.Adversary("linear", steps=1, knows="few")


@dataclass(frozen=True)
class Cell:
    """The configuration of one measurement.

    Args:
        work: "round" (the paper's adversary), "round, our adversary", "protect", "audit, labels hidden",
            "audit, links hidden", "split", "mini-batches" or "processes".
        graph: a name that `gv.load` knows, or the number of edges of a generated graph.
        encoder: the name of the encoder.
        sides: "ours", "plain" or both.
        device: "cpu" or "cuda".
        runs: the number of seeds that are trained as one batch.
        seconds: the time to spend on repeats.
    """

    work: str
    graph: str
    encoder: str
    sides: tuple[str, ...]
    device: str = "cpu"
    runs: int = 1
    seconds: float = 10.0


@dataclass
class Measured:
    """The result of one measurement.

    Args:
        milliseconds: the median time of each side.
        spread: the interquartile range divided by the median, for each side; None for a single repeat.
        repeats: the number of repeats.
        bytes: the compulsory traffic of the lower bound.
        bandwidth: of a copy, in bytes per second.
        peak: the peak memory in MiB.
        rounds: the rounds of a whole training, or of an epoch of mini-batches.
    """

    milliseconds: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float | None] = field(default_factory=dict)
    repeats: int = 0
    bytes: int = 0
    bandwidth: float = 0.0
    peak: float = 0.0
    rounds: int = 0


def load_graph(name: str) -> Data:
    """A graph of the paper, or a generated one with ten edges per node and 128 features."""
    if not name.isdigit():
        return gv.load(name)
    edges = int(name)
    spec = gv.GraphSpec(num_nodes=max(2500, edges // 10), num_edges=edges, num_features=128, num_classes=7)
    return gv.generate(spec, seed=0)


def measure(cell: Cell) -> Measured:
    """Run and time one cell."""
    if cell.work == "processes":
        return one_and_two_processes(cell)
    graph = load_graph(cell.graph)
    device = torch.device(cell.device)
    if cell.work == "split":
        result = take_turns({"ours": lambda: gv.Split.paper(graph, 0), "plain": lambda: plain_split(graph)}, cell)
        links = graph.edge_index.size(1) // 2
        result.bytes = 2 * INDEX * (2 * links + links * 15 // 100)  # read links, write parts and held-out non-links
    elif cell.work == "protect":
        result = whole_protect(graph, cell)
    elif cell.work in HIDDEN:
        result = whole_audit(graph, cell)
    elif cell.work == "mini-batches":
        result = mini_batches(graph, cell)
    else:
        result = rounds(graph, cell, device)
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result.peak = result.peak or peak / 2**20
    result.bandwidth = copy_bandwidth(device)  # after the peak memory is read, because the copy needs memory too
    return result


def rounds(graph: Data, cell: Cell, device: torch.device) -> Measured:
    """Time one round of Algorithm 1 with the objective `club`."""
    splits = [gv.Split.paper(graph, seed) for seed in range(cell.runs)]
    adversary = PAPERS_ADVERSARY if cell.work == "round" else None
    endless = default_recipe("links", cell.encoder, "club").but(rounds=2000)
    veils = [
        gv.Veil(
            encoder=cell.encoder, objective="club", adversary=adversary, recipe=endless, seed=seed, device=cell.device
        )
        for seed in range(cell.runs)
    ]
    sides: dict[str, Callable[[], None]] = {}
    our_peak = 0.0
    if "ours" in cell.sides:
        sides["ours"] = Fitting(veils, graph, splits).training.advance
        if device.type == "cuda":
            for _ in range(5):
                sides["ours"]()
            our_peak = torch.cuda.max_memory_allocated() / 2**20
    if "plain" in cell.sides:
        sides["plain"] = PlainTraining(graph, splits[0], cell.encoder, endless, device).round
    with keep_freed_memory():
        result = take_turns({side: sides[side] for side in cell.sides}, cell)
    result.peak = our_peak
    num_nodes, in_channels = graph.x.shape
    hidden, out = endless.hidden_channels, endless.out_channels
    result.bytes = cell.runs * round_bytes(
        num_nodes=num_nodes,
        features=graph.x.values().numel() if graph.x.layout == torch.sparse_csr else graph.x.numel(),
        entries=2 * splits[0].message_pairs.size(1) + num_nodes,
        pairs=2 * splits[0].train_links.size(1),
        weights=in_channels * hidden + hidden * out,
        recipe=endless,
    )
    return result


def whole_protect(graph: Data, cell: Cell) -> Measured:
    """Time `graphveil protect` once: default objective and adversary, selection, early stopping, and all files."""
    split = gv.Split.paper(graph, 0)
    veil = gv.Veil(encoder=cell.encoder, device=cell.device)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        protect(veil, graph, split, Path(folder) / "run")
        milliseconds = 1000 * (time.perf_counter() - started)
    return Measured({"ours": milliseconds}, {"ours": None}, repeats=1, rounds=len(veil.history_))


def whole_audit(graph: Data, cell: Cell) -> Measured:
    """Time `graphveil audit` once: the full panel with all controls, which are trained too."""
    utility, secret = HIDDEN[cell.work]
    split = gv.Split.paper(graph, SEED)
    veil = gv.Veil(utility, secret, encoder=cell.encoder, seed=SEED, device=cell.device)
    with tempfile.TemporaryDirectory() as folder:
        protect(veil, graph, split, Path(folder), source={"graph": cell.graph, "split": "paper"})
        started = time.perf_counter()
        audit_run(Path(folder), effort=Effort(jobs=2))
        milliseconds = 1000 * (time.perf_counter() - started)
    return Measured({"ours": milliseconds}, {"ours": None}, repeats=1)


def mini_batches(graph: Data, cell: Cell) -> Measured:
    """Time one round of `codes` on mini-batches, which a thread prepares meanwhile."""
    graph.x = graph.x.to_dense()
    veil = gv.Veil(encoder=cell.encoder, device=cell.device)
    veil.recipe = veil.recipe.by_batches(BATCH_SIZE).but(fanout=FANOUT, rounds=2000)
    split = gv.Split.proportional(graph, seed=0, targets=("links", "labels"))
    training = Fitting([veil], graph, [split]).training
    with keep_freed_memory():
        result = take_turns({"ours": training.advance}, cell)
    training.method.close()
    result.rounds = split.train_links.size(1) // BATCH_SIZE
    return result


def one_and_two_processes(cell: Cell) -> Measured:
    """Time rounds of one process on one core ("plain") and of two on two cores, with the same global batches."""
    from benchmarks.processes import Settings, take_turns  # noqa: PLC0415 - it runs this module's graphs

    settings = Settings(cell.graph, cell.encoder)
    found = take_turns(settings, (1, 2), repeats := 3)
    milliseconds = {"ours": found[2]["wall"], "plain": found[1]["wall"]}
    return Measured(milliseconds, dict.fromkeys(milliseconds), repeats)


def plain_split(graph: Data) -> None:
    """Split with the transforms of PyG, one for links and one for nodes."""
    from torch_geometric.transforms import RandomLinkSplit, RandomNodeSplit  # noqa: PLC0415 - slow to import

    data = Data(edge_index=graph.edge_index, y=graph.y, num_nodes=graph.num_nodes)
    RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False)(data)
    RandomNodeSplit("random", num_train_per_class=20, num_val=500, num_test=1000)(data)


def take_turns(sides: dict[str, Callable[[], object]], cell: Cell) -> Measured:
    """Time all sides alternately after a warm-up: for `cell.seconds`, at least 3 and at most 200 times.

    Args:
        sides: the function to time for each side.
        cell: the sides to time, the device and the seconds.
    """
    sides = {side: sides[side] for side in cell.sides}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for side in sides.values():
        for _ in range(5 if cell.device == "cuda" else 1):
            side()
    started = time.perf_counter()
    while len(seconds[cell.sides[0]]) < 3 or (time.perf_counter() - started < cell.seconds):
        for name, side in sides.items():
            _synchronize(cell.device)
            begin = time.perf_counter()
            side()
            _synchronize(cell.device)
            seconds[name].append(time.perf_counter() - begin)
        if len(seconds[cell.sides[0]]) >= 200:
            break
    result = Measured(repeats=len(seconds[cell.sides[0]]))
    for name, taken in seconds.items():
        low, middle, high = quantiles(taken, n=4)
        result.milliseconds[name] = 1000 * median(taken)
        result.spread[name] = (high - low) / middle
    return result


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    torch.set_num_threads(min(2, torch.get_num_threads()))
    given = json.loads(sys.argv[1])
    measured = measure(Cell(**given | {"sides": tuple(given["sides"])}))
    sys.stdout.write(json.dumps(asdict(measured)) + "\n")
