"""`Veil`, the estimator: train embeddings that keep one target and hide another.

For example:

    veil = Veil(utility="links", secret="labels", encoder="gcn", tradeoff=0.5)
    z = veil.fit(graph, split).transform(graph)
"""

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import safetensors.torch
import torch
import torch_geometric
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil
from graphveil.data import UNKNOWN, Split, check_graph, check_targets, digest
from graphveil.data.degree_features import is_structural
from graphveil.data.origin import node_ids
from graphveil.errors import DivergedError, GraphveilError, unknown
from graphveil.files import read_json, write_json, write_tensors
from graphveil.formats.run import SCHEMA
from graphveil.models import (
    ENCODERS,
    LINK_HEADS,
    NODE_HEADS,
    build_encoder,
    build_head,
)
from graphveil.models.build import Spec, spec_name
from graphveil.models.codes import CodeBook, CodeEncoder, CodeShape, PairTable, hard_codes
from graphveil.models.grid import Grid
from graphveil.models.stack import load_parts, of_run, stack
from graphveil.models.student import Student
from graphveil.randomness import global_stream, hashed_names, stream, uniform_by_name
from graphveil.training.adversarial import Adversarial
from graphveil.training.book import code_shape, counts_degrees, make_book
from graphveil.training.checkpoint import load_checkpoint, save_checkpoint
from graphveil.training.codes import Codes
from graphveil.training.counts import allowed_gain, hidden_counts
from graphveil.training.distil import Lesson, distil
from graphveil.training.history import Round, numbered
from graphveil.training.inputs import adjacency, applicable_scaling, features, pick_device, repeatable
from graphveil.training.loop import Method, Problem, Training
from graphveil.training.objectives import ADVERSARIAL, CODES, OBJECTIVES
from graphveil.training.players import Streams, embed
from graphveil.training.prediction import calibration, kept_classes, known_classes
from graphveil.training.recipes import Adversary, Recipe, default_recipe
from graphveil.training.score import Score, score, score_codes
from graphveil.training.targets import class_secret, class_utility, secret_target, utility_target

ALGORITHM = 8
"""Counted up when the same configuration trains to another end: what was begun before cannot be gone on with."""
CHECKPOINT_EVERY = 20
MOST_TAUGHT_LINKS = 100_000
"""Links of a graph above which only one encoder is trained to learn classes from: there several would take minutes."""


