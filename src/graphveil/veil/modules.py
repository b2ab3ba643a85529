"""What a veil is built from: its modules, the method that trains them, and the names they are saved by."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from graphveil.errors import GraphveilError
from graphveil.models import ENCODERS, LINK_HEADS, NODE_HEADS, build_encoder, build_head
from graphveil.models.build import Spec, spec_name
from graphveil.models.codes import CodeEncoder, PairTable
from graphveil.models.layered import Layered
from graphveil.models.student import Student
from graphveil.randomness import global_stream
from graphveil.target import Target
from graphveil.training.adversarial import Adversarial
from graphveil.training.book import counts_degrees
from graphveil.training.codes import Codes
from graphveil.training.history import numbered
from graphveil.training.loop import Method, Problem
from graphveil.training.objectives import ADVERSARIAL
from graphveil.training.players import Streams
from graphveil.training.prediction import secret_classes, utility_classes
from graphveil.training.sampled import SampledGraph

if TYPE_CHECKING:
    from graphveil.veil.estimator import Veil


def build_modules(veil: "Veil") -> dict[str, nn.Module]:
    """The modules to train, freshly initialised from the seed.

    Where links are hidden, the student is among them.
    """
    recipe, classes, width = veil.recipe, veil.classes_, out_channels(veil)
    sizes = {"hidden_channels": recipe.hidden_channels, "out_channels": width, "dropout": recipe.dropout}
    with global_stream(veil.seed, "initialisation"):
        encoder = build_encoder(veil.encoder, in_channels=veil.in_channels_, **sizes, **recipe.encoder_options)
        if veil.trains_codes:
            shape = veil.code_shape_
            coded = CodeEncoder(encoder, width, shape, recipe.code_scale, counts_degrees(recipe, shape))
            return {"encoder": coded, "pairs": PairTable(shape.codes)}
        built = {"encoder": encoder, "utility": build_head(recipe.head, veil.utility, width, classes["utility"])}
        if veil.distils:
            return built | {"student": Student(veil.in_channels_, recipe.student_channels, classes["utility"])}
        for number, secret in enumerate(veil.secrets):
            name, default = numbered("adversary", number), Target.of(secret).adversary
            built[name] = build_head(veil.adversary.head or default, secret, width, classes[name])
        return built


def build_method(veil: "Veil", problem: Problem, modules: dict[str, nn.Module], streams: Streams) -> Method:
    """What the training loop does in a round."""
    if not veil.trains_codes:
        plain = replace(problem, secrets=[], tradeoff=torch.ones_like(problem.tradeoff))
        objective = ADVERSARIAL.get(veil.objective, ADVERSARIAL["club"])  # without secrets, any is plain training
        problem = plain if veil.distils else problem
        return Adversarial(problem, modules, objective, veil.recipe, veil.adversary.steps, streams)
    secrets = secret_classes(problem, veil.in_channels_, streams.seeds)
    utility = utility_classes(problem, veil.in_channels_, streams.seeds)
    return Codes(problem, modules, veil.code_shape_, veil.recipe, streams, secrets, utility)


def out_channels(veil: "Veil") -> int:
    """The width of the encoder's output: an instance has its own, any other is built to give the logits of codes."""
    as_codes = veil.trains_codes and not isinstance(veil.encoder, nn.Module)
    return veil.code_shape_.channels if as_codes else veil.recipe.out_channels


def check_encoder(veil: "Veil", encoder: nn.Module, problem: Problem, num_nodes: int) -> None:
    """Refuse an encoder whose output has another shape than (num_nodes, out_channels), or that cannot do batches."""
    inner = encoder.encoder if isinstance(encoder, CodeEncoder) else encoder
    if isinstance(problem.graph, SampledGraph):
        if not isinstance(inner, Layered):
            raise GraphveilError(
                f"encoder {spec_name(veil.encoder)} cannot be trained with a batch_size: choose gcn, gat or sage, or"
                " leave out batch_size."
            )
        return  # these have the shape that they are built with
    shape, expected = tuple(problem.graph.embed(inner).shape)[-2:], (num_nodes, out_channels(veil))
    if shape != expected:
        raise GraphveilError(
            f"encoder {spec_name(veil.encoder)} gives embeddings of shape {shape} where {expected} was expected: set"
            " out_channels in the recipe to the encoder's own."
        )


def saved_spec(kind: str, given: Spec | None, saved: str) -> Spec:
    """The module to load: the one that is given or, for the built-in ones, the saved name."""
    if given is not None:
        return given
    if saved not in {**ENCODERS, **NODE_HEADS, **LINK_HEADS}:
        raise GraphveilError(f"the run's {kind} is not graphveil's own but {saved}: pass it as {kind}=... to load it.")
    return saved


def saved_adversary(given: Spec | None, saved: str | None) -> Spec | None:
    """The same for the head of the adversary, which is None by default."""
    return given if saved is None else saved_spec("adversary", given, saved)
