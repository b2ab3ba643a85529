"""What the paper printed, what its protocol gives here, and what a fresh attacker reads, side by side."""

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.stats import t as student

from graphveil.audit import Estimate
from graphveil.experiments.spec import Experiment

Verdict = Literal["reproduced", "better", "not reproduced", ""]

UTILITY_MARGIN = {"unprotected": 0.01, "protected": 0.02}
SECRET_MARGIN = 0.03
WIDEST = 0.05
"""Half-width of an interval over seeds above which its mean says nothing."""

COLUMNS = (
    "variant",
    "graph",
    "encoder",
    "lambda",
    "seeds",
    "utility: paper",
    "ours",
    "difference",
    "secret: paper",
    "its protocol here",
    "difference",
    "strongest fresh attack",
    "class-matched or balanced",
    "guessing",
    "flagged",
    "verdict",
)

BRIEF = ("cell", "variant, lambda", "utility (paper)", "adversary (paper)", "fresh", "repr.")


@dataclass(frozen=True)
class Row:
    """One cell over its seeds.

    Args:
        protocol: the reading of the paper's own attacker: fresh on unprotected embeddings, trained along otherwise,
            and there from float32 probabilities, as is usual. An AUC below one half counts as much above: who is
            reliably wrong about links tells as much as who is right.
        fresh_attack: the one that was the strongest most often.
        finer: the class-matched AUC of links, the balanced accuracy of a node secret.
        floor: what the utility implies if it is perfect, where that is known.
        flagged: the share of runs with a flag.
    """

    variant: str
    dataset: str
    encoder: str
    secret: str
    tradeoff: float
    seeds: int
    utility: Estimate
    protocol: Estimate
    fresh: Estimate
    fresh_attack: str
    finer: Estimate | None
    utility_chance: float
    chance: float
    floor: float | None
    flagged: float
    paper: tuple[float, float] | None

    @property
    def verdict(self) -> Verdict:
        """From the intervals and not by eye: of utility and secret the worse; nothing where nothing can be said."""
        if self.paper is None or self.seeds < 2:
            return ""
        unprotected = self.variant == "unprotected"
        margin = UTILITY_MARGIN["unprotected" if unprotected else "protected"]
        kept = _judge(self.utility, self.paper[0], margin)
        # A leak that is not found where nothing is hidden means a weak attacker; where it is hidden, less is better.
        sign = 1 if unprotected else -1
        told = _judge(_times(self.protocol, sign), sign * self.paper[1], SECRET_MARGIN)
        verdict = max(kept, told, key=("better", "reproduced", "", "not reproduced").index)
        return "reproduced" if verdict == "better" and self.flagged else verdict


def row(
    experiment: Experiment, key: tuple[str, str, str, float], results: Sequence[dict[str, Any]], judge: bool = True
) -> Row:
    """From the saved results of all seeds.

    Args:
        judge: whether to hold it against the paper.
    """
    variant, dataset, encoder, tradeoff = key
    papers = [result["attacks"][experiment.papers_attacker] for result in results]
    joint = [result["joint_rounded"] for result in results]
    if experiment.secret == "links":
        joint = [max(value, 1 - value) for value in joint]
    floors = [result["floor"] for result in results]
    finer = [result["class_matched"] if experiment.secret == "links" else result["balanced"] for result in results]
    return Row(
        variant=variant,
        dataset=dataset,
        encoder=encoder,
        secret=experiment.secret,
        tradeoff=tradeoff,
        seeds=len(results),
        utility=over_seeds([result["utility"] for result in results]),
        protocol=over_seeds(papers if variant == "unprotected" else joint),
        fresh=over_seeds([result["fresh"] for result in results]),
        fresh_attack=statistics.mode(result["fresh_attack"] for result in results),
        finer=None if None in finer else over_seeds(finer),
        utility_chance=statistics.fmean(result["utility_chance"] for result in results),
        chance=statistics.fmean(result["chance"] for result in results),
        floor=None if None in floors else statistics.fmean(floors),
        flagged=statistics.fmean(bool(result["flags"]) for result in results),
        paper=experiment.paper(variant, dataset, encoder) if judge else None,
    )


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean and 95 % interval over runs, by Student's t; of one run the interval is unknown, and the value alone."""
    centre = statistics.fmean(values)
    if len(values) < 2:
        return Estimate(centre, centre, centre)
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(centre, centre - half, centre + half)


