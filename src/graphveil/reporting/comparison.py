"""The page of experiments: the numbers of the paper, its protocol repeated here, and new attackers."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphveil.formats.experiment import ExperimentRecord, Failed, Row, TableRecord, Verdict, own_attacks
from graphveil.reporting.charts import (
    floor_name,
    level,
    level_in_column,
    level_name,
    tradeoff_curves,
    training_curves,
    utility_against_leak,
)
from graphveil.reporting.explorer import sweep_explorer
from graphveil.reporting.findings import details
from graphveil.reporting.maps import after, maps
from graphveil.reporting.parts import (
    MISSING,
    Column,
    Figure,
    Fold,
    Mark,
    Page,
    Part,
    Prose,
    Section,
    Table,
    metric_name,
    percent,
    plain,
    plus_minus,
    points,
)
from graphveil.target import Target

MOST_CURVES = 36
LONGEST = 60
"""A table with more rows is hidden until a click."""
ABOVE = "Above chance: the whole interval over seeds of the strongest attack is above the chance level."
EPSILONS = "The ε of gap protects each single link; the ε of rr protects the published class of a node, not its links."
UNPROTECTED = "unprotected"
VERDICTS: dict[Verdict, Mark] = {
    "reproduced": Mark("✓", "reproduced", "good"),
    "better": Mark("▲", "better", "good"),
    "not reproduced": Mark("✗", "not reproduced", "bad"),
    "": Mark(MISSING, "not judged", "none"),
}


@dataclass(frozen=True)
class SecretResults:
    """The results of an experiment on one secret; its metric, and the paper's attacker on unprotected embeddings."""

    secret: str
    metric: str
    papers_attacker: str
    rows: Sequence[Row]


def comparison_page(experiments: Sequence[ExperimentRecord | TableRecord]) -> Page:
    """All experiments of a folder."""
    run = [one for one in experiments if isinstance(one, ExperimentRecord)]
    papers, own = ([one for one in run if one.is_sweep is which and one.rows] for which in (False, True))
    return Page(
        title=run[0].title if len(run) == 1 else "Experiments",
        answer=_answer(papers, own, [failed for one in run for failed in one.failed]),
        verdict=None,
        facts=[],
        summary=[*([_counts(papers)] if papers else []), *([_leaks(own)] if own else [])],
        sections=[section for one in experiments for section in _sections(one)],
    )


def _answer(papers: Sequence[ExperimentRecord], own: Sequence[ExperimentRecord], failed: Sequence[Failed]) -> list[str]:
    sentences = []
    if papers:
        sentences += _against_the_paper([row for one in papers for row in one.rows])
    if own:
        sentences += _against_chance([row for one in own for row in one.rows])
    if not sentences:
        sentences.append("There are no finished cells to show.")
    if failed:
        sentences.append(
            f"{len(failed)} {'cell' if len(failed) == 1 else 'cells'} failed: see the table of failed cells."
        )
    return sentences


def _against_the_paper(rows: Sequence[Row]) -> list[str]:
    counts = Counter(row.verdict for row in rows)
    judged = len(rows) - counts[""]
    if judged:
        found = ", ".join(f"{counts[name]} {name}" for name in ("reproduced", "better", "not reproduced"))
        sentences = [f"Of {judged} rows that can be compared with the paper: {found}."]
    else:
        sentences = [f"None of the {len(rows)} rows can be compared with the paper."]
    worst = _worst([row for row in rows if row.variant != UNPROTECTED])
    if worst is not None and worst.gap is not None and worst.gap <= 0:
        sentences.append("No attack is stronger than that of the paper's protocol.")
    elif worst is not None:
        sentences.append(
            f"The paper's protocol underestimates the leak of {worst.secret} most for {worst.variant} on {worst.cell}"
            f" at {level(worst)}: its attack has {plus_minus(worst.protocol)} %, the strongest attack"
            f" {plus_minus(worst.fresh)} % ({points(worst.gap)} points)."
        )
    return sentences


