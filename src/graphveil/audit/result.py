"""What an audit found: raw answers first, and everything else derived from them."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from graphveil.audit.attacks import Answers, Need
from graphveil.audit.information import Information, information
from graphveil.audit.metrics import Estimate, auc, link_metrics, node_metrics
from graphveil.audit.secret import Asked, LinkSecret, NodeSecret, Secret
from graphveil.data.graph import UNKNOWN
from graphveil.files import write_atomically, write_json

SCHEMA = "graphveil/audit/1"
WIDEST = 0.05
"""The half-width of the headline's interval above which there are too few examples to call anything protected."""

Verdict = Literal["leaks", "protected", "flagged"]


@dataclass(frozen=True, eq=False)
class Finding:
    """One attack's answers, kept raw, so that any metric can be had later without running it again.

    Args:
        subject: what was attacked: "embeddings", or the name of a control.
    """

    subject: str
    attack: str
    needs: tuple[Need, ...]
    secret: Secret
    answers: Answers
    seconds: float

    @property
    def metric(self) -> str:
        """The one that decides."""
        return "auc" if isinstance(self.secret, LinkSecret) else "accuracy"

    @cached_property
    def metrics(self) -> dict[str, Estimate]:
        """All metrics on the test part."""
        return self._metrics(self.answers.test, self.secret.test)

    @cached_property
    def headline(self) -> Estimate:
        """The metric that decides, on the test part."""
        return self._headline(self.answers.test, self.secret.test)

    @cached_property
    def balanced_validation(self) -> float:
        """The balanced accuracy on the validation part, of a node secret."""
        return self._metrics(self.answers.val, self.secret.val)["balanced_accuracy"].value

    @cached_property
    def validation(self) -> float:
        """The metric that decides, on the validation part, where the strongest attack is chosen."""
        return self._headline(self.answers.val, self.secret.val).value

    @cached_property
    def matched(self) -> Estimate | None:
        """The AUC against class-matched non-links."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched_test is None:
            return None
        assert self.answers.matched_test is not None
        return auc(self.answers.matched_test, self.secret.matched_test.y, self.secret.matched_test.index)

    @property
    def matched_validation(self) -> float:
        """The same on the validation part."""
        if not isinstance(self.secret, LinkSecret) or self.secret.matched_val is None:
            return 0.5
        assert self.answers.matched_val is not None
        return auc(self.answers.matched_val, self.secret.matched_val.y, self.secret.matched_val.index).value

    @property
    def constant(self) -> bool:
        """Whether every example got the same answer."""
        test = self.answers.test
        return len(np.unique(test.argmax(axis=1) if test.ndim == 2 else test)) == 1

    def _metrics(self, answers: Any, asked: Asked) -> dict[str, Estimate]:
        if isinstance(self.secret, LinkSecret):
            return link_metrics(answers, asked.y, asked.index)
        return node_metrics(answers, asked.y, self.secret.majority)

    def _headline(self, answers: Any, asked: Asked) -> Estimate:
        if isinstance(self.secret, LinkSecret):
            return auc(answers, asked.y, asked.index)
        return node_metrics(answers, asked.y, self.secret.majority)["accuracy"]

    def summary(self) -> dict[str, Any]:
        """As it stands in audit.json."""
        found = {"attack": self.attack, "needs": list(self.needs), "metric": self.metric} | _plain(self.headline)
        found["metrics"] = {name: _plain(estimate) for name, estimate in self.metrics.items()}
        if self.matched is not None:
            found["class_matched_auc"] = _plain(self.matched)
        return found | {"validation": self.validation, "seconds": round(self.seconds, 3)}


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
    """

    joint: float | None = None
    utility: Utility | None = None


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
    """

    secret: Secret
    findings: Sequence[Finding]
    controls: Mapping[str, Sequence[Finding]]
    shape: Sequence[Flag] = ()
    dropped: Sequence[str] = ()
    context: Context = field(default_factory=Context)

    @cached_property
    def strongest(self) -> Finding:
        """The attack that read most on the validation part, from z and known secrets; its test reading counts."""
        return strongest([finding for finding in self.findings if "graph" not in finding.needs] or self.findings)

    @cached_property
    def most_balanced(self) -> Finding | None:
        """Of a node secret the attack of the best balanced accuracy, chosen on the validation part.

        Where one class is frequent, an attack that tells the rare ones apart may be no more often right than naming the
        frequent one: its leak shows here and not in the accuracy.
        """
        if isinstance(self.secret, LinkSecret):
            return None
        found = [finding for finding in self.findings if "graph" not in finding.needs] or self.findings
        return max(found, key=lambda finding: finding.balanced_validation)

    @property
    def balanced_chance(self) -> float:
        """The balanced accuracy of guessing: one over the classes that are asked for."""
        return 1 / len(np.unique(self.secret.test.y))

    @cached_property
    def with_graph(self) -> Finding | None:
        """The strongest of those that also hold the public graph."""
        found = [finding for finding in self.findings if "graph" in finding.needs]
        return strongest(found) if found else None

    @cached_property
    def floor(self) -> Estimate | None:
        """What the utility implies if it is perfect.

        Of links: the AUC of comparing true labels. Of a node secret: what the true links tell without any embedding.
        """
        if isinstance(self.secret, NodeSecret):
            alone = self.controls.get("public graph")
            return strongest(alone).headline if alone else None
        y, pairs = self.secret.true_labels, self.secret.test.index
        if y is None:
            return None
        known = (y[pairs] != UNKNOWN).all(axis=0)
        answer = self.secret.test.y[known]
        if not 0 < answer.sum() < len(answer):
            return None
        return auc((y[pairs[0]] == y[pairs[1]])[known].astype(float), answer, pairs[:, known])

    @property
    def excess(self) -> float | None:
        """The headline over the floor."""
        return None if self.floor is None else self.strongest.headline.value - self.floor.value

    @cached_property
    def class_matched(self) -> Finding | None:
        """The strongest attack where classes alone tell nothing, chosen on the validation part."""
        found = [finding for finding in self.findings if finding.matched is not None]
        return max(found, key=lambda finding: finding.matched_validation) if found else None

    @cached_property
    def information(self) -> Information:
        """Of the strongest attack, in nats."""
        answers, secret = self.strongest.answers, self.secret
        pairs = secret.test.index if isinstance(secret, LinkSecret) else None
        return information(answers.test, secret.test.y, (answers.val, secret.val.y), pairs)

    @property
    def gap(self) -> float | None:
        """How much more the strongest fresh attack reads than the adversary that was trained along."""
        return None if self.context.joint is None else self.strongest.headline.value - self.context.joint

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Signs of collapse and of too little evidence."""
        found, headline = list(self.shape), self.strongest.headline
        if all(finding.constant for finding in self.findings):
            found.append(Flag("constant prediction", "every attack gives every example the same answer"))
        if self.strongest.metric == "auc" and headline.value == 0.5:
            found.append(Flag("AUC of exactly .5", "the strongest attack's scores are all tied, a sign of collapse"))
        if self.context.joint is not None and self.strongest.metric == "auc" and self.context.joint == 0.5:
            found.append(Flag("joint AUC of exactly .5", "the adversary that was trained along has collapsed"))
        utility = self.context.utility
        if utility is not None and utility.value - utility.chance <= 1.96 * np.sqrt(0.25 / max(utility.examples, 1)):
            what = f"{utility.name} reads {utility.value:.1%} where guessing reads {utility.chance:.1%}"
            found.append(Flag("utility at chance", f"{what}: nothing is kept, so nothing was protected"))
        half = (headline.high - headline.low) / 2
        if half > WIDEST:
            count = len(self.secret.test.y)
            found.append(Flag("too few examples", f"{count} test examples leave the headline ±{half:.1%} wide"))
        if self.dropped:
            found.append(Flag("attacks dropped", f"the time budget left out {', '.join(self.dropped)}"))
        return tuple(found)

    @property
    def verdict(self) -> Verdict:
        """ "protected" only if nothing is flagged and no reading can be told from guessing, balanced or not.

        Where links are the secret and a node class is the utility, guessing by the true classes is what cannot be
        undercut, and it is what the attack is held against.
        """
        if self.flags:
            return "flagged"
        reference = self.secret.chance
        keeps_classes = self.context.utility is not None and self.context.utility.name != "links"
        if isinstance(self.secret, LinkSecret) and keeps_classes and self.floor is not None:
            reference = max(reference, self.floor.value)
        told = self.strongest.headline.low > reference
        if self.most_balanced is not None:
            told |= self.most_balanced.metrics["balanced_accuracy"].low > self.balanced_chance
        return "leaks" if told else "protected"

    def to_dict(self) -> dict[str, Any]:
        """As it stands in audit.json."""
        told, floor, graph = self.information, self.floor, self.with_graph
        return {
            "schema": SCHEMA,
            "secret": self.secret.name,
            "verdict": self.verdict,
            "chance": self.secret.chance,
            "strongest": {"attack": self.strongest.attack, "metric": self.strongest.metric}
            | _plain(self.strongest.headline),
            "balanced": None
            if self.most_balanced is None
            else {"attack": self.most_balanced.attack, "metric": "balanced_accuracy", "chance": self.balanced_chance}
            | _plain(self.most_balanced.metrics["balanced_accuracy"]),
            "with_public_graph": None
            if graph is None
            else {"attack": graph.attack, "metric": graph.metric}
            | _plain(graph.headline)
            | {"excess": None if floor is None else graph.headline.value - floor.value},
            "attacks": [finding.summary() for finding in self.findings],
            "controls": {
                "guessing": {"metric": self.strongest.metric, "value": self.secret.chance},
                **{name: [finding.summary() for finding in found] for name, found in self.controls.items()},
            },
            "floor": None if floor is None else _plain(floor) | {"excess": self.excess},
            "class_matched": None
            if self.class_matched is None or self.class_matched.matched is None
            else {"attack": self.class_matched.attack} | _plain(self.class_matched.matched),
            "joint_adversary": None if self.gap is None else {"value": self.context.joint, "gap": self.gap},
            "mutual_information": {
                "unit": "nats",
                "entropy": told.entropy,
                "lower_bound": _plain(told.lower.estimate) | {"doubt": told.lower.doubt or None},
                "vclub": _plain(told.vclub.estimate) | {"doubt": told.vclub.doubt or None},
            },
            "flags": [{"name": flag.name, "sentence": flag.sentence} for flag in self.flags],
            "dropped": list(self.dropped),
            "notes": list(self.secret.notes),
            "test_examples": len(self.secret.test.y),
        }

    def save(self, path: str | Path) -> None:
        """Write `audit.json`, and beside it the raw answers as `audit.safetensors`, whose hash it holds.

        The answers are about the secret: they are for the auditor and not for publication.
        """
        path = Path(path)
        arrays = {}
        for subject, found in (("embeddings", self.findings), *self.controls.items()):
            for finding in found:
                for part in ("val", "test", "matched_val", "matched_test"):
                    if (answers := getattr(finding.answers, part)) is not None:
                        arrays[f"{subject}/{finding.attack}/{part}"] = np.ascontiguousarray(answers)
        raw = safetensors.numpy.save(arrays)
        write_atomically(path.with_suffix(".safetensors"), lambda temporary: temporary.write_bytes(raw))
        write_json(path, self.to_dict() | {"answers_sha256": hashlib.sha256(raw).hexdigest()})

    def __rich__(self) -> Group:
        return Group(*_lines(self), _table(self))

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=110)
        console.print(self)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip()


