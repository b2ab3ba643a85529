"""Links between the pages of this repository, and the tool that checks them."""

from pathlib import Path

import pytest
from tools.links import ROOT, anchors, main, pages

PAGE = """# A page

## `codes`, and more: what?

## Twice

## Twice

[a page](other.md), [a heading](other.md#one-heading), [here](#codes-and-more-what), [`code`](#twice-1),
[a folder](folder), [an address](https://example.org/page#part), ![a picture](picture.png)

| table |
|---|
| [cell](other.md) |

`[no link](missing.md)`

```
[no link](missing.md)
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "other.md").write_text("# One heading\n")
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def test_all_links_of_this_repository_lead_somewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().err
    assert {ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "how-to" / "extend.md"} <= set(pages())


def test_right_links_are_no_faults(page: Path) -> None:
    assert main([str(page)]) == 0


def test_anchors_are_those_of_github(page: Path) -> None:
    assert anchors(page) == {"a-page", "codes-and-more-what", "twice", "twice-1"}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("[a page](other.md)", "[a page](othr.md)", 9, "'othr.md' leads nowhere"),
        ("other.md#one-heading", "other.md#two", 9, "'other.md#two' names a heading that other.md does not have"),
        ("#twice-1", "#twice-2", 9, "'#twice-2' names a heading that page.md does not have"),
        ("picture.png", "drawing.png", 9, "'drawing.png' leads nowhere"),
        ("https://example.org", "https://example", 9, "'https://example/page#part' is no http address"),
        ("https://", "htps://", 9, "'htps://example.org/page#part' is no http address"),
        ("[cell](other.md)", "[cell](gone.md)", 14, "'gone.md' leads nowhere"),
        ("(folder)", "()", 9, "'' leads nowhere"),
    ],
)
def test_a_wrong_link_is_named(
    page: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: int, says: str
) -> None:
    assert old in PAGE
    page.write_text(PAGE.replace(old, new))
    assert main([str(page)]) == 1
    assert capsys.readouterr().err == f"{page}:{line}: {says}\n"