def _against_chance(rows: Sequence[Row]) -> list[str]:
    judged, above = _judged(rows)
    if judged:
        sentences = [f"In {above} of {judged} rows the strongest attack is significantly above chance."]
    else:
        sentences = ["One seed gives no interval, so no row can be compared with the chance level."]
    worst = _worst(rows)
    if worst is not None and worst.gap is not None and worst.gap > 0:
        sentences.append(
            f"The {_own([worst])} underestimates the leak of {worst.secret} most at {level(worst)}: it has"
            f" {plus_minus(worst.protocol)} %, the strongest attack {plus_minus(worst.fresh)} %"
            f" ({points(worst.gap)} points)."
        )
    return sentences


def _judged(rows: Sequence[Row]) -> tuple[int, int]:
    """The number of rows with an interval over seeds, and of those whose interval is above the chance level."""
    able = [(row.fresh, row.chance) for row in rows if row.seeds >= 2]
    return len(able), sum(fresh.low > chance for fresh, chance in able)


def _counts(experiments: Sequence[ExperimentRecord]) -> Table:
    """Outcomes, leaks and the largest gap of each experiment and variant."""
    columns = [
        Column("experiment and variant", "name"),
        Column("cells"),
        *(Column(f"{mark.symbol} {mark.text}", group="compared with the paper") for mark in VERDICTS.values()),
        Column("above chance", group="strongest attack"),
        Column("largest gap to the protocol", group="strongest attack"),
        Column("in the cell", "text", group="strongest attack"),
    ]
    lines = []
    for name, rows in _groups(experiments):
        counts = Counter(row.verdict for row in rows)
        lines.append([name, str(len(rows)), *(str(counts[verdict]) for verdict in VERDICTS), *_leak(rows)])
    note = (
        "The outcome compares our run of the paper's protocol with its numbers. Only the strongest attack measures"
        f" privacy. {ABOVE}"
    )
    return Table("Outcomes and gaps", columns, lines, note)


def _leaks(experiments: Sequence[ExperimentRecord]) -> Table:
    """Leaks and the largest gap of each sweep."""
    columns = [
        Column("sweep and variant", "name"),
        Column("cells"),
        Column("above chance", group="strongest attack"),
        Column("largest gap to the training's own attack", group="strongest attack"),
        Column("in the cell", "text", group="strongest attack"),
    ]
    lines = [[name, str(len(rows)), *_leak(rows)] for name, rows in _groups(experiments)]
    return Table("Leaks and gaps", columns, lines, ABOVE)


