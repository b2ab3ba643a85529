"""The result of an audit: the strongest attack, comparisons with controls, and the file audit.json.

Everything is derived from the raw answers of the attacks. `verdict` and `flags` have the rules of the verdict.
"""

import hashlib
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from msgspec.structs import replace

from graphveil.auditing.attacks import (
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    KNOWN_LINKS,
    UNPROTECTED,
    WITH_FEATURES,
    Need,
)
from graphveil.auditing.context import Context
from graphveil.auditing.finding import Finding, best_matched, fully_informed, most_balanced, ranked, strongest
from graphveil.auditing.flags import audit_flags
from graphveil.auditing.floor import class_scores, equal_classes_auc, floor_auc
from graphveil.auditing.groups import Group, Partition, link_groups, node_groups, worst
from graphveil.auditing.information import Information, Nats, information, mean_log_likelihood
from graphveil.auditing.metrics import upper_bound_over_all
from graphveil.auditing.secret import LinkSecret, NodeSecret, Secret
from graphveil.auditing.verdict import audit_reasons, audit_scale, audit_verdict
from graphveil.codes import Certificate
from graphveil.errors import GraphveilError
from graphveil.files import check_output_file, create_folder, report_write_errors, write_atomically
from graphveil.formats import Interval
from graphveil.formats import audit as formats
from graphveil.formats.audit import AuditRecord, Flag, Further, Map, Origin, Reason, Scale, Verdict
from graphveil.formats.store import write_sealed
from graphveil.target import CHANCE_AUC, Target

