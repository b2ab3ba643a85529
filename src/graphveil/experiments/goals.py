"""The main results: the utility and the attacks of each graph and encoder, with the required values and the limits.

P1 keeps links and hides labels (Table 2); P2 keeps labels and hides links (Table 3).
"""

from collections.abc import Sequence

from graphveil.experiments.render import markdown_table, percent, with_half
from graphveil.experiments.spec import Experiment
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.target import LINKS

HEADING = "Main results"
PROBLEMS = {"table2": "P1: links kept, labels hidden", "table3": "P2: labels kept, links hidden"}
"""The heading of each problem, by the name of its experiment."""
SECOND_POINT = "Second operating point"
OURS, MATCHED = "codes", "matched"
NOT_RUN = "not run"

MAJORITY_MARGIN = 0.02
"""P1: the limit of the strongest attack, above the share of the largest class."""
FEATURES_MARGIN = 0.005
"""P2: the limit of attacks on z and the features, above attacks on the true labels and the features."""
CLASS_MATCHED_LIMIT = 0.55
"""The limit of the class-matched AUC at the second operating point."""

_ABOUT = (
    f"One row for each graph and encoder: variant `{OURS}`, audited with the full panel, against attackers who know"
    " every secret outside the test part. Values are percent, means over seeds ± half of the 95 % interval."
    " *unprotected* and *protected* are utilities. *paper* is the protected utility that the paper prints, and"
    " *required* is the lowest utility that this project accepts. *below paper* and *below required* are differences"
    " in points, empty if there is none. *certificate* is the best possible attack on this release; *certificate:"
    " other nodes* is the upper bound for nodes like these. *z and features* is the strongest attack that also holds"
    " the features, *features alone* is the same without z, and *z adds* is the difference."
)
_ABOUT_PROBLEM = {
    "labels": "Utility is the AUC of links; attacks are accuracies of labels. The limit of the strongest attack is the"
    f" share of the largest class plus {100 * MAJORITY_MARGIN:g} points.",
    "links": "Utility is the accuracy of labels; attacks are AUCs of links. The limit of the strongest attack is the"
    " AUC of comparing the true labels of both nodes for equality; *floor* is the AUC of the best rule on pairs of true"
    f" labels. The limit of *z and features* is *true labels and features* plus {100 * FEATURES_MARGIN:g} points: the"
    " same attackers on the same pairs, with the true labels in place of z.",
}


def main_results(tables: dict[str, tuple[Experiment, Sequence[Row]]]) -> str:
    """One Markdown table for each problem, with a row for each graph and encoder.

    Args:
        tables: experiments and their rows, by the name of the experiment.

    Returns:
        The tables with their headings; the empty string if no experiment has the variant `codes`.
    """
    parts = []
    for name, title in PROBLEMS.items():
        if name in tables and OURS in tables[name][0].variants:
            experiment, rows = tables[name]
            lines = [
                _line(experiment, dataset, encoder, rows)
                for dataset in experiment.datasets
                for encoder in experiment.encoders
            ]
            parts.append(f"#### {title}\n\n{_ABOUT_PROBLEM[experiment.secrets[0]]}\n\n{_table(lines)}")
    return "\n\n".join([f"### {HEADING}\n\n{_ABOUT}", *parts]) if parts else ""


