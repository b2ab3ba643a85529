"""The content of the card, and the escaping of names from tables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec import structs

from graphveil.errors import GraphveilError
from graphveil.files import sealed
from graphveil.formats import Interval
from graphveil.formats.audit import Scale
from graphveil.formats.run import Embedded
from graphveil.release.card import card, escaped
from graphveil.release.evidence import AttackResult, Evidence, FurtherResult, Limits, WorstGroup, gather
from tests.release.made import audit_files, change

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HARMLESS = ("text", "softbreak", "code_inline")
NASTY = [
    "[click](http://evil.example)",
    "![x](//evil.example/x.png)",
    "<script>alert(1)</script>",
    "a | b | c",
    "a\n\n# A heading\n\n- a list",
    "*bold* _it_ `code` ~~gone~~",
    "</td><td>",
    "&lt;b&gt; &amp; \\* \\",
    "www.evil.example https://evil.example someone@evil.example",
    "<https://evil.example>",
    "[x]: http://evil.example",
    "`http://evil.example`|`",
    "\u202egnisrever\u0000",
    "{{ 7 * 7 }} {% raw %}",
]


def shape(text: str) -> list[str]:
    """The types of the Markdown tokens, in order."""
    found = []
    for block in PARSER.parse(text):
        found += [block.type] if block.type != "inline" else [child.type for child in block.children or ()]
    return [kind for kind in found if kind not in HARMLESS]


def words(text: str) -> str:
    """The visible text, with single spaces."""
    inline = [child.content for block in PARSER.parse(text) for child in block.children or ()]
    return " ".join("".join(inline).split())


@given(st.one_of(st.text(), st.text(alphabet="*_[]()<>`|~#!&;:/\\-+=.@ \n\tahtpw1{}$\"'", max_size=40)))
@example("a_b_c")
@example("__a__")
@settings(max_examples=500, deadline=None)
def test_no_text_becomes_markup_in_a_sentence_or_a_cell(text: str) -> None:
    inside = escaped(text)
    assert "\n" not in inside
    assert shape(f"- Name: {inside}.") == shape("- Name: x.")
    table = "| a | b |\n|---|---|\n| {} | y |\n| z | z |"
    assert shape(table.format(inside)) == shape(table.format("x"))


@pytest.mark.parametrize("text", ["[a](b)", "<b>", "*a*", "a | b", "~~a~~", "`a`* b*"])
def test_unescaped_text_changes_the_markup(text: str) -> None:
    table = "| a | b |\n|---|---|\n| {} | y |"
    spoilt = shape(f"- Name: {text}.") != shape("- Name: x.")
    assert spoilt or words(table.format(text)) != words(table.format(escaped(text)))


@pytest.mark.parametrize("text", ["home_town", "a & b < c", "100 % *sure*", "[x](y)", "~~a~~ #1 $x$", "_x_", "tiger!"])
def test_escaped_text_is_shown_unchanged(text: str) -> None:
    assert words(f"Name: {escaped(text)}") == f"Name: {text}"
    assert escaped("home_town") == "home_town", "without escapes if there is no markup"


def test_addresses_are_formatted_as_code() -> None:
    assert escaped("see www.x.example now") == "see `www.x.example` now"
    assert escaped("a@b.example or ftp://x|`y") == "`a@b.example` or `ftp://x??y`"


@pytest.fixture
def evidence(run: Path) -> Evidence:
    return gather(run, Limits())


@pytest.mark.parametrize("name", NASTY)
def test_a_name_with_markup_is_escaped(name: str, evidence: Evidence) -> None:
    audit = evidence.audits["tribe"]
    assert audit is not None

    def card_with(name: str) -> str:
        config = structs.replace(evidence.record.config, utility=name, encoder=name, secrets=(name,))
        record = structs.replace(evidence.record, config=config)
        named = replace(
            audit,
            secret=name,
            verdict="leaks",
            attack=name,
            flags=[(name, name)],
            attacks=[AttackResult(name, audit.interval)],
            reasons=[name],
        )
        return card(replace(evidence, record=record, audits={name: named}, objections=[name]), ["npy"], True)

    assert shape(card_with(name)) == shape(card_with("x"))
    assert "49" not in escaped(name)


def test_the_card_has_the_results_of_the_audit(evidence: Evidence) -> None:
    audit = evidence.audits["tribe"]
    assert audit is not None
    leaking = replace(
        audit,
        verdict="leaks",
        attack="a kernel machine",
        interval=Interval(0.671, (0.561, 0.764)),
        chance=0.55,
        floor=Interval(0.62, (0.5, 0.7)),
        joint=0.595,
        worst_group=WorstGroup("by class", "TPR - FPR", Interval(0.312, (0.101, 0.5)), 0.0, 41, 7),
        further=[FurtherResult("balanced accuracy", Interval(0.71, (0.6, 0.8)), 0.5, limited=True)],
        flags=[("too few examples", "there are 79")],
        attacks=[
            AttackResult("a kernel machine", Interval(0.671, (0.561, 0.764))),
            AttackResult("a tree", Interval(0.5, (0.4, 0.6))),
        ],
        reasons=["a kernel machine: accuracy 67.1 [56.1, 76.4] is above its reference, 55.0"],
    )
    text = card(replace(evidence, audits={"tribe": leaking, "links": None}), ["npy"], pseudonymous=False)
    for line in (
        f"**The embeddings reveal more than traces of tribe.** Evidence: {escaped(leaking.reasons[0])}.",
        "| strongest attack: a kernel machine | 67.1 % [56.1, 76.4] | 55.0 % |",
        "| worst of 7 groups, by class (TPR - FPR, 41 test examples; interval corrected for all groups)"
        " | 31.2 % [10.1, 50.0] | 0.0 % |",
        "| balanced accuracy | 71.0 % [60.0, 80.0] | 50.0 % |",
        "| public graph without z | 62.0 % [50.0, 70.0] | 55.0 % |",
        "| joint adversary (not evidence) | 59.5 % | 55.0 % |",
        "| a tree | 50.0 % [40.0, 60.0] |",
        "- Flag: too few examples, there are 79.",
        "**This secret has no audit**, so it is unknown how much the embeddings leak about it.",
        "| encoder | gcn |",
        "| objective | club |",
        "| trade-off (1: only keeps the utility, 0: only hides the secrets) | 0.5 |",
        "| seed | 4 |",
    ):
        assert line in text.splitlines(), line
    scores = evidence.record.scores
    assert scores.utility is not None
    assert scores.utility_chance is not None
    kept = f"accuracy {100 * scores.utility:.1f} % (chance level {100 * scores.utility_chance:.1f} %)"
    assert kept in text
    assert "This release was forced" not in text
    flagged = card(
        replace(evidence, audits={"tribe": replace(leaking, verdict="flagged")}), ["npy"], pseudonymous=False
    )
    assert "The embeddings reveal at least traces of tribe" in flagged
    assert "not differential privacy" in text


@pytest.mark.parametrize(
    ("unprotected", "end"),
    [(0.9, "the strongest attack on the unprotected encoder (90.0 %)"), (None, "a perfect attack (100.0 %)")],
)
def test_the_size_of_the_leak_is_on_the_card(unprotected: float | None, end: str, evidence: Evidence) -> None:
    audit = evidence.audits["tribe"]
    assert audit is not None
    scale = Scale(
        reference=0.5, compared_with="floor", unprotected=unprotected, size=0.25, ci=(0.1, 0.4), certified=None
    )
    text = card(replace(evidence, audits={"tribe": replace(audit, scale=scale)}), ["npy"], pseudonymous=False)
    sentence = f"The strongest attack is 25.0 % of the way from the floor (50.0 %) to {end}."
    assert any(line.startswith(sentence) for line in text.splitlines())
    assert "% %" not in text


def test_a_higher_value_than_the_strongest_attack_is_explained_on_the_card(run: Path) -> None:
    why = "a_tree has a higher accuracy, 41.0 [31.0, 51.0]; the headline is chosen without the test part"
    for higher, said in (
        (why, f" Highest value: {escaped(why)}. The utility is "),
        (None, "called a trace. The utility"),
    ):
        change(run / "audit.json", higher=higher)
        text = card(gather(run, Limits()), ["npy"], pseudonymous=False)
        assert said in next(line for line in text.splitlines() if line.startswith("The strongest attack is"))


def test_each_metric_has_its_own_chance_level(evidence: Evidence, run: Path) -> None:
    lines = card(evidence, ["npy"], pseudonymous=False).splitlines()
    balanced = json.loads((run / "audit.json").read_text())["balanced"]
    assert balanced["chance"] == 0.5
    matched = json.loads((run / "audit.links.json").read_text())["class_matched"]
    for name, found in (("balanced accuracy", balanced), ("class-matched AUC", matched)):
        low, high = (100 * end for end in found["ci"])
        assert f"| {name} | {100 * found['value']:.1f} % [{low:.1f}, {high:.1f}] | 50.0 % |" in lines


def test_the_worst_group_is_on_the_card_without_its_name(run: Path) -> None:
    """The column of the group is a feature, so a release must contain neither its name nor its value."""
    group = {"kind": "column", "by": "home_town", "group": "reykjavik", "measure": "accuracy", "examples": 33}
    group |= {"value": 0.8, "ci": [0.61, 0.9], "reference": 0.5, "compared_with": "chance level"}
    few = group | {"value": None, "ci": None, "reference": None}
    change(run / "audit.json", groups=[group, few, group])
    content = json.loads((run / "audit.json").read_text()) | {"worst_group": group}
    (run / "audit.json").write_text(json.dumps(sealed(content)))
    lines = card(gather(run, Limits()), ["npy"], pseudonymous=False).splitlines()
    row = "worst of 2 groups, by a column (accuracy, 33 test examples; interval corrected for all groups)"
    assert f"| {row} | 80.0 % [61.0, 90.0] | 50.0 % |" in lines
    assert not any("home_town" in line or "reykjavik" in line for line in lines)


def test_the_attack_with_the_known_links_is_on_the_card(run: Path) -> None:
    held = {"attack": "boosted trees", "metric": "auc", "chance": 0.5, "value": 0.8, "ci": [0.75, 0.85]}
    change(audit_files(run)["links"], with_links=held | {"excess": {"value": 0.1, "ci": [0.05, 0.15]}})
    lines = card(gather(run, Limits()), ["npy"], pseudonymous=False).splitlines()
    assert "| with the known links | 80.0 % [75.0, 85.0] | 50.0 % |" in lines


def test_the_card_states_for_how_many_nodes_a_secret_is_unknown(evidence: Evidence) -> None:
    assert evidence.record.unknown == {"labels": 0, "tribe": 0}
    sentence = "The secret is unknown for 17 of 160 nodes, which the audit does not cover."
    assert "unknown for" not in card(evidence, ["npy"], pseudonymous=False)
    some = replace(evidence, record=structs.replace(evidence.record, unknown={"labels": 3, "tribe": 17}))
    assert card(some, ["npy"], pseudonymous=False).count(sentence) == 1


def test_the_card_has_the_warnings_of_embed(evidence: Evidence) -> None:
    """Without the text after a colon, which contains values of nodes."""
    warnings = ("Values of 1 of 3 features lie elsewhere: 'home_town reykjavik' (9.0).", "5 values of '*a*' are new.")
    record = structs.replace(evidence.record, embedded=Embedded("", warnings, ()))
    text = card(replace(evidence, record=record), ["npy"], pseudonymous=False)
    assert [line for line in text.splitlines() if line.startswith("- Warning")] == [
        "- Warning: Values of 1 of 3 features lie elsewhere.",
        "- Warning: 5 values of '\\*a\\*' are new.",
    ]
    assert "reykjavik" not in text
    assert "tested on none of the nodes or links that the encoder was trained on" in text
    assert shape(text).count("list_item_open") == shape(card(evidence, ["npy"], pseudonymous=False)).count(
        "list_item_open"
    ) + len(warnings)


@pytest.mark.parametrize(
    ("not_recorded", "utility"), [(("nodes",), "may have been"), (("links",), "was not"), ((), "was not")]
)
def test_the_card_states_whether_test_examples_may_have_been_trained_on(
    not_recorded: tuple[str, ...], utility: str, evidence: Evidence
) -> None:
    record = structs.replace(evidence.record, embedded=Embedded("", (), not_recorded))
    text = card(replace(evidence, record=record), ["npy"], pseudonymous=False)
    assert f"on a part of the data that the encoder {utility} trained on" in text, "the guild is a node attribute"
    assert ("tested on none of the nodes or links" in text) == (not not_recorded)


@pytest.mark.parametrize(
    ("spoilt", "place"),
    [({"config": {"encoder": 7}}, "config.encoder"), ({"scores": []}, "scores"), ({"versions": "1"}, "versions")],
)
def test_an_invalid_record_is_refused_with_one_sentence(spoilt: dict[str, object], place: str, run: Path) -> None:
    change(run / "run.json", **spoilt)
    with pytest.raises(GraphveilError, match=rf"is not a finished run .* \(run\.json: {place}: expected"):
        gather(run, Limits())
