"""`Veil`, the estimator: train an encoder that keeps one target and hides another.

For example:

    veil = Veil(utility="links", secret="labels", encoder="gcn", tradeoff=0.5)
    z = veil.fit(graph, split).transform(graph)
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields
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
from graphveil.data import Split, check_graph, check_targets, digest
from graphveil.data.origin import node_ids
from graphveil.errors import GraphveilError, unknown
from graphveil.files import read_json, write_json, write_tensors
from graphveil.models import (
    ENCODERS,
    LINK_HEADS,
    NODE_HEADS,
    build_encoder,
    build_head,
)
from graphveil.models.build import Spec, spec_name
from graphveil.models.stack import load_parts, of_run, stack
from graphveil.randomness import global_stream, normal_by_name
from graphveil.training.checkpoint import load_checkpoint, save_checkpoint
from graphveil.training.history import Round, numbered
from graphveil.training.inputs import adjacency, features, pick_device, repeatable
from graphveil.training.loop import Problem, Training
from graphveil.training.objectives import OBJECTIVES
from graphveil.training.recipes import Adversary, Recipe, default_recipe
from graphveil.training.score import Score, score
from graphveil.training.targets import secret_target, utility_target

SCHEMA = "graphveil/run/2"
ALGORITHM = 3
"""Counted up when the same configuration trains to another end: what was begun before cannot be gone on with."""
CHECKPOINT_EVERY = 20


class Veil:
    """Embeddings that are useful for `utility` and say little about `secret`.

    Args:
        utility: "links", "labels" or the name of a node attribute.
        secret: likewise; or several, each with an adversary of its own.
        encoder: "gcn", "gat", "hgcn", "package.module:Class", a class or an instance.
        tradeoff: lambda; 1 trains for the utility alone, 0 for the secret alone; the paper's default is .5.
        objective: how the secret is hidden: "kernel", "club", "entropy", "minimax" or "published".
        adversary: capacity, steps and knowledge of the attacker trained along.
        recipe: sizes, rates and lengths; None takes the default of utility and encoder.
        device: "auto" takes CUDA where there is one.
    """

    in_channels_: int
    classes_: Mapping[str, int]
    spread_: list[float]
    modules_: dict[str, nn.Module]
    history_: list[Round]
    best_round_: int

    def __init__(
        self,
        utility: str = "links",
        secret: str | Sequence[str] = "labels",
        encoder: Spec = "gcn",
        tradeoff: float = 0.5,
        objective: str = "kernel",
        adversary: Adversary | None = None,
        recipe: Recipe | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.utility, self.encoder = utility, encoder
        self.secrets = (secret,) if isinstance(secret, str) else tuple(secret)
        self.tradeoff, self.objective = tradeoff, objective
        self.adversary = adversary or Adversary()
        self.recipe = recipe or default_recipe(utility, encoder, objective)
        self.seed, self.device = seed, device

    def check_settings(self) -> None:
        """Refuse what is wrong on any graph, before one is read; `fit` does so too."""
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        if not 0 <= self.tradeoff <= 1:
            raise GraphveilError(f"tradeoff is {self.tradeoff}: expected a number from 0 (hide all) to 1 (keep all).")
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

        finish([self], training, after_round)
        return self

    def transform(self, graph: Data, split: Split | None = None) -> Tensor:
        """Embeddings z, (num_nodes, out_channels) float32 on the CPU, in the order of the graph's nodes.

        Args:
            split: pass messages along the split's message edges, as in training and in `score`; without a split they
                pass along all links of the graph.
        """
        self._check_fitted()
        check_graph(graph)
        if graph.x.size(1) != self.in_channels_:
            raise GraphveilError(
                f"the graph has {graph.x.size(1)} features and the encoder was trained on {self.in_channels_}: give it"
                " the same columns in the same order."
            )
        device = pick_device(self.device)
        encoder = self.modules_["encoder"].to(device).eval()
        splits = [] if split is None else [split]
        x = features(graph, splits, self.recipe.normalize_features, device)
        with torch.no_grad(), self.repeatable():
            z: Tensor = encoder(x, adjacency(graph, splits, device))
        return self._blurred(z.cpu(), node_ids(graph))

    def score(self, graph: Data, split: Split) -> Score:
        """Readings on the test part, with embeddings from the split's message edges."""
        z = self.transform(graph, split)
        cpu = torch.device("cpu")
        utility = utility_target(self.utility, graph, [split], cpu)
        secrets = {name: secret_target(name, graph, [split], self.adversary.knows, cpu) for name in self.secrets}
        heads = {name: module.cpu() for name, module in self.modules_.items() if name != "encoder"}
        return score(z, heads, utility, secrets)

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
            "shapes": {"in_channels": self.in_channels_, "classes": self.classes_, "spread": self.spread_},
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
            veil.in_channels_, veil.classes_, veil.spread_ = shapes["in_channels"], shapes["classes"], shapes["spread"]
            veil.modules_ = veil._build(veil.in_channels_, veil.classes_)
            load_parts(veil.modules_, weights)
            veil.best_round_, veil.history_ = record["selected_round"], []
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise GraphveilError(
                f"{folder} is not a run of graphveil that can be read ({_brief(error)}): expected the run.json and"
                " model.safetensors that `graphveil protect` or Veil.save wrote."
            ) from error
        return veil

    def _build(self, in_channels: int, classes: Mapping[str, int]) -> dict[str, nn.Module]:
        """Encoder, utility head and adversaries, freshly initialised from the seed."""
        recipe, width = self.recipe, self.recipe.out_channels
        sizes = {"hidden_channels": recipe.hidden_channels, "out_channels": width, "dropout": recipe.dropout}
        with global_stream(self.seed, "initialisation"):
            built = {
                "encoder": build_encoder(self.encoder, in_channels=in_channels, **sizes, **recipe.encoder_options),
                "utility": build_head(recipe.head, self.utility, width, classes["utility"]),
            }
            for number, secret in enumerate(self.secrets):
                name, default = numbered("adversary", number), "pair-mlp" if secret == "links" else "mlp"
                built[name] = build_head(self.adversary.head or default, secret, width, classes[name])
            return built

    def _blurred(self, z: Tensor, ids: pa.Array) -> Tensor:
        """With the recipe's noise, if something is hidden.

        It is the same whenever this encoder embeds a node, so that nobody can average it away; and it is drawn from the
        weights, which are not released, so that nobody can subtract it who knows the seed.
        """
        if self.recipe.noise == 0 or self.tradeoff == 1:
            return z
        weights = {name: value.cpu() for name, value in self.modules_["encoder"].state_dict().items()}
        key = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
        noise = normal_by_name(key, ids.cast(pa.string()).to_pylist(), z.size(1))
        return z + self.recipe.noise * torch.tensor(self.spread_) * noise

    def _keep(self, training: Training, run: int, spread: list[float]) -> None:
        """Take over the selected state of one run, and how much each column of its embeddings varies."""
        state = of_run(training.best, run, len(training.records))
        self.modules_ = self._build(self.in_channels_, self.classes_)
        load_parts(self.modules_, state)
        record = training.records[run]
        self.history_, self.best_round_ = record.history, record.best_round
        self.spread_ = spread

    def _check(self, graph: Data, split: Split) -> None:
        self.check_settings()
        check_graph(graph)
        check_targets(graph, self.utility, self.secrets)
        if split.num_nodes != graph.x.size(0):
            raise GraphveilError(
                f"the split is for {split.num_nodes} nodes and the graph has {graph.x.size(0)}: build it from this one."
            )
        split.check_links(graph)

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
    first = veils[0]
    device = pick_device(first.device)
    utility = utility_target(first.utility, graph, splits, device)
    secrets = [secret_target(name, graph, splits, first.adversary.knows, device) for name in first.secrets]
    of_secrets = {numbered("adversary", number): secret.num_classes for number, secret in enumerate(secrets)}
    for veil in veils:
        veil.in_channels_ = graph.x.size(1)
        veil.classes_ = {"utility": utility.num_classes, **of_secrets}
    built = [veil._build(veil.in_channels_, veil.classes_) for veil in veils]
    modules = {part: stack([own[part] for own in built]).to(device) for part in built[0]}
    problem = Problem(
        x=features(graph, splits, first.recipe.normalize_features, device),
        adjacency=adjacency(graph, splits, device),
        utility=utility,
        secrets=secrets,
        objective=OBJECTIVES[first.objective],
        tradeoff=torch.tensor([veil.tradeoff for veil in veils], dtype=torch.float64, device=device).squeeze(),
    )
    training = Training(problem, modules, first.recipe, first.adversary.steps, [veil.seed for veil in veils])
    expected, came = (graph.x.size(0), first.recipe.out_channels), tuple(training.embed().shape)[-2:]
    if came != expected:
        raise GraphveilError(
            f"encoder {spec_name(first.encoder)} gives embeddings of shape {came} where {expected} was expected: set"
            " out_channels in the recipe to the encoder's own."
        )
    return training


def finish(veils: Sequence[Veil], training: Training, on_round: Callable[[Training], None] | None = None) -> None:
    """Run a training to its end, and let each veil take over its run."""
    try:
        with veils[0].repeatable():
            training.run(on_round)
    finally:  # a training that diverges, or is interrupted, leaves its last good state
        with veils[0].repeatable():
            spread = training.spread() if veils[0].recipe.noise else [[] for _ in veils]
        for run, veil in enumerate(veils):
            veil._keep(training, run, spread[run])


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    modules = (graphveil, torch, torch_geometric, numpy)
    return {module.__name__: str(module.__version__) for module in modules}


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