def _groups(experiments: Sequence[ExperimentRecord]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each experiment, secret and variant, with a name."""
    for one in experiments:
        several = len(one.secrets) > 1
        for secret, variant in dict.fromkeys((row.secret, row.variant) for row in one.rows):
            name = " · ".join([one.name or one.title, *([secret] if several else []), variant])
            yield name, [row for row in one.rows if (row.secret, row.variant) == (secret, variant)]


def _leak(rows: Sequence[Row]) -> list[str]:
    judged, above = _judged(rows)
    worst = _worst(rows)
    gap = [points(worst.gap), f"{worst.cell} · {level(worst)}"] if worst else [MISSING, MISSING]
    return [f"{above} of {judged}" if judged else MISSING, *gap]


def _worst(rows: Sequence[Row]) -> Row | None:
    able = [row for row in rows if row.gap is not None]
    return max(able, key=lambda row: row.gap or 0.0, default=None)


def _sections(one: ExperimentRecord | TableRecord) -> list[Section]:
    """One section for each secret."""
    if isinstance(one, TableRecord):
        return [_texts(one)]
    return [
        _section(one, SecretResults(found.secret, found.metric, found.papers_attacker, _of(one.rows, found.secret)))
        for found in one.secrets
    ]


def _of(rows: Sequence[Row], secret: str) -> list[Row]:
    return [row for row in rows if row.secret == secret]


def _section(one: ExperimentRecord, results: SecretResults) -> Section:
    parts: list[Part] = [Prose([_about(one, results)])]
    if one.is_sweep:
        parts += _explorers(one, results)
    if one.failed:
        lines = [(failed.cell, failed.fault) for failed in one.failed]
        parts.append(Table("Failed cells", [Column("cell", "name"), Column("fault", "text")], lines))
    if rows := results.rows:
        table = _table(one, results)
        parts.append(table if len(rows) <= LONGEST else Fold(f"{table.title}: {len(rows)} rows", [table]))
        parts += _charts(one, results)
    config = [details("Configuration", one.config), details("Versions", one.versions)]
    title = one.title if len(one.secrets) == 1 else f"Secret: {results.secret}"
    return Section(title, [*parts, *config])


def _explorers(one: ExperimentRecord, results: SecretResults) -> list[Part]:
    """One for each data set."""
    datasets = dict.fromkeys(row.dataset for row in results.rows)
    of = [[row for row in results.rows if row.dataset == dataset] for dataset in datasets]
    return [sweep_explorer(one, results.secret, rows) for rows in of]


def _about(one: ExperimentRecord, results: SecretResults) -> str:
    kept, hidden = metric_name(one.metric), metric_name(results.metric)
    others = [other.secret for other in one.secrets if other.secret != results.secret]
    also = f" Also hidden: {' and '.join(others)}." if others else ""
    sentence = f"Utility: {one.utility} ({kept}). Secret: {results.secret} ({hidden}).{also}"
    attacker = f" The paper's attacker on unprotected embeddings: {results.papers_attacker}."
    peers = dict.fromkeys(row.variant for row in results.rows if row.epsilon is not None)
    return "".join(
        [
            sentence,
            "" if one.is_sweep else attacker,
            f" Methods of other authors, each at several ε: {', '.join(peers)}. {EPSILONS}" if peers else "",
        ]
    )


def _table(one: ExperimentRecord, results: SecretResults) -> Table:
    rows = results.rows
    utility, secret = f"utility: {one.utility}", f"secret: {results.secret}"
    note = "In percent" + (", ± half of the 95 % interval over seeds." if _has_intervals(rows) else ".")
    leak = (
        "strongest attack",
        "gap",
        "class-matched or balanced",
        "chance level",
        floor_name(Target.of(results.secret).is_links),
    )
    if one.is_sweep:
        own = _own(rows)
        columns = [
            *(Column("cell", "name"), Column("variant", "text"), Column(level_name(rows)), Column("seeds")),
            *(Column(name, group=utility) for name in ("here", "chance level")),
            *(Column(name, group=secret) for name in (own, *leak)),
            Column("flagged"),
        ]
        note += f" Gap: the strongest attack minus the {own}."
        lines = [_own_line(row) for row in rows]
        return Table("All trade-offs, with the strongest attack", columns, lines, note)
    columns = [
        Column("cell", "name"),
        Column("variant", "text"),
        Column("outcome", "text"),
        Column(level_name(rows)),
        Column("seeds"),
        *(Column(name, group=utility) for name in ("paper", "here", "difference")),
        *(Column(name, group=secret) for name in ("paper", "its protocol here", "difference", *leak)),
        Column("flagged"),
    ]
    note += " Gap: the strongest attack minus the protocol here."
    lines = [_line(row) for row in rows]
    return Table("The paper, its protocol here, and the strongest attack", columns, lines, note)


def _own(rows: Sequence[Row]) -> str:
    """The name of the own attack of the trainings; the methods of other authors have none."""
    return own_attacks((row.secret, row.variant) for row in rows if row.epsilon is None).attack or "own attack"


def _has_intervals(rows: Sequence[Row]) -> bool:
    return any(one.half > 0 for row in rows for one in (row.utility, row.fresh))


def _own_line(row: Row) -> list[str | Mark]:
    return [
        row.cell,
        row.variant,
        level_in_column(row),
        plain(row.seeds),
        plus_minus(row.utility),
        percent(row.utility_chance),
        plus_minus(row.protocol),
        *_leak_of(row),
    ]


def _line(row: Row) -> list[str | Mark]:
    utility, secret = row.paper or (None, None)
    return [
        row.cell,
        row.variant,
        VERDICTS[row.verdict],
        level_in_column(row),
        plain(row.seeds),
        percent(utility),
        plus_minus(row.utility),
        MISSING if utility is None else points(row.utility.value - utility),
        percent(secret),
        plus_minus(row.protocol),
        MISSING if secret is None else points(row.protocol.value - secret),
        *_leak_of(row),
    ]


def _leak_of(row: Row) -> list[str]:
    return [
        plus_minus(row.fresh),
        points(row.gap),
        plus_minus(row.finer),
        percent(row.chance),
        percent(row.floor),
        f"{row.flagged:.0%}",
    ]


def _charts(one: ExperimentRecord, results: SecretResults) -> list[Part]:
    parts: list[Part] = []
    for variant in dict.fromkeys(row.variant for row in results.rows):
        rows = [row for row in results.rows if row.variant == variant]
        if len({row.tradeoff for row in rows} - {None}) >= 3:
            parts.append(tradeoff_curves(variant, rows, (f"utility: {one.utility}", _own(rows), "strongest attack")))
    if not one.is_sweep:
        parts.append(utility_against_leak(results.rows, one.utility, results.secret))
    if curves := _curves(results.rows, one.name):
        parts.append(Fold(f"Training curves: {len(curves.panels)}", [curves]))
    if not one.is_sweep and (pictures := _maps(results.rows)):
        parts.append(Fold("Maps of the embeddings, before and after", pictures))
    return parts


def _curves(rows: Sequence[Row], name: str) -> Figure | None:
    """One training of each variant and cell: the one whose trade-off is closest to 0.5."""
    chosen: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: abs((row.tradeoff or 0.0) - 0.5)):
        if row.history is not None and row.history.round:
            chosen.setdefault((row.variant, row.cell), row)
    shown = [row for row in rows if chosen.get((row.variant, row.cell)) is row]
    with_history = sum(row.history is not None and len(row.history.round) > 0 for row in rows)
    note = ""
    if len(shown[:MOST_CURVES]) < with_history:
        note = f"{len(shown[:MOST_CURVES])} of {with_history} trainings; all are in {name}.json."
    titles = [(f"{row.cell} · {row.variant} · {level(row)}", row.history) for row in shown[:MOST_CURVES]]
    histories = [(title, history) for title, history in titles if history is not None]
    attacks = own_attacks((row.secret, row.variant) for row in shown[:MOST_CURVES])
    return training_curves(histories, attacks, note) if histories else None


def _maps(rows: Sequence[Row]) -> list[Part]:
    """A figure for each data set; for each encoder, unprotected embeddings come first."""
    pictures: list[Part] = []
    for dataset in dict.fromkeys(row.dataset for row in rows if row.map):
        these = [row for row in rows if row.map and row.dataset == dataset]
        these.sort(key=lambda row: (row.encoder, row.variant != UNPROTECTED, -(row.tradeoff or 0.0)))
        planes = [
            after(f"{row.encoder} · {row.variant} · {level(row)}", row.map) for row in these if row.map is not None
        ]
        pictures.append(maps(f"Embeddings of {dataset}", planes, "By secret class; unprotected embeddings first."))
    return pictures


def _texts(table: TableRecord) -> Section:
    kinds = [Column(name, "text" if i else "name") for i, name in enumerate(table.columns)]
    return Section(table.title, [Table("All rows", kinds, table.rows)])
