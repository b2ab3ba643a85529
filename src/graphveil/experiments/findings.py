"""What the re-run says, in sentences whose every number is taken from the rows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from graphveil.audit import Estimate
from graphveil.errors import GraphveilError
from graphveil.experiments.tables import SECRET_MARGIN, UTILITY_MARGIN, Row, markdown
from graphveil.files import write_text

Tables = Mapping[str, Sequence[Row]]
"""The rows of each experiment, by its name."""


def findings(tables: Tables) -> str:
    """One page: what reproduces, what does not, and why; only of experiments that are there."""
    both = [row for name in ("table2", "table3") for row in tables.get(name, ())]
    paragraphs = [
        *(part(both) for part in (_unprotected, _protocol, _sign, _second_term, _collapse) if both),
        *(part(tables[name]) for name, part in (("table3", _floor), ("table2", _kernel)) if name in tables),
        *_ends(tables),
    ]
    return "\n\n".join(paragraphs)


def results(tables: Tables, titles: Mapping[str, str]) -> str:
    """The findings, and under them every table; what the figures show is folded."""
    parts = [findings(tables)]
    for name, rows in tables.items():
        table = markdown(rows)
        if name.startswith("figure"):
            table = f"<details><summary>{len(rows)} points</summary>\n\n{table}\n</details>\n"
        parts.append(f"### {titles[name]}\n\n{table}")
    return "\n\n".join(part for part in parts if part)


def put_between_marks(file: Path, between: str | None) -> None:
    """Replace what stands between the marks of a file; None only looks whether they are there."""
    first, second = "<!-- reproduce: begin -->", "<!-- reproduce: end -->"
    try:
        before, _, rest = file.read_text(encoding="utf-8").partition(first)
    except (OSError, UnicodeDecodeError) as error:
        raise GraphveilError(f"{file} cannot be read ({error}): give a Markdown file for the results.") from error
    _, found, after = rest.partition(second)
    if not found:
        raise GraphveilError(f"{file} has no place for the results: put the lines {first} and {second} where they go.")
    if between is not None:
        write_text(file, f"{before}{first}\n{between}\n{second}{after}")


def _unprotected(rows: Sequence[Row]) -> str:
    cells = _of(rows, "unprotected")
    short = [row for row in cells if row.paper and row.utility.value < row.paper[0] - UTILITY_MARGIN["unprotected"]]
    weak = [row for row in cells if row.paper and row.protocol.value < row.paper[1] - SECRET_MARGIN]
    found = [row for row in cells if row.paper and row.fresh.value >= row.paper[1] - SECRET_MARGIN]
    return (
        f"**Without protection.** The utility is at least the paper's less one point in {len(cells) - len(short)} of"
        f" {len(cells)} cells{_listed(short, lambda row: row.utility, 0)}. The paper's own attacker, trained afresh,"
        f" reads at least the paper's number less three points in {len(cells) - len(weak)} of"
        f" {len(cells)}{_listed(weak, lambda row: row.protocol, 1)}; the strongest fresh attack does in {len(found)}."
    )


def _protocol(rows: Sequence[Row]) -> str:
    cells = {_cell(row) for row in rows if row.variant != "unprotected"}
    held = {name: {_cell(row) for row in _of(rows, name) if _holds(row)} for name in _variants(rows)}
    by_variant = ", ".join(f"`{name}` {len(these)}" for name, these in held.items())
    missing = sorted(cells - set().union(*held.values()))
    explained = []
    for cell in missing:
        best = max((row for row in rows if _cell(row) == cell and row.variant == "published"), key=_kept, default=None)
        if best is not None and best.paper is not None:
            explained.append(
                f"{_named(best)} (`published` keeps {_percent(best.utility.value)} of {_percent(best.paper[0])}, its"
                f" adversary reads {_percent(best.protocol.value)} of {_percent(best.paper[1])})"
            )
    return (
        "**By the paper's protocol** (the adversary that was trained along reads at most the paper's number and three"
        " points, and the utility is at least the paper's less two) these objectives have, of"
        f" {len(cells)} protected cells: {by_variant}; any of them {len(cells) - len(missing)}."
        + (f" Not had: {'; '.join(explained)}." if explained else "")
    )


def _sign(rows: Sequence[Row]) -> str:
    published, plain = _of(rows, "published"), {_cell(row): row for row in _of(rows, "unprotected")}
    gaps = [plain[_cell(row)].fresh.value - row.fresh.value for row in published if _cell(row) in plain]
    if not gaps:
        return ""
    ties = [row for row in published if abs(row.protocol.value - 0.5) < 0.0005]
    return (
        "**The sign in the pseudo-code.** `published` is the appendix to the letter: the adversary climbs its own loss,"
        " and so does the encoder. With the usual guard against log 0, the adversary saturates on the wrong side, its"
        " gradient vanishes, and the encoder is trained for the utility alone. The adversary then reads"
        f" {_range([row.protocol.value for row in published])} %, and a fresh attacker reads what it reads without any"
        f" protection: less by {100 * fmean(gaps):.1f} points on average and by {100 * max(gaps):.1f} at most."
        + (
            f" In {len(ties)} cells ({'; '.join(map(_named, ties))}) its probabilities are 0 or 1 in float32, and an"
            " AUC of ties is 50.0, as the paper prints for GAT."
            if ties
            else ""
        )
    )


def _second_term(rows: Sequence[Row]) -> str:
    pairs = _side_by_side(rows, "minimax", "club")
    if not pairs:
        return ""
    return (
        "**The second term of vCLUB**, which the paper drops. Without it (`minimax`) the encoder is paid for an"
        f" adversary that is confidently wrong: a fresh attacker reads {_mean(pairs, 0, 'fresh')} % on average where"
        f" that adversary reads {_mean(pairs, 0, 'protocol')} %. With it (`club`) the two read"
        f" {_mean(pairs, 1, 'fresh')} and {_mean(pairs, 1, 'protocol')} %. The utility is"
        f" {_mean(pairs, 0, 'utility')} % without and {_mean(pairs, 1, 'utility')} % with it."
    )


def _collapse(rows: Sequence[Row]) -> str:
    flagged = [row for row in rows if row.flagged > 0]
    if not flagged:
        return "**Collapse.** No run is flagged."
    worst = sorted(flagged, key=lambda row: -row.flagged)
    named = "; ".join(f"`{row.variant}` {_named(row)} {row.flagged:.0%}" for row in worst[:8])
    return (
        f"**Collapse is not privacy.** In {len(flagged)} of {len(rows)} rows at least one run is flagged (utility at"
        f" chance, constant or tied predictions), most often: {named}."
    )


def _floor(rows: Sequence[Row]) -> str:
    floors = {row.dataset: row.floor for row in rows if row.floor is not None}
    useful = [row for row in rows if row.variant != "unprotected" and row.paper and _useful(row)]
    if not floors or not useful:
        return ""
    below = [row for row in useful if row.floor is not None and row.fresh.value < row.floor]
    lowest = min(useful, key=lambda row: row.fresh.value)
    told = ", ".join(f"{name} {_percent(value)}" for name, value in floors.items())
    return (
        f"**The floor.** Whoever compares two true labels guesses links with an AUC of {told}. Of the"
        f" {len(useful)} protected rows of Table 3 whose utility is within two points of the paper's or better,"
        f" {len(below)} are read below that floor by a fresh attacker; the lowest reading is"
        f" {_percent(lowest.fresh.value)} ({lowest.variant}, {_named(lowest)})."
        + ("" if below else " None of these objectives hides links in embeddings that are useful for labels.")
    )


def _kernel(rows: Sequence[Row]) -> str:
    pairs = _side_by_side(rows, "club", "kernel")
    if not pairs:
        return ""
    behind = [(club, kernel) for club, kernel in pairs if club.fresh.value < kernel.fresh.value]
    named = ", ".join(
        f"{_named(kernel)} ({_percent(club.fresh.value)} to {_percent(kernel.fresh.value)})" for club, kernel in behind
    )
    return (
        f"**Our default.** Where labels are hidden, a fresh attacker reads {_mean(pairs, 1, 'fresh')} % on average"
        f" under `kernel` and {_mean(pairs, 0, 'fresh')} % under `club`, at a utility of"
        f" {_mean(pairs, 1, 'utility')} and {_mean(pairs, 0, 'utility')} %; guessing reads"
        f" {100 * fmean(kernel.chance for _, kernel in pairs):.1f} %."
        + (f" `club` hides more on {named}." if behind else "")
    )


def _ends(tables: Tables) -> list[str]:
    """What the figures say at lambda 0 and 1."""
    said = []
    for figure, table in (("figure2", "table2"), ("figure3", "table3")):
        rows = tables.get(figure, ())
        none = [row for row in rows if row.tradeoff == 0]
        if none:
            gains = [row.utility.value - row.utility_chance for row in none]
            said.append(
                f"at lambda 0 ({figure}) the utility is {100 * min(gains):+.1f} to {100 * max(gains):+.1f} points from"
                f" guessing"
            )
        plain = {_cell(row): row for row in _of(tables.get(table, ()), "unprotected")}
        same = [(row, plain[_cell(row)]) for row in rows if row.tradeoff == 1 and _cell(row) in plain]
        same = [(row, other) for row, other in same if row.seeds == other.seeds]
        if same:
            largest = max(abs(row.utility.value - other.utility.value) for row, other in same)
            said.append(f"at lambda 1 it is the unprotected run's to within {100 * largest:.2f} points")
    if not said:
        return []
    text = "; ".join(said)
    return [
        f"**The ends of the figures.** {text[0].upper()}{text[1:]}. Hiding labels alone does not hide links, which at"
        " lambda 0 can still be read. Alone, a run at lambda 1 is the unprotected one bit for bit; in a batch on a GPU"
        " it is up to the order of sums."
    ]


def _of(rows: Sequence[Row], variant: str) -> list[Row]:
    return [row for row in rows if row.variant == variant]


def _variants(rows: Sequence[Row]) -> list[str]:
    return [name for name in dict.fromkeys(row.variant for row in rows) if name != "unprotected"]


def _cell(row: Row) -> tuple[str, str, str]:
    """The secret's chance tells the two tables apart: one half is links."""
    return ("links" if row.chance == 0.5 else "nodes", row.dataset, row.encoder)


