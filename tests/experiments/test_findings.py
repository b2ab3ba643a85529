"""The findings: every number comes from the rows, and experiments without rows are left out."""

from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments.findings import findings, put_between_marks, results
from graphveil.experiments.spec import NAMES, load_experiment
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from tests.experiments.made import PLAIN


def narrow(value: float) -> Interval:
    return Interval(value, (value, value))


def hidden(variant: str, utility: float, joint: float, fresh: float, **other: object) -> Row:
    row = replace(PLAIN, variant=variant, tradeoff=0.5, paper=(0.794, 0.285), utility=narrow(utility))
    return replace(row, protocol=narrow(joint), fresh=narrow(fresh), **other)  # type: ignore[arg-type]


EXPERIMENTS = {name: load_experiment(name) for name in NAMES}
TABLE2 = [
    PLAIN,
    hidden("published", 0.90, 0.03, 0.84),
    hidden("minimax", 0.88, 0.31, 0.81),
    hidden("club", 0.75, 0.30, 0.37),
    hidden("codes", 0.72, 0.30, 0.39, flagged=0.4),
]


def test_numbers_come_from_the_rows() -> None:
    text = findings({"table2": TABLE2})
    assert "The utility is at least the paper's minus one point in 1 of 1 rows." in text
    assert (
        "Of the 1 protected results, the number reproduced or better is 1 with `published`, 1 with `minimax`, 0 with"
        " `club`, 0 with `codes`, and 1 with at least one of these variants." in text
    )
    assert "The accuracy of this adversary is 3.0 to 3.0 %." in text
    assert (
        "the accuracy of the strongest attack changes by -1.0 points (-1.0 to -1.0), and the utility by -2.0 points"
        " (-2.0 to -2.0)" in text
    )
    assert (
        "(`minimax`), the mean accuracy is 31.0 % for the joint adversary and 81.0 % for the strongest attack, at a"
        " mean utility of 88.0 %. With it (`club`), these are 30.0, 37.0 and 75.0 %." in text
    )
    assert "In 1 of 5 rows the audit flags some of the runs" in text
    assert (
        "of the strongest attack is 39.0 % on `codes` (full panel) and 37.0 % on `club` (quick panel), at mean"
        " utilities of 72.0 and 75.0 %. The mean chance level is 30.0 %." in text
    )
    assert "The strongest attack is weaker on `club` for cora gcn (37.0, `codes` 39.0)" in text
    for absent in ("The floor", "ends of the figure", "exactly 50", "Table 3", "\n\n\n"):
        assert absent not in text


def test_rows_below_the_paper_are_listed_with_their_numbers() -> None:
    weak = replace(PLAIN, utility=narrow(0.87), protocol=narrow(0.6))
    text = findings({"table2": [weak, hidden("published", 0.70, 0.03, 0.84)]})
    assert "in 0 of 1 rows (not in cora gcn 87.0, paper 89.3)" in text
    assert "(not in cora gcn 60.0, paper 72.0)" in text
    assert "(values of `published`): cora gcn (utility 70.0, paper 79.4; joint adversary 3.0, paper 28.5)." in text
    assert findings({"table2": []}) == ""
    assert "Without protection" not in findings({"table2": TABLE2[1:]}), "there are no unprotected rows"


def test_the_floor_and_tied_probabilities() -> None:
    links = {"secret": "links", "chance": 0.5, "utility_chance": 0.3, "floor": 0.817, "paper": (0.797, 0.499)}
    plain = replace(PLAIN, secret="links", chance=0.5, utility_chance=0.3, fresh=narrow(0.987))
    text = findings({"table3": [plain, hidden("published", 0.80, 0.5, 0.98, **links)]})
    assert "an AUC of 81.7 (cora)" in text
    assert "below the floor in 0 of them, and the lowest is 98.0 (`published`, cora gcn)" in text
    assert "In 1 of 1 rows (cora gcn) its probabilities are all 0 or all 1" in text
    assert "None of these variants hides links" in text
    below = [plain, hidden("published", 0.80, 0.5004, 0.70, **links)]
    assert "None of these variants" not in findings({"table3": below}), "one row is below the floor"
    assert "exactly 50" not in findings({"table3": below}), "0.5004 is no tie"
    assert "exactly 50" not in findings({"table2": [PLAIN, hidden("published", 0.8, 0.5, 0.7)]}), (
        "an accuracy of 0.5 is no tie"
    )


def test_the_ends_of_the_figures() -> None:
    figure = [hidden("codes", 0.62, 0.3, 0.3, tradeoff=0.0), replace(PLAIN, variant="codes", utility=narrow(0.9203))]
    text = findings({"table2": [PLAIN], "figure2": figure})
    assert "At lambda 0 the utility differs from the chance level by +12.0 points (+12.0 to +12.0)." in text
    assert "compared with the unprotected encoder, the utility changes by +0.0 points" in text
    peer = [replace(row, variant="rr") for row in figure]
    assert "ends of the figure" not in findings({"table2": [PLAIN], "figure2": peer}), "a peer has no lambda"


def test_results_are_written_between_the_marks(tmp_path: Path) -> None:
    text = results({"table2": TABLE2, "figure2": TABLE2}, EXPERIMENTS)
    assert text.startswith("### Main results\n")
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
        with pytest.raises(GraphveilError, match="add the lines <!-- reproduce: begin -->"):
            put_between_marks(file, None)
    for unreadable in (tmp_path, tmp_path / "none.md"):
        with pytest.raises(GraphveilError, match="cannot be read"):
            put_between_marks(unreadable, None)


def test_rows_that_are_not_compared_with_the_paper_are_not_in_the_main_results() -> None:
    """Runs with fewer rounds, and runs without `codes`."""
    short = [replace(row, paper=None) for row in TABLE2]
    assert "Main results" not in results({"table2": short}, EXPERIMENTS)
    without = replace(EXPERIMENTS["table2"], variants={"club": EXPERIMENTS["table2"].variants["club"]})
    assert "Main results" not in results({"table2": TABLE2[3:4]}, {"table2": without})
    both = results({"table2": TABLE2, "table3": [], "figure3": []}, EXPERIMENTS)
    places = [both.index(title) for title in ("#### P1", "#### P2", "### Second operating point", "### Links kept")]
    assert places == sorted(places)


def test_one_seed_has_no_verdict() -> None:
    """Without an interval there is no verdict, and no count of verdicts."""
    once = [
        replace(row, seeds=1, utility=Interval(row.utility.value), protocol=Interval(row.protocol.value))
        for row in TABLE2
    ]
    assert "By the paper's protocol" in findings({"table2": TABLE2})
    assert "By the paper's protocol" not in findings({"table2": once})
