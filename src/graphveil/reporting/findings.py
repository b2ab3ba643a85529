"""The page of an audit, and of a run with or without one."""

from collections.abc import Sequence

from graphveil.reporting.charts import attack_chart, maps, training_curves
from graphveil.reporting.checks import Interval
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
    interval,
    metric_name,
    percent,
    plain,
    points,
    shortened,
)
from graphveil.reporting.results import Attack, Audit, Certificate, Group, Run

VERDICTS = {
    "leaks": Mark("✗", "leaks", "bad"),
    "protected": Mark("✓", "protected", "good"),
    "flagged": Mark("⚠", "flagged", "warn"),
}
MEANING = {
    "leaks": "At least one reading of the secret can be told from guessing.",
    "protected": "No reading of the secret can be told from guessing, and nothing speaks against the audit.",
    "flagged": "No reading of the secret can be told from guessing, but what is flagged below forbids to call that"
    " protected.",
}
BESIDE = {
    "balanced": "balanced accuracy",
    "class_matched": "class-matched AUC",
    "with_public_graph": "with the public graph",
    "with_features": "with the features",
    "with_links": "with the known links",
}
INFORMATION = {"lower_bound": "at least (lower bound)", "vclub": "vCLUB estimate"}
Fact = tuple[str, str, str]


def audit_page(audit: Audit) -> Page:
    """What an audit found."""
    return Page(
        title=f"What the embeddings tell about {audit.secret or 'the secret'}",
        answer=_answer(audit),
        verdict=VERDICTS[audit.verdict],
        facts=_facts(audit),
        summary=_warnings(audit),
        sections=[*_sections(audit), Section("Origin", [details("Where this audit comes from", audit.origin)])],
    )


def run_page(run: Run) -> Page:
    """What became of a run: its scores, its training and, if it has some, its audits."""
    audits, several = run.audits, len(run.secrets) > 1 or len(run.audits) > 1
    seen = {audit.secret for audit in audits}
    unseen = [hidden for hidden in run.secrets if hidden.secret not in seen]
    facts = [("utility", f"{percent(run.kept)} %", f"{metric_name(run.kept_metric)} of {run.utility}")]
    summary, sections, answer = list[Part](), list[Section](), list[str]()
    for audit in audits:
        about = f" · {audit.secret}" if several else ""
        facts += [(f"{name}{about}", value, note) for name, value, note in _facts(audit)]
        answer += [f"{audit.secret}: {sentence}" if several else sentence for sentence in _answer(audit)]
        sections += [Section(f"{section.title}{about}", section.parts) for section in _sections(audit)]
        summary += _warnings(audit, about)
    if run.strange:
        summary.append(Prose([f"⚠ of other embeddings, and left out: {', '.join(run.strange)}"], listed=True))
    for hidden in unseen:
        about = f" · {hidden.secret}" if several else ""
        rule = "rule counted from the codes" if run.objective == "codes" else "joint adversary"
        guessing = f"guessing {percent(hidden.chance)} %; a fresh attacker may learn more"
        facts.append((f"{rule}{about}", f"{percent(hidden.joint)} %", guessing))
        if (certificate := run.certificates.get(hidden.secret)) is not None:
            facts += [(f"{name}{about}", value, note) for name, value, note in _certified(certificate)]
            answer.append(f"{hidden.secret}: {certificate.sentence}" if several else certificate.sentence)
        what = f"{hidden.secret} has" if several else "This run has"
        answer.append(
            f"{what} not been audited, so what a fresh attacker reads is unknown: run `graphveil audit` on it."
        )
    length = f"{plain(run.rounds)} rounds, of which round {plain(run.selected_round)} was selected"
    facts.append(("training", f"{run.encoder}, {run.objective}", f"λ {plain(run.tradeoff)}; {length}"))
    if run.histories:
        titles = {secret: f"{run.graph} · {run.encoder}" + f" · {secret}" * several for secret in run.histories}
        curves = [(titles[secret], history) for secret, history in run.histories.items()]
        sections.append(Section("Training", [training_curves(curves)]))
    origin = [("Configuration", run.config), ("Versions", run.versions), ("Record", run.record)]
    origin += [(f"Where the audit of {audit.secret} comes from", audit.origin) for audit in audits]
    return Page(
        title=f"{run.graph or 'A run'}: keep {run.utility}, hide {' and '.join(one.secret for one in run.secrets)}",
        answer=answer,
        verdict=_worst(audits, all_seen=bool(audits) and not unseen),
        facts=facts,
        summary=summary,
        sections=[*sections, Section("Configuration and versions", [details(*one) for one in origin])],
    )