class Veil:
    """Embeddings that are useful for `utility` and say little about `secret`.

    Under `codes`, the default, every node gets one of finitely many codes, and its embedding is the row of its code.
    What such a release can say about a secret at most is counted: see `graphveil.certify`.

    Args:
        utility: "links", "labels" or the name of a node attribute.
        secret: likewise; or several.
        encoder: "gcn", "gat", "hgcn", "package.module:Class", a class or an instance.
        tradeoff: lambda; 1 trains for the utility alone, 0 for the secret alone; the paper's default is .5.
        objective: how the secret is hidden: "codes", "club", "entropy", "minimax" or "published".
        adversary: capacity, steps and knowledge of the attacker trained along; under "codes", which has none, its
            knowledge is the defender's.
        recipe: sizes, rates and lengths; None takes the default of utility, encoder and objective.
        device: "auto" takes CUDA where there is one.
    """

    in_channels_: int
    classes_: Mapping[str, int]
    code_shape_: CodeShape
    graph_digest_: str
    scaling_: str
    modules_: dict[str, nn.Module]
    history_: list[Round]
    best_round_: int

    def __init__(
        self,
        utility: str = "links",
        secret: str | Sequence[str] = "labels",
        encoder: Spec = "gcn",
        tradeoff: float = 0.5,
        objective: str = CODES,
        adversary: Adversary | None = None,
        recipe: Recipe | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.utility, self.encoder = utility, encoder
        self.secrets = (secret,) if isinstance(secret, str) else tuple(secret)
        self.tradeoff, self.objective = tradeoff, objective
        self.adversary = adversary or Adversary()
        self.recipe = recipe or default_recipe(utility, encoder, objective, self.secrets)
        self.seed, self.device = seed, device

    @property
    def trains_codes(self) -> bool:
        """Whether the encoder's own output is read as codes."""
        return self.objective == CODES and "links" not in self.secrets

    @property
    def distils(self) -> bool:
        """Whether codes are made from a plain encoder's classes, because links are hidden."""
        return self.objective == CODES and "links" in self.secrets

    def check_settings(self) -> None:
        """Refuse what is wrong on any graph, before one is read; `fit` does so too."""
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        if not 0 <= self.tradeoff <= 1:
            raise GraphveilError(f"tradeoff is {self.tradeoff}: expected a number from 0 (hide all) to 1 (keep all).")
        if self.objective == CODES and self.adversary.head is not None:
            raise GraphveilError(
                f"an adversary {spec_name(self.adversary.head)!r} was given, but the objective 'codes' trains none:"
                " leave it out, or choose another objective."
            )
        pick_device(self.device)

    def fit(
        self,
        graph: Data,
        split: Split,
        checkpoint: Path | None = None,
        on_round: Callable[[Training], None] | None = None,
    ) -> "Veil":
        """Train, and keep the state that the validation part selects.

        Args:
            checkpoint: a file to save progress to; if it is there already, training goes on from it.
            on_round: called after every round, for progress.
        """
        training = start([self], graph, [split])
        fingerprint = self._fingerprint(graph, split, training)
        if checkpoint is not None and checkpoint.exists():
            load_checkpoint(training, checkpoint, fingerprint)

        def after_round(training: Training) -> None:
            if checkpoint is not None and training.round % CHECKPOINT_EVERY == 0:
                save_checkpoint(training, checkpoint, fingerprint)
            if on_round is not None:
                on_round(training)

        finish([self], training, graph, [split], after_round)
        return self

    def transform(self, graph: Data, split: Split | None = None) -> Tensor:
        """Embeddings z, (num_nodes, channels) float32 on the CPU, in the order of the graph's nodes.

        Continuous ones lie on a grid, so that nothing is released below what is audited: see `graphveil.models.grid`.

        Args:
            split: pass messages along the split's message edges, as in training and in `score`; without a split they
                pass along all links of the graph.
        """
        if self.objective != CODES:
            z: Tensor = self.modules_["grid"](self._encoded(graph, split))
            return z
        codes = self.codes(graph, split)
        return self.book.rows[codes]

    def codes(self, graph: Data, split: Split | None = None) -> Tensor:
        """The released code of each node, (num_nodes,) int64, under the objective "codes".

        A node that had a code when this veil was fitted keeps it; others get one from their features and links, or, if
        links are hidden, from their features alone.

        Args:
            split: as of `transform`.
        """
        self._check_fits(graph)
        if self.objective != CODES:
            raise GraphveilError(f"embeddings of the objective {self.objective!r} have no codes: train with 'codes'.")
        known = self.known_codes(graph)
        return known if bool((known >= 0).all()) else known.where(known >= 0, self._new_codes(graph, split))

    def known_codes(self, graph: Data) -> Tensor:
        """The codes that the graph's nodes were given before, (num_nodes,); -1 for nodes that were given none."""
        known = self.book.find(_node_names(graph))
        if "origin" not in graph and digest(graph) != self.graph_digest_:
            return torch.full_like(known, -1)  # rows without ids of their own are other nodes in another graph
        return known

    @property
    def book(self) -> CodeBook:
        """The rows of the released codes, and which node has which; of a fitted veil with the objective "codes"."""
        book = self.modules_["book"]
        assert isinstance(book, CodeBook)
        return book

    def adopt(self, graph: Data) -> int:
        """Keep the codes of a graph's nodes for good, new nodes' too; returns how many of them had one before."""
        codes, known, names = self.codes(graph), self.known_codes(graph), _node_names(graph)
        book, new = self.book, known < 0
        nodes, numbers = torch.cat([book.nodes, names[new]]), torch.cat([book.codes, codes[new]])
        if "origin" not in graph and digest(graph) != self.graph_digest_:
            nodes, numbers, self.graph_digest_ = names, codes, digest(graph)
        self.modules_["book"] = CodeBook.of(book.merged, book.rows, book.signs, nodes, numbers)
        return int((~new).sum())

    def unprotected(self) -> "Veil":
        """The same encoder, to be trained for the utility alone: continuous embeddings that hide nothing."""
        recipe = self.recipe
        if self.objective == CODES:
            recipe = default_recipe(self.utility, self.encoder, "club")
        return Veil(
            self.utility,
            self.secrets,
            self.encoder,
            tradeoff=1.0,
            objective="club",  # at a trade-off of 1 all adversarial objectives are the same
            adversary=replace(self.adversary, steps=1),
            recipe=recipe,
            seed=self.seed,
            device=self.device,
        )

    def score(self, graph: Data, split: Split) -> Score:
        """Readings on the test part, with embeddings from the split's message edges."""
        cpu = torch.device("cpu")
        utility = utility_target(self.utility, graph, [split], cpu)
        secrets = {name: secret_target(name, graph, [split], self.adversary.knows, cpu) for name in self.secrets}
        if self.objective == CODES:
            return score_codes(self.codes(graph, split), self.book, utility, secrets)
        heads = {name: module.cpu() for name, module in self.modules_.items() if name != "encoder"}
        return score(self.transform(graph, split), heads, utility, secrets)

    def repeatable(self) -> AbstractContextManager[None]:
        """Inside, a GPU repeats itself bit for bit if the recipe asks for it."""
        return repeatable() if self.recipe.deterministic else nullcontext()

    def config(self) -> dict[str, Any]:
        """All that decides a training besides the graph and the split, as plain values."""
        recipe = asdict(self.recipe) | {"head": spec_name(self.recipe.head)}
        head = self.adversary.head
        adversary = asdict(self.adversary) | {"head": None if head is None else spec_name(head)}
        return {
            "utility": self.utility,
            "secrets": list(self.secrets),
            "encoder": spec_name(self.encoder),
            "tradeoff": self.tradeoff,
            "objective": self.objective,
            "adversary": adversary,
            "recipe": recipe,
            "seed": self.seed,
        }

    def save(self, folder: str | Path, results: Mapping[str, Any] | None = None) -> None:
        """Write `model.safetensors` and `run.json` into a folder.

        Args:
            results: more to write down in `run.json`, such as scores and timings.
        """
        self._check_fitted()
        folder = Path(folder)
        weights = {f"{part}.{k}": v for part, module in self.modules_.items() for k, v in module.state_dict().items()}
        write_tensors(folder / "model.safetensors", weights)
        record = {
            "schema": SCHEMA,
            "config": self.config(),
            "shapes": self._shapes(),
            "selected_round": self.best_round_,
            "versions": versions(),
        }
        write_json(folder / "run.json", record | dict(results or {}))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        encoder: Spec | None = None,
        head: Spec | None = None,
        adversary: Spec | None = None,
    ) -> "Veil":
        """Read what `save` wrote.

        Args:
            encoder, head, adversary: the modules of your own that the run was trained with. A file never makes this
                program import code, so those must be given; the built-in ones are known by their names.
        """
        folder = Path(folder)
        try:
            record = read_json(folder / "run.json")
            if record["schema"] != SCHEMA:
                raise ValueError(f"its schema is {record['schema']!r}, not {SCHEMA!r}")
            weights = load_file(folder / "model.safetensors")
            config, shapes = record["config"], record["shapes"]
            veil = cls(
                utility=config["utility"],
                secret=config["secrets"],
                encoder=_known_spec("encoder", encoder, config["encoder"]),
                tradeoff=config["tradeoff"],
                objective=config["objective"],
                adversary=Adversary(**config["adversary"] | {"head": _known_adversary(adversary, config)}),
                recipe=Recipe(**config["recipe"] | {"head": _known_spec("head", head, config["recipe"]["head"])}),
                seed=config["seed"],
            )
            veil.in_channels_, veil.classes_ = shapes["in_channels"], shapes["classes"]
            veil.code_shape_, veil.graph_digest_ = CodeShape(**shapes["codes"]), shapes["graph_digest"]
            veil.scaling_ = shapes["scaling"]
            veil.modules_ = veil._build()
            if veil.objective == CODES:
                veil.modules_.pop("pairs", None)  # of the training alone
                veil.modules_["book"] = CodeBook(*shapes["book"])
            else:
                veil.modules_["grid"] = Grid(shapes["grid"])
            load_parts(veil.modules_, weights)
            veil.best_round_, veil.history_ = record["selected_round"], []
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise GraphveilError(
                f"{folder} is not a run of graphveil that can be read ({_brief(error)}): expected the run.json and"
                " model.safetensors that `graphveil protect` or Veil.save wrote."
            ) from error
        return veil

    @property
    def _out_channels(self) -> int:
        """Of the encoder: an instance has its own, any other is built to give the logits of codes."""
        as_codes = self.trains_codes and not isinstance(self.encoder, nn.Module)
        return self.code_shape_.channels if as_codes else self.recipe.out_channels

    def _shapes(self) -> dict[str, Any]:
        """What the modules are built from, besides the configuration."""
        shapes = {"in_channels": self.in_channels_, "classes": self.classes_, "codes": asdict(self.code_shape_)}
        book = [] if "book" not in self.modules_ else self.book.sizes()
        grid = self.modules_.get("grid")
        columns = len(grid.steps) if isinstance(grid, Grid) else 0
        return shapes | {"graph_digest": self.graph_digest_, "scaling": self.scaling_, "book": book, "grid": columns}

    def _build(self) -> dict[str, nn.Module]:
        """The modules that are trained, freshly initialised from the seed, and the student of links that are hidden."""
        recipe, classes = self.recipe, self.classes_
        width = self._out_channels
        sizes = {"hidden_channels": recipe.hidden_channels, "out_channels": width, "dropout": recipe.dropout}
        with global_stream(self.seed, "initialisation"):
            encoder = build_encoder(self.encoder, in_channels=self.in_channels_, **sizes, **recipe.encoder_options)
            if self.trains_codes:
                shape = self.code_shape_
                coded = CodeEncoder(encoder, width, shape, recipe.code_scale, counts_degrees(recipe, shape))
                return {"encoder": coded, "pairs": PairTable(shape.codes)}
            built = {"encoder": encoder, "utility": build_head(recipe.head, self.utility, width, classes["utility"])}
            if self.distils:
                return built | {"student": Student(self.in_channels_, recipe.student_channels, classes["utility"])}
            for number, secret in enumerate(self.secrets):
                name, default = numbered("adversary", number), "pair-mlp" if secret == "links" else "mlp"
                built[name] = build_head(self.adversary.head or default, secret, width, classes[name])
            return built

    def _method(self, problem: Problem, modules: dict[str, nn.Module], streams: Streams) -> Method:
        """How the loop trains it."""
        recipe = self.recipe
        if not self.trains_codes:
            plain = replace(problem, secrets=[], tradeoff=torch.ones_like(problem.tradeoff))
            objective = ADVERSARIAL.get(self.objective, ADVERSARIAL["club"])  # without secrets, any is plain training
            problem = plain if self.distils else problem
            return Adversarial(problem, modules, objective, recipe, self.adversary.steps, streams)
        secrets = known_classes(problem, self.in_channels_, streams.seeds)
        utility = kept_classes(problem, self.in_channels_, streams.seeds)
        return Codes(problem, modules, self.code_shape_, recipe, streams, secrets, utility)

    def _encoded(self, graph: Data, split: Split | None) -> Tensor:
        """The encoder's output, (num_nodes, channels) on the CPU."""
        self._check_fits(graph)
        device = pick_device(self.device)
        encoder = self.modules_["encoder"].to(device).eval()
        splits = [] if split is None else [split]
        x = features(graph, splits, self.scaling_, device)
        with torch.no_grad(), self.repeatable():
            z: Tensor = encoder(x, adjacency(graph, splits, device))
        return z.cpu()

    def _new_codes(self, graph: Data, split: Split | None) -> Tensor:
        """Codes of nodes that have none yet: from features and links, or from features alone if links are hidden."""
        if self.trains_codes:
            return self.book.merged[hard_codes(self._encoded(graph, split), self.code_shape_)]
        if self.tradeoff == 1:
            logits: Tensor = self.modules_["utility"].cpu().eval()(self._encoded(graph, split))
        else:
            x = features(graph, [] if split is None else [split], self.scaling_, torch.device("cpu"))
            logits = self.modules_["student"].cpu().eval()(x)
        return logits.argmax(dim=-1)

    def _keep(self, training: Training, run: int, graph: Data) -> None:
        """Take over the selected state of one run."""
        self.modules_ = self._build()
        trained = {name: self.modules_[name] for name in training.method.parts}
        load_parts(trained, of_run(training.best, run, len(training.records)))
        record = training.records[run]
        self.history_, self.best_round_ = record.history, record.best_round
        self.graph_digest_ = digest(graph)

    def _teachers(self, graph: Data) -> list["Veil"]:
        """Itself and, where links are hidden, others from weights of their own; modules of the caller's teach alone."""
        ours = self.encoder in list(ENCODERS) and self.recipe.head in list(NODE_HEADS)
        several = self.distils and ours and graph.edge_index.size(1) <= 2 * MOST_TAUGHT_LINKS
        others = [copy.copy(self) for _ in range(self.recipe.teachers - 1 if several else 0)]
        for number, other in enumerate(others):
            other.seed = stream(self.seed, "teacher", number) % 2**31
        return [self, *others]

    def _release(self, graph: Data, split: Split, training: Training, runs: Sequence[int]) -> None:
        """Give every node its code, and every code its row.

        Args:
            runs: of this veil: one, or those of all its teachers.
        """
        if isinstance(training.method, Codes):
            drawn = [known.drawn_of(runs[0]) for known in training.method.secrets]
            self.modules_["book"] = self._merged_codes(graph, split, drawn)
            return
        taught = []
        for run in runs:
            teacher = copy.copy(self)
            teacher._keep(training, run, graph)
            taught.append(teacher._class_probabilities(graph, split))
        self.modules_["book"] = self._distilled_codes(graph, split, torch.stack(taught).mean(dim=0))

    def _merged_codes(self, graph: Data, split: Split, drawn: Sequence[Tensor]) -> CodeBook:
        """The encoder's codes, merged until the limit holds.

        Args:
            drawn: possible classes of all nodes, (draws, n) for each secret.
        """
        cpu, shape = torch.device("cpu"), self.code_shape_
        codes, pairs = hard_codes(self._encoded(graph, split), shape), self.modules_.pop("pairs")
        utility = utility_target(self.utility, graph, [split], cpu)
        targets = [class_secret(name, graph, [split], self.adversary.knows, cpu) for name in self.secrets]
        hidden = [hidden_counts(codes, *one, shape.codes) for one in zip(targets, drawn, strict=True)]
        assert isinstance(pairs, PairTable)
        limit = float(allowed_gain(self.recipe, torch.tensor(self.tradeoff)))
        found = make_book(codes, pairs.mean.cpu(), shape, utility, hidden, limit, self.recipe.out_channels)
        return CodeBook.of(found.merged, found.rows, found.signs, _node_names(graph), found.merged[codes])

    def _class_probabilities(self, graph: Data, split: Split) -> Tensor:
        """Of the utility, from encoder and head, (num_nodes, classes)."""
        device = pick_device(self.device)
        with torch.no_grad():
            p: Tensor = self.modules_["utility"].to(device)(self._encoded(graph, split).to(device)).softmax(dim=-1)
        return p

    def _distilled_codes(self, graph: Data, split: Split, taught: Tensor) -> CodeBook:
        """The encoder's classes, as a student that sees no links would have them.

        Args:
            taught: class probabilities, not yet calibrated, (num_nodes, classes).
        """
        device = pick_device(self.device)
        utility = class_utility(self.utility, graph, [split], device)
        logits = taught.clamp_min(1e-30).log()
        p = (logits / calibration(logits[utility.val.index], utility.val.y)).softmax(dim=-1)
        y = torch.full((graph.x.size(0),), UNKNOWN, device=device)
        for part in (utility.train_examples, utility.val):
            y[part.index] = part.y
        lesson = Lesson(
            p=p,
            y=y,
            x=features(graph, [split], self.scaling_, device),
            in_channels=self.in_channels_,
            structural=is_structural(graph),
            secrets=self._other_secrets(graph, split),
            weight=self.recipe.secret_weight * (1 - self.tradeoff) / max(self.tradeoff, 1e-12),
            link_weight=self.recipe.link_weight,
            channels=self.recipe.student_channels,
            seed=self.seed,
        )
        uniform = uniform_by_name(self._key(), node_ids(graph).cast(pa.string()).to_pylist())
        links = split.message_pairs.to(device)
        with self.repeatable():
            found = distil(lesson, links, self.tradeoff, self.recipe.crossfit, uniform.to(device))
        self.modules_["student"] = found.student
        numbers, signs = torch.arange(utility.num_classes), torch.ones(utility.num_classes)
        return CodeBook.of(numbers, torch.eye(len(numbers)), signs, _node_names(graph), found.codes)

    def _other_secrets(self, graph: Data, split: Split) -> list[Tensor]:
        """The classes, known or predicted, of what is hidden beside the links, (n, classes) each."""
        device = pick_device(self.device)
        names = [name for name in self.secrets if name != "links"]
        problem = Problem(
            x=features(graph, [split], self.scaling_, device),
            adjacency=adjacency(graph, [split], device),
            utility=utility_target(self.utility, graph, [split], device),
            secrets=[class_secret(name, graph, [split], self.adversary.knows, device) for name in names],
            tradeoff=torch.tensor(self.tradeoff, dtype=torch.float64, device=device),
        )
        return [classes.shares for classes in known_classes(problem, self.in_channels_, [self.seed])]

    def _key(self) -> str:
        """What codes are drawn by: the weights, which are not released, so that nobody who knows the seed has it."""
        weights = {name: value.cpu() for name, value in self.modules_["encoder"].state_dict().items()}
        return hashlib.sha256(safetensors.torch.save(weights)).hexdigest()

    def _check(self, graph: Data, split: Split) -> None:
        self.check_settings()
        check_graph(graph)
        check_targets(graph, self.utility, self.secrets)
        if split.num_nodes != graph.x.size(0):
            raise GraphveilError(
                f"the split is for {split.num_nodes} nodes and the graph has {graph.x.size(0)}: build it from this one."
            )
        split.check_links(graph)

    def _check_encoder(self, encoder: nn.Module, problem: Problem, num_nodes: int) -> None:
        inner = encoder.encoder if isinstance(encoder, CodeEncoder) else encoder
        came, expected = (
            tuple(embed(inner, problem.x, problem.adjacency).shape)[-2:],
            (num_nodes, self._out_channels),
        )
        if came != expected:
            raise GraphveilError(
                f"encoder {spec_name(self.encoder)} gives embeddings of shape {came} where {expected} was expected: set"
                " out_channels in the recipe to the encoder's own."
            )

    def _check_fits(self, graph: Data) -> None:
        self._check_fitted()
        check_graph(graph)
        if graph.x.size(1) != self.in_channels_:
            raise GraphveilError(
                f"the graph has {graph.x.size(1)} features and the encoder was trained on {self.in_channels_}: give it"
                " the same columns in the same order."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "modules_"):
            raise GraphveilError("this Veil has not been trained: call fit(graph, split) or Veil.load(folder) first.")

    def _fingerprint(self, graph: Data, split: Split, training: Training) -> str:
        """All that decides where a training ends, the first weights included: modules may be the caller's own."""
        made_by = [SCHEMA, ALGORITHM, [column.name for column in fields(Round)]]
        text = json.dumps([made_by, self.config(), digest(graph), split.digest()], sort_keys=True, default=str)
        start = safetensors.torch.save(training.best)
        return hashlib.sha256(text.encode() + start).hexdigest()


