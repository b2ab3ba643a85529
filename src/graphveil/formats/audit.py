"""`audit.json`: what the attacks of an audit found about one secret."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from msgspec import field

from graphveil.formats.certificate import Certificate
from graphveil.formats.interval import Interval, ShareInterval
from graphveil.formats.record import Count, File, Number, Record, Share, Text
from graphveil.target import Metric

Verdict = Literal["protected", "traces", "leaks", "unprotected", "flagged"]
FURTHER = {
    "balanced": "balanced accuracy",
    "class_matched": "class-matched AUC",
    "with_public_graph": "with the public graph",
    "with_features": "with the features",
    "with_links": "with the known links",
}
"""The keys of further results, and their names for people."""


class Origin(Record, frozen=True):
    """What was audited, and how.

    Args:
        panel: "full", "quick", or "own" for a list of attacks.
        split: the digest of the split.
        embeddings: the digest of the embeddings.
        graphveil: the version.
    """

    panel: str
    seed: int
    split: str
    embeddings: str
    graphveil: str


class Strongest(ShareInterval, frozen=True, kw_only=True):
    """The test result of the strongest attack.

    Args:
        upper: the upper bound over all attacks on z alone.
    """

    attack: str
    metric: Metric
    upper: Share


class Attack(ShareInterval, frozen=True, kw_only=True):
    """The test result of one attack.

    Args:
        needs: what the attacker holds, such as "z", "secrets" or "graph".
        metrics: all metrics by name.
        validation: the metric on the validation part.
    """

    attack: str
    needs: tuple[str, ...]
    metric: Metric
    metrics: dict[str, Interval]
    validation: Share
    seconds: Number

    @property
    def finer(self) -> Interval | None:
        """The class-matched AUC of links, or the balanced accuracy of a node secret."""
        return self.metrics.get("class_matched_auc") or self.metrics.get("balanced_accuracy")


class Further(ShareInterval, frozen=True, kw_only=True):
    """The strongest attack by another metric, or of attackers who hold more than z.

    Args:
        chance: the chance level.
        excess: what z adds for attackers who hold more than z.
    """

    attack: str
    metric: str
    chance: Share
    excess: Interval | None = None


class Floor(ShareInterval, frozen=True, kw_only=True):
    """What is possible without z; `excess` is the strongest attack minus it.

    For links it is the floor, the AUC of the best rule on pairs of true classes; for a node secret it is the accuracy
    of attacks on the public graph.
    """

    excess: Number


class JointAdversary(Record, frozen=True):
    """The test result of the joint adversary; `gap` is the strongest attack minus it."""

    value: Share
    gap: Number


class Nats(Interval, frozen=True, kw_only=True):
    """An estimate of mutual information; `warning` says why it is not reliable, if so."""

    warning: str | None


class Information(Record, frozen=True):
    """Mutual information of the embeddings and the secret, in nats."""

    unit: Literal["nats"]
    entropy: Number
    lower_bound: Nats
    vclub: Nats


class Group(Record, frozen=True):
    """The result of the strongest attack on one group of nodes or pairs.

    Args:
        by: "degree", or the name of a column.
        group: the value, or the range of degrees.
        value: the value of the strongest attack; None for a group with too few examples.
        ci: the interval of the value, corrected for the number of groups.
        reference: the value without the embeddings.
        compared_with: the origin of the reference: "chance level" or "true classes".
    """

    kind: Literal["class", "degree", "column"]
    by: str
    group: str
    measure: Literal["accuracy", "tpr_minus_fpr", "auc"]
    examples: Count
    value: Number | None
    ci: tuple[Number, Number] | None
    reference: Share | None
    compared_with: str

    @property
    def interval(self) -> Interval | None:
        """The value with its interval; None for a group with too few examples."""
        return None if self.value is None else Interval(self.value, self.ci)

    @property
    def label(self) -> str:
        """The group in a few words."""
        return f"degree {self.group}" if self.kind == "degree" else f"{self.by} = {self.group}"


class Scale(Record, frozen=True):
    """How far the strongest attack is on the way from its reference (0) to the unprotected encoder (1).

    Args:
        reference: the value without the embeddings.
        compared_with: the origin of the reference: "chance level" or "floor".
        unprotected: the strongest attack on the unprotected encoder; None if there is no such control, and 1 is the
            end of the scale.
        size: the share of the way; below 0 if the attack is below its reference.
        ci: the interval of the size.
        certified: the size of the best possible attack on z alone, by the worst metric of the certificate; None without
            a certificate.
    """

    reference: Share
    compared_with: str
    unprotected: Share | None
    size: Number
    ci: tuple[Number, Number]
    certified: Number | None


class Reason(Record, frozen=True):
    """A value that is significantly above its reference.

    Args:
        size: the share of the way from the reference to the same value of the unprotected encoder.
    """

    sentence: str
    size: Number


class UtilityValue(Record, frozen=True):
    """How useful the embeddings are; `unprotected` is None if the encoder was not trained without protection."""

    name: str
    value: Share
    chance: Share
    unprotected: Share | None


class Sample(Record, frozen=True):
    """How many examples of a part an audit used, of how many; fewer than all are drawn at random.

    Args:
        what: the part, such as "train links" or "test nodes".
    """

    what: str
    used: Count
    of: Count

    @property
    def sentence(self) -> str:
        """The sample in a few words."""
        return f"{self.used:,} of {self.of:,} {self.what}"


class Flag(Record, frozen=True):
    """A reason why an audit cannot have the verdict *protected* or *traces*."""

    name: str
    sentence: str


class Plane(Record, frozen=True):
    """Coordinates of points."""

    x: tuple[Number, ...]
    y: tuple[Number, ...]


class CodeCounts(Record, frozen=True):
    """The nodes of a discrete release, counted by code and secret class; or pairs of nodes, by their two codes.

    Args:
        of: "nodes" or "pairs".
        counts: a row for each code, the most frequent first, with a column for each class. If there are more codes than
            rows, the last row is the sum of all rarer codes.
        codes: the number of codes, or of pairs of codes.
        names: the names of the classes.
    """

    of: Literal["nodes", "pairs"]
    counts: tuple[tuple[Count, ...], ...]
    codes: Count
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.names) for row in self.counts):
            raise ValueError(f"not every row has {len(self.names)} counts, one for each class")


class Map(Record, frozen=True):
    """Test examples in two dimensions, with the secret class of each.

    Args:
        of: "nodes" or "pairs".
        before: the same examples with the embeddings of an unprotected encoder, if there is one.
        classes: the class of each point.
        names: the names of the classes.
        codes: all nodes with a known class, counted by code, or the test pairs by their two codes; None for continuous
            embeddings, and if there are too few pairs.
    """

    of: Literal["nodes", "pairs"]
    before: Plane | None
    after: Plane
    classes: tuple[Count, ...] = field(name="class")
    names: tuple[str, ...]
    codes: CodeCounts | None

    def __post_init__(self) -> None:
        for plane in (self.before, self.after):
            if plane is not None and not len(plane.x) == len(plane.y) == len(self.classes):
                raise ValueError(f"it has {len(plane.x)} x, {len(plane.y)} y and {len(self.classes)} classes")


class AuditRecord(File, frozen=True, kw_only=True):
    """What an audit found.

    Args:
        reasons: what is significantly above its reference; empty for the verdict *protected*.
        chance: the chance level.
        higher: why an attack with a higher test value is not the strongest one, in a sentence; None without such an
            attack.
        utility: how useful the embeddings are; None if it was not given.
        certificate_on_test: the largest values that codes allow on the test part, by metric.
        controls: the attacks on each control, the strongest first.
        dropped: attacks that the time budget skipped.
        samples: how many examples of each part were used, of how many.
        answers_sha256: SHA-256 of the file with the answers of all attacks; None if it was not written.
    """

    SCHEMA: ClassVar[str] = "graphveil/audit/9"

    origin: Origin
    secret: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    chance: Share
    strongest: Strongest
    higher: Text | None
    scale: Scale
    utility: UtilityValue | None
    worst_group: Group | None
    certificate: Certificate | None
    certificate_on_test: dict[str, Share] | None
    balanced: Further | None
    class_matched: Further | None
    with_public_graph: Further | None
    with_features: Further | None
    with_links: Further | None
    floor: Floor | None
    joint_adversary: JointAdversary | None
    mutual_information: Information
    attacks: tuple[Attack, ...]
    controls: dict[str, tuple[Attack, ...]]
    groups: tuple[Group, ...]
    flags: tuple[Flag, ...]
    dropped: tuple[str, ...]
    samples: tuple[Sample, ...]
    notes: tuple[str, ...]
    test_examples: Count
    map: Map | None
    answers_sha256: str | None = None

    @property
    def bound(self) -> float:
        """The highest of the values that a limit is compared with.

        They are those of the certificate. Without one, they are the upper bound over all attacks, and the upper limit
        of the interval of the second metric.
        """
        if self.certificate is not None:
            return self.certificate.bound
        second = [one.high for one in (self.balanced, self.class_matched) if one is not None]
        return max(self.strongest.upper, self.strongest.high, *second)

    @property
    def sampling(self) -> str:
        """The parts of which only a sample was used, in one sentence."""
        return sampling(self.samples)

    @property
    def further(self) -> dict[str, Further]:
        """The further results that the audit has, by key."""
        found = {name: getattr(self, name) for name in FURTHER}
        return {name: one for name, one in found.items() if one is not None}


def sampling(samples: Iterable[Sample]) -> str:
    """The parts of which only a sample was used, in one sentence."""
    drawn = [one.sentence for one in samples if one.used < one.of]
    return f"Drawn at random: {'; '.join(drawn)}." if drawn else "All known and queried examples were used."