def _useful(row: Row) -> bool:
    return row.paper is not None and row.utility.value >= row.paper[0] - UTILITY_MARGIN["protected"]


def _holds(row: Row) -> bool:
    return row.paper is not None and _useful(row) and row.protocol.value <= row.paper[1] + SECRET_MARGIN


def _kept(row: Row) -> float:
    return row.utility.value


def _side_by_side(rows: Sequence[Row], one: str, other: str) -> list[tuple[Row, Row]]:
    others = {_cell(row): row for row in _of(rows, other)}
    return [(row, others[_cell(row)]) for row in _of(rows, one) if _cell(row) in others]


def _mean(pairs: Sequence[tuple[Row, Row]], which: int, column: str) -> str:
    return f"{100 * fmean(getattr(pair[which], column).value for pair in pairs):.1f}"


def _listed(rows: Sequence[Row], ours: Callable[[Row], Estimate], place: int) -> str:
    """The cells that fall short, each with its number and the paper's."""
    if not rows:
        return ""
    named = [f"{_named(row)} {_percent(ours(row).value)} of {_percent(row.paper[place])}" for row in rows if row.paper]
    return f" (short: {'; '.join(named)})"


def _named(row: Row) -> str:
    """A cell in words; which table it is of is said where its secret is links."""
    return f"{row.dataset} {row.encoder}" + (", links hidden" if row.chance == 0.5 else "")


def _range(values: Sequence[float]) -> str:
    return f"{_percent(min(values))} to {_percent(max(values))}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