def brief(rows: Sequence[Row]) -> list[list[str]]:
    """Every row as the words of `BRIEF`, for a terminal of 80 columns."""

    def beside(ours: Estimate, paper: float | None) -> str:
        return _with_half(ours) + ("" if paper is None else f" ({percent(paper)})")

    return [
        [
            f"{one.dataset} {one.encoder}",
            f"{one.variant} {one.tradeoff:g}",
            beside(one.utility, one.paper and one.paper[0]),
            beside(one.protocol, one.paper and one.paper[1]),
            _with_half(one.fresh),
            {"not reproduced": "no", "reproduced": "yes"}.get(one.verdict, one.verdict),
        ]
        for one in rows
    ]


def texts(rows: Sequence[Row]) -> list[list[str]]:
    """Every row as the words of `COLUMNS`."""
    return [
        [
            one.variant,
            one.dataset,
            one.encoder,
            f"{one.tradeoff:g}",
            str(one.seeds),
            percent(one.paper and one.paper[0]),
            _with_half(one.utility),
            _difference(one.utility, one.paper and one.paper[0]),
            percent(one.paper and one.paper[1]),
            _with_half(one.protocol),
            _difference(one.protocol, one.paper and one.paper[1]),
            _with_half(one.fresh),
            "" if one.finer is None else _with_half(one.finer),
            percent(one.chance),
            f"{one.flagged:.0%}",
            one.verdict,
        ]
        for one in rows
    ]


def markdown(rows: Sequence[Row]) -> str:
    """For people who read files."""
    return _markdown(COLUMNS, texts(rows))


def comma_separated(rows: Sequence[Row]) -> str:
    """For programs: every number by itself, unrounded."""
    out = io.StringIO()
    writer = csv.writer(out)
    numbers = ("utility", "protocol", "fresh", "finer")
    heads = [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
    head = ["variant", "graph", "encoder", "lambda", "seeds", "paper_utility", "paper_secret", *heads]
    writer.writerow([*head, "chance", "flagged", "verdict"])
    for one in rows:
        estimates = [getattr(one, name) for name in numbers]
        values = [v for e in estimates for v in (("", "", "") if e is None else (e.value, e.low, e.high))]
        first = [one.variant, one.dataset, one.encoder, one.tradeoff, one.seeds, *(one.paper or ("", ""))]
        writer.writerow([*first, *values, one.chance, one.flagged, one.verdict])
    return out.getvalue()


def latex(rows: Sequence[Row], title: str) -> str:
    """A booktabs table for a paper."""
    return _latex(COLUMNS, texts(rows), title)


def simple_tables(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    """Words as they are, by the suffix of each form's file."""
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return {"md": _markdown(columns, rows), "csv": out.getvalue(), "tex": _latex(columns, rows, title)}


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(words)} |" for words in rows)]) + "\n"


def _latex(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    lines = [
        r"\begin{table}\centering\small",
        rf"\caption{{{_escape(title)}}}",
        rf"\begin{{tabular}}{{{'l' * len(columns)}}}\toprule",
        " & ".join(map(_escape, columns)) + r" \\ \midrule",
        *(" & ".join(map(_escape, words)) + r" \\" for words in rows),
        r"\bottomrule\end{tabular}\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _judge(ours: Estimate, paper: float, margin: float) -> Verdict:
    """Better if the whole interval is above the paper's, reproduced or not if it is on one side of the margin.

    Across the margin the mean decides if the interval is narrow; but what holds the paper's own number is never called
    not reproduced.
    """
    if ours.low > paper:
        return "better"
    if ours.low >= paper - margin:
        return "reproduced"
    if ours.high < paper - margin:
        return "not reproduced"
    if ours.half > WIDEST:
        return ""
    if ours.value >= paper - margin:
        return "reproduced"
    return "" if ours.high >= paper else "not reproduced"


def _times(estimate: Estimate, sign: int) -> Estimate:
    low, high = sorted((sign * estimate.low, sign * estimate.high))
    return Estimate(sign * estimate.value, low, high)


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _with_half(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} ± {100 * estimate.half:.1f}" if estimate.half else percent(estimate.value)


def _difference(estimate: Estimate, paper: float | None) -> str:
    return "" if paper is None else f"{100 * (estimate.value - paper):+.1f}"


def _escape(text: str) -> str:
    """LaTeX's special characters that occur here."""
    for plain, escaped in {"&": r"\&", "%": r"\%", "_": r"\_", "±": r"$\pm$"}.items():
        text = text.replace(plain, escaped)
    return text
