"""The page of experiments: what the paper printed, what its protocol gives here, and what a fresh attacker reads."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphveil.reporting.charts import (
    level_in_column,
    level_name,
    maps,
    tradeoff_curves,
    training_curves,
    utility_against_leak,
)
from graphveil.reporting.findings import details
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
    give_or_take,
    metric_name,
    percent,
    plain,
    points,
)
from graphveil.reporting.results import Experiment, Row, SecretResults, Words

MOST_CURVES = 36
LONGEST = 60
"""Rows of a table above which it waits behind a click."""
ABOVE = "Above guessing: the whole interval over seeds of the strongest fresh attack is."
EPSILONS = "The ε of gap protects any one link; that of rr protects the published class of a node, not its links."
UNPROTECTED = "unprotected"
VERDICTS = {
    "reproduced": Mark("✓", "reproduced", "good"),
    "better": Mark("▲", "better", "good"),
    "not reproduced": Mark("✗", "not reproduced", "bad"),
    "": Mark(MISSING, "not judged", "none"),
}


def comparison_page(experiments: Sequence[Experiment | Words]) -> Page:
    """All experiments of a folder."""
    run = [one for one in experiments if isinstance(one, Experiment)]
    papers, own = ([one for one in run if one.is_own is which and one.rows] for which in (False, True))
    return Page(
        title=run[0].title if len(run) == 1 else "Experiments",
        answer=_answer(papers, own, [fault for one in run for fault in one.failed]),
        verdict=None,
        facts=[],
        summary=[*([_counts(papers)] if papers else []), *([_leaks(own)] if own else [])],
        sections=[section for one in experiments for section in _sections(one)],
    )


def _answer(papers: Sequence[Experiment], own: Sequence[Experiment], failed: Sequence[tuple[str, str]]) -> list[str]:
    sentences = []
    if papers:
        sentences += _against_the_paper([row for one in papers for row in one.rows])
    if own:
        sentences += _against_guessing([row for one in own for row in one.rows])
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
        sentences = [f"Of {judged} rows that can be held against the paper: {found}."]
    else:
        sentences = [f"None of the {len(rows)} rows can be held against the paper's numbers."]
    worst = _worst([row for row in rows if row.variant != UNPROTECTED])
    if worst is not None and worst.gap is not None and worst.gap <= 0:
        sentences.append("In no cell does a fresh attacker read more than the paper's protocol.")
    elif worst is not None:
        sentences.append(
            f"The paper's protocol understates the leak of {worst.secret} most for {worst.variant} on {worst.cell} at"
            f" {worst.level}: its adversary reads {give_or_take(worst.protocol)} %, a fresh attacker"
            f" {give_or_take(worst.fresh)} % ({points(worst.gap)})."
        )
    return sentences


def _against_guessing(rows: Sequence[Row]) -> list[str]:
    judged, told = _judged(rows)
    if judged:
        sentences = [f"In {told} of {judged} rows the strongest fresh attack reads more than guessing does."]
    else:
        sentences = ["One seed has no interval: whether a fresh attack reads more than guessing does is not said here."]
    worst = _worst(rows)
    if worst is not None and worst.gap is not None and worst.gap > 0:
        sentences.append(
            f"The adversary trained along understates the leak of {worst.secret} most at {worst.level}: it"
            f" reads {give_or_take(worst.protocol)} %, a fresh attacker {give_or_take(worst.fresh)} %"
            f" ({points(worst.gap)})."
        )
    return sentences


def _judged(rows: Sequence[Row]) -> tuple[int, int]:
    """How many rows have an interval over seeds, and of how many all of it is above guessing."""
    able = [(row.fresh, row.chance) for row in rows if row.fresh and row.chance is not None and (row.seeds or 0) >= 2]
    return len(able), sum(fresh.low > chance for fresh, chance in able)


def _counts(experiments: Sequence[Experiment]) -> Table:
    """Verdicts, leaks and the worst gap of every experiment and variant."""
    columns = [
        Column("experiment and variant", "name"),
        Column("cells"),
        *(Column(f"{mark.symbol} {mark.text}", group="against the paper") for mark in VERDICTS.values()),
        Column("above guessing", group="fresh attack"),
        Column("worst gap to the protocol", group="fresh attack"),
        Column("of the cell", "text", group="fresh attack"),
    ]
    lines = []
    for name, rows in _groups(experiments):
        counts = Counter(row.verdict for row in rows)
        lines.append([name, str(len(rows)), *(str(counts[verdict]) for verdict in VERDICTS), *_leak(rows)])
    note = (
        "A verdict compares with the paper's numbers by the paper's protocol, and says nothing about privacy: for"
        " that, see"
        f" what a fresh attack reads. {ABOVE}"
    )
    return Table("Verdicts and gaps", columns, lines, note)


def _leaks(experiments: Sequence[Experiment]) -> Table:
    """Leaks and the worst gap of every sweep."""
    columns = [
        Column("sweep and variant", "name"),
        Column("cells"),
        Column("above guessing", group="fresh attack"),
        Column("worst gap to the adversary", group="fresh attack"),
        Column("of the cell", "text", group="fresh attack"),
    ]
    lines = [[name, str(len(rows)), *_leak(rows)] for name, rows in _groups(experiments)]
    return Table("Leaks and gaps", columns, lines, ABOVE)


def _groups(experiments: Sequence[Experiment]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of every experiment, secret and variant."""
    for one in experiments:
        several = len(one.secrets) > 1
        for secret, variant in dict.fromkeys((row.secret, row.variant) for row in one.rows):
            name = " · ".join([one.name or one.title, *([secret] if several else []), variant])
            yield name, [row for row in one.rows if (row.secret, row.variant) == (secret, variant)]


