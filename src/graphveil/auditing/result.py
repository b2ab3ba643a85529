"""What an audit found: the strongest attack, what stands beside it, flags and a verdict, all derived from findings."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from scipy.stats import norm

from graphveil.auditing.attacks import CLASSES_AND_FEATURES, CLASSES_AND_LINKS, KNOWN_LINKS, WITH_FEATURES, Need
from graphveil.auditing.finding import Finding, fully_informed, plain, ranked, strongest
from graphveil.auditing.groups import KINDS, MEASURES, Group, Partition, judged, link_groups, node_groups, worst
from graphveil.auditing.information import Information, explained, information
from graphveil.auditing.metrics import Array, Estimate, Integers, auc, largest_of
from graphveil.auditing.secret import LinkSecret, NodeSecret, Queries, Secret
from graphveil.codes import NOT_COVERED, Certificate
from graphveil.codes.tables import link_table
from graphveil.data.graph import UNKNOWN
from graphveil.errors import GraphveilError
from graphveil.files import check_output_file, create_folder, report_write_errors, sealed, write_atomically, write_json

SCHEMA = "graphveil/audit/4"
WIDEST = 0.05
"""The half-width of an interval above which there are too few examples to call anything protected."""
RAREST = 30
"""Test examples that a class must have for the same."""
ASIDE = 4
"""Readings beside that of z alone: with the graph, with the features, with the known links, and by group."""
ROUNDING = 1e-9
"""How far a value may be above a limit that was computed in another way."""

METRICS = {"accuracy": "accuracy", "auc": "AUC"}
FINER = {"balanced_accuracy": "balanced accuracy", "class_matched_auc": "class-matched AUC"}

Verdict = Literal["leaks", "protected", "flagged"]


@dataclass(frozen=True)
class Utility:
    """How useful the embeddings are, as their maker measured it: `value` where guessing has `chance`."""

    name: str
    value: float
    chance: float
    examples: int


@dataclass(frozen=True)
class Context:
    """What only the maker of the embeddings knows.

    Args:
        joint: the reading of the adversary that was trained along.
        utility: what is left of it.
        notes: whatever a reader of the audit should know.
        doubts: what forbids to call anything protected.
    """

    joint: float | None = None
    utility: Utility | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flag:
    """Why this audit cannot call anything protected."""

    name: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Audit:
    """What a panel of fresh attackers read from embeddings.

    Args:
        findings: on the embeddings. controls: of the same panel on something else, by its name.
        shape: flags raised by the numbers of the embeddings themselves.
        dropped: attacks that the time budget left out.
        origin: panel, seed, and digests of the split and the embeddings.
        certificate: what nobody who sees the embeddings alone can exceed; None if they have too many distinct rows.
        limits: of an embedding with a certificate, the same on the test examples alone, by metric.
        map: the embeddings on a plane by their secret; see `graphveil.auditing.map`.
        partitions: the nodes by group; see `graphveil.auditing.groups`.
    """

    secret: Secret
    findings: Sequence[Finding]
    controls: Mapping[str, Sequence[Finding]]
    shape: Sequence[Flag] = ()
    dropped: Sequence[str] = ()
    context: Context = field(default_factory=Context)
    origin: Mapping[str, Any] = field(default_factory=dict)
    certificate: Certificate | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    map: Mapping[str, Any] | None = None
    partitions: Sequence[Partition] = ()

    @cached_property
    def strongest(self) -> Finding:
        """The attack that read most on the validation part, from z and known secrets; its test reading counts."""
        return strongest(self._on_z_alone)

    @cached_property
    def upper(self) -> float:
        """The upper end of what any attack on z alone reads, whichever was chosen: what a limit is held against."""
        found = self._on_z_alone
        index = self.secret.test.index if isinstance(self.secret, LinkSecret) else None
        return largest_of([one.headline for one in found], [one.influence for one in found], index)

    @property
    def _on_z_alone(self) -> Sequence[Finding]:
        return [finding for finding in self.findings if finding.on_z_alone] or self.findings

    def _holding(self, need: Need) -> Finding | None:
        """The strongest of the attackers who hold this beside z."""
        found = [finding for finding in self.findings if need in finding.needs]
        return strongest(found) if found else None

    def _control(self, name: str) -> Finding | None:
        """The strongest attack on a control."""
        found = self.controls.get(name)
        return strongest(found) if found else None

    @cached_property
    def with_graph(self) -> Finding | None:
        """The strongest of those that also hold the public graph."""
        return self._holding("graph")

    @cached_property
    def excess_with_graph(self) -> Estimate | None:
        """What z adds for those who hold the public graph: how much more often they are right than without z."""
        return _over(self.with_graph, self._control("public graph"))

    @cached_property
    def with_features(self) -> Finding | None:
        """The strongest of those that also hold the features."""
        return self._holding("features")

    @cached_property
    def features_alone(self) -> Finding | None:
        """The strongest of the same attackers on the features without z."""
        names = {finding.attack for finding in self.findings if "features" in finding.needs}
        alone = [found for found in self.controls.get("raw features", ()) if f"{found.attack}{WITH_FEATURES}" in names]
        return strongest(alone) if alone else None

    @cached_property
    def excess_with_features(self) -> Estimate | None:
        """What z adds for those who hold the features: accuracy or AUC with z minus that of the same without."""
        return _over(self.with_features, self.features_alone)

    @cached_property
    def classes_and_features(self) -> Finding | None:
        """Of a link secret the strongest of the same attackers on the true classes and the features."""
        return self._control(CLASSES_AND_FEATURES)

    @cached_property
    def excess_over_classes(self) -> Estimate | None:
        """The AUC with z and the features minus that with the true classes and the features, on the same pairs."""
        return _over(self.with_features, self.classes_and_features)

    @cached_property
    def with_links(self) -> Finding | None:
        """Of a link secret the strongest of those that also hold the graph of the known links."""
        return self._holding("known links")

    @cached_property
    def links_alone(self) -> Finding | None:
        """The strongest attack on the known links without z."""
        return self._control(KNOWN_LINKS)

    @cached_property
    def excess_with_links(self) -> Estimate | None:
        """What z adds for those who hold the known links: the AUC with z minus that of the strongest without."""
        return _over(self.with_links, self.links_alone)

    @cached_property
    def classes_and_links(self) -> Finding | None:
        """The strongest of the same attackers on the true classes and the known links."""
        return self._control(CLASSES_AND_LINKS)

    @cached_property
    def links_excess_over_classes(self) -> Estimate | None:
        """The AUC with z and the known links minus that with the true classes and the known links."""
        return _over(self.with_links, self.classes_and_links)

    @cached_property
    def most_balanced(self) -> Finding | None:
        """Of a node secret the attack of the best balanced accuracy, chosen on the validation part."""
        if isinstance(self.secret, LinkSecret):
            return None
        return max(fully_informed(self._on_z_alone), key=lambda finding: finding.balanced_validation.value)

    @property
    def balanced_chance(self) -> float:
        """The balanced accuracy of guessing: one over the classes that are asked for."""
        return 1 / len(np.unique(self.secret.test.y))

    @cached_property
    def class_matched(self) -> Finding | None:
        """The strongest attack where classes alone tell nothing, chosen on the validation part."""
        findings = self._on_z_alone
        able = [(found.matched_validation.value, i) for i, found in enumerate(findings) if found.matched_validation]
        return findings[max(able)[1]] if able else None

    @cached_property
    def floor(self) -> Estimate | None:
        """What the utility implies if it is perfect.

        Of links: the AUC of the best rule on the true classes of both ends, counted on the known links; comparing them
        for equality alone reads less. Of a node secret: what the true links tell without any embedding.
        """
        if isinstance(self.secret, NodeSecret):
            alone = self._control("public graph")
            return None if alone is None else alone.headline
        y = self.secret.classes
        if y is None or (y == UNKNOWN).all():
            return None
        return self._auc_of_classes(_class_pair_scores(y, self.secret.known))

    @cached_property
    def equal_classes(self) -> Estimate | None:
        """Of links: the AUC of comparing the true classes of both ends for equality.

        The rule of `floor` also knows which different classes are linked often.
        """
        y = self.secret.classes if isinstance(self.secret, LinkSecret) else None
        return None if y is None else self._auc_of_classes(lambda pairs: (y[pairs[0]] == y[pairs[1]]).astype(float))

    def _auc_of_classes(self, score: Callable[[Integers], Array]) -> Estimate | None:
        """Of the test pairs whose classes are known; None if only links, or only non-links, are left."""
        assert isinstance(self.secret, LinkSecret)
        assert self.secret.classes is not None
        pairs = self.secret.test.index
        known = (self.secret.classes[pairs] != UNKNOWN).all(axis=0)
        answer = self.secret.test.y[known]
        if not 0 < answer.sum() < len(answer):
            return None
        return auc(score(pairs[:, known]), answer, pairs[:, known])

    @property
    def excess(self) -> float | None:
        """The headline over the floor."""
        return None if self.floor is None else self.strongest.headline.value - self.floor.value

    @cached_property
    def information(self) -> Information:
        """In nats, of the attack on z alone whose probabilities explain the validation part best.

        That need not be the strongest: one may be right as often as another and know less of when it is not.
        """
        best = max(fully_informed(self._on_z_alone), key=lambda one: explained(one.answers.val, one.secret.val.y))
        pairs = self.secret.test.index if isinstance(self.secret, LinkSecret) else None
        known = best.answers.val, best.secret.val.y
        return information(best.answers.test, self.secret.test.y, known, pairs)

    @cached_property
    def groups(self) -> Sequence[Group]:
        """The strongest attack's test result by class, by degree third and by column."""
        answers, secret = self.strongest.answers.test, self.secret
        if isinstance(secret, NodeSecret):
            return node_groups(answers, secret, self.partitions)
        return link_groups(answers, secret.test, self.partitions, self._class_scores())

    @cached_property
    def worst_group(self) -> Group | None:
        """The group with the largest lower end above its reference; None if all have too few examples."""
        return worst(self.groups)

    @property
    def _keeps_classes(self) -> bool:
        return self.context.utility is not None and self.context.utility.name != "links"

    def _class_scores(self) -> Array | None:
        """Of links: the score of each test pair by its true classes, NaN where unknown; None if none are kept."""
        assert isinstance(self.secret, LinkSecret)
        y, pairs = self.secret.classes, self.secret.test.index
        if not self._keeps_classes or y is None or (y == UNKNOWN).all():
            return None
        known = (y[pairs] != UNKNOWN).all(axis=0)
        return np.where(known, _class_pair_scores(y, self.secret.known)(pairs), np.nan)

    @property
    def gap(self) -> float | None:
        """How much more the strongest fresh attack reads than the adversary that was trained along."""
        return None if self.context.joint is None else self.strongest.headline.value - self.context.joint

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Signs of collapse and of too little evidence."""
        found = [*self.shape, *self._collapse(), *self._too_little(), *self._above_certificate()]
        found += [Flag("in doubt", sentence) for sentence in self.context.doubts]
        if self.dropped:
            found.append(Flag("attacks dropped", f"the time budget left out {', '.join(self.dropped)}"))
        if self.origin.get("panel", "full") != "full":
            found.append(Flag("not the full panel", "fewer attacks were made than there are"))
        return tuple(found)

    def _collapse(self) -> list[Flag]:
        found, is_auc = [], self.strongest.metric == "auc"
        if all(finding.constant for finding in self.findings):
            found.append(Flag("constant prediction", "every attack gives every example the same answer"))
        if is_auc and self.strongest.headline.value == 0.5:
            found.append(Flag("AUC of exactly .5", "the strongest attack's scores are all tied, a sign of collapse"))
        if is_auc and self.context.joint == 0.5:
            found.append(Flag("joint AUC of exactly .5", "the adversary that was trained along has collapsed"))
        utility = self.context.utility
        if utility is None:
            found.append(Flag("utility unknown", "whether the embeddings are of any use was not said; noise hides too"))
        elif utility.value - utility.chance <= 1.96 * np.sqrt(0.25 / max(utility.examples, 1)):
            what = f"{utility.name} reads {utility.value:.1%} where guessing reads {utility.chance:.1%}"
            found.append(Flag("utility at chance", f"{what}: nothing is kept, so nothing was protected"))
        return found

    def _too_little(self) -> list[Flag]:
        readings = {"headline": self.strongest.headline}
        if self.most_balanced is not None:
            readings["balanced accuracy"] = self.most_balanced.balanced
        if self.class_matched is not None and self.class_matched.matched is not None:
            readings["class-matched AUC"] = self.class_matched.matched
        wide = [f"the {name} ±{100 * one.half:.1f}" for name, one in readings.items() if one.half > WIDEST]
        counts = np.unique(self.secret.test.y, return_counts=True)[1]
        if counts.min() < RAREST:
            wide.append(f"one class {counts.min()} examples")
        return [Flag("too few examples", f"the test part leaves {' and '.join(wide)}")] if wide else []

    def _above_certificate(self) -> list[Flag]:
        """Attacks that are better on the test examples than z allows, which must not happen."""
        found = []
        for metric, limit in self.limits.items():
            able = [one for one in self.findings if one.on_z_alone and metric in one.metrics]
            best = max(able, key=lambda one: one.metrics[metric].value, default=None)
            if best is not None and (value := best.metrics[metric].value) > limit + ROUNDING:
                name = (METRICS | FINER)[metric]
                found.append(
                    Flag(
                        "attack above certificate",
                        f"{best.attack} has {name} {100 * value:.2f} on the test part, where the distinct rows of z"
                        f" allow {100 * limit:.2f}: the attack knows more than z, or the certificate is wrong",
                    )
                )
        return found

    @property
    def verdict(self) -> Verdict:
        """ "leaks" if any reading can be told from guessing; "protected" if none can and nothing is flagged."""
        if self.leak_reasons:
            return "leaks"
        return "flagged" if self.flags else "protected"

    @cached_property
    def leak_reasons(self) -> tuple[str, ...]:
        """The readings that can be told from guessing, each in a few words.

        Where links are the secret and a node class is the utility, comparing the true classes is what the headline is
        held against; the class-matched reading is held against one half all the same. What z adds to the known links is
        then held against what the true classes add to them. An attack that was not the best on the validation part
        counts too, if its reading is beyond what luck gives the luckiest of so many.
        """
        found, best, reference = [], self.strongest, self.secret.chance
        if isinstance(self.secret, LinkSecret) and self._keeps_classes and self.floor is not None:
            reference = max(reference, self.floor.value)
        if best.headline.low > reference:
            found.append(_above(best.attack, METRICS[best.metric], best.headline, reference))
        elif (lucky := self._standing_out(reference)) is not None:
            found.append(_above(lucky.attack, METRICS[lucky.metric], lucky.headline, reference) + ", more than luck")
        balanced = self.most_balanced
        if balanced is not None and balanced.balanced.low > self.balanced_chance:
            found.append(_above(balanced.attack, "balanced accuracy", balanced.balanced, self.balanced_chance))
        matched = self.class_matched
        if matched is not None and matched.matched is not None and matched.matched.low > 0.5:
            found.append(_above(matched.attack, "class-matched AUC", matched.matched, 0.5))
        for held, excess, what in (
            (self.with_graph, self.excess_with_graph, "public graph tells"),
            (self.with_features, self.excess_with_features, "features tell"),
        ):
            if held is not None and _adds(held, excess, self.secret.chance):
                found.append(f"{held.attack}: z adds {excess} points to what the {what}")
        return (*found, *self._told_beside_links(), *self._told_by_groups())

    def _told_by_groups(self) -> list[str]:
        """The worst group if its interval, corrected for the number of groups, is above its reference.

        The sentence names neither its column nor its value, because the card of a release quotes it.
        """
        group = self.worst_group
        if group is None or group.estimate is None or group.reference is None:
            return []
        if not _clearly_above(group.estimate, group.reference):
            return []
        where = f"in the worst of {judged(self.groups)} groups ({KINDS[group.kind]})"
        value = f"{MEASURES[group.measure]} {group.estimate}"
        return [f"{self.strongest.attack}: {value} {where} is above {100 * group.reference:.1f}"]

    def _told_beside_links(self) -> list[str]:
        """Whether z adds to the known links and, where classes are kept, more than the true classes add."""
        held, excess, over = self.with_links, self.excess_with_links, self.links_excess_over_classes
        if held is None or not _adds(held, excess, self.secret.chance):
            return []
        added = f"{held.attack}: z adds {excess} points to what the known links tell"
        if not self._keeps_classes:
            return [added]
        above = over is not None and over.low > 0
        return [f"{added}, {over} points more than the true classes add"] if above else []

    def _standing_out(self, reference: float) -> Finding | None:
        """An attack that reads more than `reference`, at the level of 2.5 % shared by all of them (Bonferroni)."""
        widened = norm.ppf(1 - 0.025 / len(self._on_z_alone)) / norm.ppf(0.975)

        def least(finding: Finding) -> float:
            one = finding.headline
            return float(one.value - widened * (one.value - one.low))

        most = max(self._on_z_alone, key=least)
        return most if least(most) > reference else None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in audit.json."""
        told, floor, matched, balanced = self.information, self.floor, self.class_matched, self.most_balanced
        return {
            "schema": SCHEMA,
            "origin": dict(self.origin),
            "secret": self.secret.name,
            "verdict": self.verdict,
            "leak_reasons": list(self.leak_reasons),
            "chance": self.secret.chance,
            "strongest": {"attack": self.strongest.attack, "metric": self.strongest.metric}
            | plain(self.strongest.headline)
            | {"upper": self.upper},
            "worst_group": self.worst_group and self.worst_group.to_dict(),
            "certificate": _certificate(self.certificate),
            "certificate_on_test": dict(self.limits) or None,
            "balanced": balanced
            and {"attack": balanced.attack, "chance": self.balanced_chance} | plain(balanced.balanced),
            "class_matched": matched and matched.matched and {"attack": matched.attack} | plain(matched.matched),
            "with_public_graph": _added(self.with_graph, self.excess_with_graph),
            "with_features": _added(self.with_features, self.excess_with_features),
            "with_links": _added(self.with_links, self.excess_with_links),
            "floor": floor and plain(floor) | {"excess": self.excess},
            "joint_adversary": None if self.gap is None else {"value": self.context.joint, "gap": self.gap},
            "mutual_information": {
                "unit": "nats",
                "entropy": told.entropy,
                "lower_bound": plain(told.lower.estimate) | {"doubt": told.lower.doubt or None},
                "vclub": plain(told.vclub.estimate) | {"doubt": told.vclub.doubt or None},
            },
            "attacks": [finding.summary() for finding in self.findings],
            "controls": {
                "guessing": {"metric": self.strongest.metric, "value": self.secret.chance},
                **{name: [finding.summary() for finding in ranked(found)] for name, found in self.controls.items()},
            },
            "groups": [group.to_dict() for group in self.groups],
            "flags": [{"name": flag.name, "sentence": flag.sentence} for flag in self.flags],
            "dropped": list(self.dropped),
            "notes": [*self.context.notes, *self.secret.notes],
            "test_examples": len(self.secret.test.y),
            "map": self.map,
        }

    def save(self, path: str | Path) -> None:
        """Write `audit.json`, and beside it the raw answers as `audit.answers.safetensors`, whose hash it holds.

        It holds a digest of itself too. The answers are about the secret: they are for the auditor and not for
        publication.
        """
        path, answers_file = Path(path), answers_beside(Path(path))
        arrays = {}
        for subject, found in (("embeddings", self.findings), *self.controls.items()):
            for finding in found:
                for part in ("val", "test", "matched_val", "matched_test"):
                    if (answers := getattr(finding.answers, part)) is not None:
                        arrays[f"{subject}/{finding.attack}/{part}"] = np.ascontiguousarray(answers)
        raw = safetensors.numpy.save(arrays)
        told = sealed(self.to_dict() | {"answers_sha256": hashlib.sha256(raw).hexdigest()})
        for file in (path, answers_file):
            with report_write_errors(file):
                check_output_file(file)
        with report_write_errors(path), create_folder(path.parent):  # both or none
            write_atomically(answers_file, lambda temporary: temporary.write_bytes(raw))
            try:
                write_json(path, told)
            except BaseException:
                answers_file.unlink(missing_ok=True)
                raise

    def __rich__(self) -> Any:
        from graphveil.auditing.show import shown  # noqa: PLC0415 - it shows what is defined here

        return shown(self)

    def __str__(self) -> str:
        from graphveil.auditing.show import as_text  # noqa: PLC0415 - as above

        return as_text(self)


