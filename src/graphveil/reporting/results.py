"""Saved results as the page needs them. Every number may be missing; what is only printed is JSON already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphveil.reporting.checks import Interval
from graphveil.reporting.parts import plain


@dataclass(frozen=True)
class Attack:
    """What one attack read; `finer` is the class-matched AUC of links, the balanced accuracy of a node secret."""

    name: str
    metric: str
    reading: Interval | None
    needs: Sequence[str]
    finer: Interval | None
    validation: float | None


@dataclass(frozen=True)
class Group:
    """The strongest attack's result on one group; without a reading it has too few examples."""

    label: str
    measure: str
    examples: float | None
    reading: Interval | None
    reference: float | None
    compared_with: str


@dataclass(frozen=True)
class Points:
    """Embeddings in two dimensions, and the secret class of each point."""

    title: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    classes: Sequence[int]
    names: Sequence[str]


@dataclass(frozen=True)
class Beside:
    """Another way to measure the same leak; `chance` is what guessing has, `excess` what z adds to it."""

    attack: str
    reading: Interval | None
    chance: float | None = None
    excess: Interval | None = None


@dataclass(frozen=True)
class Certificate:
    """What no attacker who sees only the released codes can exceed; shares, but for `codes` and `bits`.

    Args:
        sentence: its two statements, to be quoted.
        metric: "accuracy", or "AUC" of links. best: of any attack on this release.
        elsewhere: an upper limit for other nodes, with `confidence`.
        finer: of the balanced accuracy, or of the class-matched AUC.
        worst: the largest share of a class among the nodes with one code.
        codes: the number of codes in use. bits: what a code can reveal about anything.
        rows, not_covered: (name, sentence), and (objection, answer).
    """

    sentence: str
    metric: str
    best: float | None
    elsewhere: float | None
    confidence: float | None
    finer: float | None
    worst: float | None
    worst_nodes: float | None
    codes: float | None
    bits: float | None
    rows: Sequence[tuple[str, str]]
    not_covered: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Audit:
    """As `graphveil.auditing.Audit.to_dict` wrote it; `of` is a digest of the embeddings."""

    secret: str
    verdict: str
    chance: float | None
    strongest: Attack
    certificate: Certificate | None
    beside: Mapping[str, Beside]
    floor: Interval | None
    joint: float | None
    information: Mapping[str, tuple[Interval | None, str]]
    entropy: float | None
    attacks: Sequence[Attack]
    groups: Sequence[Group]
    worst_group: Group | None
    controls: Mapping[str, Sequence[Attack]]
    flags: Sequence[tuple[str, str]]
    notes: Sequence[str]
    examples: float | None
    maps: Sequence[Points]
    origin: str
    of: str


@dataclass(frozen=True)
class History:
    """Validation readings of a training, None in rounds that were not evaluated."""

    round: Sequence[float | None]
    utility: Sequence[float | None]
    adversary: Sequence[float | None]
    probe: Sequence[float | None]


@dataclass(frozen=True)
class Hidden:
    """What the attack that belongs to the training has on the test part: the adversary, or a rule from codes."""

    secret: str
    joint: float | None
    chance: float | None


@dataclass(frozen=True)
class Run:
    """A run's folder; `kept` is its own score on the test part, and `histories` and `audits` are by secret.

    `strange` are the files of audits that are of other embeddings than those in the folder.
    """

    graph: str
    utility: str
    secrets: Sequence[Hidden]
    encoder: str
    objective: str
    tradeoff: float | None
    rounds: float | None
    selected_round: float | None
    kept: float | None
    kept_metric: str
    config: str
    versions: str
    record: str
    audited_as: str
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    histories: Mapping[str, History] = field(default_factory=dict)
    audits: Sequence[Audit] = ()
    strange: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    """One cell of an experiment over its seeds, and what is told of one secret there."""

    variant: str
    dataset: str
    encoder: str
    secret: str
    tradeoff: float | None
    seeds: float | None
    utility: Interval | None
    protocol: Interval | None
    fresh: Interval | None
    finer: Interval | None
    utility_chance: float | None
    chance: float | None
    floor: float | None
    flagged: float | None
    paper: tuple[float | None, float | None]
    verdict: str
    history: History | None
    map: Points | None
    epsilon: float | None = None

    @property
    def level(self) -> str:
        """The trade-off or, of a peer, epsilon, with its symbol."""
        return f"λ {plain(self.tradeoff)}" if self.epsilon is None else f"ε {plain(self.epsilon)}"

    @property
    def cell(self) -> str:
        """Data set and encoder."""
        return f"{self.dataset} · {self.encoder}"

    @property
    def gap(self) -> float | None:
        """How much more a fresh attacker reads than the paper's protocol, or than the adversary trained along.

        Peers train no adversary, so they have none.
        """
        if self.fresh is None or self.protocol is None or self.epsilon is not None:
            return None
        return self.fresh.value - self.protocol.value


@dataclass(frozen=True)
class SecretResults:
    """What an experiment tells of one secret."""

    secret: str
    metric: str
    papers_attacker: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper, or a sweep."""

    name: str
    title: str
    utility: str
    metric: str
    secrets: Sequence[SecretResults]
    failed: Sequence[tuple[str, str]]
    config: str
    versions: str

    @property
    def is_own(self) -> bool:
        """A sweep of somebody's own, which has no paper to stand beside."""
        return self.name == "sweep"

    @property
    def rows(self) -> list[Row]:
        """Of all secrets."""
        return [row for told in self.secrets for row in told.rows]


@dataclass(frozen=True)
class Words:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
