"""`Veil`, the estimator: train embeddings that keep one target and hide another.

For example:

    veil = Veil(utility="links", secret="labels", encoder="gcn", tradeoff=0.5)
    z = veil.fit(graph, split).transform(graph, split)
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from importlib import metadata
from numbers import Real
from pathlib import Path
from typing import Any

import numpy
import torch
import torch_geometric
from rich.console import Console
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil
from graphveil import kernels
from graphveil.data import Split, check_graph, check_split, check_targets, digest
from graphveil.errors import GraphveilError, first_line, unknown
from graphveil.files import write_json, write_tensors
from graphveil.formats.run import SCHEMA, RunRecord, VeilRecord
from graphveil.formats.store import parse, read
from graphveil.models.build import Spec, spec_name
from graphveil.models.codes import CodeBook, CodeShape, hard_codes
from graphveil.models.grid import Grid
from graphveil.models.stack import load_parts
from graphveil.models.student import Student
from graphveil.progress import show_rounds
from graphveil.randomness import check_seed
from graphveil.target import LINKS
from graphveil.training.distil import student_logits
from graphveil.training.graphs import features_of, graph_of, in_batches
from graphveil.training.history import Round
from graphveil.training.inputs import pick_device, repeatable
from graphveil.training.loop import Training
from graphveil.training.objectives import CODES, OBJECTIVES
from graphveil.training.recipes import Adversary, Recipe, default_recipe
from graphveil.training.score import Score, score, score_codes
from graphveil.training.targets import secret_target, utility_target
from graphveil.veil.code_books import node_names
from graphveil.veil.fitting import Fitting
from graphveil.veil.modules import build_modules, saved_adversary, saved_spec
from graphveil.veil.params import Params


class Veil(Params):
    """The estimator: trains embeddings z that keep the utility and hide the secrets (sections 3 and 4 of the paper).

    The adversarial objectives minimise ``tradeoff * L_utility + (1 - tradeoff) * sum of the secret terms``. Under
    `codes`, the default, every node gets one of finitely many codes, and its embedding is the row of its code. Training
    maximises the exact information of the codes about the utility minus that about every secret, and the best possible
    attack on the release is computed: see `graphveil.certify`.

    Args:
        utility: "links", "labels" or the name of a node attribute.
        secret: the name of the target to hide, or several names.
        encoder: "gcn", "gat", "sage", "hgcn", "package.module:Class", a class or an instance.
        tradeoff: lambda: 1 only keeps the utility, 0 only hides the secret; the paper's default is 0.5.
        objective: how the secret is hidden: "codes", "club", "entropy", "minimax" or "published".
        adversary: capacity, steps and knowledge of the joint adversary. Under "codes", which has no adversary, its
            knowledge is that of the defender.
        recipe: sizes, rates and lengths; None for the default of utility, encoder and objective.
        seed: decides every random number of the training.
        device: "cpu", "cuda" or "auto", which is CUDA if there is a GPU.
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
        self._given = {
            "secret": ("secrets", self.secrets, secret),
            "adversary": ("adversary", self.adversary, adversary),
            "recipe": ("recipe", self.recipe, recipe),
        }

    @property
    def trains_codes(self) -> bool:
        """Whether the output of the encoder is the logits of codes."""
        return self.objective == CODES and LINKS not in self.secrets

    @property
    def distils(self) -> bool:
        """Whether codes are distilled from the classes of a plain encoder, because links are hidden."""
        return self.objective == CODES and LINKS in self.secrets

    def check_settings(self) -> None:
        """Refuse settings that are invalid for every graph; `fit` does so too."""
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        if not isinstance(self.tradeoff, Real) or not 0 <= self.tradeoff <= 1:
            raise GraphveilError(
                f"tradeoff is {self.tradeoff!r}: expected a number from 0 (only hide) to 1 (only keep)."
            )
        check_seed(self.seed)
        if not isinstance(self.recipe, Recipe):
            raise GraphveilError(
                f"recipe is a {type(self.recipe).__name__}: expected a graphveil.Recipe, such as"
                " veil.recipe.but(rounds=300)."
            )
        if self.objective == CODES and self.adversary.head is not None:
            raise GraphveilError(
                f"an adversary {spec_name(self.adversary.head)!r} was given, but the objective 'codes' trains none:"
                " leave it out, or choose another objective."
            )
        pick_device(self.device)

    def check(self, graph: Data, split: Split) -> None:
        """Refuse invalid settings, and a graph or a split that does not match them; `fit` does so too."""
        self.check_settings()
        check_graph(graph)
        check_targets(graph, self.utility, self.secrets)
        check_split(split, graph)

    def fit(
        self,
        graph: Data,
        split: Split,
        checkpoint: Path | None = None,
        on_round: Callable[[Training], None] | None = None,
        *,
        progress: bool = False,
    ) -> "Veil":
        """Train, and keep the state with the best score on the validation part.

        Args:
            graph: the graph to train on.
            split: its split; see `graphveil.Split`.
            checkpoint: a file to save progress to; if it exists, training continues from it.
            on_round: called after every round.
            progress: show progress on stderr.
        """
        fitting = Fitting([self], graph, [split])
        if not progress:
            fitting.run(on_round, checkpoint)
            return self
        with show_rounds(Console(stderr=True), "training") as show:

            def after_round(training: Training) -> None:
                show(training)
                if on_round is not None:
                    on_round(training)

            fitting.run(after_round, checkpoint)
        return self

    def fit_transform(self, graph: Data, split: Split) -> Tensor:
        """Train, and return the embeddings of the graph that it was trained on; see `fit` and `transform`."""
        return self.fit(graph, split).transform(graph, split)

    def transform(self, graph: Data, split: Split | None = None) -> Tensor:
        """Embeddings z, (num_nodes, channels) float32 on the CPU, in the order of the graph's nodes.

        Continuous embeddings are rounded to a grid, so that the audited values are the released ones.

        Args:
            graph: the graph that the veil was fitted on, or another with the same columns.
            split: pass messages along its message edges, as in training and in `score`; None for all links.
        """
        if self.objective != CODES:
            z: Tensor = self.modules_["grid"](self.encode(graph, split))
            return z
        codes = self.codes(graph, split)
        return self.book.rows[codes]

    def encode(self, graph: Data, split: Split | None = None) -> Tensor:
        """The encoder's own output, (num_nodes, channels) on the CPU: `z` before codes or the grid, never released.

        Args:
            graph: as in `transform`.
            split: as in `transform`.
        """
        self._check_fits(graph)
        device = pick_device(self.device)
        encoder = self.modules_["encoder"].to(device).eval()
        splits = [] if split is None else [split]
        with self.repeatable():
            z = graph_of(graph, splits, self.scaling_, self.recipe, device).embed(encoder)
        encoder.eval()
        return z.cpu()

    def codes(self, graph: Data, split: Split | None = None) -> Tensor:
        """The released code of each node, (num_nodes,) int64, under the objective "codes".

        A node that had a code when this veil was fitted keeps it. Other nodes get one from their features and links or,
        if links are hidden, from their features alone.

        Args:
            graph: as in `transform`.
            split: as in `transform`.
        """
        self._check_fits(graph)
        if self.objective != CODES:
            raise GraphveilError(f"embeddings of the objective {self.objective!r} have no codes: train with 'codes'.")
        known = self.known_codes(graph)
        return known if bool((known >= 0).all()) else known.where(known >= 0, self._new_codes(graph, split))

    def known_codes(self, graph: Data) -> Tensor:
        """The codes that the nodes have in this veil, (num_nodes,); -1 for nodes without one."""
        known = self.book.find(node_names(graph))
        if "origin" not in graph and digest(graph) != self.graph_digest_:
            return torch.full_like(known, -1)  # rows without ids of their own are other nodes in another graph
        return known

    @property
    def book(self) -> CodeBook:
        """The code book: the row of each code, and the code of each node. Only the objective "codes" has one."""
        book = self.modules_["book"]
        assert isinstance(book, CodeBook)
        return book

    def adopt(self, graph: Data) -> int:
        """Add the codes of a graph's new nodes to the code book; returns how many nodes had a code before."""
        codes, known, names = self.codes(graph), self.known_codes(graph), node_names(graph)
        book, new = self.book, known < 0
        nodes, numbers = torch.cat([book.nodes, names[new]]), torch.cat([book.codes, codes[new]])
        if "origin" not in graph and digest(graph) != self.graph_digest_:
            nodes, numbers, self.graph_digest_ = names, codes, digest(graph)
        self.modules_["book"] = CodeBook.of(book.merged, book.rows, book.signs, nodes, numbers)
        return int((~new).sum())

    def unprotected(self, graph: Data | None = None) -> "Veil":
        """A veil with the same encoder that only keeps the utility: continuous embeddings, nothing hidden.

        Args:
            graph: the graph to fit it on, on which a batch size may be too large for mini-batches; None if it is not.
        """
        recipe = self.recipe
        if self.objective == CODES:
            recipe = default_recipe(self.utility, self.encoder, "club")
            size = self.recipe.batch_size
            if size is not None:
                by_batches = graph is None or in_batches(self.recipe, graph)
                recipe = recipe.by_batches(size) if by_batches else recipe.but(batch_size=size)
                recipe = recipe.but(fanout=self.recipe.fanout)
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

    def score(self, graph: Data, split: Split, z: Tensor | None = None) -> Score:
        """Utility and the training's own attack on each secret, on the test part.

        Args:
            graph: the graph that the veil was fitted on, or another with the same columns.
            split: the split whose test part is used.
            z: the embeddings that `transform(graph, split)` returned; None computes them.
        """
        cpu = torch.device("cpu")
        utility = utility_target(self.utility, graph, [split], cpu)
        secrets = {name: secret_target(name, graph, [split], self.adversary.knows, cpu) for name in self.secrets}
        if self.objective == CODES:
            return score_codes(self.codes(graph, split), self.book, utility, secrets)
        heads = {name: module.cpu() for name, module in self.modules_.items() if name != "encoder"}
        return score(self.transform(graph, split) if z is None else z, heads, utility, secrets)

    def repeatable(self) -> AbstractContextManager[None]:
        """A context in which a GPU gives the same bits every time, if the recipe is deterministic."""
        return repeatable() if self.recipe.deterministic else nullcontext()

    def config(self) -> dict[str, Any]:
        """The settings that decide a training, besides the graph and the split, as plain values."""
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
            folder: the folder to write.
            results: more fields of `run.json`, such as scores and digests; see `graphveil.formats.run.RunRecord`.
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
        record |= results or {}
        parse(record, RunRecord if "graph" in record else VeilRecord)  # what is written can be read
        write_json(folder / "run.json", record)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        encoder: Spec | None = None,
        head: Spec | None = None,
        adversary: Spec | None = None,
    ) -> "Veil":
        """Read what `save` wrote.

        A file never makes this program import code, so modules of your own must be given again.

        Args:
            folder: the folder that `save` or `graphveil protect` wrote.
            encoder: your own encoder; None for a built-in one.
            head: your own head of the utility; None for a built-in one.
            adversary: your own head of the adversary; None for a built-in one.
        """
        folder = Path(folder)
        try:
            record = read(folder / "run.json", VeilRecord)
            weights = load_file(folder / "model.safetensors")
            config, shapes = record.config, record.shapes
            own = {"head": saved_adversary(adversary, config.adversary.head)}
            veil = cls(
                utility=config.utility,
                secret=config.secrets,
                encoder=saved_spec("encoder", encoder, config.encoder),
                tradeoff=config.tradeoff,
                objective=config.objective,
                adversary=Adversary(**config.adversary.to_dict() | own),
                recipe=Recipe(**config.recipe | {"head": saved_spec("head", head, config.recipe["head"])}),
                seed=config.seed,
            )
            veil.in_channels_, veil.classes_ = shapes.in_channels, shapes.classes
            veil.code_shape_, veil.graph_digest_ = CodeShape(**shapes.codes.to_dict()), shapes.graph_digest
            veil.scaling_ = shapes.scaling
            veil.modules_ = build_modules(veil)
            if veil.objective == CODES:
                veil.modules_.pop("pairs", None)  # of the training alone
                veil.modules_["book"] = CodeBook(*shapes.book)
            else:
                veil.modules_["grid"] = Grid(shapes.grid)
            load_parts(veil.modules_, weights)
            veil.best_round_, veil.history_ = record.selected_round, []
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise GraphveilError(
                f"{folder} is not a run of graphveil that can be read ({first_line(error)}): expected the run.json and"
                " model.safetensors that `graphveil protect` or Veil.save wrote."
            ) from error
        return veil

    def _shapes(self) -> dict[str, Any]:
        """The sizes that the modules are built from, besides the configuration."""
        shapes = {"in_channels": self.in_channels_, "classes": self.classes_, "codes": asdict(self.code_shape_)}
        book = [] if "book" not in self.modules_ else self.book.sizes()
        grid = self.modules_.get("grid")
        columns = len(grid.steps) if isinstance(grid, Grid) else 0
        return shapes | {"graph_digest": self.graph_digest_, "scaling": self.scaling_, "book": book, "grid": columns}

    def _new_codes(self, graph: Data, split: Split | None) -> Tensor:
        """Codes of nodes without one, from features and links or, if links are hidden, from features alone."""
        if self.trains_codes:
            return self.book.merged[hard_codes(self.encode(graph, split), self.code_shape_)]
        if self.tradeoff == 1:
            logits: Tensor = self.modules_["utility"].cpu().eval()(self.encode(graph, split))
        else:
            cpu, student = torch.device("cpu"), self.modules_["student"].cpu().eval()
            assert isinstance(student, Student)
            x = features_of(graph, [] if split is None else [split], self.scaling_, self.recipe, cpu)
            logits = student_logits(student, x, cpu)
        return logits.argmax(dim=-1)

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


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    modules = (graphveil, torch, torch_geometric, numpy)
    found = {module.__name__: str(module.__version__) for module in modules}
    return found | ({"numba": metadata.version("numba")} if kernels.is_installed() else {})