def second_point(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Accuracy and class-matched AUC of the variant `matched`, as a Markdown table.

    Args:
        experiment: Table 3, in which links are hidden.
        rows: the rows of this experiment.

    Returns:
        The table with its heading; the empty string if the experiment has no such variant.
    """
    if MATCHED not in experiment.variants:
        return ""
    lines = [
        {"graph": dataset, "encoder": encoder} | _point(next(iter(_of(rows, MATCHED, dataset, encoder)), None))
        for dataset in experiment.datasets
        for encoder in experiment.encoders
    ]
    settings = ", ".join(f"`--set {setting}`" for setting in experiment.variants[MATCHED].settings)
    about = (
        f"P2 with {settings}: variant `{MATCHED}`, audited with the quick panel. The class-matched AUC compares links"
        " with non-links between nodes of the same two labels. The limit of the strongest attack is"
        f" {100 * CLASS_MATCHED_LIMIT:g}. Attacks are tested on pairs of the test part; certificates count all links."
    )
    return f"### {SECOND_POINT}\n\n{about}\n\n{_table(lines)}"


def _point(row: Row | None) -> dict[str, str]:
    auc, _, _, matched = _certificate(row)
    found = None if row is None else row.finer
    return {
        "seeds": "" if row is None else str(row.seeds),
        "accuracy": NOT_RUN if row is None else with_half(row.utility),
        "class-matched AUC: strongest attack": with_half(found),
        "within limit": _within(found, CLASS_MATCHED_LIMIT),
        "class-matched AUC: certificate": with_half(matched),
        "link AUC: strongest attack": with_half(_fresh(row)),
        "link AUC: certificate": with_half(auc),
    }


def _line(experiment: Experiment, dataset: str, encoder: str, rows: Sequence[Row]) -> dict[str, str]:
    """The values of one graph and encoder as text, by column."""
    ours, plain = (next(iter(_of(rows, variant, dataset, encoder)), None) for variant in (OURS, "unprotected"))
    paper = experiment.paper(OURS, dataset, encoder)
    printed = None if paper is None else paper[0]
    required = experiment.required[dataset] / 100 if dataset in experiment.required else None
    return {
        "graph": dataset,
        "encoder": encoder,
        "seeds": "" if ours is None else str(ours.seeds),
        "unprotected": NOT_RUN if plain is None else with_half(plain.utility),
        "paper": percent(printed),
        "required": percent(required),
        "protected": NOT_RUN if ours is None else with_half(ours.utility),
        "below paper": _below(ours, printed),
        "below required": _below(ours, required),
        "strongest attack": with_half(_fresh(ours)),
        **(_hides_links(ours) if LINKS in experiment.secrets else _hides_labels(ours)),
    }


def _hides_labels(row: Row | None) -> dict[str, str]:
    majority = None if row is None else row.chance
    limit = None if majority is None else majority + MAJORITY_MARGIN
    best, excess, bound, _ = _certificate(row)
    return {
        "largest class": percent(majority),
        "limit": percent(limit),
        "attack within limit": _within(_fresh(row), limit),
        "certificate": with_half(best),
        "certificate minus largest class": _signed(excess),
        "certificate: other nodes": with_half(bound),
        **_features(row),
    }


def _hides_links(row: Row | None) -> dict[str, str]:
    limit = None if row is None else row.equal_classes
    best, _, bound, matched = _certificate(row)
    features = None if row is None else row.with_features
    classes, over = (None, None) if features is None else (features.true_classes, features.over_true_classes)
    return {
        "limit: comparing true labels": percent(limit),
        "attack within limit": _within(_fresh(row), limit),
        "floor": percent(None if row is None else row.floor),
        "certificate": with_half(best),
        "certificate: class-matched": with_half(matched),
        "certificate: other nodes": with_half(bound),
        **_features(row),
        "true labels and features": with_half(classes),
        "z and features within limit": _within(over, FEATURES_MARGIN),
    }


def _fresh(row: Row | None) -> Interval | None:
    return None if row is None else row.fresh


def _certificate(row: Row | None) -> tuple[Interval | None, Interval | None, Interval | None, Interval | None]:
    """The values best, excess, limit and class_matched of a certificate."""
    if row is None or row.certified is None:
        return None, None, None, None
    found = row.certified
    return found.best, found.excess, found.limit, found.class_matched


def _features(row: Row | None) -> dict[str, str]:
    found = None if row is None else row.with_features
    value, alone, adds = (None, None, None) if found is None else (found.value, found.alone, found.z_adds)
    return {"z and features": with_half(value), "features alone": with_half(alone), "z adds": _signed(adds)}


def _below(row: Row | None, target: float | None) -> str:
    return "" if row is None or target is None else _above(target, row.utility.value)


def _within(mean: Interval | None, limit: float | None) -> str:
    if mean is None or limit is None:
        return ""
    above = _above(mean.value, limit)
    return f"no, {above} above" if above else "yes"


def _above(value: float, limit: float) -> str:
    """How many points `value` is above `limit`; the empty string if it is not."""
    if value <= limit:
        return ""
    points = f"{100 * (value - limit):.1f}"
    return "less than 0.1" if points == "0.0" else points


def _signed(mean: Interval | None) -> str:
    if mean is None:
        return ""
    half = f" ± {percent(mean.half)}" if mean.half else ""
    return f"{100 * mean.value:+.1f}{half}"


def _of(rows: Sequence[Row], variant: str, dataset: str, encoder: str) -> list[Row]:
    return [row for row in rows if (row.variant, row.dataset, row.encoder) == (variant, dataset, encoder)]


def _table(lines: Sequence[dict[str, str]]) -> str:
    return markdown_table(tuple(lines[0]), [tuple(line.values()) for line in lines]).rstrip()