def strongest(findings: Sequence[Finding]) -> Finding:
    """The one that reads most on the validation part."""
    return max(findings, key=lambda finding: finding.validation)


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "ci": [estimate.low, estimate.high]}


def _lines(audit: Audit) -> list[Text]:
    """The headline and what stands beside it."""
    best, told = audit.strongest, audit.information
    metric = {"auc": "AUC", "accuracy": "accuracy"}[best.metric]
    rows = [("strongest attack", f"{best.attack}: {metric} {best.headline}, guessing {100 * audit.secret.chance:.1f}")]
    if audit.most_balanced is not None:
        name, balanced = audit.most_balanced.attack, audit.most_balanced.metrics["balanced_accuracy"]
        rows.append(("balanced accuracy", f"{name}: {balanced}, guessing {100 * audit.balanced_chance:.1f}"))
    if audit.with_graph is not None:
        rows.append(("with the public graph", f"{audit.with_graph.attack}: {audit.with_graph.headline}"))
    if audit.floor is not None and audit.excess is not None:
        what = "comparing true labels" if best.metric == "auc" else "the public graph without z"
        rows.append(("floor", f"{audit.floor} from {what}; the strongest is {100 * audit.excess:+.1f} from it"))
    if audit.class_matched is not None:
        rows.append(("class-matched AUC", f"{audit.class_matched.matched} ({audit.class_matched.attack})"))
    if audit.gap is not None:
        rows.append(
            (
                "joint adversary",
                f"{100 * (audit.context.joint or 0):.1f}: a fresh one reads {100 * audit.gap:+.1f} more",
            )
        )
    lower, vclub = told.lower, told.vclub
    nats = f"at least {lower.estimate.value:.3f} of {told.entropy:.3f} nats, vCLUB {vclub.estimate.value:.3f}"
    doubts = [f"{name}: {nat.doubt}" for name, nat in (("bound", lower), ("vCLUB", vclub)) if nat.doubt]
    rows.append(("mutual information", nats + (f" (not to be trusted: {'; '.join(doubts)})" if doubts else "")))
    rows += [("flag", f"{flag.name}: {flag.sentence}") for flag in audit.flags]
    rows += [("note", note) for note in audit.secret.notes]
    title = Text(f"What the embeddings tell about {audit.secret.name}: {audit.verdict}", style="bold")
    return [title, *(Text(f"  {name:<22}{value}") for name, value in rows)]


def _table(audit: Audit) -> Table:
    """All findings, the strongest first, and of each control the strongest."""
    matched = any(finding.matched is not None for finding in audit.findings)
    table = Table("attack", audit.strongest.metric, *(["class-matched"] if matched else []), "knows")

    def row(name: str, finding: Finding, style: str = "") -> None:
        more = [str(finding.matched)] if matched else []
        table.add_row(Text(name), str(finding.headline), *more, " + ".join(finding.needs), style=style)

    for finding in sorted(audit.findings, key=lambda found: -found.headline.value):
        row(finding.attack, finding, "bold" if finding is audit.strongest else "")
    table.add_section()
    for name, found in audit.controls.items():
        row(f"control: {name} ({strongest(found).attack})", strongest(found))
    table.add_row("control: guessing", f"{100 * audit.secret.chance:.1f}", *([""] if matched else []), "")
    return table
