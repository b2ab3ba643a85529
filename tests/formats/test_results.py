"""What --json prints: numbers of nodes are counts, and what may be missing."""

from typing import Any

import pytest

from graphveil.formats.record import File
from graphveil.formats.results import (
    EmbedRecord,
    ExperimentsRecord,
    GraphRecord,
    GraphsRecord,
    GridRecord,
    ReleaseRecord,
)
from graphveil.formats.store import parse
from tests.formats import made


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (EmbedRecord, "nodes"),
        (EmbedRecord, "known"),
        (EmbedRecord, "kept_codes"),
        (ReleaseRecord, "earlier_releases"),
        (GridRecord, "columns"),
        (GraphRecord, "links"),
    ],
)
@pytest.mark.parametrize("value", [-1, 10**16])
def test_a_number_of_things_is_a_count(kind: type[File], key: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{key}: expected a whole number"):
        parse(made.FILES[kind] | {key: value}, kind)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (EmbedRecord, {"kept_codes": None, "audits": {}}),
        (ReleaseRecord, {"secrets": {"labels": None}, "together": {}}),
        (ExperimentsRecord, {"table1": None, "experiments": {}}),
    ],
    ids=["a run without codes", "a secret without an audit", "no Table 1"],
)
def test_what_may_be_missing_is_null(kind: type[File], change: dict[str, Any]) -> None:
    content = made.FILES[kind] | change
    assert parse(content, kind).to_dict() == content


def test_a_released_secret_may_have_no_chance_level_and_no_certificate() -> None:
    content = made.FILES[ReleaseRecord]
    secret = content["secrets"]["labels"] | {"chance": None, "certificate": None}
    released = parse(content | {"secrets": {"labels": secret}}, ReleaseRecord)
    assert released.secrets["labels"] is not None
    assert (released.secrets["labels"].chance, released.secrets["labels"].certificate) == (None, None)


@pytest.mark.parametrize("cached", [None, True, False])
def test_a_graph_is_built_in_or_cached_or_not(cached: bool | None) -> None:
    content = made.FILES[GraphsRecord]
    (graph,) = content["graphs"]
    record = parse(content | {"graphs": [graph | {"cached": cached}]}, GraphsRecord)
    assert [one.cached for one in record.graphs] == [cached]
