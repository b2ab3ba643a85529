"""Summarise the results of `graphveil reproduce` in sentences; every number is computed from the rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from graphveil.errors import GraphveilError
from graphveil.experiments.goals import MATCHED, main_results, second_point
from graphveil.experiments.render import has_paper, markdown, percent
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import SECRET_MARGIN, UTILITY_MARGIN, Row
from graphveil.files import write_text
from graphveil.target import Target

Tables = Mapping[str, Sequence[Row]]
"""The rows of each experiment, by the name of the experiment."""

HEADINGS = {
    "table2": "Links kept, labels hidden (Table 2)",
    "table3": "Labels kept, links hidden (Table 3)",
}
FIGURES = {"table2": "figure2", "table3": "figure3"}


def findings(tables: Tables) -> str:
    """Markdown sections that say what is reproduced, what is not, and why.

    Args:
        tables: the rows of each experiment; an experiment without rows is left out.
    """
    parts = []
    for name, heading in HEADINGS.items():
        rows, curve = tables.get(name, ()), tables.get(FIGURES[name], ())
        paragraphs = [
            _unprotected(rows),
            _protocol(rows),
            _sign(rows),
            _second_term(rows),
            _default(rows),
            _floor(rows),
            _collapse(rows),
            _ends(rows, curve),
        ]
        if any(paragraphs):
            parts += [f"### {heading}", *(paragraph for paragraph in paragraphs if paragraph)]
    return "\n\n".join(parts)


def results(tables: Tables, experiments: Mapping[str, Experiment]) -> str:
    """The main results, the findings and every table as Markdown; tables of figures are collapsed.

    Args:
        tables: the rows of each experiment.
        experiments: the experiments of `tables`, by the same names.
    """
    parts = [_main_results(tables, experiments), findings(tables)]
    for name, rows in tables.items():
        table = markdown(rows)
        if name.startswith("figure"):
            table = f"<details><summary>{len(rows)} points</summary>\n\n{table}\n</details>\n"
        parts.append(f"### {experiments[name].title}\n\n{table}")
    return "\n\n".join(part for part in parts if part)


def _main_results(tables: Tables, experiments: Mapping[str, Experiment]) -> str:
    """Leave out runs with fewer rounds, which are not compared with the paper."""
    compared = {name: (experiments[name], rows) for name, rows in tables.items() if not rows or has_paper(rows)}
    parts = [main_results(compared)]
    if "table3" in compared:
        parts.append(second_point(*compared["table3"]))
    return "\n\n".join(part for part in parts if part)


def put_between_marks(file: Path, between: str | None) -> None:
    """Replace the text between the marks of a file.

    Args:
        file: a Markdown file with both marks.
        between: the new text; None only checks that the marks exist.

    Raises:
        GraphveilError: if the file cannot be read, or a mark is missing.
    """
    first, second = "<!-- reproduce: begin -->", "<!-- reproduce: end -->"
    try:
        before, _, rest = file.read_text(encoding="utf-8").partition(first)
    except (OSError, UnicodeDecodeError) as error:
        raise GraphveilError(f"{file} cannot be read ({error}): give a Markdown file for the results.") from error
    _, found, after = rest.partition(second)
    if not found:
        raise GraphveilError(
            f"{file} has no marks for the results: add the lines {first} and {second} where the results belong."
        )
    if between is not None:
        write_text(file, f"{before}{first}\n{between}\n{second}{after}")


def _unprotected(rows: Sequence[Row]) -> str:
    unprotected = [row for row in _of(rows, "unprotected") if row.paper]
    if not unprotected:
        return ""
    low_utility = [
        f"{_name(row)} {percent(row.utility.value)}, paper {percent(row.paper[0])}"
        for row in unprotected
        if row.paper and row.utility.value < row.paper[0] - UTILITY_MARGIN["unprotected"]
    ]
    weak = [
        f"{_name(row)} {percent(row.protocol.value)}, paper {percent(row.paper[1])}"
        for row in unprotected
        if row.paper and row.protocol.value < row.paper[1] - SECRET_MARGIN
    ]
    strong = [row for row in unprotected if row.paper and row.fresh.value >= row.paper[1] - SECRET_MARGIN]
    return (
        "**Without protection.** The utility is at least the paper's minus one point in"
        f" {len(unprotected) - len(low_utility)} of {len(unprotected)} rows{_exceptions(low_utility)}. The"
        f" {_metric(unprotected[0])} of the paper's own attack, trained on the finished embeddings, is at least the"
        f" paper's minus three points in {len(unprotected) - len(weak)}{_exceptions(weak)}. That of the strongest"
        f" attack is in {len(strong)}."
    )


def _protocol(rows: Sequence[Row]) -> str:
    """How many protected results of the paper each variant reproduces by the paper's own protocol."""
    judged = [row for row in _defaults(rows) if row.paper and row.utility.ci is not None]
    if not judged:
        return ""
    reproduced = {
        variant: {_name(row) for row in _of(judged, variant) if row.verdict in ("reproduced", "better")}
        for variant in _variants(judged)
    }
    by_any = set[str]().union(*reproduced.values())
    missing = [
        f"{_name(row)} (utility {percent(row.utility.value)}, paper {percent(row.paper[0])}; joint adversary"
        f" {percent(row.protocol.value)}, paper {percent(row.paper[1])})"
        for row in judged
        if row.paper and _name(row) not in by_any and row.variant == "published"
    ]
    return (
        f"**By the paper's protocol**, the attack {_metric(judged[0])} is that of the joint adversary. A result is"
        " reproduced if, within the intervals over seeds, the adversary is at most three points above the paper's and"
        f" the utility is at most two points below it. Of the {len({*map(_name, judged)})} protected results, the"
        f" number reproduced or better is {', '.join(f'{len(reproduced[name])} with `{name}`' for name in reproduced)},"
        f" and {len(by_any)} with at least one of these variants."
        + (f" Not reproduced with any variant (values of `published`): {'; '.join(missing)}." if missing else "")
    )