NO_ORIGIN = Origin(panel="full", seed=0, split="", embeddings="", graphveil="")
"""Of an audit that was not made by `graphveil.audit`."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit.

    Args:
        secret: the secret that was attacked.
        findings: the findings of the attacks on the embeddings.
        controls: findings on other input, by the name of the control.
        shape: flags of the embeddings themselves.
        dropped: names of attacks that the time budget skipped.
        context: what only the maker of the embeddings knows.
        origin: the panel, the seed, and digests of the split and the embeddings.
        certificate: bounds for every attacker who sees the embeddings alone; None with too many distinct rows.
        limits: for embeddings with a certificate, the largest possible value on the test examples, by metric.
        map: a two-dimensional map of the embeddings; see `graphveil.auditing.map`.
        partitions: the nodes by group; see `graphveil.auditing.groups`.
    """

    secret: Secret
    findings: Sequence[Finding]
    controls: Mapping[str, Sequence[Finding]]
    shape: Sequence[Flag] = ()
    dropped: Sequence[str] = ()
    context: Context = field(default_factory=Context)
    origin: Origin = NO_ORIGIN
    certificate: Certificate | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    map: Map | None = None
    partitions: Sequence[Partition] = ()

    # ----- attacks on z alone -----------------------------------------------------------------------------------------

    @property
    def on_z_alone(self) -> Sequence[Finding]:
        """The findings of attackers who hold nothing beside z and the known secrets; all findings without any."""
        return [finding for finding in self.findings if finding.on_z_alone] or self.findings

    @cached_property
    def strongest(self) -> Finding:
        """The attack on z alone with the best validation value; its test value is the headline."""
        return strongest(self.on_z_alone)

    @property
    def higher(self) -> str | None:
        """Why an attack on z alone with a higher test value is not the strongest one; None without such an attack."""
        best = max(self.on_z_alone, key=lambda finding: finding.headline.value)
        if best.headline.value <= self.strongest.headline.value:
            return None
        value = f"{best.attack} has a higher {self.secret.target.metric_name}, {best.headline}"
        return f"{value}; the headline is chosen without the test part, since the best of many test values is too high"

    @cached_property
    def upper(self) -> float:
        """The upper bound over all attacks on z alone, with 97.5 % confidence; a limit is compared with it."""
        findings = self.on_z_alone
        index = self.secret.test.index if self.secret.target.is_links else None
        return upper_bound_over_all([one.headline for one in findings], [one.influence for one in findings], index)

    @cached_property
    def most_balanced(self) -> Finding | None:
        """The attack with the best balanced accuracy on the validation part; None for a link secret."""
        return None if self.secret.target.is_links else most_balanced(self.on_z_alone)

    @property
    def balanced_chance(self) -> float:
        """The chance level of the balanced accuracy: one over the number of classes in the test part."""
        return 1 / len(np.unique(self.secret.test.y))

    @cached_property
    def class_matched(self) -> Finding | None:
        """The attack with the best class-matched AUC on the validation part; None for a node secret."""
        return best_matched(self.on_z_alone)

    @property
    def gap(self) -> float | None:
        """The value of the strongest attack minus that of the joint adversary; None without a joint adversary."""
        return None if self.context.joint is None else self.strongest.headline.value - self.context.joint

    @cached_property
    def information(self) -> Information:
        """The mutual information of z and the secret, in nats, from the attack with the best validation likelihood.

        That need not be the strongest attack: of two attacks with the same accuracy, one can be better calibrated.
        """
        best = max(
            fully_informed(self.on_z_alone), key=lambda one: mean_log_likelihood(one.answers.val, one.secret.val.y)
        )
        pairs = self.secret.test.index if self.secret.target.is_links else None
        val = best.answers.val, best.secret.val.y
        return information(best.answers.test, self.secret.test.y, val, pairs)

    @cached_property
    def groups(self) -> Sequence[Group]:
        """The test value of the strongest attack by class, by degree tercile and by column."""
        answers, secret = self.strongest.answers.test, self.secret
        if isinstance(secret, NodeSecret):
            return node_groups(answers, secret, self.partitions)
        scores = class_scores(secret) if self.keeps_classes else None
        return link_groups(answers, secret.test, self.partitions, scores)

    @cached_property
    def worst_group(self) -> Group | None:
        """The group whose lower bound is highest above its reference; None if all have too few examples."""
        return worst(self.groups)

    # ----- attackers who hold more than z, and controls ---------------------------------------------------------------

    def _holding(self, need: Need) -> Finding | None:
        """The strongest attack of those that hold this beside z."""
        findings = [finding for finding in self.findings if need in finding.needs]
        return strongest(findings) if findings else None

    def _control(self, name: str) -> Finding | None:
        """The strongest attack on a control."""
        findings = self.controls.get(name)
        return strongest(findings) if findings else None

    @cached_property
    def unprotected(self) -> Finding | None:
        """The strongest attack on the unprotected encoder; None without this control."""
        return self._control(UNPROTECTED)

    @property
    def unprotected_balanced(self) -> Interval | None:
        """The balanced accuracy of the attacks on the unprotected encoder."""
        findings = self.controls.get(UNPROTECTED)
        return None if not findings or self.secret.target.is_links else most_balanced(findings).balanced

    @property
    def unprotected_matched(self) -> Interval | None:
        """The class-matched AUC of the attacks on the unprotected encoder."""
        best = best_matched(self.controls.get(UNPROTECTED, ()))
        return None if best is None else best.matched

    @cached_property
    def with_graph(self) -> Finding | None:
        """The strongest attack of those that also hold the public graph."""
        return self._holding("graph")

    @cached_property
    def excess_with_graph(self) -> Interval | None:
        """What z adds to the public graph: the accuracy with z minus that of the strongest attack without z."""
        return _difference(self.with_graph, self._control("public graph"))

    @cached_property
    def with_features(self) -> Finding | None:
        """The strongest attack of those that also hold the features."""
        return self._holding("features")

    @cached_property
    def features_alone(self) -> Finding | None:
        """The strongest of the same attacks on the features without z."""
        names = {finding.attack for finding in self.findings if "features" in finding.needs}
        alone = [one for one in self.controls.get("raw features", ()) if f"{one.attack}{WITH_FEATURES}" in names]
        return strongest(alone) if alone else None

    @cached_property
    def excess_with_features(self) -> Interval | None:
        """What z adds to the features: accuracy or AUC with z minus that of the strongest attack without z."""
        return _difference(self.with_features, self.features_alone)

    @cached_property
    def classes_and_features(self) -> Finding | None:
        """For a link secret, the strongest of the same attacks on the true classes and the features."""
        return self._control(CLASSES_AND_FEATURES)

    @cached_property
    def excess_over_classes(self) -> Interval | None:
        """The AUC with z and the features minus that with the true classes and the features."""
        return _difference(self.with_features, self.classes_and_features)

    @cached_property
    def with_links(self) -> Finding | None:
        """For a link secret, the strongest attack of those that also hold the graph of the known links."""
        return self._holding("known links")

    @cached_property
    def links_alone(self) -> Finding | None:
        """The strongest attack on the known links without z."""
        return self._control(KNOWN_LINKS)

    @cached_property
    def excess_with_links(self) -> Interval | None:
        """What z adds to the known links: the AUC with z minus that of the strongest attack without z."""
        return _difference(self.with_links, self.links_alone)

    @cached_property
    def classes_and_links(self) -> Finding | None:
        """The strongest of the same attacks on the true classes and the known links."""
        return self._control(CLASSES_AND_LINKS)

    @cached_property
    def links_excess_over_classes(self) -> Interval | None:
        """The AUC with z and the known links minus that with the true classes and the known links."""
        return _difference(self.with_links, self.classes_and_links)

    # ----- the floor --------------------------------------------------------------------------------------------------

    @property
    def keeps_classes(self) -> bool:
        """Whether the utility is a class of the nodes."""
        return self.context.utility is not None and not Target.of(self.context.utility.name).is_links

    @cached_property
    def floor(self) -> Interval | None:
        """What is possible without z.

        For links, it is the floor: the AUC of the best rule on the true classes of both nodes. For a node secret, it
        is the accuracy of the strongest attack on the public graph.
        """
        if isinstance(self.secret, LinkSecret):
            return floor_auc(self.secret)
        alone = self._control("public graph")
        return None if alone is None else alone.headline

    @cached_property
    def equal_classes(self) -> Interval | None:
        """For links, the AUC of comparing two true classes for equality; the rule of `floor` knows more."""
        return equal_classes_auc(self.secret) if isinstance(self.secret, LinkSecret) else None

    @property
    def excess(self) -> float | None:
        """The value of the strongest attack minus `floor`."""
        return None if self.floor is None else self.strongest.headline.value - self.floor.value

    # ----- the verdict ------------------------------------------------------------------------------------------------

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """What rules out *protected* and *traces*: signs of collapse, and too little evidence."""
        return audit_flags(self)

    @cached_property
    def scale(self) -> Scale:
        """How far the strongest attack is on the way from its reference to the unprotected encoder."""
        return audit_scale(self)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """The values that are significantly above their reference, with their sizes."""
        return audit_reasons(self)

    @cached_property
    def verdict(self) -> Verdict:
        """*protected*, *traces*, *leaks*, *unprotected* or *flagged*; see `graphveil.auditing.verdict`."""
        return audit_verdict(self)

    # ----- files ------------------------------------------------------------------------------------------------------

    def record(self) -> AuditRecord:
        """The record of audit.json."""
        best, information, floor = self.strongest, self.information, self.floor
        joint, utility = self.context.joint, self.context.utility
        balanced, matched, worst = self.most_balanced, self.class_matched, self.worst_group
        value, ci = best.headline.value, best.headline.ci
        return AuditRecord(
            origin=self.origin,
            secret=self.secret.name,
            verdict=self.verdict,
            reasons=self.reasons,
            chance=self.secret.chance,
            strongest=formats.Strongest(value=value, ci=ci, attack=best.attack, metric=best.metric, upper=self.upper),
            higher=self.higher,
            scale=self.scale,
            utility=None
            if utility is None
            else formats.UtilityValue(utility.name, utility.value, utility.chance, utility.unprotected),
            worst_group=None if worst is None else worst.record(),
            certificate=self.certificate,
            certificate_on_test=dict(self.limits) or None,
            balanced=_further(
                balanced, None if balanced is None else balanced.balanced, self.balanced_chance, "balanced_accuracy"
            ),
            class_matched=_further(
                matched, None if matched is None else matched.matched, CHANCE_AUC, "class_matched_auc"
            ),
            with_public_graph=self._with_more(self.with_graph, self.excess_with_graph),
            with_features=self._with_more(self.with_features, self.excess_with_features),
            with_links=self._with_more(self.with_links, self.excess_with_links),
            floor=None if floor is None else formats.Floor(value=floor.value, ci=floor.ci, excess=value - floor.value),
            joint_adversary=None if joint is None else formats.JointAdversary(joint, value - joint),
            mutual_information=formats.Information(
                "nats", information.entropy, _nats(information.lower), _nats(information.vclub)
            ),
            attacks=tuple(finding.record() for finding in self.findings),
            controls={
                name: tuple(finding.record() for finding in ranked(found)) for name, found in self.controls.items()
            },
            groups=tuple(group.record() for group in self.groups),
            flags=self.flags,
            dropped=tuple(self.dropped),
            samples=self.secret.samples,
            notes=self.context.notes,
            test_examples=len(self.secret.test.y),
            map=self.map,
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of audit.json as plain JSON values."""
        return self.record().to_dict()

    def _with_more(self, finding: Finding | None, excess: Interval | None) -> Further | None:
        """An attack that holds more than z, and what z adds for it."""
        if finding is None:
            return None
        return _further(finding, finding.headline, self.secret.chance, finding.metric, excess)

    def save(self, path: str | Path) -> None:
        """Write audit.json, and the raw answers to audit.answers.safetensors beside it.

        audit.json holds a digest of itself and one of the answers. The answers reveal the secret: do not publish them.

        Args:
            path: the path of audit.json.
        """
        path, answers_file = Path(path), answers_beside(Path(path))
        arrays = {}
        for subject, findings in (("embeddings", self.findings), *self.controls.items()):
            for finding in findings:
                for part in ("val", "test", "matched_val", "matched_test"):
                    if (answers := getattr(finding.answers, part)) is not None:
                        arrays[f"{subject}/{finding.attack}/{part}"] = np.ascontiguousarray(answers)
        raw = safetensors.numpy.save(arrays)
        record = replace(self.record(), answers_sha256=hashlib.sha256(raw).hexdigest())
        for file in (path, answers_file):
            with report_write_errors(file):
                check_output_file(file)
        with report_write_errors(path), create_folder(path.parent):  # both files or none
            write_atomically(answers_file, lambda temporary: temporary.write_bytes(raw))
            try:
                write_sealed(path, record)
            except BaseException:
                answers_file.unlink(missing_ok=True)
                raise

    def __repr__(self) -> str:
        best, target = self.strongest, self.secret.target
        value = f"{best.attack}: {target.metric_name} {best.headline}, chance {100 * self.secret.chance:.1f}"
        return f"Audit({self.secret.name}: {self.verdict}; {value})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __rich__(self) -> Any:
        from graphveil.auditing.show import shown  # noqa: PLC0415 - it imports this module

        return shown(self)

    def __str__(self) -> str:
        from graphveil.auditing.show import as_text  # noqa: PLC0415 - as above

        return as_text(self)


def answers_beside(path: Path) -> Path:
    """The file of the raw answers that belongs to an audit.json."""
    if not path.name:
        raise GraphveilError(f"an audit cannot be written to {str(path)!r}: give the name of a file.")
    return path.with_name(f"{path.stem}.answers.safetensors")


def _difference(finding: Finding | None, other: Finding | None) -> Interval | None:
    return None if finding is None or other is None else finding.minus(other)


def _further(
    finding: Finding | None, one: Interval | None, chance: float, metric: str, excess: Interval | None = None
) -> Further | None:
    if finding is None or one is None:
        return None
    return Further(value=one.value, ci=one.ci, attack=finding.attack, metric=metric, chance=chance, excess=excess)


def _nats(one: Nats) -> formats.Nats:
    return formats.Nats(value=one.estimate.value, ci=one.estimate.ci, warning=one.warning or None)
