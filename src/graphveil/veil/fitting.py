"""Fit one `Veil`, or several that differ only in seed and trade-off, as one batch.

A GPU is idle most of the time while one small graph trains. In a batch the runs' weights are stacked and their graphs
are one block-diagonal graph, so that all of them go through the one loop of `graphveil.training.loop` at once. If
links are hidden, the several teachers of a student are runs of one batch, too.

By mini-batches, several processes can fit one veil: every process calls the same functions with the same graph, and has
the same fitted veil afterwards. The first one reads and writes the checkpoint.
"""

import copy
import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphveil import kernels
from graphveil.data import Split, digest
from graphveil.errors import DivergedError, GraphveilError
from graphveil.models import ENCODERS, NODE_HEADS
from graphveil.models.build import spec_name
from graphveil.models.codes import CodeShape
from graphveil.models.grid import Grid
from graphveil.models.stack import is_batched, load_parts, of_run, stack
from graphveil.processes import Processes
from graphveil.randomness import stream
from graphveil.training.book import code_shape
from graphveil.training.checkpoint import load_checkpoint, save_checkpoint
from graphveil.training.codes import Codes
from graphveil.training.graphs import graph_of, in_batches
from graphveil.training.history import Round, numbered
from graphveil.training.inputs import applicable_scaling, pick_device
from graphveil.training.loop import Problem, Training
from graphveil.training.objectives import CODES
from graphveil.training.players import Streams
from graphveil.training.targets import secret_target, utility_target
from graphveil.training.threads import suitable_threads
from graphveil.veil.code_books import add_distilled_books, class_probabilities, merged_book
from graphveil.veil.modules import build_method, build_modules, check_encoder

if TYPE_CHECKING:
    from graphveil.veil.estimator import Veil

log = logging.getLogger(__name__)

ALGORITHM = 13
"""Increased when the same configuration gives another result; checkpoints of other numbers are refused."""
CHECKPOINT_EVERY = 20
MOST_TAUGHT_LINKS = 100_000
"""Graphs with more links have one teacher, since several would take minutes."""


def fit_together(
    veils: Sequence["Veil"],
    graph: Data,
    splits: Sequence[Split],
    on_round: Callable[[Training], None] | None = None,
) -> None:
    """Fit many veils as one batched problem: on a GPU, ten small runs take little longer than one.

    Each veil has its own split, seed, trade-off and stopping round. Results equal those of `Veil.fit` up to the order
    of floating-point sums.

    Args:
        veils: veils that differ in `seed` and `tradeoff` only.
        graph: the graph of all of them.
        splits: one for each veil.
        on_round: called after every round.
    """
    if len(veils) != len(splits):
        raise GraphveilError(f"{len(veils)} veils came with {len(splits)} splits: give one split for each veil.")
    if any(_shared_config(veil) != _shared_config(veils[0]) for veil in veils):
        raise GraphveilError("the veils differ in more than seed and tradeoff: fit the others separately.")
    faults = []
    for batch in _batches(veils, graph, splits):
        fitting = Fitting([veils[number] for number in batch], graph, [splits[number] for number in batch])
        with suppress(DivergedError):  # raised for a batch of one only; the error is also in its record
            fitting.run(on_round)
        for number, veil in enumerate(fitting.veils):
            faults += [f"seed {veil.seed}, tradeoff {veil.tradeoff}: {error}" for error in fitting.diverged(number)[:1]]
    if faults:
        raise DivergedError(f"{len(faults)} of {len(veils)} runs diverged; the others are fitted. {' '.join(faults)}")