def _clearly_above(estimate: Estimate, reference: float) -> bool:
    """Whether an interval lies above a reference that is one of `ASIDE`, which share 2.5 % of false alarms."""
    widened = norm.ppf(1 - 0.025 / ASIDE) / norm.ppf(0.975)
    return bool(estimate.value - widened * (estimate.value - estimate.low) > reference)


def _adds(held: Finding, excess: Estimate | None, chance: float) -> bool:
    """Whether z adds something for an attacker who holds more than z."""
    return excess is not None and _clearly_above(excess, 0.0) and held.headline.low > chance


def _over(one: Finding | None, other: Finding | None) -> Estimate | None:
    return None if one is None or other is None else one.over(other)


def _class_pair_scores(y: Integers, known: Queries) -> Callable[[Integers], Array]:
    """How much likelier than chance a link is between nodes of two classes, from known links."""
    links = known.index[:, known.y == 1]
    links = links[:, (y[links] != UNKNOWN).all(axis=0)]
    classes = int(y.max()) + 1
    linked = link_table(np.maximum(y, 0), links, classes)  # no link here ends at an unknown class
    share = np.bincount(y[y != UNKNOWN], minlength=classes) / (y != UNKNOWN).sum()
    expected = np.maximum(np.outer(share, share), 1e-12)
    score = np.log((linked + expected) / (linked.sum() + 1)) - np.log(expected)
    return lambda pairs: score[y[pairs[0]], y[pairs[1]]]


def answers_beside(path: Path) -> Path:
    """The file of the raw answers that belongs to an audit's file."""
    if not path.name:
        raise GraphveilError(f"an audit cannot be written to {str(path)!r}: give the name of a file.")
    return path.with_name(f"{path.stem}.answers.safetensors")


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    """With all its sentences, so that a reader of the file needs nothing else."""
    if certificate is None:
        return None
    words = {"sentence": certificate.sentence, "rows": [list(row) for row in certificate.rows()]}
    return certificate.to_dict() | words | {"not_covered": [list(row) for row in NOT_COVERED]}


def _added(finding: Finding | None, excess: Estimate | None) -> dict[str, Any] | None:
    """An attack that holds more than z, and what z adds for it."""
    if finding is None:
        return None
    headline = {"attack": finding.attack, "metric": finding.metric} | plain(finding.headline)
    return headline | {"excess": excess and plain(excess)}


def _above(attack: str, metric: str, reading: Estimate, reference: float) -> str:
    return f"{attack}: {metric} {reading} is above {100 * reference:.1f}"