def _defaults(rows: Sequence[Row]) -> list[Row]:
    """Protected rows, without the second operating point, which gives up utility on purpose."""
    return [row for row in rows if row.variant not in ("unprotected", MATCHED)]


def _sign(rows: Sequence[Row]) -> str:
    pairs = _paired(rows, "unprotected", "published")
    if not pairs:
        return ""
    attack = [row.fresh.value - plain.fresh.value for plain, row in pairs]
    utility = [row.utility.value - plain.utility.value for plain, row in pairs]
    tied = [row for _, row in pairs if _hides_links(row) and row.protocol.value == 0.5]
    unsaturated = [_name(row) for _, row in pairs if row.protocol.value > row.chance + SECRET_MARGIN]
    metric = _metric(pairs[0][1])
    return (
        "**The sign in the pseudo-code.** `published` follows the appendix literally: the adversary maximises its own"
        " loss, and so does the encoder. With the usual guard against log 0, an adversary that saturates on the wrong"
        " side has no gradient left, and the encoder is then trained almost only for the utility. The"
        f" {metric} of this adversary is {_range([row.protocol.value for _, row in pairs])} %"
        + (
            f"; in {len(unsaturated)} of {len(pairs)} rows ({'; '.join(unsaturated)}) it does not saturate"
            if unsaturated
            else ""
        )
        + f". Compared with no protection, the {metric} of the strongest attack changes by {_points(attack)}, and the"
        f" utility by {_points(utility)}."
        + (
            f" In {len(tied)} of {len(pairs)} rows ({'; '.join(map(_name, tied))}) its probabilities are all 0 or all"
            " 1 in float32. The AUC of ties is exactly 50, as the paper prints for GAT."
            if tied
            else ""
        )
    )


def _second_term(rows: Sequence[Row]) -> str:
    pairs = _paired(rows, "minimax", "club")
    if not pairs:
        return ""
    metric = _metric(pairs[0][0])
    return (
        "**The second term of vCLUB**, which the paper drops, removes the reward for an adversary that is"
        f" confidently wrong. Without it (`minimax`), the mean {metric} is {_mean(pairs, 0, 'protocol')} % for the"
        f" joint adversary and {_mean(pairs, 0, 'fresh')} % for the strongest attack, at a mean utility of"
        f" {_mean(pairs, 0, 'utility')} %. With it (`club`), these are {_mean(pairs, 1, 'protocol')},"
        f" {_mean(pairs, 1, 'fresh')} and {_mean(pairs, 1, 'utility')} %."
    )


