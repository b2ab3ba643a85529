"""The page of an audit, and the page of a run with or without audits."""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from graphveil.formats import Interval
from graphveil.formats.audit import FURTHER, Attack, AuditRecord, Group
from graphveil.formats.certificate import Certificate, LinkCertificate
from graphveil.formats.experiment import own_attacks
from graphveil.reporting.charts import Picture, attack_chart, maps, scale_chart, training_curves
from graphveil.reporting.parts import (
    MEASURES,
    MISSING,
    Column,
    Fold,
    Mark,
    Page,
    Part,
    Plain,
    Prose,
    Section,
    Table,
    at_most,
    compared,
    interval,
    metric_name,
    percent,
    plain,
    points,
    shortened,
)
from graphveil.reporting.read import Run

VERDICTS = {
    "unprotected": Mark("✗", "unprotected", "bad"),
    "leaks": Mark("✗", "leaks", "bad"),
    "flagged": Mark("⚠", "flagged", "warn"),
    "traces": Mark("✓", "traces", "good"),
    "protected": Mark("✓", "protected", "good"),
}
"""The marks of verdicts, the worst first."""
REFERENCE = "its reference (the chance level; for links, if a class is the utility, the floor)"
WAY = f"of the way from {REFERENCE} to the unprotected encoder"
MEANING = {
    "unprotected": f"At least one attack result is more than 75 % {WAY}.",
    "leaks": f"At least one attack result is significantly above its reference, and more than 10 % {WAY}.",
    "traces": f"At least one attack result is significantly above its reference, but at most 10 % {WAY}.",
    "protected": f"No attack result is significantly above {REFERENCE}, and the audit has no flags.",
    "flagged": f"No attack result is significantly more than 10 % {WAY}, but the audit has flags, which rule out the"
    ' verdicts "protected" and "traces".',
}
NOT_SHOWN = ("config", "versions", "graph", "reading", "encoding", "features", "certificates")
"""Keys of run.json that are shown elsewhere, or that are for the owner: the path of the graph, and words in it."""
Fact = tuple[str, str, str]


def audit_page(audit: AuditRecord) -> Page:
    """The results of an audit."""
    origin = details("Origin of this audit", audit.origin.to_dict())
    return Page(
        title=f"What the embeddings reveal about {audit.secret or 'the secret'}",
        answer=_answer(audit),
        verdict=VERDICTS[audit.verdict],
        facts=_facts(audit),
        summary=[scale_chart(audit), *_warnings(audit)],
        sections=[*_sections(audit), Section("Origin", [origin])],
    )


