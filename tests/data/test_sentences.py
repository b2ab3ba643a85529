"""Lists of names and counts in messages."""

from graphveil.data.sentences import list_names, plural, quote


def test_long_lists_and_long_names_are_shortened() -> None:
    assert list_names([]) == "none"
    assert list_names(["a", "it's"]) == "'a', \"it's\""
    assert list_names([str(number) for number in range(1012)], most=2) == "'0', '1' and 1,010 more"
    assert quote("x" * 48) == f"'{'x' * 48}'"
    assert quote("x" * 49) == f"'{'x' * 46}..."


def test_nouns_follow_their_count() -> None:
    assert [plural(count, "node") for count in (0, 1, 2000)] == ["0 nodes", "1 node", "2,000 nodes"]
    assert plural(2, "class", "classes") == "2 classes"