def _leak(rows: Sequence[Row]) -> list[str]:
    judged, told = _judged(rows)
    worst = _worst(rows)
    gap = [points(worst.gap), f"{worst.cell} · {worst.level}"] if worst else [MISSING, MISSING]
    return [f"{told} of {judged}" if judged else MISSING, *gap]


def _worst(rows: Sequence[Row]) -> Row | None:
    able = [row for row in rows if row.gap is not None]
    return max(able, key=lambda row: row.gap or 0.0, default=None)


def _sections(one: Experiment | Words) -> list[Section]:
    """One for each secret."""
    return [_words(one)] if isinstance(one, Words) else [_section(one, told) for told in one.secrets]


def _section(one: Experiment, told: SecretResults) -> Section:
    parts: list[Part] = [Prose([_about(one, told)])]
    if one.failed:
        parts.append(Table("Failed cells", [Column("cell", "name"), Column("fault", "text")], one.failed))
    if told.rows:
        table = _table(one, told)
        parts.append(table if len(told.rows) <= LONGEST else Fold(f"{table.title}: {len(told.rows)} rows", [table]))
        parts += _charts(one, told)
    config = [details("Configuration", one.config), details("Versions", one.versions)]
    title = one.title if len(one.secrets) == 1 else f"What is told of {told.secret}"
    return Section(title, [*parts, *config])


def _about(one: Experiment, told: SecretResults) -> str:
    kept, hidden = (metric_name(metric) or "metric unknown" for metric in (one.metric, told.metric))
    others = [other.secret for other in one.secrets if other.secret != told.secret]
    along = f", and {' and '.join(others)} along with it" if others else ""
    sentence = f"Kept: {one.utility} ({kept}). Hidden: {told.secret} ({hidden}){along}."
    attacker = f" The paper's attacker on unprotected embeddings: {told.papers_attacker}."
    peers = dict.fromkeys(row.variant for row in told.rows if row.epsilon is not None)
    return "".join(
        [
            sentence,
            attacker if told.papers_attacker and not one.is_own else "",
            f" Methods of others, by their ε: {', '.join(peers)}. {EPSILONS}" if peers else "",
        ]
    )


def _table(one: Experiment, told: SecretResults) -> Table:
    utility, secret = f"utility: {one.utility}", f"secret: {told.secret}"
    note = "In percent" + (", ± half of the 95 % interval over seeds." if _has_intervals(told.rows) else ".")
    leak = ("fresh attack", "gap", "class-matched or balanced", "guessing", "floor")
    if one.is_own:
        columns = [
            *(Column("cell", "name"), Column("variant", "text"), Column(level_name(told.rows)), Column("seeds")),
            *(Column(name, group=utility) for name in ("here", "guessing")),
            *(Column(name, group=secret) for name in ("adversary trained along", *leak)),
            Column("flagged"),
        ]
        note += " Gap: what the fresh attack reads beyond the adversary that was trained along."
        lines = [_own_line(row) for row in told.rows]
        return Table("Every trade-off, and a fresh attacker", columns, lines, note)
    columns = [
        Column("cell", "name"),
        Column("variant", "text"),
        Column("verdict", "text"),
        Column(level_name(told.rows)),
        Column("seeds"),
        *(Column(name, group=utility) for name in ("paper", "here", "difference")),
        *(Column(name, group=secret) for name in ("paper", "its protocol here", "difference", *leak)),
        Column("flagged"),
    ]
    note += " Gap: what the fresh attack reads beyond the protocol."
    lines = [_line(row) for row in told.rows]
    return Table("The paper, its protocol here, and a fresh attacker", columns, lines, note)


