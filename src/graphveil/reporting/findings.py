"""The page of an audit, and the page of a run with or without audits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from graphveil.formats import Interval
from graphveil.formats.audit import FURTHER, Attack, AuditRecord, Group
from graphveil.formats.certificate import Certificate, LinkCertificate
from graphveil.formats.experiment import own_attacks
from graphveil.reporting.attack_charts import attack_chart, group_chart
from graphveil.reporting.charts import training_curves
from graphveil.reporting.headline import TERMS, VERDICTS, headline, missed_mark, sentence
from graphveil.reporting.maps import Picture, after, maps
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

NOT_SHOWN = ("config", "versions", "graph", "reading", "encoding", "features", "certificates")
"""Keys of run.json that are shown elsewhere, or that are for the owner: the path of the graph, and words in it."""
ATTACKS = (
    "An attack learns to predict the secret from the embeddings and from the secrets that it knows. Attacks that also"
    " hold the graph or the features are marked; they do not count for the headline."
)
GROUPS = "A small average may hide a large leak in one group, so the strongest attack is measured in each of them."
MAPS = "Where classes form clusters of their own, or codes have different shares of classes, they reveal the class."
INFORMATION = "How much the embeddings reveal about the secret, in nats, from 0 to the entropy of the secret."
Fact = tuple[str, str, str]


def audit_page(audit: AuditRecord) -> Page:
    """The results of an audit."""
    origin = details("Origin of this audit", audit.origin.to_dict())
    return Page(
        title=f"What the embeddings reveal about {audit.secret or 'the secret'}",
        answer=[sentence(audit)],
        verdict=VERDICTS[audit.verdict],
        facts=_facts(audit),
        summary=headline(audit),
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
    missed = {} if run.limits is None else run.limits.missed(audits)
    for audit in audits:
        about = f" · {audit.secret}" if several else ""
        facts += [(f"{name}{about}", value, note) for name, value, note in _facts(audit)]
        said = sentence(audit, missed.get(audit.secret))
        answer.append(f"{audit.secret}: {said}" if several and audit.secret not in missed else said)
        sections += [replace(section, title=f"{section.title}{about}") for section in _sections(audit)]
        summary += headline(audit, about, missed.get(audit.secret))
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
        verdict=_mark(run, missed, all_audited=bool(audits) and not not_audited),
        facts=facts,
        summary=summary,
        sections=[*sections, Section("Configuration and versions", [details(*one) for one in origin])],
    )


def details(title: str, values: Mapping[str, object]) -> Fold:
    """JSON values, hidden until a click."""
    return Fold(title, [Plain(json.dumps(values, indent=2, ensure_ascii=False))])


def _mark(run: Run, missed: Mapping[str, str], all_audited: bool) -> Mark:
    """The worst verdict, or that a limit is missed."""
    if run.limits is not None and missed:
        return missed_mark(run.limits)
    found = {audit.verdict for audit in run.audits}
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


def _sections(audit: AuditRecord) -> list[Section]:
    best = [(name, attacks[0]) for name, attacks in audit.controls.items() if attacks]  # the strongest comes first
    attacks: list[Part] = [
        attack_chart(audit, best),
        Fold("All attacks with more metrics", [attack_table("Attacks on the embeddings", audit.attacks)]),
    ]
    sections = [Section("Attacks", attacks, ATTACKS)]
    if audit.groups:
        sections.append(Section("Groups", [group_chart(audit)], GROUPS))
    if pictures := _pictures(audit):
        sections.append(Section("Maps", [maps("Embeddings by secret class", pictures)], MAPS))
    if audit.certificate is not None:
        sections.append(_certificate(audit.certificate))
    if best:
        every = [attack_table(f"All attacks on: {name}", found) for name, found in audit.controls.items()]
        table, rest = _controls(audit, best), Fold("All attacks on each control", every)
        sections.append(Section("Controls", [table, rest], TERMS["control"]))
    sections.append(Section("Mutual information", [_information(audit)], INFORMATION))
    sections.append(Section("Samples and notes", [Prose((audit.sampling, *audit.notes), listed=True)]))
    return sections


def _pictures(audit: AuditRecord) -> list[Picture]:
    if (map := audit.map) is None:
        return []
    before = [] if map.before is None else [Picture("before: unprotected", map.before, map)]
    return [*before, after("after: these embeddings", map)]


def _certificate(one: Certificate) -> Section:
    rows = Table("Certificate", [Column("row", "name"), Column("statement", "text")], one.rows)
    columns = [Column("not covered", "name"), Column("what is done about it", "text")]
    return Section(
        "Certificate",
        [Prose([one.sentence]), rows, Table("What the certificate does not cover", columns, one.not_covered)],
        TERMS["certificate"],
    )


def attack_table(title: str, attacks: Sequence[Attack]) -> Table:
    """All attacks with their metrics, the strongest first."""
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