def run_page(run: Run) -> Page:
    """The scores of a run, its training and its audits."""
    record, audits = run.record, run.audits
    config, scores = record.config, record.scores
    several = len(config.secrets) > 1 or len(audits) > 1
    audited = {audit.secret for audit in audits}
    not_audited = [secret for secret in config.secrets if secret not in audited]
    metric = metric_name(scores.utility_metric or "metric unknown")
    facts = [("utility", f"{percent(scores.utility)} %", f"{metric} of {config.utility}")]
    summary, sections, answer = list[Part](), list[Section](), list[str]()
    for audit in audits:
        about = f" · {audit.secret}" if several else ""
        facts += [(f"{name}{about}", value, note) for name, value, note in _facts(audit)]
        answer += [f"{audit.secret}: {sentence}" if several else sentence for sentence in _answer(audit)]
        sections += [Section(f"{section.title}{about}", section.parts) for section in _sections(audit)]
        summary += [scale_chart(audit), *_warnings(audit, about)]
    if run.other_audits:
        files = ", ".join(run.other_audits)
        summary.append(Prose([f"⚠ not shown, because they are audits of other embeddings: {files}"], listed=True))
    for secret in not_audited:
        about = f" · {secret}" if several else ""
        facts += [(f"{name}{about}", value, note) for name, value, note in _unaudited(run, secret)]
        if (certificate := record.certificates.get(secret)) is not None:
            answer.append(f"{secret}: {certificate.sentence}" if several else certificate.sentence)
        answer.append(f"no audit of {secret}: run `graphveil audit`.")
    length = f"{plain(record.rounds)} rounds; round {plain(record.selected_round)} was selected"
    facts.append(("training", f"{config.encoder}, {config.objective}", f"λ {plain(config.tradeoff)}; {length}"))
    graph = PurePath(record.graph).name  # without the folders of its owner
    if run.histories:
        titles = {secret: f"{graph} · {config.encoder}" + f" · {secret}" * several for secret in run.histories}
        curves = [(titles[secret], history) for secret, history in run.histories.items()]
        names = own_attacks((secret, config.objective) for secret in run.histories)
        sections.append(Section("Training", [training_curves(curves, names)]))
    rest = {name: value for name, value in record.to_dict().items() if name not in NOT_SHOWN}
    origin = [("Configuration", config.to_dict()), ("Versions", record.versions), ("Record", rest)]
    origin += [(f"Origin of the audit of {audit.secret}", audit.origin.to_dict()) for audit in audits]
    return Page(
        title=f"{graph or 'A run'}: keep {config.utility}, hide {' and '.join(config.secrets)}",
        answer=answer,
        verdict=_worst(audits, all_audited=bool(audits) and not not_audited),
        facts=facts,
        summary=summary,
        sections=[*sections, Section("Configuration and versions", [details(*one) for one in origin])],
    )


def details(title: str, values: Mapping[str, object]) -> Fold:
    """JSON values, hidden until a click."""
    return Fold(title, [Plain(json.dumps(values, indent=2, ensure_ascii=False))])


def _worst(audits: Sequence[AuditRecord], all_audited: bool) -> Mark:
    found = {audit.verdict for audit in audits}
    if not found & {"leaks", "unprotected"} and not all_audited:
        return Mark("⚠", "not audited", "warn")
    return next(mark for verdict, mark in VERDICTS.items() if verdict in found)


def _unaudited(run: Run, secret: str) -> list[Fact]:
    """The attack that belongs to the training, and the certificate."""
    scores = {score.secret: score for score in run.record.scores.secrets}
    facts = list[Fact]()
    if (score := scores.get(secret)) is not None:
        note = f"chance level {percent(score.chance)} %; a new attacker may be stronger"
        facts.append((score.attack, f"{percent(score.value)} %", note))
    certificate = run.record.certificates.get(secret)
    return facts if certificate is None else [*facts, *_certified(certificate)]


def _answer(audit: AuditRecord) -> list[str]:
    best, joint = audit.strongest, audit.joint_adversary
    sentences = [
        MEANING[audit.verdict],
        f"The strongest attack, {best.attack}, has an {metric_name(best.metric)} of {interval(best)} %; the"
        f" chance level is {percent(audit.chance)} %.",
    ]
    scale, utility = audit.scale, audit.utility
    end = "to a perfect attack"
    if scale.unprotected is not None:
        end = f"to the same attack on the unprotected encoder ({percent(scale.unprotected)} %)"
    start = f"from the {scale.compared_with} ({percent(scale.reference)} %)"
    sentences.append(f"That is {percent(scale.size)} % of the way {start} {end}.")
    if utility is not None:
        before = "" if utility.unprotected is None else f"; unprotected it is {percent(utility.unprotected)} %"
        sentences.append(
            f"The utility ({utility.name}) is {percent(utility.value)} %{before}, and the chance level is"
            f" {percent(utility.chance)} %."
        )
    if joint is not None:
        sentences.append(
            f"The joint adversary has an {metric_name(best.metric)} of {percent(joint.value)} %; the"
            f" strongest attack is {compared(joint.gap, 'it')}."
        )
    return sentences


