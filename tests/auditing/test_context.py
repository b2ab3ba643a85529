"""What only the maker of the embeddings knows: where each part of it appears in an audit."""

from graphveil.auditing import Audit, Context, Utility
from graphveil.auditing.secret import NodeSecret
from graphveil.auditing.show import rows
from tests.auditing.made import finding


def test_everything_that_the_maker_states_is_in_the_audit(secret: NodeSecret) -> None:
    utility = Utility("links", 0.8, 0.5, 1000, unprotected=0.9)
    context = Context(joint=0.4, utility=utility, notes=("a note",), overlaps=("an overlap",))
    audit = Audit(secret, [finding(secret, "a", 0.5, 0.5)], {}, context=context)
    assert audit.gap == audit.strongest.headline.value - 0.4
    assert [flag.sentence for flag in audit.flags if flag.name == "possible train/test overlap"] == ["an overlap"]
    shown = dict(rows(audit))
    assert shown["joint adversary"].startswith("40.0; the strongest attack is")
    assert shown["utility"] == "links: AUC 80.0 (unprotected 90.0, chance 50.0)"
    assert shown["note"] == "a note"
    record = audit.to_dict()
    assert record["utility"]["unprotected"] == 0.9
    assert record["joint_adversary"]["value"] == 0.4
    assert "a note" in record["notes"]


def test_nothing_is_assumed_without_a_context(secret: NodeSecret) -> None:
    assert Context() == Context(joint=None, utility=None, notes=(), overlaps=())
    audit = Audit(secret, [finding(secret, "a", 0.5, 0.5)], {})
    assert audit.gap is None
    assert not audit.keeps_classes
    assert "utility unknown" in {flag.name for flag in audit.flags}
    assert not {"joint adversary", "utility"} & dict(rows(audit)).keys()
