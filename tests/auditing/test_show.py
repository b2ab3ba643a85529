"""An audit on the terminal: its lines, its width, and control characters that are escaped."""

from dataclasses import replace

from graphveil.auditing.show import as_text, rows
from tests.auditing.made import leak_in_one_group


def test_the_worst_group_on_the_terminal_and_in_the_file() -> None:
    audit = leak_in_one_group(0)
    names = [name for name, _ in rows(audit)]
    assert names[:3] == ["strongest attack", "size of the leak", "upper bound over all attacks"]
    assert names[3:5] == ["utility", "worst group"]
    line = rows(audit)[4][1]
    assert line.startswith("school = xyz: accuracy 100.0 [89.6, 100.0], chance ")
    assert line.endswith("40 test nodes, interval corrected for 2 groups")
    written = audit.to_dict()
    assert written["worst_group"] == written["groups"][0]
    assert set(written["worst_group"]) >= {"kind", "by", "group", "measure", "examples", "value", "ci", "reference"}
    text = as_text(audit, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "The strongest attack (a) by group" in text
    assert any(line.startswith("│ school = rest") for line in text.splitlines())


def test_control_characters_in_class_names_are_escaped() -> None:
    audit = leak_in_one_group(0)
    part = replace(audit.partitions[0], names=["\x1b[31m[bold]" + "x" * 500, "rest"])
    text = as_text(replace(audit, partitions=[part]), 80)
    assert "\x1b" not in text
    assert "[bold]" in text
    assert "x" * 60 not in text


def test_an_audit_is_short_in_a_console_and_escaped_in_a_notebook() -> None:
    audit = leak_in_one_group(0)
    shown = repr(audit)
    assert shown.startswith(f"Audit({audit.secret.name}: {audit.verdict}; a: accuracy ")
    assert "\n" not in shown
    part = replace(audit.partitions[0], names=["<b>", "rest"])
    page = replace(audit, partitions=[part])._repr_html_()
    assert page.startswith("<pre>Audit of ")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
