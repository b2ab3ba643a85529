"""The files of experiments: one cell, the results of a table or a figure, and Table 1."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from graphveil.formats.audit import Map
from graphveil.formats.interval import Interval
from graphveil.formats.record import Count, File, Number, Record, Share
from graphveil.target import Target

Curve = tuple[Number | None, ...]
Verdict = Literal["reproduced", "better", "not reproduced", ""]
SWEEP = "sweep"
"""The name of the experiment of `graphveil sweep`."""


class Rounds(Record, frozen=True):
    """The rounds that were evaluated, and the validation utility in each."""

    round: tuple[Number, ...]
    utility: Curve


class Curves(Record, frozen=True):
    """The validation result of the adversary, and of a probe, in each of these rounds."""

    adversary: Curve
    probe: Curve


class CertifiedCell(Record, frozen=True):
    """The certificate of one release.

    Args:
        best: accuracy or AUC of the best rule.
        guessing: the chance level of `best`.
        limit: the bound for other nodes.
        class_matched: the best class-matched AUC.
    """

    best: Share
    guessing: Share
    limit: Share | None
    class_matched: Share | None


class CellWithFeatures(Record, frozen=True):
    """The strongest attack on z and the features, and the same attackers without z or with true classes instead."""

    attack: str
    value: Share
    alone: Share
    z_adds: Number
    true_classes: Share | None
    over_true_classes: Number | None


class CellSecret(Record, frozen=True):
    """The audit of one secret of a cell.

    Args:
        joint: the value of the joint adversary.
        joint_rounded: the value of the joint adversary from float32 probabilities.
        fresh: the value of the strongest attack.
        fresh_attack: the name of the strongest attack.
        attacks: the value of each attack.
        flags: their names, without those that every cell may have: "not the full panel", "no unprotected encoder".
        map: the map of the embeddings, for the first seed only.
    """

    joint: Share | None
    fresh: Share
    fresh_attack: str
    attacks: dict[str, Share]
    chance: Share
    floor: Share | None
    equal_classes: Share | None
    class_matched: Share | None
    balanced: Share | None
    certificate: CertifiedCell | None
    with_features: CellWithFeatures | None
    flags: tuple[str, ...]
    joint_rounded: Share
    history: Curves
    map: Map | None


class CellRecord(File, frozen=True):
    """The result of one cell.

    Args:
        key: a hash of everything that decides the cell.
        cell: the fields of `graphveil.experiments.cells.Cell`.
    """

    SCHEMA: ClassVar[str] = "graphveil/cell/7"

    key: str
    cell: dict[str, Any]
    versions: dict[str, str]
    utility: Share
    utility_chance: Share
    history: Rounds
    secrets: dict[str, CellSecret]


class History(Record, frozen=True):
    """Validation results of a training by round; None where one was not computed."""

    round: tuple[Number, ...]
    utility: Curve
    adversary: Curve
    probe: Curve

    def __post_init__(self) -> None:
        if any(len(column) != len(self.round) for column in (self.utility, self.adversary, self.probe)):
            raise ValueError("its columns have different lengths")


class Certified(Record, frozen=True):
    """The certificate, as means over seeds.

    Args:
        best: accuracy or AUC of the best rule on the release.
        excess: `best` minus the chance level.
        limit: the upper bound of `best` for other nodes, with 95 % confidence; None without a calibration part.
        class_matched: the best class-matched AUC on the release; None for a secret other than links.
    """

    best: Interval
    excess: Interval
    limit: Interval | None = None
    class_matched: Interval | None = None


class WithFeatures(Record, frozen=True):
    """Attacks on z and the features, as means over seeds.

    Args:
        value: accuracy or AUC of the strongest attack.
        alone: accuracy or AUC of the strongest of these attacks without z.
        z_adds: `value` minus `alone`.
        true_classes: AUC of the strongest of these attacks with the true classes in place of z; None for a secret other
            than links.
        over_true_classes: `value` minus `true_classes`.
    """

    value: Interval
    alone: Interval
    z_adds: Interval
    true_classes: Interval | None = None
    over_true_classes: Interval | None = None


class Row(Record, frozen=True, kw_only=True):
    """One cell of an experiment over its seeds, for one secret.

    Args:
        tradeoff: the trade-off of a variant; None for a peer.
        epsilon: the epsilon of a peer; None for a variant.
        utility: the utility; the intervals of a single seed have no `ci`.
        protocol: the attack of the paper's protocol.
        fresh: the strongest attack of the audit.
        finer: the class-matched AUC of links, or the balanced accuracy of a node secret.
        floor: for links, the AUC of the best rule on pairs of true classes; for a node secret, the accuracy of attacks
            on the public graph.
        flagged: the share of runs with a flag.
        paper: utility and attack value that the paper prints.
        verdict: the comparison with the paper.
        history: the history of the first seed.
        map: the map of the first seed.
        attacks: every attack that all seeds have, by name.
    """

    variant: str
    dataset: str
    encoder: str
    secret: str
    tradeoff: Number | None
    seeds: Count
    utility: Interval
    protocol: Interval
    fresh: Interval
    fresh_attack: str
    finer: Interval | None
    utility_chance: Share
    chance: Share
    floor: Share | None
    flagged: Share
    paper: tuple[Share, Share] | None
    equal_classes: Share | None = None
    certified: Certified | None = None
    with_features: WithFeatures | None = None
    epsilon: Number | None = None
    verdict: Verdict
    history: History | None
    map: Map | None
    attacks: dict[str, Interval]

    @property
    def cell(self) -> str:
        """Data set and encoder."""
        return f"{self.dataset} · {self.encoder}"

    @property
    def gap(self) -> float | None:
        """The strongest attack minus the paper's protocol; None for peers, which train no adversary."""
        return None if self.epsilon is not None else self.fresh.value - self.protocol.value


