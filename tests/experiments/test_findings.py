"""The page of findings: every number is from the rows, and what is not there is not said."""

from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments.findings import findings, put_between_marks, results
from graphveil.experiments.spec import NAMES, load_experiment
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from tests.experiments.made import PLAIN


def exactly(value: float) -> Interval:
    return Interval(value, (value, value))


def hidden(variant: str, utility: float, joint: float, fresh: float, **other: object) -> Row:
    row = replace(PLAIN, variant=variant, tradeoff=0.5, paper=(0.794, 0.285), utility=exactly(utility))
    return replace(row, protocol=exactly(joint), fresh=exactly(fresh), **other)  # type: ignore[arg-type]


EXPERIMENTS = {name: load_experiment(name) for name in NAMES}
TABLE2 = [
    PLAIN,
    hidden("published", 0.90, 0.03, 0.84),
    hidden("minimax", 0.88, 0.31, 0.81),
    hidden("club", 0.75, 0.30, 0.37),
    hidden("codes", 0.72, 0.30, 0.39, flagged=0.4),
]


def test_numbers_are_those_of_the_rows() -> None:
    text = findings({"table2": TABLE2})
    assert "the utility is at least the paper's less one point in 1 of 1 cells." in text
    assert (
        "reproduced or better: 1 by `published`, 1 by `minimax`, 0 by `club`, 0 by `codes`; by any of them 1." in text
    )
    assert "That adversary reads 3.0 to 3.0 %" in text
    assert (
        "what a fresh attacker reads moves by -1.0 points (-1.0 to -1.0), and the utility by -2.0 points"
        " (-2.0 to -2.0)" in text
    )
    assert "(`minimax`) that adversary reads 31.0 % on average over the cells, a fresh one 81.0 %" in text
    assert "In 1 of 5 rows the audit flags some of the runs" in text
    assert "reads 39.0 % on average under `codes`, and the quick one 37.0 % under `club`" in text
    assert "`club` is read less on cora gcn (37.0 to 39.0)" in text
    for absent in ("The floor", "ends of the figure", "50 exactly", "Table 3", "\n\n\n"):
        assert absent not in text


def test_what_falls_short_is_named_with_its_numbers() -> None:
    weak = replace(PLAIN, utility=exactly(0.87), protocol=exactly(0.6))
    text = findings({"table2": [weak, hidden("published", 0.70, 0.03, 0.84)]})
    assert "in 0 of 1 cells (short: cora gcn 87.0 of 89.3)" in text
    assert "(short: cora gcn 60.0 of 72.0)" in text
    assert "with `published`: cora gcn (keeps 70.0 of 79.4, its adversary reads 3.0 of 28.5)" in text
    assert findings({"table2": []}) == ""
    assert "Without protection" not in findings({"table2": TABLE2[1:]}), "nothing is said of what is not there"


def test_the_floor_and_the_ties() -> None:
    links = {"secret": "links", "chance": 0.5, "utility_chance": 0.3, "floor": 0.817, "paper": (0.797, 0.499)}
    plain = replace(PLAIN, secret="links", chance=0.5, utility_chance=0.3, fresh=exactly(0.987))
    text = findings({"table3": [plain, hidden("published", 0.80, 0.5, 0.98, **links)]})
    assert "an AUC of 81.7 (cora)" in text
    assert "a fresh attacker reads 0 below that floor; the lowest reading is 98.0 (`published`, cora gcn)" in text
    assert "In 1 of 1 cells (cora gcn) its probabilities are all 0 or all 1" in text
    assert "None of these objectives hides links" in text
    below = [plain, hidden("published", 0.80, 0.5004, 0.70, **links)]
    assert "None of these objectives" not in findings({"table3": below}), "it is said only where it is so"
    assert "50 exactly" not in findings({"table3": below}), "nearly is not exactly"
    assert "50 exactly" not in findings({"table2": [PLAIN, hidden("published", 0.8, 0.5, 0.7)]}), "half of the labels"


def test_the_ends_of_the_figures() -> None:
    figure = [hidden("codes", 0.62, 0.3, 0.3, tradeoff=0.0), replace(PLAIN, variant="codes", utility=exactly(0.9203))]
    text = findings({"table2": [PLAIN], "figure2": figure})
    assert "At lambda 0 the utility is +12.0 points (+12.0 to +12.0) from guessing." in text
    assert "beside the unprotected encoder that moves the utility by +0.0 points" in text
    peer = [replace(row, variant="rr") for row in figure]
    assert "ends of the figure" not in findings({"table2": [PLAIN], "figure2": peer}), "a peer has no lambda"


def test_results_hold_every_table_between_the_marks(tmp_path: Path) -> None:
    text = results({"table2": TABLE2, "figure2": TABLE2}, EXPERIMENTS)
    assert text.startswith("### 18 cells\n")
    assert "### Table 2: link prediction, labels hidden\n" in text
    assert "<details><summary>5 points</summary>" in text
    assert text.count("| club | cora | gcn |") == 2
    file = tmp_path / "RESULTS.md"
    page = "# Results\n<!-- reproduce: begin -->\nold\n<!-- reproduce: end -->\nrest\n"
    file.write_text(page)
    put_between_marks(file, None)
    assert file.read_text() == page
    put_between_marks(file, text)
    assert file.read_text() == page.replace("old", text)
    for torn in ("", "<!-- reproduce: begin -->", "<!-- reproduce: end --><!-- reproduce: begin -->"):
        file.write_text(torn)
        with pytest.raises(GraphveilError, match="put the lines <!-- reproduce: begin -->"):
            put_between_marks(file, None)
    for unreadable in (tmp_path, tmp_path / "none.md"):
        with pytest.raises(GraphveilError, match="cannot be read"):
            put_between_marks(unreadable, None)


def test_what_is_not_held_against_the_paper_has_no_goals() -> None:
    """Trainings of fewer rounds, and runs without `codes`."""
    short = [replace(row, paper=None) for row in TABLE2]
    assert "18 cells" not in results({"table2": short}, EXPERIMENTS)
    without = replace(EXPERIMENTS["table2"], variants={"club": EXPERIMENTS["table2"].variants["club"]})
    assert "18 cells" not in results({"table2": TABLE2[3:4]}, {"table2": without})
    both = results({"table2": TABLE2, "table3": [], "figure3": []}, EXPERIMENTS)
    places = [both.index(title) for title in ("#### P1", "#### P2", "### Second operating point", "### Links are kept")]
    assert places == sorted(places)


def test_one_seed_reproduces_nothing_and_fails_nothing() -> None:
    """Without an interval there is no verdict, and no count of verdicts."""
    once = [
        replace(row, seeds=1, utility=Interval(row.utility.value), protocol=Interval(row.protocol.value))
        for row in TABLE2
    ]
    assert "By the paper's protocol" in findings({"table2": TABLE2})
    assert "By the paper's protocol" not in findings({"table2": once})