def _worst(audits: Sequence[Audit], all_seen: bool) -> Mark:
    found = {audit.verdict for audit in audits}
    if "leaks" not in found and not all_seen:
        return Mark("⚠", "not audited", "warn")
    return VERDICTS[next(verdict for verdict in ("leaks", "flagged", "protected") if verdict in found)]


def details(title: str, text: str) -> Fold:
    """Plain values, as they stand in a file, behind a click."""
    return Fold(title, [Plain(text)])


def _answer(audit: Audit) -> list[str]:
    sentences = [MEANING[audit.verdict]]
    best, chance = audit.strongest.reading, audit.chance
    if best is not None:
        read = f"The strongest attack, {audit.strongest.name}, reads {interval(best)} %"
        sentences.append(f"{read} where guessing reads {percent(chance)} %." if chance is not None else f"{read}.")
    if best is not None and audit.joint is not None:
        gap = points(best.value - audit.joint)
        sentences.append(
            f"The adversary trained along reads {percent(audit.joint)} %: the gap to a fresh one is {gap} points."
        )
    return sentences


def _facts(audit: Audit) -> list[Fact]:
    best = audit.strongest
    facts = [
        ("strongest attack", f"{interval(best.reading)} %", f"{metric_name(best.metric)}; {best.name}"),
        *([] if audit.worst_group is None else [_worst_group(audit.worst_group)]),
        *([] if audit.certificate is None else _certified(audit.certificate)),
        ("guessing", f"{percent(audit.chance)} %", f"of {plain(audit.examples)} test examples"),
    ]
    if audit.floor is not None:
        what = (
            "the best rule on pairs of true classes"
            if best.metric == "auc"
            else "the public graph without the embeddings"
        )
        excess = None if best.reading is None else best.reading.value - audit.floor.value
        facts.append(("floor", f"{interval(audit.floor)} %", f"{what}; the strongest is {points(excess)} from it"))
    if audit.joint is not None:
        gap = None if best.reading is None else best.reading.value - audit.joint
        facts.append(("joint adversary", f"{percent(audit.joint)} %", f"gap to a fresh one: {points(gap)}"))
    for name, one in audit.beside.items():
        excess_text = "" if one.excess is None else f"; the embeddings add {points(one.excess.value)}"
        chance_text = "" if one.chance is None else f"; guessing {percent(one.chance)} %"
        facts.append((BESIDE[name], f"{interval(one.reading)} %", f"{one.attack}{chance_text}{excess_text}"))
    return facts


def _worst_group(one: Group) -> Fact:
    """The group about which the strongest attack learns most."""
    rest = f"{plain(one.examples)} test examples; {one.compared_with} {percent(one.reference)} %"
    what = f"{MEASURES[one.measure]} of {shortened(one.label, 60)}"
    return ("worst group", f"{interval(one.reading)} %", f"{what}; {rest}")


def _certified(one: Certificate) -> list[Fact]:
    """The certificate in numbers; what it does not state is left out."""
    counted = f"{one.metric} of the best possible attack on the codes alone, counted exactly for this release"
    facts = [("certificate", at_most(one.best), counted)]
    if one.elsewhere is not None:
        sure = MISSING if one.confidence is None else plain(100 * one.confidence)
        said = f"{one.metric} of the best possible attack on other nodes, with {sure} % confidence"
        facts.append(("certificate · nodes like these", at_most(one.elsewhere), said))
    if one.finer is not None:
        name = "class-matched AUC" if one.metric == "AUC" else "balanced accuracy"
        facts.append((f"certificate · {name}", at_most(one.finer), "of the best possible attack on the codes alone"))
    if one.worst is not None:
        group = f"share of one class among the {plain(one.worst_nodes)} nodes with that code"
        facts.append(("certificate · worst code", at_most(one.worst), group))
    if one.codes is not None:
        bits = MISSING if one.bits is None else f"{one.bits:.2f}"
        facts.append(("codes", plain(one.codes), f"a code reveals at most {bits} bits about its node, of any secret"))
    return facts


def _warnings(audit: Audit, about: str = "") -> list[Part]:
    flags = [f"⚠ {name}{about}: {sentence}" for name, sentence in audit.flags]
    return [Prose(flags, listed=True)] if flags else []


