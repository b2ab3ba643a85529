"""Several releases of the same nodes: certified and limited together."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.codes import LinkCertificate
from graphveil.errors import GraphveilError
from graphveil.release import release
from graphveil.runs.embed import embed
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import graph_of
from tests.release.made import CODES, NODES, ROWS, SIGNS, best_accuracy, change, give_codes, ledger, limits, tribes


def test_two_releases_are_certified_together(coded: Path, other: Path, tmp_path: Path) -> None:
    alone = [json.loads((run / "audit.json").read_text())["certificate"]["accuracy"] for run in (coded, other)]
    assert max(alone) < 0.65
    made = release(coded, tmp_path / "out", max_leak=limits("1"), released_before=[other])
    assert made.joint is not None
    assert (made.joint.releases, made.joint.same_run, made.joint.nodes) == (1, 0, NODES)
    accuracy = made.joint.certificates["tribe"].bounds[0]
    assert (accuracy.name, accuracy.value) == ("accuracy", 1.0)
    assert accuracy.beyond is not None, "both runs have the same split"
    text = (made.folder / "CARD.md").read_text()
    section = text.split("### Together with earlier releases\n")[1].split("\n#")[0]
    assert "1 earlier release, with 160 of the 160 nodes of this one." in section
    assert f"**tribe**: {made.joint.certificates['tribe'].sentence}" in section
    assert "| accuracy | 100.0 % | 100.0 % |" in section
    assert not re.search(r"\n\n\n", text)
    assert str(other) not in text


def test_the_limit_is_compared_with_all_releases_together(coded: Path, other: Path, tmp_path: Path) -> None:
    release(coded, tmp_path / "out", max_leak=limits("0.8"))
    with pytest.raises(
        GraphveilError, match=r"'tribe' for this release and earlier ones together allows an accuracy of 1\.000, above"
    ):
        release(coded, tmp_path / "joint", max_leak=limits("0.8"), released_before=[other])


def test_other_codes_of_the_same_nodes_need_a_limit(coded: Path, other: Path, tmp_path: Path) -> None:
    """Each release alone is protected, and both together reveal the class of every node."""
    release(coded, tmp_path / "out")
    with pytest.raises(GraphveilError, match=r"released before, and 'tribe' has no limit \(--max-leak\)"):
        release(coded, tmp_path / "joint", released_before=[other])


def test_the_ledger_of_another_run_counts_and_not_its_present_codes(coded: Path, other: Path, tmp_path: Path) -> None:
    release(other, tmp_path / "before")
    give_codes(other, CODES)
    made = release(coded, tmp_path / "out", max_leak=limits("1"), released_before=[other, other])
    assert made.joint is not None
    assert made.joint.releases == 1
    assert made.joint.certificates["tribe"].bounds[0].value == 1


def test_other_codes_of_the_same_run_count_without_being_named(coded: Path, tmp_path: Path) -> None:
    release(coded, tmp_path / "before")
    give_codes(coded, CODES % 2 ^ tribes())
    made = release(coded, tmp_path / "out", max_leak=limits("1"))
    assert made.joint is not None
    assert made.joint.same_run == 1
    assert made.joint.certificates["tribe"].bounds[0].value == 1
    assert "1 of them is an earlier export of this run with different codes." in (made.folder / "CARD.md").read_text()
    assert [entry["codes"] for entry in ledger(coded)] == [1, 2]
    with pytest.raises(GraphveilError, match="is the run itself"):
        release(coded, tmp_path / "again", released_before=[coded])


def test_nodes_are_matched_by_id_and_others_are_left_out(coded: Path, tables: Path, tmp_path: Path) -> None:
    """Half of the people in another order: without a common split there is no statement about other nodes."""
    half = Path(shutil.copytree(coded, tmp_path / "half"))
    shutil.rmtree(tmp_path / "half" / "releases", ignore_errors=True)
    kept = np.arange(NODES)[::-2]
    table = pq.read_table(coded / "embeddings.parquet").take(kept)
    z = ROWS[(CODES % 2 ^ tribes())[kept]]
    columns = {"id": table["id"], **{f"z{i}": z[:, i] for i in range(3)}}
    pq.write_table(pa.table(columns), half / "embeddings.parquet")
    change(half / "run.json", split_digest="another")
    made = release(coded, tmp_path / "out", max_leak=limits("1"), released_before=[half])
    assert made.joint is not None
    assert made.joint.nodes == NODES // 2
    accuracy = made.joint.certificates["tribe"].bounds[0]
    assert (accuracy.value, accuracy.beyond) == (1, None)
    majority = np.bincount(tribes()[kept]).max() / len(kept)
    assert accuracy.chance == pytest.approx(majority)
    assert "with 80 of the 160 nodes of this one" in (made.folder / "CARD.md").read_text()


def test_links_have_a_joint_certificate(trained_codes: Path, tmp_path: Path) -> None:
    """The certificate is that of an embedding with one column for each release."""
    hidden, earlier = (Path(shutil.copytree(trained_codes, tmp_path / name)) for name in ("hidden", "earlier"))
    for run in (hidden, earlier):
        change(run / "run.json", config={"secrets": ["links"], "utility": "labels"})
    give = pq.read_table(earlier / "embeddings.parquet")
    z = ROWS[np.arange(NODES) % 2]
    pq.write_table(pa.table({"id": give["id"], **{f"z{i}": z[:, i] for i in range(3)}}), earlier / "embeddings.parquet")
    graph, split = graph_of(RunFolder(hidden), RunFolder(hidden).record())
    made = release(hidden, tmp_path / "out", force=True, released_before=[earlier])
    assert made.joint is not None
    bounds = {bound.name: bound.value for bound in made.joint.certificates["links"].bounds}
    z = np.stack([CODES, np.arange(NODES) % 2], axis=1)
    expected = gv.certify(z, graph, split, "links")
    assert isinstance(expected, LinkCertificate)
    assert (bounds["AUC"], bounds["class-matched AUC"]) == pytest.approx((expected.auc, expected.class_matched_auc))
    assert made.joint.certificates["links"].sentence == expected.sentence


def test_nodes_without_ids_are_not_matched_with_those_of_another_graph(
    coded: Path, other: Path, tmp_path: Path
) -> None:
    change(coded / "run.json", reading=None)
    change(other / "run.json", graph_digest="another")
    with pytest.raises(GraphveilError, match="have no ids of their own"):
        release(coded, tmp_path / "out", released_before=[other])


def test_the_card_states_that_there_are_no_common_nodes(coded: Path, other: Path, tmp_path: Path) -> None:
    table = pq.read_table(other / "embeddings.parquet")
    pq.write_table(table.set_column(0, "id", [[f"x{i}" for i in range(NODES)]]), other / "embeddings.parquet")
    made = release(coded, tmp_path / "out", released_before=[other])
    assert made.joint is not None
    assert (made.joint.nodes, made.joint.certificates) == (0, {})
    assert "**tribe**: it is known for too few of these nodes" in (made.folder / "CARD.md").read_text()


def test_releases_without_codes_have_no_limit_together(coded: Path, run: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match="an earlier release of these nodes has no codes, so there is no joint"):
        release(coded, tmp_path / "out", released_before=[run])
    with pytest.raises(GraphveilError, match="these embeddings are not codes, so there is no joint certificate"):
        release(run, tmp_path / "out", released_before=[coded])
    made = release(coded, tmp_path / "out", released_before=[run], force=True)
    assert "- Objection: an earlier release of these nodes has no codes" in (made.folder / "CARD.md").read_text()
    with pytest.raises(GraphveilError, match="not a finished run"):
        release(coded, tmp_path / "no", released_before=[tmp_path / "nowhere"])


def test_a_run_and_its_embedded_graph_are_released_together(coded: Path, tables: Path, tmp_path: Path) -> None:
    """A node keeps its code, so both releases together reveal what one reveals alone."""
    release(coded, tmp_path / "before")
    made = embed(coded, str(tables), tmp_path / "again", device="cpu")
    assert made.kept_codes == NODES
    both = release(made.folder, tmp_path / "out", force=True, released_before=[coded])
    assert both.joint is not None
    assert both.joint.certificates["tribe"].bounds[0].value == best_accuracy(CODES, tribes())
    assert SIGNS.tolist() == json.loads((both.folder / "code_book.json").read_text())["signs"]
