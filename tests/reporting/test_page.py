"""The page as a whole: a real run, missing values, no result overwritten, and no markup from a file."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
import graphveil.reporting
from graphveil.errors import GraphveilError
from graphveil.reporting import report
from graphveil.reporting.parts import MISSING
from graphveil.runs.audit import audit_run
from graphveil.runs.protect import protect
from tests.formats.made import run
from tests.reporting import made
from tests.reporting.conftest import Show, hashed, parse, table

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</title></style></svg></desc><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)
TAGS = re.compile(
    "html|head|meta|link|title|style|body|a|header|nav|main|section|h1|h2|p|ul|li|dl|div|dt|dd|span|strong|small|table|"
    "caption|thead|tbody|tr|th|td|figure|figcaption|details|summary|pre|svg|desc|path|line|text|rect"
)
SWAPPED_NEVER = {"schema", "verdict", "metric", "measure", "kind", "of", "unit"}


def test_a_real_run(small: Data, quick: gv.Recipe, tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 3)
    veil = gv.Veil(utility="links", secret="secret", recipe=quick, seed=3, device="cpu")
    run = protect(veil, graph, split, tmp_path / "run", source={"graph": "synthetic", "split": "paper"})
    graphveil.report(tmp_path / "run", tmp_path / "before.html")
    before = parse(tmp_path / "before.html")
    assert before.all("h2")[0].text == "⚠ not audited"
    assert f"{100 * run.score.utility:.1f} %" in before.text
    assert [line[1] for line in table(before, "Training curves, in percent").cells()][:2] == ["3", "6"]
    (found,) = audit_run(tmp_path / "run", attacks="quick").values()
    report(str(tmp_path / "run"), str(tmp_path / "after.html"))
    after = parse(tmp_path / "after.html")
    best = found.strongest.headline
    assert f"{100 * best.value:.1f} [{100 * best.low:.1f}, {100 * best.high:.1f}] %" in after.text
    assert len(table(after, "Attacks on the embeddings").cells()) == len(found.findings)


def test_a_thousand_rows_are_one_small_page(show: Show, tmp_path: Path) -> None:
    content = made.experiment("sweep", [round(i / 26, 3) for i in range(27)])
    rng = np.random.default_rng(0)
    for row in content["rows"]:
        row["history"] = row["history"] or made.history(rng)
    assert len(content["rows"]) > 950
    page = show(sweep=content)
    assert (tmp_path / "report.html").stat().st_size < 5e6
    assert "36 of 981 trainings; all are in sweep.json." in page.text


def test_what_may_be_missing_is_shown_as_missing(show: Show, tmp_path: Path) -> None:
    audit = made.audit()
    nothing = [name for name, value in audit.items() if value is None]
    nothing += ["worst_group", "certificate", "certificate_on_test", "balanced", "with_public_graph", "with_features"]
    nothing += ["floor", "joint_adversary", "map", "utility"]
    empty: dict[str, object] = {key: [] for key in ("reasons", "groups", "flags", "notes", "attacks")}
    show(audit | dict.fromkeys(nothing) | empty | {"controls": {}})
    whole = made.experiment("table2", variants=["club"])
    rows = [row | dict.fromkeys(("paper", "floor", "finer", "history", "map", "tradeoff")) for row in whole["rows"]]
    line = table(show(table2=whole | {"rows": rows}), "The paper, its protocol here").cells()[0]
    assert [line[3], line[5], line[7], line[8], line[10], line[13], line[15]] == [MISSING] * 7
    assert not re.search(r"\b(nan|inf|None)\b", (tmp_path / "report.html").read_text(encoding="utf-8"))


def test_a_report_overwrites_no_result(tmp_path: Path) -> None:
    file = made.write(tmp_path / "audit.json", made.audit())
    with pytest.raises(GraphveilError, match=r"give a name that ends in \.html"):
        report(file, file)
    assert json.loads(file.read_text()) == made.audit()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_becomes_markup(payload: str, show: Show, tmp_path: Path) -> None:
    eleven = [round(0.1 * i, 1) for i in range(11)]
    whole = made.experiment("figure2", eleven, ["unprotected", "club"])
    whole["failed"] = [{"cell": "a", "fault": "b"}]
    pages = [show(spoiled(made.audit(), payload)), show(table1=spoiled(made.table1(), payload), figure2=whole)]
    pages.append(show(figure2=spoiled(whole, payload)))
    record = run() | {"audited_as": "abc", "config": run()["config"] | {"recipe": {"deep": {"er": "x"}}}}
    made.write(tmp_path / "run" / "run.json", spoiled(record, payload))
    made.write(tmp_path / "run" / "audit.json", spoiled(made.audit(), payload))
    report(tmp_path / "run", tmp_path / "run.html")
    for page in [*pages, parse(tmp_path / "run.html")]:
        elements = page.all()[1:]
        assert all(TAGS.fullmatch(one.tag) for one in elements)
        assert not [name for one in elements for name in one.attributes if name.startswith("on")]
        assert not [one for one in elements if {"src", "style", "xlink:href"} & set(one.attributes)]
        assert {one.attributes["href"] or "" for one in elements if "href" in one.attributes} <= {
            "data:,",
            "#main",
            *(f"#part-{i}" for i in range(1, 10)),
        }
        assert all(re.fullmatch(r"[a-z0-9 -]*", one.attributes.get("class") or "") for one in elements)
        assert "".join(payload.split()) in "".join(page.text.split()), "the name itself is to be read"


def test_half_a_surrogate_pair_is_written(show: Show) -> None:
    assert "la?bels" in show(made.audit() | {"secret": "la\ud800bels"}).text


def test_nothing_can_leave_the_page(tmp_path: Path, show: Show) -> None:
    page = show(made.audit())
    policy = next(one for one in page.all("meta") if one.attributes.get("http-equiv") == "Content-Security-Policy")
    style = page.all("style")[0].texts
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src {hashed(''.join(style))}; script-src 'none'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|@import|url\(", text)


def spoiled(value: Any, payload: str, key: str = "") -> Any:
    """Every text replaced, and every key that is a name."""
    if isinstance(value, dict):
        named = key in ("controls", "versions", "deep")
        return {
            (f"{k} {payload}" if named and isinstance(v, list) else k): spoiled(v, payload, k) for k, v in value.items()
        }
    if isinstance(value, list):
        return [spoiled(one, payload, key) for one in value]
    return f"{value} {payload}" if isinstance(value, str) and key not in SWAPPED_NEVER else value
