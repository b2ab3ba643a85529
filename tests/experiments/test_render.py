"""The formats of a table."""

import csv
import io
import re
from dataclasses import replace

from graphveil.experiments.render import brief, comma_separated, latex, markdown
from graphveil.experiments.spec import Experiment, load_experiment
from graphveil.formats import Interval
from tests.experiments.made import PLAIN, a_row, estimate


def test_one_seed_has_no_interval_in_any_format() -> None:
    one = Interval(0.75)
    row = replace(PLAIN, seeds=1, utility=one, protocol=one, fresh=one, finer=one, utility_chance=0.5)
    for paper in (PLAIN.paper, None):
        rows = [replace(row, paper=paper)]
        assert "±" not in "".join(map(str, (markdown(rows), latex(rows, "T"), brief(rows))))
        (line,) = csv.DictReader(io.StringIO(comma_separated(rows)))
        assert {value for name, value in line.items() if name.endswith(("_low", "_high"))} == {""}
        assert (line["utility"], line["fresh"]) == ("0.75", "0.75")


def test_a_sweep_is_compared_with_chance_levels_and_not_with_a_paper() -> None:
    rows = [replace(PLAIN, variant="codes", tradeoff=tradeoff, paper=None) for tradeoff in (0.5, 1.0)]
    for text in (markdown(rows), latex(rows, "T"), comma_separated(rows), *brief(rows)[0]):
        assert not re.search("paper|verdict|repr|protocol", text)
    assert brief(rows) == (
        ["lambda", "utility (chance)", "majority class per code", "strongest attack", "chance level"],
        [[tradeoff, "92.0 ± 1.0 (50.0)", "74.0 ± 1.0", "85.0 ± 1.0", "30.0"] for tradeoff in ("0.5", "1")],
    )
    head, _, first, _ = markdown(rows).splitlines()
    cells_of = dict(zip(head.split(" | "), first.split(" | "), strict=True))
    assert (cells_of["utility"], cells_of["utility: chance level"], cells_of["chance level"]) == (
        "92.0 ± 1.0",
        "50.0",
        "30.0",
    )
    line = next(csv.DictReader(io.StringIO(comma_separated(rows))))
    assert (line["adversary"], line["utility_chance"], line["chance"]) == ("0.74", "0.5", "0.3")


def test_every_format_has_every_row() -> None:
    experiment: Experiment = load_experiment("table2")
    rows = [
        a_row(name, estimate(0.5), estimate(0.5), experiment.paper(name, "cora", "gcn")) for name in experiment.variants
    ]
    assert markdown(rows).count("\n") == 2 + 5
    assert comma_separated(rows).count("\n") == 1 + 5
    assert latex(rows, "A & B").count(r"\\") == 1 + 5
    assert r"A \& B" in latex(rows, "A & B")
