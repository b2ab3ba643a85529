"""What the re-run says, in sentences whose every number is taken from the rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from graphveil.errors import GraphveilError
from graphveil.experiments.goals import MATCHED, eighteen_cells, second_point
from graphveil.experiments.render import beside_paper, markdown, percent
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import SECRET_MARGIN, UTILITY_MARGIN, Row
from graphveil.files import write_text

Tables = Mapping[str, Sequence[Row]]
"""The rows of each experiment, by its name."""

HEADINGS = {
    "table2": "Links are kept, labels are hidden (Table 2)",
    "table3": "Labels are kept, links hidden (Table 3)",
}
FIGURES = {"table2": "figure2", "table3": "figure3"}


def findings(tables: Tables) -> str:
    """One page: what reproduces, what does not, and why; only of experiments that are there."""
    parts = []
    for name, heading in HEADINGS.items():
        rows, curve = tables.get(name, ()), tables.get(FIGURES[name], ())
        said = [
            _unprotected(rows),
            _protocol(rows),
            _sign(rows),
            _second_term(rows),
            _default(rows),
            _floor(rows),
            _collapse(rows),
            _ends(rows, curve),
        ]
        if any(said):
            parts += [f"### {heading}", *(sentence for sentence in said if sentence)]
    return "\n\n".join(parts)


def results(tables: Tables, experiments: Mapping[str, Experiment]) -> str:
    """The 18 cells, the findings, and under them every table; what the figures show is folded.

    Args:
        experiments: those of `tables`, by the same names.
    """
    parts = [_cells(tables, experiments), findings(tables)]
    for name, rows in tables.items():
        table = markdown(rows)
        if name.startswith("figure"):
            table = f"<details><summary>{len(rows)} points</summary>\n\n{table}\n</details>\n"
        parts.append(f"### {experiments[name].title}\n\n{table}")
    return "\n\n".join(part for part in parts if part)


def _cells(tables: Tables, experiments: Mapping[str, Experiment]) -> str:
    """Nothing of trainings of fewer rounds, which are not held against the paper."""
    judged = {name: (experiments[name], rows) for name, rows in tables.items() if not rows or beside_paper(rows)}
    parts = [eighteen_cells(judged)]
    if "table3" in judged:
        parts.append(second_point(*judged["table3"]))
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
    cells = [row for row in _of(rows, "unprotected") if row.paper]
    if not cells:
        return ""
    short = [
        f"{_named(row)} {percent(row.utility.value)} of {percent(row.paper[0])}"
        for row in cells
        if row.paper and row.utility.value < row.paper[0] - UTILITY_MARGIN["unprotected"]
    ]
    weak = [
        f"{_named(row)} {percent(row.protocol.value)} of {percent(row.paper[1])}"
        for row in cells
        if row.paper and row.protocol.value < row.paper[1] - SECRET_MARGIN
    ]
    found = [row for row in cells if row.paper and row.fresh.value >= row.paper[1] - SECRET_MARGIN]
    return (
        f"**Without protection** the utility is at least the paper's less one point in {len(cells) - len(short)} of"
        f" {len(cells)} cells{_listed(short)}. The paper's own attacker, trained afresh, reads at least the paper's"
        " number"
        f" less three points in {len(cells) - len(weak)}{_listed(weak)}, and the strongest fresh attack in"
        f" {len(found)}."
    )


def _protocol(rows: Sequence[Row]) -> str:
    """Which objectives stand beside the paper's protected numbers, read by the paper's own protocol."""
    judged = [row for row in _defaults(rows) if row.paper and row.utility.ci is not None]
    if not judged:
        return ""
    held = {
        name: [row for row in _of(judged, name) if row.verdict in ("reproduced", "better")]
        for name in _variants(judged)
    }
    cells = dict.fromkeys(map(_named, judged))
    had = {_named(row) for these in held.values() for row in these}
    missing = [
        f"{_named(row)} (keeps {percent(row.utility.value)} of {percent(row.paper[0])}, its adversary reads"
        f" {percent(row.protocol.value)} of {percent(row.paper[1])})"
        for row in judged
        if row.paper and _named(row) not in had and row.variant == "published"
    ]
    return (
        "**By the paper's protocol** (as far as the intervals over seeds allow to say, the adversary that was trained"
        " along reads at most three points more than the paper's, and the utility is at most two points below) of the"
        f" {len(cells)} protected cells are reproduced or better:"
        f" {', '.join(f'{len(these)} by `{name}`' for name, these in held.items())}; by any of them {len(had)}."
        + (f" Not by any; with `published`: {'; '.join(missing)}." if missing else "")
    )


def _defaults(rows: Sequence[Row]) -> list[Row]:
    """Protected rows, without the second operating point, which gives up utility on purpose."""
    return [row for row in rows if row.variant not in ("unprotected", MATCHED)]


def _sign(rows: Sequence[Row]) -> str:
    pairs = _side_by_side(rows, "unprotected", "published")
    if not pairs:
        return ""
    told = [row.fresh.value - plain.fresh.value for plain, row in pairs]
    kept = [row.utility.value - plain.utility.value for plain, row in pairs]
    tied = [row for _, row in pairs if _hides_links(row) and row.protocol.value == 0.5]
    awake = [_named(row) for _, row in pairs if row.protocol.value > row.chance + SECRET_MARGIN]
    return (
        "**The sign in the pseudo-code.** `published` is the appendix to the letter: the adversary climbs its own"
        " loss, and so does the encoder. With the usual guard against log 0, an adversary that saturates on the wrong"
        " side has no gradient left, and little else than the utility is left to train for. That adversary reads"
        f" {_range([row.protocol.value for _, row in pairs])} %"
        + (f"; in {len(awake)} of {len(pairs)} cells ({'; '.join(awake)}) it does not saturate" if awake else "")
        + f". Beside no protection at all, what a fresh attacker reads moves by {_points(told)}, and the utility by"
        f" {_points(kept)}."
        + (
            f" In {len(tied)} of {len(pairs)} cells ({'; '.join(map(_named, tied))}) its probabilities are all 0 or all"
            " 1 in float32, and the AUC of ties is 50 exactly, as the paper prints for GAT."
            if tied
            else ""
        )
    )


def _second_term(rows: Sequence[Row]) -> str:
    pairs = _side_by_side(rows, "minimax", "club")
    if not pairs:
        return ""
    return (
        "**The second term of vCLUB**, which the paper drops, removes the reward for an adversary that is"
        " confidently wrong."
        f" Without it (`minimax`) that adversary reads {_mean(pairs, 0, 'protocol')} % on average over the cells, a"
        " fresh one"
        f" {_mean(pairs, 0, 'fresh')} %, and the utility is {_mean(pairs, 0, 'utility')} %; with it (`club`) they read"
        f" {_mean(pairs, 1, 'protocol')} and {_mean(pairs, 1, 'fresh')} %, at {_mean(pairs, 1, 'utility')} %."
    )


def _default(rows: Sequence[Row]) -> str:
    pairs = _side_by_side(rows, "club", "codes")
    if not pairs:
        return ""
    behind = [
        f"{_named(codes)} ({percent(club.fresh.value)} to {percent(codes.fresh.value)})"
        for club, codes in pairs
        if club.fresh.value < codes.fresh.value
    ]
    return (
        f"**Our default.** The full panel reads {_mean(pairs, 1, 'fresh')} % on average under `codes`, and the quick"
        f" one {_mean(pairs, 0, 'fresh')} % under `club`, at a utility of {_mean(pairs, 1, 'utility')} and"
        f" {_mean(pairs, 0, 'utility')} %; guessing reads {100 * fmean(codes.chance for _, codes in pairs):.1f} %."
        + (f" `club` is read less on {'; '.join(behind)}." if behind else "")
        + (" On average it is the better hider here, and the worse keeper." if _club_hides_and_loses(pairs) else "")
    )


def _club_hides_and_loses(pairs: Sequence[tuple[Row, Row]]) -> bool:
    fresh, utility = (
        fmean(getattr(club, column).value - getattr(codes, column).value for club, codes in pairs)
        for column in ("fresh", "utility")
    )
    return fresh < 0 and utility < 0


def _floor(rows: Sequence[Row]) -> str:
    hidden = [row for row in _defaults(rows) if _hides_links(row) and row.floor is not None]
    useful = [row for row in hidden if row.paper and row.utility.value >= row.paper[0] - UTILITY_MARGIN["protected"]]
    if not useful:
        return ""
    floors = {row.dataset: row.floor for row in hidden if row.floor is not None}
    below = [row for row in useful if row.floor is not None and row.fresh.value < row.floor]
    lowest = min(useful, key=lambda row: row.fresh.value)
    return (
        "**The floor.** The best rule on pairs of true labels predicts links with an AUC of"
        f" {', '.join(f'{percent(value)} ({name})' for name, value in floors.items())}. Of the {len(useful)}"
        " protected rows"
        f" whose utility is at most two points below the paper's, a fresh attacker reads {len(below)} below that"
        " floor; the"
        f" lowest reading is {percent(lowest.fresh.value)} (`{lowest.variant}`, {_named(lowest)})."
        + ("" if below else " None of these objectives hides links in embeddings that are useful for labels.")
    )


def _collapse(rows: Sequence[Row]) -> str:
    flagged = sorted((row for row in rows if row.flagged > 0), key=lambda row: -row.flagged)
    if not flagged:
        return ""
    named = "; ".join(f"`{row.variant}` {_named(row)} {row.flagged:.0%}" for row in flagged[:8])
    return (
        f"**Collapse is not privacy.** In {len(flagged)} of {len(rows)} rows the audit flags some of the runs, for a"
        " utility at"
        f" chance, constant or tied answers, dead dimensions or too few examples; most often: {named}."
    )


def _ends(rows: Sequence[Row], curve: Sequence[Row]) -> str:
    """What the figure says at lambda 0 and 1."""
    curve, plain = _of(curve, "codes"), {_named(row): row for row in _of(rows, "unprotected")}
    said = []
    gains = [row.utility.value - row.utility_chance for row in curve if row.tradeoff == 0]
    if gains:
        said.append(f"At lambda 0 the utility is {_points(gains)} from guessing.")
    costs = [
        row.utility.value - plain[_named(row)].utility.value
        for row in curve
        if row.tradeoff == 1 and _named(row) in plain
    ]
    if costs:
        said.append(
            "At lambda 1 codes hide nothing, but they are still discrete: beside the unprotected encoder that moves the"
            f" utility by {_points(costs)}."
        )
    return f"**The ends of the figure.** {' '.join(said)}" if said else ""


def _of(rows: Sequence[Row], variant: str) -> list[Row]:
    return [row for row in rows if row.variant == variant]


def _variants(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.variant for row in rows))


def _named(row: Row) -> str:
    return f"{row.dataset} {row.encoder}"


def _hides_links(row: Row) -> bool:
    return row.secret == "links"


def _side_by_side(rows: Sequence[Row], one: str, other: str) -> list[tuple[Row, Row]]:
    others = {_named(row): row for row in _of(rows, other)}
    return [(row, others[_named(row)]) for row in _of(rows, one) if _named(row) in others]


def _mean(pairs: Sequence[tuple[Row, Row]], which: int, column: str) -> str:
    return f"{100 * fmean(getattr(pair[which], column).value for pair in pairs):.1f}"


def _listed(short: Sequence[str]) -> str:
    return f" (short: {'; '.join(short)})" if short else ""


def _points(differences: Sequence[float]) -> str:
    return f"{100 * fmean(differences):+.1f} points ({100 * min(differences):+.1f} to {100 * max(differences):+.1f})"


def _range(values: Sequence[float]) -> str:
    return f"{percent(min(values))} to {percent(max(values))}"