def start(veils: Sequence[Veil], graph: Data, splits: Sequence[Split]) -> Training:
    """The training of one veil, or of several as a batch, before its first round."""
    for veil, split in zip(veils, splits, strict=True):
        veil._check(graph, split)
    pairs = [(one, split) for veil, split in zip(veils, splits, strict=True) for one in veil._teachers(graph)]
    veils, splits = zip(*pairs, strict=True)
    first = veils[0]
    device = pick_device(first.device)
    utility = utility_target(first.utility, graph, splits, device)
    secrets = [secret_target(name, graph, splits, first.adversary.knows, device) for name in first.secrets]
    of_secrets = {numbered("adversary", number): secret.num_classes for number, secret in enumerate(secrets)}
    for veil in veils:
        veil.in_channels_ = graph.x.size(1)
        veil.scaling_ = applicable_scaling(veil.recipe.scaling, graph)
        veil.classes_ = {"utility": utility.num_classes, **of_secrets}
        veil.code_shape_ = code_shape(first.recipe, graph.x.size(0), max(secret.num_classes for secret in secrets))
    built = [veil._build() for veil in veils]
    modules = {part: stack([own[part] for own in built]).to(device) for part in built[0]}
    problem = Problem(
        x=features(graph, splits, first.scaling_, device),
        adjacency=adjacency(graph, splits, device),
        utility=utility,
        secrets=secrets,
        tradeoff=torch.tensor([veil.tradeoff for veil in veils], dtype=torch.float64, device=device).squeeze(),
    )
    first._check_encoder(modules["encoder"], problem, graph.x.size(0))
    streams = Streams([veil.seed for veil in veils], first.recipe.rounds * first.recipe.inner_steps, device)
    with first.repeatable():  # classes may be predicted first
        return Training(first._method(problem, modules, streams), first.recipe)