class OwnAttacks(NamedTuple):
    """The names of a training's own attack, and of the attack that selects its best round."""

    attack: str
    probe: str

    @property
    def is_adversary(self) -> bool:
        """Whether all of these trainings have a joint adversary."""
        return self == ADVERSARY


ADVERSARY = OwnAttacks("joint adversary", "ridge probe")
CODE_VARIANTS = ("codes", "matched")
"""The variants that train codes, and no adversary."""


def own_attacks(trainings: Iterable[tuple[str, str]]) -> OwnAttacks:
    """The names of the own attacks of trainings, joined if they differ.

    Args:
        trainings: the secret and the variant of each training.
    """
    names = dict.fromkeys(
        OwnAttacks(Target.of(secret).code_attack, "best rule (all usable nodes)")
        if variant in CODE_VARIANTS
        else ADVERSARY
        for secret, variant in trainings
    )
    attacks, probes = ([one[place] for one in names] for place in (0, 1))
    return OwnAttacks(" or ".join(dict.fromkeys(attacks)), " or ".join(dict.fromkeys(probes)))


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The Pareto front of points (leak, utility), in order of the leak."""
    best: list[tuple[float, float]] = []
    for leak, utility in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not best or utility > best[-1][1]:
            best.append((leak, utility))
    return best


class Hidden(Record, frozen=True):
    """A secret of an experiment, its metric, and the paper's attacker on unprotected embeddings."""

    secret: str
    metric: str
    papers_attacker: str


class Failed(Record, frozen=True):
    """A cell that failed, and why."""

    cell: str
    fault: str


class ExperimentRecord(File, frozen=True):
    """The results of a table, a figure or a sweep.

    Args:
        config: the fields of the experiment.
        selection: the part of it that was run.
    """

    SCHEMA: ClassVar[str] = "graphveil/experiment/4"

    name: str
    title: str
    utility: str
    metric: str
    secrets: tuple[Hidden, ...]
    versions: dict[str, str]
    config: dict[str, Any]
    failed: tuple[Failed, ...]
    rows: tuple[Row, ...]
    selection: dict[str, Any]

    @property
    def is_sweep(self) -> bool:
        """Whether it is a sweep, which has no numbers of the paper."""
        return self.name == SWEEP


class TableRecord(File, frozen=True):
    """A table of texts."""

    SCHEMA: ClassVar[str] = "graphveil/table/1"

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"not every row has {len(self.columns)} texts, one for each column")