def _has_intervals(rows: Sequence[Row]) -> bool:
    return any(one is not None and one.half > 0 for row in rows for one in (row.utility, row.fresh))


def _own_line(row: Row) -> list[str | Mark]:
    return [
        row.cell,
        row.variant,
        level_in_column(row),
        plain(row.seeds),
        give_or_take(row.utility),
        percent(row.utility_chance),
        give_or_take(row.protocol),
        *_leak_of(row),
    ]


def _line(row: Row) -> list[str | Mark]:
    kept, told = row.paper
    return [
        row.cell,
        row.variant,
        VERDICTS[row.verdict],
        level_in_column(row),
        plain(row.seeds),
        percent(kept),
        give_or_take(row.utility),
        MISSING if row.utility is None or kept is None else points(row.utility.value - kept),
        percent(told),
        give_or_take(row.protocol),
        MISSING if row.protocol is None or told is None else points(row.protocol.value - told),
        *_leak_of(row),
    ]


def _leak_of(row: Row) -> list[str]:
    return [
        give_or_take(row.fresh),
        points(row.gap),
        give_or_take(row.finer),
        percent(row.chance),
        percent(row.floor),
        MISSING if row.flagged is None else f"{row.flagged:.0%}",
    ]


def _charts(one: Experiment, told: SecretResults) -> list[Part]:
    parts: list[Part] = []
    names = (f"utility: {one.utility}", "joint adversary", "strongest fresh attack")
    for variant in dict.fromkeys(row.variant for row in told.rows):
        rows = [row for row in told.rows if row.variant == variant]
        if len({row.tradeoff for row in rows} - {None}) >= 3:
            parts.append(tradeoff_curves(variant, rows, names))
    parts.append(utility_against_leak(told.rows, one.utility, told.secret))
    if curves := _curves(told.rows, one.name):
        parts.append(Fold(f"Training curves: {len(curves.panels)}", [curves]))
    if pictures := _maps(told.rows):
        parts.append(Fold("Maps of the embeddings, before and after", pictures))
    return parts


def _curves(rows: Sequence[Row], name: str) -> Figure | None:
    """One training of every variant and cell: that of the middle trade-off."""
    chosen: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: abs((row.tradeoff or 0.0) - 0.5)):
        if row.history is not None and row.history.round:
            chosen.setdefault((row.variant, row.cell), row)
    shown = [row for row in rows if chosen.get((row.variant, row.cell)) is row]
    with_history = sum(row.history is not None and len(row.history.round) > 0 for row in rows)
    note = ""
    if len(shown[:MOST_CURVES]) < with_history:
        note = f"{len(shown[:MOST_CURVES])} of {with_history} trainings; all are in {name or 'the experiment'}.json."
    titles = [(f"{row.cell} · {row.variant} · {row.level}", row.history) for row in shown[:MOST_CURVES]]
    histories = [(title, history) for title, history in titles if history is not None]
    return training_curves(histories, note) if histories else None


def _maps(rows: Sequence[Row]) -> list[Part]:
    """A figure for each data set: every encoder without protection first, and then with it."""
    pictures: list[Part] = []
    for dataset in dict.fromkeys(row.dataset for row in rows if row.map):
        these = [row for row in rows if row.map and row.dataset == dataset]
        these.sort(key=lambda row: (row.encoder, row.variant != UNPROTECTED, -(row.tradeoff or 0.0)))
        places = [
            replace(row.map, title=f"{row.encoder} · {row.variant} · {row.level}")
            for row in these
            if row.map is not None
        ]
        text = "In two dimensions, by the secret class; unprotected first. The axes have no meaning of their own."
        pictures.append(maps(f"Embeddings of {dataset}", places, text))
    return pictures


def _words(table: Words) -> Section:
    kinds = [Column(name, "text" if i else "name") for i, name in enumerate(table.columns)]
    return Section(table.title, [Table("Every row", kinds, table.rows)])