def _sections(audit: Audit) -> list[Section]:
    best = [(name, found) for name, attacks in audit.controls.items() if (found := _best(attacks)) is not None]
    attacks: list[Part] = [
        attack_chart(audit, best),
        Fold("Every attack, with finer readings", [_attack_table("Attacks on the embeddings", audit.attacks)]),
    ]
    sections = [] if audit.certificate is None else [_certificate(audit.certificate)]
    sections.append(Section("Attacks", attacks))
    if audit.groups:
        sections.append(Section("Groups", [_groups(audit)]))
    if best:
        note = "Of each control the attack that read most on the validation part."
        every = [_attack_table(f"Every attack on: {name}", found) for name, found in audit.controls.items()]
        sections.append(Section("Controls", [_controls(audit, best, note), Fold("Every attack on a control", every)]))
    if audit.maps:
        text = "The same points in two dimensions, by their secret class; the axes have no meaning of their own."
        sections.append(Section("Maps", [maps("Embeddings by secret class", audit.maps, text)]))
    sections.append(Section("Mutual information", [_information(audit)]))
    if audit.notes:
        sections.append(Section("Notes", [Prose(audit.notes, listed=True)]))
    return sections


def _certificate(one: Certificate) -> Section:
    rows = Table("Certificate", [Column("row", "name"), Column("statement", "text")], one.rows)
    columns = [Column("not covered", "name"), Column("what is done about it", "text")]
    return Section(
        "Certificate",
        [Prose([one.sentence]), rows, Table("What the certificate does not cover", columns, one.not_covered)],
    )


def _best(attacks: Sequence[Attack]) -> Attack | None:
    """As the audit chose it: it stands first."""
    return attacks[0] if attacks else None


def _attack_table(title: str, attacks: Sequence[Attack]) -> Table:
    ranked = sorted(attacks, key=lambda one: -(one.reading.value if one.reading else -1.0))
    columns = [Column("attack", "name"), Column("metric", "text"), Column("reading [95 % interval]")]
    columns += [Column("class-matched or balanced"), Column("on validation"), Column("knows", "text")]
    rows = [
        [
            one.name,
            metric_name(one.metric),
            interval(one.reading),
            interval(one.finer),
            percent(one.validation),
            " + ".join(one.needs),
        ]
        for one in ranked
    ]
    return Table(title, columns, rows, "In percent.")


def _groups(audit: Audit) -> Table:
    columns = [Column("group", "name"), Column("test examples"), Column("measure", "text")]
    columns += [Column("value [interval]"), Column("reference"), Column("reference is", "text")]
    rows = [
        [
            shortened(one.label, 60),
            plain(one.examples),
            MEASURES[one.measure],
            "too few" if one.reading is None else interval(one.reading),
            percent(one.reference),
            MISSING if one.reading is None else one.compared_with,
        ]
        for one in audit.groups
    ]
    judged = sum(one.reading is not None for one in audit.groups)
    note = f"In percent, from the answers of the strongest attack, {audit.strongest.name}. The intervals hold for all"
    note += f" {judged} groups together (Bonferroni); groups with too few examples are not judged."
    if any(one.measure == "tpr_minus_fpr" for one in audit.groups):
        name = MEASURES["tpr_minus_fpr"]
        note += f" {name} of a class: the share of its nodes assigned to it, minus that of all other nodes."
    if any(one.measure == "auc" for one in audit.groups):
        note += " A pair counts for the groups of both ends; by degree, for that of the end with the smaller degree."
    return Table("The strongest attack by group", columns, rows, note)


def _controls(audit: Audit, best: Sequence[tuple[str, Attack]], note: str) -> Table:
    columns = [Column("control", "name"), Column("attack", "text"), Column("reading [95 % interval]")]
    columns.append(Column("class-matched or balanced"))
    rows = [[name, one.name, interval(one.reading), interval(one.finer)] for name, one in best]
    rows.append(["guessing", MISSING, percent(audit.chance), MISSING])
    return Table("Controls", columns, rows, f"In percent. {note}")


def _information(audit: Audit) -> Table:
    rows = [[INFORMATION[name], _nats(one), doubt or MISSING] for name, (one, doubt) in audit.information.items()]
    rows.append(["entropy of the secret", MISSING if audit.entropy is None else f"{audit.entropy:.3f}", MISSING])
    columns = [Column("of the strongest attack", "name"), Column("nats [95 % interval]"), Column("doubt", "text")]
    return Table("Mutual information of embeddings and secret", columns, rows)


def _nats(reading: Interval | None) -> str:
    return MISSING if reading is None else f"{reading.value:.3f} [{reading.low:.3f}, {reading.high:.3f}]"
