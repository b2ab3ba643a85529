"""The results in the README and in docs/explanation/results.md are written from RESULTS.md."""

from pathlib import Path

import pytest
from tools.readme import BEGIN, END, NO_TABLES, between_marks, compact, headline, main, table_under

from graphveil.experiments.goals import PROBLEMS

RESULTS = f"""# Results
### Main results

#### {PROBLEMS["table2"]}

About it.

| graph | encoder | unprotected | required | protected | strongest attack | largest class | certificate |
|---|---|---|---|---|---|---|---|
| cora | gcn | 91.6 ± 0.4 | 79.0 | 81.4 ± 1.9 | 31.0 ± 2.5 | 30.2 | 31.4 ± 0.4 |
| cora | gat | not run | 79.0 | not run |  |  |  |
| pubmed | gat | 94.6 | 92.0 | 92.0 | 40.8 | 39.8 | 41.8 |

#### {PROBLEMS["table3"]}

| graph | encoder | unprotected | protected | strongest attack | limit: comparing true labels | floor |
|---|---|---|---|---|---|---|
| cora | gcn | 81.6 | 79.8 | 75.9 | 80.5 | 84.6 |

### Other

| graph | encoder |
|---|---|
| citeseer | hgcn |
"""
PAGE = f"# graphveil\n\n{BEGIN}\nold\n{END}\n\nrest\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A README and a page of tables that were written from RESULTS, as arguments."""
    (tmp_path / "RESULTS.md").write_text(RESULTS)
    given = ["--results", str(tmp_path / "RESULTS.md")]
    for option, name in (("--readme", "README.md"), ("--tables", "tables.md")):
        (tmp_path / name).write_text(PAGE)
        given += [option, str(tmp_path / name)]
    assert main(given) == 0
    return given


def test_the_readme_has_the_numbers_of_results() -> None:
    """For the files of this repository; `make readme` updates the README."""
    assert main(["--check"]) == 0


def test_the_tables_are_those_of_results(files: list[str], tmp_path: Path) -> None:
    text = (tmp_path / "tables.md").read_text()
    lines = text.splitlines()
    assert "| cora | gcn | 91.6 ± 0.4 → 81.4 ± 1.9 | 31.0 ± 2.5 | 30.2 |" in lines
    assert "| cora | gat | not run |  |  |" in lines
    assert "| cora | gcn | 81.6 → 79.8 | 75.9 | 80.5 |" in lines
    assert "citeseer" not in text
    assert text.startswith("# graphveil\n\n")
    assert text.endswith(f"{END}\n\nrest\n")
    assert main([*files, "--check"]) == 0
    assert main(files) == 0
    assert (tmp_path / "tables.md").read_text() == text, "writing again changes nothing"


def test_the_readme_has_three_numbers(files: list[str], tmp_path: Path) -> None:
    """Means over complete rows, such as (91.6 + 94.6) / 2, their differences, and ranges over these rows."""
    text = " ".join((tmp_path / "README.md").read_text().split())
    assert text.startswith(f"# graphveil {BEGIN} Means over 2 and 1 combinations")
    assert text.endswith(f"{END} rest")
    for number in (
        "the best possible attack that sees only the embeddings predicts **36.6%** of the labels on average",
        "(certificate; 31.4% to 41.8% over the combinations). The largest class has 35.0% on average, and the",
        "**6.4 points of AUC** is the price: link prediction falls from 93.1% to 86.7%",
        "**Labels kept, links hidden:** on average **1.8 points of accuracy are lost** (81.6% unprotected, 79.8%",
        "protected; single combinations change by -1.8 to -1.8 points).",
        "The strongest attack on links has an AUC of 75.9%; scoring pairs by whether their true labels are",
        "equal gives 80.5%.",
    ):
        assert number in text


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("README.md", "81.6%", "82.6%"),
        ("tables.md", "81.4", "82.4"),
        ("tables.md", "75.9 | 80.5", "75.9 | 84.6"),
        ("RESULTS.md", "31.0 ± 2.5", "33.0 ± 2.5"),
        ("RESULTS.md", "| not run |  |  |  |", "| 80.0 | 30.0 | 30.2 | 31.0 |"),
    ],
)
def test_an_edited_number_is_noticed(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str
) -> None:
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    before = [(tmp_path / page).read_text() for page in ("README.md", "tables.md")]
    assert main([*files, "--check"]) == 1
    assert "run `make readme`" in capsys.readouterr().err
    assert [(tmp_path / page).read_text() for page in ("README.md", "tables.md")] == before, "a check writes nothing"
    assert main(files) == 0
    assert main([*files, "--check"]) == 0


def test_a_higher_accuracy_with_protection_is_no_negative_price() -> None:
    text = " ".join(headline(RESULTS.replace("| 79.8 |", "| 81.7 |")).split())
    assert "on average **no accuracy is lost** (81.6% unprotected, 81.7% protected; single" in text


def test_the_range_over_the_combinations_is_stated() -> None:
    more = "| cora | gcn | 81.6 | 79.8 | 75.9 | 80.5 | 84.6 |\n| pubmed | gat | 76.0 | 77.4 | 71.7 | 72.6 | 74.0 |"
    text = " ".join(headline(RESULTS.replace(more.splitlines()[0], more)).split())
    assert "0.2 points of accuracy are lost" in text
    assert "single combinations change by -1.8 to +1.4 points" in text


def test_missing_tables_are_replaced_by_a_sentence() -> None:
    assert compact("# Results\n") == headline("# Results\n") == NO_TABLES
    assert headline(RESULTS.replace("| cora | gcn | 81.6 |", "| cora | gcn | not run |")) == NO_TABLES
    assert table_under(RESULTS, "P3") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("| cora | gat | not run |", "| cora | gat |"), "a row has 7 cells, expected 8"),
        (lambda text: text.replace("| largest class |", "| biggest class |"), "no column 'largest class'"),
        (lambda text: text[: text.index("| graph")], "has no table under"),
    ],
)
def test_a_malformed_table_is_refused(change, says: str) -> None:  # type: ignore[no-untyped-def]
    for write in (compact, headline):
        with pytest.raises(ValueError, match=says):
            write(change(RESULTS))


def test_a_page_without_marks_is_refused(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for torn in ("", BEGIN, f"{END}{BEGIN}"):
        with pytest.raises(ValueError, match="add the lines"):
            between_marks(torn, "text")
    for page in ("README.md", "tables.md"):
        (tmp_path / page).write_text("nothing")
        assert main(files) == 1
        assert f"{page}: there are no marks for the results: add the lines" in capsys.readouterr().err
        (tmp_path / page).write_text(PAGE)