def _facts(audit: AuditRecord) -> list[Fact]:
    best, floor, joint = audit.strongest, audit.floor, audit.joint_adversary
    facts = [
        ("strongest attack", f"{interval(best)} %", f"{metric_name(best.metric)}; {best.attack}"),
        *([] if audit.worst_group is None else [_worst_group(audit.worst_group)]),
        *([] if audit.certificate is None else _certified(audit.certificate)),
        ("chance level", f"{percent(audit.chance)} %", f"{plain(audit.test_examples)} test examples"),
    ]
    if floor is not None:
        name, what = (
            ("floor", "AUC of the best rule on pairs of true classes")
            if best.metric == "auc"
            else ("public graph without z", "accuracy of attacks on the public graph alone")
        )
        position = compared(floor.excess, "it")
        facts.append((name, f"{interval(floor)} %", f"{what}; the strongest attack is {position}"))
    if joint is not None:
        position = compared(joint.gap, "it")
        facts.append(("joint adversary", f"{percent(joint.value)} %", f"the strongest attack is {position}"))
    for name, one in audit.further.items():
        excess = "" if one.excess is None else f"; z adds {points(one.excess.value)} points"
        note = f"{one.attack}; chance level {percent(one.chance)} %{excess}"
        facts.append((FURTHER[name], f"{interval(one)} %", note))
    return facts


def _worst_group(one: Group) -> Fact:
    """The group about which the strongest attack learns most."""
    rest = f"{plain(one.examples)} test examples; {one.compared_with} {percent(one.reference)} %"
    what = f"{MEASURES[one.measure]} of {shortened(one.label, 60)}"
    return ("worst group", f"{interval(one.interval)} %", f"{what}; {rest}")


def _certified(one: Certificate) -> list[Fact]:
    """The certificate in numbers."""
    if isinstance(one, LinkCertificate):
        metric, best, finer, finer_name = "AUC", one.auc, one.class_matched_auc, "class-matched AUC"
        limit = None if one.calibration is None else one.calibration.auc_limit
    else:
        metric, best, finer, finer_name = "accuracy", one.accuracy, one.balanced_accuracy, "balanced accuracy"
        limit = None if one.calibration is None else one.calibration.accuracy_limit
    exact = f"{metric} of the best possible attack on the codes alone, computed exactly"
    facts = [("certificate · this release", at_most(best), exact)]
    if limit is not None:
        note = f"{metric} of the best possible attack on other nodes, with {plain(100 * one.confidence)} % confidence"
        facts.append(("certificate · other nodes", at_most(limit), note))
    if finer is not None:
        note = "of the best possible attack on the codes alone"
        facts.append((f"certificate · {finer_name}", at_most(finer), note))
    if not isinstance(one, LinkCertificate):
        note = f"largest share of a class among nodes with the same code ({plain(one.worst.nodes)} nodes)"
        facts.append(("certificate · worst code", at_most(one.worst.share), note))
    bits = f"the code of a node reveals at most {one.bits_per_node:.2f} bits about any secret"
    return [*facts, ("codes", plain(one.codes), bits)]


def _warnings(audit: AuditRecord, about: str = "") -> list[Part]:
    flags = [f"⚠ {flag.name}{about}: {flag.sentence}" for flag in audit.flags]
    return [Prose(flags, listed=True)] if flags else []


def _sections(audit: AuditRecord) -> list[Section]:
    best = [(name, attacks[0]) for name, attacks in audit.controls.items() if attacks]  # the strongest comes first
    attacks: list[Part] = [
        attack_chart(audit, best),
        Fold("All attacks with more metrics", [_attack_table("Attacks on the embeddings", audit.attacks)]),
    ]
    sections = [] if audit.certificate is None else [_certificate(audit.certificate)]
    sections.append(Section("Attacks", attacks))
    if audit.groups:
        sections.append(Section("Groups", [_groups(audit)]))
    if best:
        every = [_attack_table(f"All attacks on: {name}", found) for name, found in audit.controls.items()]
        sections.append(Section("Controls", [_controls(audit, best), Fold("All attacks on each control", every)]))
    if pictures := _pictures(audit):
        text = f"The same test {'pairs' if audit.secret == 'links' else 'nodes'} in two dimensions (t-SNE), coloured by"
        text += " secret class. The axes have no unit."
        sections.append(Section("Maps", [maps("Embeddings by secret class", pictures, text)]))
    sections.append(Section("Mutual information", [_information(audit)]))
    if audit.notes:
        sections.append(Section("Notes", [Prose(audit.notes, listed=True)]))
    return sections


