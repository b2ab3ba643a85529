"""The results of the simulations as Markdown: `python -m benchmarks.power.tables runs/power.jsonl`."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Lines = Sequence[dict[str, Any]]
MIN_RATE = 0.95
"""The share of trials in which a planted secret must be found."""


def leaks(lines: Lines) -> str:
    """The error of the headline by kind of leak and number of nodes, over all sizes of the leak."""
    rows = []
    for (kind, n), some in sorted(_by(lines, lambda one: (one["settings"][0], one["settings"][2])).items()):
        errors = [100 * one["error"] for one in some]
        shares = [f"{100 * np.mean([one[name] for one in some]):.0f} %" for name in ("own_interval", "covers")]
        ideal = 100 * np.mean([one["shape_known"] for one in some])
        rows.append([kind, f"{n:,}", str(len(some)), f"{np.mean(errors):+.1f}", f"{ideal:+.1f}", *shares])
    head = [
        "leak",
        "known nodes, and queried nodes",
        "trials",
        "mean error, points",
        "of an attacker who knows the shape",
        "interval of this attack covers",
        "interval up to the bound over all attacks covers",
    ]
    return _table(head, rows)


def information(lines: Lines) -> str:
    """The mean of the lower bound and the true information."""
    rows = []
    for (kind, nats), some in sorted(_by(lines, lambda one: tuple(one["settings"][:2])).items()):
        lower = np.mean([one["lower"] for one in some])
        rows.append([kind, f"{nats:.2f}", str(len(some)), f"{lower:.4f}", f"{100 * (lower / nats - 1):+.0f} %"])
    return _table(["leak", "nats", "trials", "mean of the lower bound", "error"], rows)


def noise(lines: Lines) -> str:
    """How often an interval excludes the chance level, and how often a value is significantly above its reference."""
    rows = []
    for kind, some in sorted(_by(lines, lambda one: one["settings"][0]).items()):
        outside, leaking = (100 * np.mean([one[name] for one in some]) for name in ("outside", "leaks"))
        rows.append([kind, str(len(some)), f"{outside:.1f} %", f"{leaking:.1f} %"])
    head = [
        "secret",
        "trials",
        "interval of the strongest attack excludes chance (above or below)",
        "some value is significantly above its reference",
    ]
    return _table(head, rows)


def planted(lines: Lines) -> str:
    """How often each planted secret is found, and the smallest share that is found in 95 % of trials."""
    shares = sorted({one["settings"][1] for one in lines})
    rows = []
    for name, some in sorted(_by(lines, lambda one: one["settings"][0]).items()):
        rates = {
            share: float(np.mean([one["found"] for one in some if one["settings"][1] == share])) for share in shares
        }
        enough = [share for share in shares if all(rates[other] >= MIN_RATE for other in shares if other >= share)]
        weakest = f"{100 * enough[0]:.0f} %" if enough else "none"
        rows.append([name, *(f"{100 * rates[share]:.0f}" for share in shares), weakest])
    head = ["planted", *(f"found at {100 * share:.0f} %" for share in shares), "weakest found in 95 %"]
    return _table(head, rows)


def from_outside(lines: Lines) -> str:
    """The best model of each library beside the headline of the audit and its upper bound, in percent."""
    names = sorted(set.intersection(*(set(one["libraries"]) for one in lines)))
    rows, above, over = [], [], []
    for one in sorted(lines, key=lambda one: one["settings"][:3]):
        graph, secret, objective, *_ = one["settings"]
        found = [one["libraries"][name] for name in names]
        above += [value > one["upper"] for value in found]
        over += [100 * (value - one["headline"]) for value in found]
        numbers = [one["headline"], one["upper"], *found]
        rows.append([graph, secret, objective, *(f"{100 * number:.1f}" for number in numbers)])
    table = _table(["graph", "secret", "objective", "strongest attack", "upper bound", *names], rows)
    summary = (
        f"{sum(above)} of {len(above)} are above the upper bound; the mean difference from the strongest attack is"
    )
    return f"{table}\n\n{summary} {np.mean(over):+.1f} points ({min(over):+.1f} to {max(over):+.1f})."


TABLES: dict[str, Callable[[Lines], str]] = {
    "leak": leaks,
    "information": information,
    "noise": noise,
    "plant": planted,
    "outside": from_outside,
}


def markdown(lines: Lines) -> str:
    """All tables with trials."""
    by_name = {name: [line for line in lines if line["trial"] == name] for name in TABLES}
    return "\n\n".join(TABLES[name](trials) for name, trials in by_name.items() if trials) + "\n"


def _by(lines: Lines, key: Callable[[dict[str, Any]], Any]) -> dict[Any, list[dict[str, Any]]]:
    groups = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return dict(groups)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    results = [
        json.loads(line) for path in sys.argv[1:] for line in Path(path).read_text(encoding="utf-8").splitlines()
    ]
    sys.stdout.write(markdown(results))