def finish(
    veils: Sequence[Veil],
    training: Training,
    graph: Data,
    splits: Sequence[Split],
    on_round: Callable[[Training], None] | None = None,
) -> None:
    """Run a training to its end, and let each veil take over its run."""
    try:
        with veils[0].repeatable():
            training.run(on_round)
    except DivergedError:
        _hand_over(veils, training, graph, splits)  # the last good state
        raise
    _hand_over(veils, training, graph, splits)
    if len(veils) == 1 and (faults := diverged(training, 0, 1)):
        raise faults[0]


def diverged(training: Training, number: int, veils: int) -> list[DivergedError]:
    """What went wrong in the runs of one of several veils."""
    records = [training.records[run] for run in _runs(training, number, veils)]
    return [record.diverged for record in records if record.diverged is not None]


def _runs(training: Training, number: int, veils: int) -> range:
    """Of one of several veils in a batch: one run, or one for each of its teachers."""
    each = len(training.records) // veils
    return range(number * each, (number + 1) * each)


def _hand_over(veils: Sequence[Veil], training: Training, graph: Data, splits: Sequence[Split]) -> None:
    for number, (veil, split) in enumerate(zip(veils, splits, strict=True)):
        runs = _runs(training, number, len(veils))
        veil._keep(training, runs[0], graph)
        if veil.objective == CODES:
            veil._release(graph, split, training, runs)
        else:
            veil.modules_["grid"] = Grid.of(veil._encoded(graph, split))


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    modules = (graphveil, torch, torch_geometric, numpy)
    return {module.__name__: str(module.__version__) for module in modules}


def _node_names(graph: Data) -> Tensor:
    return hashed_names("", node_ids(graph).cast(pa.string()).to_pylist())


def _known_spec(kind: str, given: Spec | None, saved: str) -> Spec:
    if given is not None:
        return given
    if saved not in {**ENCODERS, **NODE_HEADS, **LINK_HEADS}:
        raise GraphveilError(f"the run's {kind} is not graphveil's own but {saved}: pass it as {kind}=... to load it.")
    return saved


def _known_adversary(given: Spec | None, config: Mapping[str, Any]) -> Spec | None:
    saved = config["adversary"]["head"]
    return given if saved is None else _known_spec("adversary", given, saved)


def _brief(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