def _default(rows: Sequence[Row]) -> str:
    pairs = _paired(rows, "club", "codes")
    if not pairs:
        return ""
    weaker = [
        f"{_name(codes)} ({percent(club.fresh.value)}, `codes` {percent(codes.fresh.value)})"
        for club, codes in pairs
        if club.fresh.value < codes.fresh.value
    ]
    return (
        f"**Our default.** The mean {_metric(pairs[0][1])} of the strongest attack is {_mean(pairs, 1, 'fresh')} % on"
        f" `codes` (full panel) and {_mean(pairs, 0, 'fresh')} % on `club` (quick panel), at mean utilities of"
        f" {_mean(pairs, 1, 'utility')} and {_mean(pairs, 0, 'utility')} %. The mean chance level is"
        f" {100 * fmean(codes.chance for _, codes in pairs):.1f} %."
        + (f" The strongest attack is weaker on `club` for {'; '.join(weaker)}." if weaker else "")
        + (" On average `club` hides more here, and keeps less utility." if _club_hides_and_loses(pairs) else "")
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
        f" {', '.join(f'{percent(value)} ({name})' for name, value in floors.items())}. The utility of {len(useful)}"
        " protected rows is at most two points below the paper's. The AUC of the strongest attack is below the floor in"
        f" {len(below)} of them, and the lowest is {percent(lowest.fresh.value)} (`{lowest.variant}`, {_name(lowest)})."
        + ("" if below else " None of these variants hides links in embeddings that are useful for labels.")
    )


def _collapse(rows: Sequence[Row]) -> str:
    flagged = sorted((row for row in rows if row.flagged > 0), key=lambda row: -row.flagged)
    if not flagged:
        return ""
    most = "; ".join(f"`{row.variant}` {_name(row)} {row.flagged:.0%}" for row in flagged[:8])
    return (
        f"**Collapse is not privacy.** In {len(flagged)} of {len(rows)} rows the audit flags some of the runs, because"
        " the utility is at chance level, predictions are constant or tied, dimensions of z are constant, or there are"
        f" too few examples. The rows with the largest share of flagged runs are {most}."
    )


def _ends(rows: Sequence[Row], curve: Sequence[Row]) -> str:
    """The utility of `codes` in the figure at lambda 0 and 1."""
    curve, plain = _of(curve, "codes"), {_name(row): row for row in _of(rows, "unprotected")}
    sentences = []
    gains = [row.utility.value - row.utility_chance for row in curve if row.tradeoff == 0]
    if gains:
        sentences.append(f"At lambda 0 the utility differs from the chance level by {_points(gains)}.")
    costs = [
        row.utility.value - plain[_name(row)].utility.value
        for row in curve
        if row.tradeoff == 1 and _name(row) in plain
    ]
    if costs:
        sentences.append(
            "At lambda 1 codes hide nothing, but they are still discrete: compared with the unprotected encoder, the"
            f" utility changes by {_points(costs)}."
        )
    return f"**The ends of the figure.** {' '.join(sentences)}" if sentences else ""


def _of(rows: Sequence[Row], variant: str) -> list[Row]:
    return [row for row in rows if row.variant == variant]


def _variants(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.variant for row in rows))


def _name(row: Row) -> str:
    return f"{row.dataset} {row.encoder}"


def _hides_links(row: Row) -> bool:
    return Target.of(row.secret).is_links


def _metric(row: Row) -> str:
    """The metric of attacks on the secret of a row."""
    return Target.of(row.secret).metric_name


def _paired(rows: Sequence[Row], one: str, other: str) -> list[tuple[Row, Row]]:
    others = {_name(row): row for row in _of(rows, other)}
    return [(row, others[_name(row)]) for row in _of(rows, one) if _name(row) in others]


def _mean(pairs: Sequence[tuple[Row, Row]], which: int, column: str) -> str:
    """The mean of the values as the tables round them, so that readers, and the README, get the same mean."""
    return f"{fmean(round(100 * getattr(pair[which], column).value, 1) for pair in pairs):.1f}"


def _exceptions(names: Sequence[str]) -> str:
    return f" (not in {'; '.join(names)})" if names else ""


def _points(differences: Sequence[float]) -> str:
    return f"{100 * fmean(differences):+.1f} points ({100 * min(differences):+.1f} to {100 * max(differences):+.1f})"


def _range(values: Sequence[float]) -> str:
    return f"{percent(min(values))} to {percent(max(values))}"
