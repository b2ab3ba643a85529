"""`run.json`: the configuration, scores and digests of a run. `Veil.save` writes it, validated by these records."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from graphveil.errors import GraphveilError
from graphveil.formats.certificate import Certificate
from graphveil.formats.record import Count, File, Number, Record, Share
from graphveil.formats.store import read, reason

SCHEMA = "graphveil/run/8"


class AdversaryConfig(Record, frozen=True):
    """The settings of the adversary; `head` is None for the default of the secret."""

    head: str | None
    steps: Count
    knows: str


class Config(Record, frozen=True):
    """All that decides a training besides the graph and the split.

    Args:
        recipe: the fields of `graphveil.training.recipes.Recipe`.
    """

    utility: str
    secrets: Annotated[tuple[str, ...], Meta(min_length=1)]
    encoder: str
    tradeoff: Share
    objective: str
    adversary: AdversaryConfig
    recipe: dict[str, Any]
    seed: int


class CodeShape(Record, frozen=True):
    """How many groups of how many values make a code."""

    groups: Count
    size: Count


class Shapes(Record, frozen=True):
    """What the modules are built from, besides the configuration.

    Args:
        classes: the number of classes of the utility and of each adversary.
        graph_digest: the digest of the graph that the codes belong to.
        book: the sizes of the code book; empty without codes.
        grid: the number of columns of the grid; 0 without a grid.
    """

    in_channels: Count
    classes: dict[str, Count]
    codes: CodeShape
    graph_digest: str
    scaling: str
    book: tuple[Count, ...]
    grid: Count


class SecretScore(Record, frozen=True):
    """The test result of the attack that belongs to the training: the joint adversary, or the attack on its codes.

    Args:
        rounded: the value if pairs are ranked by float32 probabilities instead of logits.
        attack: its name, such as "joint adversary" or "majority class per code".
    """

    secret: str
    metric: str
    value: Share
    rounded: Share
    chance: Share
    attack: str


class Scores(Record, frozen=True):
    """Results on the test part; None if the graph has too little of the utility to measure it."""

    utility: Share | None
    utility_metric: str | None
    utility_chance: Share | None
    secrets: tuple[SecretScore, ...]


class Embedded(Record, frozen=True):
    """Where the encoder came from, in the folder of `graphveil embed`.

    Args:
        run: the SHA-256 of the encoder's file.
        warnings: a sentence for each way in which the graph differs from the one trained on.
        not_recorded: "nodes" or "links" if the run does not record which of them it was trained on.
    """

    run: str
    warnings: tuple[str, ...]
    not_recorded: tuple[str, ...]


class VeilRecord(File, frozen=True):
    """What `Veil.save` writes and `Veil.load` reads."""

    SCHEMA: ClassVar[str] = SCHEMA

    config: Config
    shapes: Shapes
    selected_round: int
    versions: dict[str, str]


class RunRecord(VeilRecord, frozen=True, kw_only=True):
    """A finished run of `graphveil protect`, or a folder of `graphveil embed`.

    Args:
        graph: the name or the path of the graph.
        reading: the fields of `ReadOptions`; None for a named graph.
        encoding: the fields of `Encoding`; None if the graph was not read from tables.
        features: a summary of the features, to compare another graph with.
        split: the name of the split.
        split_seed: the seed of the split; None if it is that of the training.
        targets: the targets that the split was drawn for.
        ids_digest: SHA-256 of the ids in their order.
        unknown: the number of nodes for which a target is unknown, by target.
        audited_as: the digest of the embeddings that an audit states; None if they cannot be audited.
        certificates: the certificates by secret; None for embeddings with too many distinct rows.
        seconds: the duration of the training; None in a folder of `graphveil embed`.
        rounds: the number of rounds; None in a folder of `graphveil embed`.
        processes: the number of processes that trained together; None in a folder of `graphveil embed`.
        embedded: the origin of the encoder; None for a run that was trained on this graph.
    """

    scores: Scores
    graph: str
    graph_digest: str
    reading: dict[str, Any] | None
    encoding: dict[str, Any] | None
    features: dict[str, Any]
    split: str
    split_digest: str
    message_edges: str
    targets: tuple[str, ...]
    ids_digest: str
    unknown: dict[str, Count]
    audited_as: str | None
    certificates: dict[str, Certificate | None]
    seconds: Number | None = None
    rounds: Count | None = None
    processes: Count | None = None
    split_seed: int | None = None
    embedded: Embedded | None = None


def read_run(folder: Path) -> RunRecord:
    """Read `run.json` of a finished run.

    Raises:
        GraphveilError: if the folder has none, or if it cannot be read.
    """
    try:
        return read(folder / "run.json", RunRecord)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        why = "run.json is missing" if missing else f"run.json: {reason(error)}"
        raise GraphveilError(
            f"{folder} is not a finished run of `graphveil protect` ({why}): give the folder of a run, or audit a"
            " file with --embeddings, --graph and --secret."
        ) from error