class Fitting:
    """The training of one veil, or of several as a batch, from its first round to the fitted veils.

    Args:
        veils: veils that differ in `seed` and `tradeoff` only.
        graph: the graph of all of them.
        splits: one for each veil.

    Attributes:
        training: the loop; its runs are ordered by veil. Where links are hidden, a veil has one run for each teacher,
            and veils that differ only in trade-off have the same teachers.
    """

    def __init__(self, veils: Sequence["Veil"], graph: Data, splits: Sequence[Split]) -> None:
        for veil, split in zip(veils, splits, strict=True):
            veil.check(graph, split)
        self.veils, self.graph, self.splits = veils, graph, splits
        self._sharing = _sharing(veils, splits)
        self.training = self._start()

    def _start(self) -> Training:
        """The training before its first round."""
        graph = self.graph
        firsts = [numbers[0] for numbers in self._sharing]
        runs = [(run, self.splits[number]) for number in firsts for run in _runs(self.veils[number], graph)]
        veils, splits = zip(*runs, strict=True)
        first = veils[0]
        device = pick_device(first.device)
        utility = utility_target(first.utility, graph, splits, device)
        secrets = [secret_target(name, graph, splits, first.adversary.knows, device) for name in first.secrets]
        of_secrets = {numbered("adversary", number): secret.num_classes for number, secret in enumerate(secrets)}
        for veil in (*self.veils, *veils):  # the runs are teachers, too, which are copies
            veil.in_channels_ = graph.x.size(1)
            veil.scaling_ = applicable_scaling(veil.recipe.scaling, graph)
            veil.classes_ = {"utility": utility.num_classes, **of_secrets}
            veil.code_shape_ = code_shape(first.recipe, graph.x.size(0), max(secret.num_classes for secret in secrets))
        built = [build_modules(veil) for veil in veils]
        modules = {part: stack([own[part] for own in built]).to(device) for part in built[0]}
        problem = Problem(
            graph=graph_of(graph, splits, first.scaling_, first.recipe, device),
            utility=utility,
            secrets=secrets,
            tradeoff=torch.tensor([veil.tradeoff for veil in veils], dtype=torch.float64, device=device).squeeze(),
        )
        check_encoder(first, modules["encoder"], problem, graph.x.size(0))
        processes = problem.graph.processes
        if processes.size > 1:  # before they exchange anything else
            _check_same(_fingerprint(self._given, _state_of(modules)), processes)
        seeds, steps = [veil.seed for veil in veils], first.recipe.rounds * first.recipe.inner_steps
        streams = Streams(seeds, steps, device, processes)
        with self._conditions():  # it may train a predictor of unknown classes
            return Training(build_method(first, problem, modules, streams), first.recipe)

    def run(self, on_round: Callable[[Training], None] | None = None, checkpoint: Path | None = None) -> None:
        """Train to the end, and give each veil its result.

        Args:
            on_round: called after every round.
            checkpoint: a file to save progress to, for a single veil; if it exists, training continues from it.

        Raises:
            DivergedError: if the run of a single veil diverged; the veil then has the last good state.
        """
        first = self.veils[0]
        log.info(
            "Training %s on %s nodes: %s kept, %s hidden, trade-off %s, seed %s, at most %s rounds.",
            *(spec_name(first.encoder), self.graph.x.size(0), first.utility, " and ".join(first.secrets)),
            *(first.tradeoff, first.seed, first.recipe.rounds),
        )
        after_round = on_round
        if checkpoint is not None:
            after_round = self._with_checkpoints(checkpoint, on_round)
        try:
            with self._conditions():
                self.training.run(after_round)
        except DivergedError:
            self._hand_over()  # the last good state
            raise
        self._hand_over()
        log.info("Trained %s rounds; round %s was selected.", len(first.history_), first.best_round_)
        if len(self.veils) == 1 and (errors := self.diverged(0)):
            raise errors[0]

    @contextmanager
    def _conditions(self) -> Iterator[None]:
        """The threads and the kernels of a training."""
        threads = suitable_threads(self.graph.edge_index.size(1) // 2)
        with self.veils[0].repeatable(), threads:
            yield

    def diverged(self, number: int) -> list[DivergedError]:
        """The errors in the runs of a veil."""
        records = [self.training.records[run] for run in self._runs_of(number)]
        return [record.diverged for record in records if record.diverged is not None]

    def _with_checkpoints(self, file: Path, on_round: Callable[[Training], None] | None) -> Callable[[Training], None]:
        """Continue from `file` if it exists, and save to it from now on."""
        fingerprint = _fingerprint(self._given, self.training.best)
        processes = self.training.method.streams.processes
        with _file_of_first(file, processes) as saved:
            if saved.exists():
                load_checkpoint(self.training, file, fingerprint, copy=saved)

        def after_round(training: Training) -> None:
            if training.round % CHECKPOINT_EVERY == 0:
                training.record_losses()  # which notices divergence: in every process, or the others would wait
                if processes.is_first:
                    save_checkpoint(training, file, fingerprint)
            if on_round is not None:
                on_round(training)

        return after_round

    @cached_property
    def _given(self) -> str:
        """A digest of what decides the result of a single veil, besides its initial weights."""
        (veil,), (split,) = self.veils, self.splits
        made_by = [ALGORITHM, [column.name for column in fields(Round)], kernels.usable(torch.zeros(1))]
        given = [made_by, veil.config(), digest(self.graph), split.digest()]
        return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()

    def _runs_of(self, number: int) -> range:
        """The runs of a veil: one, or one for each of its teachers."""
        (group,) = (group for group, numbers in enumerate(self._sharing) if number in numbers)
        each = len(self.training.records) // len(self._sharing)
        return range(group * each, (group + 1) * each)

    def _hand_over(self) -> None:
        """Load the state that validation selected into each veil, and build its code book or its grid."""
        with suitable_threads(self.graph.edge_index.size(1) // 2):
            self._load_states()

    def _load_states(self) -> None:
        for numbers in self._sharing:
            runs, split = self._runs_of(numbers[0]), self.splits[numbers[0]]
            veils = [self.veils[number] for number in numbers]
            for veil in veils:
                self._take_state(veil, runs[0])
            first = veils[0]
            if first.objective != CODES:
                first.modules_["grid"] = Grid.of(first.encode(self.graph, split))
            elif isinstance(self.training.method, Codes):
                drawn = [known.drawn_of(runs[0]) for known in self.training.method.secrets]
                first.modules_["book"] = merged_book(first, self.graph, split, drawn)
            else:  # links are hidden
                teachers = [copy.copy(first) for _ in runs]
                for teacher, run in zip(teachers, runs, strict=True):
                    self._take_state(teacher, run)
                taught = [class_probabilities(teacher, self.graph, split) for teacher in teachers]
                add_distilled_books(veils, self.graph, split, torch.stack(taught).mean(dim=0))

    def _take_state(self, veil: "Veil", run: int) -> None:
        """Copy the selected state of one run into a veil."""
        veil.modules_ = build_modules(veil)
        trained = {name: veil.modules_[name] for name in self.training.method.parts}
        load_parts(trained, of_run(self.training.best, run, len(self.training.records)))
        record = self.training.records[run]
        veil.history_, veil.best_round_ = record.history, record.best_round
        veil.graph_digest_ = digest(self.graph)


def _sharing(veils: Sequence["Veil"], splits: Sequence[Split]) -> list[list[int]]:
    """Groups of veils that share their runs: where links are hidden, teachers do not depend on the trade-off."""
    if not veils[0].distils or len(veils) == 1:
        return [[number] for number in range(len(veils))]
    groups: dict[tuple[int, str], list[int]] = {}
    for number, (veil, split) in enumerate(zip(veils, splits, strict=True)):
        groups.setdefault((veil.seed, split.digest()), []).append(number)
    return list(groups.values())


def _runs(veil: "Veil", graph: Data) -> list["Veil"]:
    """The veil and, where links are hidden, its other teachers, which start from other weights.

    Custom modules have a single teacher, and so have mini-batches.
    """
    built_in = veil.encoder in list(ENCODERS) and veil.recipe.head in list(NODE_HEADS)
    several = (
        veil.distils
        and built_in
        and not in_batches(veil.recipe, graph)
        and graph.edge_index.size(1) <= 2 * MOST_TAUGHT_LINKS
    )
    others = [copy.copy(veil) for _ in range(veil.recipe.teachers - 1 if several else 0)]
    for number, other in enumerate(others):
        other.seed = stream(veil.seed, "teacher", number) % 2**31
    return [veil, *others]


def _state_of(modules: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    return {f"{part}.{name}": value for part, own in modules.items() for name, value in own.state_dict().items()}


def _fingerprint(given: str, initial: dict[str, Tensor]) -> str:
    """A digest of all that decides the result; it covers the initial weights, since custom modules have no config."""
    return hashlib.sha256(given.encode() + safetensors.torch.save(initial)).hexdigest()


def _check_same(fingerprint: str, processes: Processes) -> None:
    """Refuse processes that were given another graph, split or configuration than the first one."""
    if processes.bytes_of_first(fingerprint.encode()) != fingerprint.encode():
        raise GraphveilError(
            f"process {processes.rank} has another graph, split or configuration than process 0: give every machine the"
            " same files, options and versions."
        )


@contextmanager
def _file_of_first(file: Path, processes: Processes) -> Iterator[Path]:
    """The file of the first process, which the others may not be able to read, or a path without a file."""
    content = b""
    if processes.size > 1:
        content = processes.bytes_of_first(file.read_bytes() if processes.is_first and file.exists() else b"")
    if processes.is_first:
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        if content:
            copy.write_bytes(content)
        yield copy


def _shared_config(veil: "Veil") -> dict[str, Any]:
    """The settings that all veils of a batch must have in common."""
    specs = (veil.encoder, veil.recipe.head, veil.adversary.head)
    instances = [id(spec) for spec in specs if isinstance(spec, nn.Module)]  # two of a class may be set up differently
    return veil.config() | {"seed": None, "tradeoff": None, "device": veil.device, "instances": instances}


def _batches(veils: Sequence["Veil"], graph: Data, splits: Sequence[Split]) -> list[list[int]]:
    """Which veils are stacked: those whose parts have the same sizes, and only modules that can be stacked.

    Unknown classes can give two splits different sizes; such runs are in separate batches. If a custom module cannot be
    stacked, every run trains alone.
    """
    if not veils:
        return []
    first = veils[0]
    if in_batches(first.recipe, graph):
        return [[number] for number in range(len(veils))]
    parts = ("utility", *(numbered("adversary", number) for number in range(len(first.secrets))))
    first.in_channels_, first.classes_ = graph.x.size(1), dict.fromkeys(parts, 2)
    first.code_shape_ = CodeShape(2, 2)  # any shape: only whether the modules can be stacked is of interest
    modules = build_modules(first)
    modules.pop("student", None)  # it is trained after the loop
    if not all(is_batched(module) for module in modules.values()):
        return [[number] for number in range(len(veils))]
    batches: dict[tuple[int, ...], list[int]] = {}
    for number, split in enumerate(splits):
        batches.setdefault(split.sizes(graph, (first.utility, *first.secrets)), []).append(number)
    return list(batches.values())
