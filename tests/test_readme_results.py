"""The results in the README: written from RESULTS.md, and nothing else."""

from pathlib import Path

import pytest
from tools.readme import BEGIN, END, NO_TABLES, between_marks, compact, main, table_under

from graphveil.experiments.goals import PROBLEMS

RESULTS = f"""# Results
### 18 cells

#### {PROBLEMS["table2"]}

About it.

| graph | encoder | unprotected | must | protected | strongest attack | largest class |
|---|---|---|---|---|---|---|
| cora | gcn | 91.6 ± 0.4 | 79.0 | 81.4 ± 1.9 | 31.0 ± 2.5 | 30.2 |
| cora | gat | not run | 79.0 | not run |  |  |

#### {PROBLEMS["table3"]}

| graph | encoder | unprotected | protected | strongest attack | limit: comparing true labels | floor |
|---|---|---|---|---|---|---|
| cora | gcn | 81.6 | 79.8 | 75.9 | 80.5 | 84.6 |

### Other

| graph | encoder |
|---|---|
| pubmed | hgcn |
"""
README = f"# graphveil\n\n{BEGIN}\nold\n{END}\n\nrest\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A README that was written from RESULTS, as arguments."""
    (tmp_path / "RESULTS.md").write_text(RESULTS)
    (tmp_path / "README.md").write_text(README)
    given = ["--results", str(tmp_path / "RESULTS.md"), "--readme", str(tmp_path / "README.md")]
    assert main(given) == 0
    return given


def test_the_readme_has_the_numbers_of_results() -> None:
    """Of this repository: `make readme` puts it right."""
    assert main(["--check"]) == 0


def test_the_tables_are_those_of_results(files: list[str], tmp_path: Path) -> None:
    text = (tmp_path / "README.md").read_text()
    lines = text.splitlines()
    assert "| cora | gcn | 91.6 ± 0.4 → 81.4 ± 1.9 | 31.0 ± 2.5 | 30.2 |" in lines
    assert "| cora | gat | not run |  |  |" in lines
    assert "| cora | gcn | 81.6 → 79.8 | 75.9 | 80.5 |" in lines
    assert "pubmed" not in text
    assert text.startswith("# graphveil\n\n")
    assert text.endswith(f"{END}\n\nrest\n")
    assert main([*files, "--check"]) == 0
    assert main(files) == 0
    assert (tmp_path / "README.md").read_text() == text, "a second time changes nothing"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("README.md", "81.4", "82.4"),
        ("README.md", "75.9 | 80.5", "75.9 | 84.6"),
        ("RESULTS.md", "31.0 ± 2.5", "33.0 ± 2.5"),
        ("RESULTS.md", "| not run |  |  |", "| 80.0 | 30.0 | 30.2 |"),
    ],
)
def test_an_edited_number_is_noticed(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str
) -> None:
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    before = (tmp_path / "README.md").read_text()
    assert main([*files, "--check"]) == 1
    assert "run `make readme`" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text() == before, "a check writes nothing"
    assert main(files) == 0
    assert main([*files, "--check"]) == 0


def test_results_without_the_tables_are_said_to_be_missing() -> None:
    assert compact("# Results\n") == NO_TABLES
    assert table_under(RESULTS, "P3") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("| cora | gat | not run |", "| cora | gat |"), "a row has 6 cells and not 7"),
        (lambda text: text.replace("| largest class |", "| biggest class |"), "no column 'largest class'"),
        (lambda text: text[: text.index("| graph")], "has no table under"),
    ],
)
def test_a_torn_table_is_refused(change, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=says):
        compact(change(RESULTS))


def test_a_readme_without_marks_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for torn in ("", BEGIN, f"{END}{BEGIN}"):
        with pytest.raises(ValueError, match="put the lines"):
            between_marks(torn, "text")
    (tmp_path / "README.md").write_text("nothing")
    assert main(["--readme", str(tmp_path / "README.md")]) == 1
    assert "put the lines" in capsys.readouterr().err