def _pictures(audit: AuditRecord) -> list[Picture]:
    if (map := audit.map) is None:
        return []
    planes = {"before: unprotected": map.before, "after: these embeddings": map.after}
    return [Picture(title, plane, map) for title, plane in planes.items() if plane is not None]


def _certificate(one: Certificate) -> Section:
    rows = Table("Certificate", [Column("row", "name"), Column("statement", "text")], one.rows)
    columns = [Column("not covered", "name"), Column("what is done about it", "text")]
    return Section(
        "Certificate",
        [Prose([one.sentence]), rows, Table("What the certificate does not cover", columns, one.not_covered)],
    )


def _attack_table(title: str, attacks: Sequence[Attack]) -> Table:
    ranked = sorted(attacks, key=lambda one: -one.value)
    columns = [Column("attack", "name"), Column("metric", "text"), Column("value [95 % interval]")]
    columns += [Column("class-matched or balanced"), Column("held-out"), Column("knows", "text")]
    rows = [
        [
            one.attack,
            metric_name(one.metric),
            interval(one),
            interval(one.finer),
            percent(one.validation),
            " + ".join(one.needs),
        ]
        for one in ranked
    ]
    return Table(title, columns, rows, "In percent.")


def _groups(audit: AuditRecord) -> Table:
    columns = [Column("group", "name"), Column("test examples"), Column("metric", "text")]
    columns += [Column("value [interval]"), Column("reference"), Column("reference is", "text")]
    rows = [
        [
            shortened(one.label, 60),
            plain(one.examples),
            MEASURES[one.measure],
            "too few" if one.interval is None else interval(one.interval),
            percent(one.reference),
            MISSING if one.interval is None else one.compared_with,
        ]
        for one in audit.groups
    ]
    judged = sum(one.interval is not None for one in audit.groups)
    note = f"In percent, for the strongest attack, {audit.strongest.attack}. The intervals hold for all {judged} groups"
    note += " at once (Bonferroni). Groups with too few examples have no value."
    if any(one.measure == "tpr_minus_fpr" for one in audit.groups):
        name = MEASURES["tpr_minus_fpr"]
        note += f" {name} of a class: the share of its nodes that are assigned to it, minus that of all other nodes."
    if any(one.measure == "auc" for one in audit.groups):
        note += " A pair counts for the groups of both ends; by degree, for that of the end with the smaller degree."
    return Table("The strongest attack by group", columns, rows, note)


def _controls(audit: AuditRecord, best: Sequence[tuple[str, Attack]]) -> Table:
    columns = [Column("control", "name"), Column("strongest attack", "text"), Column("value [95 % interval]")]
    columns.append(Column("class-matched or balanced"))
    rows = [[name, one.attack, interval(one), interval(one.finer)] for name, one in best]
    rows.append(["chance level", MISSING, percent(audit.chance), MISSING])
    return Table("Controls", columns, rows, "In percent. The strongest attack was chosen on held-out examples.")


def _information(audit: AuditRecord) -> Table:
    found = audit.mutual_information
    rows = [
        [name, _nats(one), one.warning or MISSING]
        for name, one in (("lower bound", found.lower_bound), ("vCLUB estimate", found.vclub))
    ]
    rows.append(["entropy of the secret", f"{found.entropy:.3f}", MISSING])
    columns = [Column("estimate", "name"), Column("nats [95 % interval]"), Column("warning", "text")]
    return Table("Mutual information of embeddings and secret", columns, rows)


def _nats(one: Interval) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
