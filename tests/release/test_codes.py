"""Releases of codes: files, certificates, limits, the card, the ledger and earlier releases."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import graphveil as gv
from graphveil import cli
from graphveil.codes import NOT_COVERED, LinkCertificate
from graphveil.codes.words import at_most
from graphveil.errors import GraphveilError
from graphveil.release import FORMATS, Limits, release
from graphveil.release.card import card
from graphveil.release.codes import codes_of
from graphveil.release.evidence import gather
from graphveil.release.ledger import NodeCodes, read_ledger
from graphveil.release.pseudonyms import pseudonyms
from graphveil.runs.embed import embed
from graphveil.runs.folder import Embeddings, RunFolder
from graphveil.runs.graphs import graph_of
from tests.release.made import CODES, NAMES, NODES, ROWS, SIGNS, change, drawn, give_codes, tribes, write_tables
from tests.release.test_card import NASTY, shape
from tests.release.test_export import KEY, LEAKS, files, forbidden, found

FILES = ["CARD.md", "SHA256SUMS", "code_book.json", "code_book.parquet", "codes.parquet"]


def best_accuracy(codes: "np.typing.NDArray[np.int64]", y: "np.typing.NDArray[np.int64]") -> float:
    """The share of nodes that the best rule from code to class names correctly, counted one by one."""
    right = [max(int(((codes == code) & (y == one)).sum()) for one in (0, 1)) for code in np.unique(codes)]
    return sum(right) / len(codes)


def limits(*words: str) -> Limits:
    return Limits.parsed(words)


def test_a_run_of_codes_is_exported_as_codes(coded: Path, tables: Path, tmp_path: Path) -> None:
    made = release(coded, tmp_path / "out")
    assert files(made.folder) == FILES == list(made.files)
    assert found(made.folder, forbidden(coded, tables)) == set()
    nodes, book = (pq.read_table(made.folder / f"{name}.parquet") for name in ("codes", "code_book"))
    assert (nodes.column_names, nodes["code"].type) == (["id", "code"], pa.uint8())
    assert nodes["id"].to_pylist() == NAMES
    assert (book.column_names, book["code"].to_pylist()) == (["code", "z0", "z1", "z2"], list(range(6))), "no counts"
    rows = np.stack([book[f"z{i}"].to_numpy() for i in range(3)], axis=1)
    assert rows[nodes["code"].to_numpy()].tobytes() == ROWS[CODES].tobytes()
    assert pq.read_schema(made.folder / "codes.parquet").metadata is None


def test_the_code_book_says_how_to_score_a_link(coded: Path, tmp_path: Path) -> None:
    folder = release(coded, tmp_path / "out").folder
    use = json.loads((folder / "code_book.json").read_text())
    assert use["signs"] == [1, 1, -1]
    assert "sum_i signs[i] * z_u[i] * z_v[i]" in use["use"]
    graph, split = graph_of(RunFolder(coded), RunFolder(coded).record())
    nodes, book = (pq.read_table(folder / f"{name}.parquet") for name in ("codes", "code_book"))
    z = np.stack([book[f"z{i}"].to_numpy() for i in range(3)], axis=1)[nodes["code"].to_numpy()]
    pairs = torch.cat([split.test_links, split.test_nonlinks], dim=1).numpy()
    scores = (np.array(use["signs"]) * z[pairs[0]] * z[pairs[1]]).sum(axis=1)
    links, others = np.split(scores, 2)
    auc = (np.sign(links[:, None] - others[None, :]).mean() + 1) / 2
    assert auc == pytest.approx(gv.Veil.load(coded).score(graph, split).utility, abs=1e-9)


def test_a_run_without_signs_is_refused_if_it_keeps_links(coded: Path, tmp_path: Path) -> None:
    (coded / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(GraphveilError, match=r"model.safetensors has no signs for the 3 columns"):
        release(coded, tmp_path / "out", force=True)


def test_code_numbers_depend_on_the_rows_alone() -> None:
    order = np.random.default_rng(0).permutation(NODES)
    z = ROWS[CODES]
    assert np.array_equal(codes_of(z[order]).numbers, codes_of(z).numbers[order])
    assert codes_of(z[order]).rows.tobytes() == codes_of(z).rows.tobytes()
    assert sorted(map(tuple, codes_of(z).rows)) == sorted(map(tuple, ROWS))
    first = [np.flatnonzero(codes_of(z).numbers == code)[0] for code in range(6)]
    assert first != sorted(first), "not in order of first occurrence"


@pytest.mark.parametrize(("count", "kind"), [(256, pa.uint8()), (257, pa.uint16()), (65537, pa.uint32())])
def test_codes_have_the_smallest_unsigned_type(count: int, kind: pa.DataType, tmp_path: Path) -> None:
    z = np.arange(count, dtype=np.float32)[:, None]
    FORMATS["codes"](tmp_path, Embeddings(pa.array(np.arange(count)), z))
    assert pq.read_schema(tmp_path / "codes.parquet").field("code").type == kind
    assert pq.read_schema(tmp_path / "code_book.parquet").field("code").type == kind
    assert set(json.loads((tmp_path / "code_book.json").read_text())) == {"use"}


def test_pseudonyms_sort_codes_as_they_sort_rows(coded: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    plain = pq.read_table(release(coded, tmp_path / "plain").folder / "codes.parquet")
    named = pq.read_table(release(coded, tmp_path / "named", key_file=tmp_path / "key").folder / "codes.parquet")
    assert named["id"].to_pylist() == sorted(named["id"].to_pylist())
    of = dict(zip(pseudonyms(plain["id"].combine_chunks(), KEY).to_pylist(), plain["code"].to_pylist(), strict=True))
    assert named["code"].to_pylist() == [of[name] for name in named["id"].to_pylist()]
    order = "the rows are in the order of the nodes in the owner's graph"
    assert [order in (tmp_path / name / "CARD.md").read_text() for name in ("plain", "named")] == [True, False]


def test_other_formats_have_the_row_of_each_node(coded: Path, tmp_path: Path) -> None:
    made = release(coded, tmp_path / "out", ["parquet"])
    assert files(made.folder) == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]
    assert (made.folder / "embeddings.parquet").read_bytes() == (coded / "embeddings.parquet").read_bytes()
    assert set(FILES) < set(release(coded, tmp_path / "all", list(FORMATS)).files)


def test_codes_are_refused_if_there_are_none(run: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match=r"format 'codes' is for embeddings with few distinct rows: at least 5 "):
        release(run, tmp_path / "out", ["codes"], force=True)
    assert files(release(run, tmp_path / "out").folder) == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]
    assert not (run / "releases.json").exists()


def test_the_same_codes_give_the_same_release(coded: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        release(coded, tmp_path / name, list(FORMATS))
    for name in files(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


# The limit and the certificate


def test_the_limit_is_compared_with_the_certificate_and_not_with_attacks(coded: Path, tmp_path: Path) -> None:
    high = {"value": 0.9, "ci": [0.85, 0.95]}
    change(coded / "audit.json", **LEAKS | {"strongest": high, "balanced": high})
    exact = best_accuracy(CODES, tribes())
    balanced = json.loads((coded / "audit.json").read_text())["certificate"]["balanced_accuracy"]
    assert 0.5 < exact < balanced < 0.7, "otherwise the test could not fail"
    made = release(coded, tmp_path / "out", max_leak=limits(f"tribe={balanced}"))
    assert made.objections == ()
    text = (made.folder / "CARD.md").read_text()
    assert "for the accuracy and the balanced accuracy that the certificate allows for this release.\n" in text
    for limit, bounds in ((balanced - 1e-4, ["balanced accuracy"]), (exact - 1e-4, ["accuracy", "balanced accuracy"])):
        with pytest.raises(GraphveilError) as refused:
            release(coded, tmp_path / "other", max_leak=limits(str(limit)))
        assert re.findall(r"the certificate of 'tribe' allows an? ([a-z ]+) of 0\.", str(refused.value)) == bounds
        assert "says leaks" not in str(refused.value)


def test_without_a_limit_the_verdict_decides(coded: Path, tmp_path: Path) -> None:
    change(coded / "audit.json", **LEAKS)
    with pytest.raises(GraphveilError, match="the audit of 'tribe' says leaks"):
        release(coded, tmp_path / "out")


def test_without_a_certificate_the_intervals_decide(coded: Path, tmp_path: Path) -> None:
    best = {"value": 0.5, "ci": [0.4, 0.6], "upper": 0.6}
    change(coded / "audit.json", certificate=None, attacks=[], strongest=best)
    with pytest.raises(GraphveilError, match=r"up to 0\.600 .97\.5 % upper bound over all attacks on z alone"):
        release(coded, tmp_path / "out", max_leak=limits("0.59"))


def test_too_few_examples_are_no_objection_to_a_certificate_within_the_limit(coded: Path, tmp_path: Path) -> None:
    few = {"name": "too few examples", "sentence": "the interval of the headline is ±10.7 points"}
    change(coded / "audit.json", verdict="flagged", flags=[few])
    made = release(coded, tmp_path / "out", max_leak=limits("0.8"))
    assert made.objections == ()
    assert "- Flag: too few examples" in (made.folder / "CARD.md").read_text(), "it stays on the card"
    for words in ([], ["0.5"]):
        with pytest.raises(GraphveilError, match="is flagged: too few examples"):
            release(coded, tmp_path / "other", max_leak=limits(*words))
    change(coded / "audit.json", flags=[few, {"name": "utility at chance", "sentence": "nothing is kept"}])
    with pytest.raises(GraphveilError, match=r"is flagged: utility at chance \(nothing is kept\)"):
        release(coded, tmp_path / "other", max_leak=limits("0.8"))


@pytest.mark.parametrize(
    "spoilt",
    [{"accuracy": None}, {"accuracy": 2}, {"secret": "links"}, {"sentence": ""}, {"worst": None}, {"codes": []}],
)
def test_an_invalid_certificate_is_an_objection(spoilt: dict[str, Any], coded: Path, tmp_path: Path) -> None:
    change(coded / "audit.json", certificate=spoilt)
    with pytest.raises(GraphveilError, match=r"the audit of 'tribe' cannot be read \(certificate"):
        release(coded, tmp_path / "out", max_leak=limits("0.9"))


# The card


def test_the_card_states_the_certificate(coded: Path, tmp_path: Path) -> None:
    text = (release(coded, tmp_path / "out").folder / "CARD.md").read_text()
    lines = text.splitlines()
    certificate = json.loads((coded / "audit.json").read_text())["certificate"]
    section = text.split("### Certificate: tribe\n")[1].split("\n#")[0]
    assert certificate["sentence"] in section
    exact, majority = best_accuracy(CODES, tribes()), max(np.bincount(tribes())) / NODES
    beyond = at_most(certificate["calibration"]["accuracy_limit"])
    assert f"| accuracy | {at_most(exact)} | {beyond} | {100 * majority:.1f} % |" in section
    balanced = [certificate["balanced_accuracy"], certificate["calibration"]["balanced_limit"]]
    assert f"| balanced accuracy | {at_most(balanced[0])} | {at_most(balanced[1])} | 50.0 % |" in section
    worst = max(np.bincount(tribes()[np.equal(CODES, code)]).max() / np.bincount(CODES)[code] for code in range(6))
    assert f"(worst code) | {at_most(worst)} | no statement |" in section
    assert section.count("accuracy among the nodes with degree third ") == 3
    rarest = np.bincount(CODES).min()
    assert "There are 6 codes in use, so the code of a node reveals at most 2.58 bits about any secret." in section
    assert f"The rarest code has {rarest} nodes." in section
    for objection, _ in NOT_COVERED:
        assert f"- {objection}" in lines
    assert "160 nodes with one of 6 codes each; a code stands for a row of 3 numbers. The embeddings" in text
    assert "There is no guarantee" not in text
    assert not re.search(r"\n\n\n", text)


def test_a_card_without_certificates_has_no_such_section(run: Path, tmp_path: Path) -> None:
    text = (release(run, tmp_path / "out").folder / "CARD.md").read_text()
    assert "ertificate" not in text
    assert "There is no guarantee" in text


@pytest.mark.parametrize("name", NASTY)
def test_a_sentence_with_markup_is_escaped(name: str, coded: Path) -> None:
    strata = [{"column": name, "value": 1, "nodes": 9, "share": 0.1, "accuracy": 0.5, "majority": 0.5}]

    def card_with(sentence: str, strata: list[dict[str, Any]]) -> str:
        change(coded / "audit.json", certificate={"sentence": sentence, "strata": strata})
        return card(gather(coded, Limits()), ["codes"], pseudonymous=True)

    plain = [strata[0] | {"column": "x"}]
    assert shape(card_with(name, strata)) == shape(card_with("x", plain))


# The ledger


def ledger(run: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((run / "releases.json").read_text())["releases"]
    return entries


def test_every_export_is_in_the_ledger_and_codes_are_stored_once(coded: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    release(coded, tmp_path / "one")
    made = release(coded, tmp_path / "two", ["parquet", "codes"], tmp_path / "key")
    assert made.joint is None, "the same codes again reveal nothing more"
    first, second = ledger(coded)
    assert (first["files"], first["secrets"], first["pseudonyms"]) == (FILES, ["tribe"], False)
    assert (second["files"], second["pseudonyms"]) == (sorted([*FILES, "embeddings.parquet"]), True)
    assert (first["codes"], first["codes_sha256"]) == (second["codes"], second["codes_sha256"])
    assert first["time"] <= second["time"]
    assert files(coded / "releases") == ["1.parquet"]
    (listed,) = read_ledger(coded)
    before = pq.read_table(tmp_path / "one" / "codes.parquet")
    codes = NodeCodes.of(before["id"].combine_chunks(), before["code"].to_numpy().astype(np.int64))
    assert (listed.codes.sha256, listed.codes.sha256) == (codes.sha256, first["codes_sha256"])
    for name in ("one", "two"):
        assert not [file for file in files(tmp_path / name) if "releases" in file]


def test_an_export_that_is_refused_is_not_in_the_ledger(coded: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError):
        release(coded, tmp_path / "out", max_leak=limits("0.1"))
    assert not (coded / "releases.json").exists()


def test_an_export_without_a_ledger_entry_is_refused(coded: Path, tmp_path: Path) -> None:
    (coded / "releases.json").write_text("{")
    with pytest.raises(GraphveilError, match=r"the ledger .*releases.json cannot be read"):
        release(coded, tmp_path / "out", force=True)
    (coded / "releases.json").unlink()
    (coded / "releases").touch()
    with pytest.raises(GraphveilError, match="releases"):
        release(coded, tmp_path / "out", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coded"]


def test_changed_codes_in_the_ledger_are_refused(coded: Path, tmp_path: Path) -> None:
    release(coded, tmp_path / "out")
    table = pq.read_table(coded / "releases" / "1.parquet")
    pq.write_table(table.slice(1), coded / "releases" / "1.parquet")
    with pytest.raises(GraphveilError, match=r"releases/1\.parquet was changed after it was written"):
        release(coded, tmp_path / "other")


# Earlier releases


@pytest.fixture
def other(coded: Path, tmp_path: Path) -> Path:
    """A run whose codes reveal nothing alone, and everything together with those of `coded`."""
    folder = Path(shutil.copytree(coded, tmp_path / "other"))
    give_codes(folder, CODES % 2 ^ tribes())
    return folder


def test_two_releases_are_certified_together(coded: Path, other: Path, tmp_path: Path) -> None:
    alone = [json.loads((run / "audit.json").read_text())["certificate"]["accuracy"] for run in (coded, other)]
    assert max(alone) < 0.65
    made = release(coded, tmp_path / "out", released_before=[other])
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
    few = {"name": "too few examples", "sentence": "80"}
    change(coded / "audit.json", flags=[few])
    with pytest.raises(GraphveilError, match="too few examples"):
        release(coded, tmp_path / "joint", max_leak=limits("0.8"), released_before=[other])


def test_the_ledger_of_another_run_counts_and_not_its_present_codes(coded: Path, other: Path, tmp_path: Path) -> None:
    release(other, tmp_path / "before")
    give_codes(other, CODES)
    made = release(coded, tmp_path / "out", released_before=[other, other])
    assert made.joint is not None
    assert made.joint.releases == 1
    assert made.joint.certificates["tribe"].bounds[0].value == 1


def test_other_codes_of_the_same_run_count_without_being_named(coded: Path, tmp_path: Path) -> None:
    release(coded, tmp_path / "before")
    give_codes(coded, CODES % 2 ^ tribes())
    made = release(coded, tmp_path / "out")
    assert made.joint is not None
    assert made.joint.same_run == 1
    assert made.joint.certificates["tribe"].bounds[0].value == 1
    assert "1 of them has other codes from the same run." in (made.folder / "CARD.md").read_text()
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
    made = release(coded, tmp_path / "out", released_before=[half])
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
    with pytest.raises(GraphveilError, match="an earlier release of these nodes has no codes, so nothing limits"):
        release(coded, tmp_path / "out", released_before=[run])
    with pytest.raises(GraphveilError, match="these embeddings are not codes, so nothing limits"):
        release(run, tmp_path / "out", released_before=[coded])
    made = release(coded, tmp_path / "out", released_before=[run], force=True)
    assert "- Objection: an earlier release of these nodes has no codes" in (made.folder / "CARD.md").read_text()
    with pytest.raises(GraphveilError, match="not a finished run"):
        release(coded, tmp_path / "no", released_before=[tmp_path / "nowhere"])


# The command line

Graphveil = Callable[..., tuple[int, str, str]]


@pytest.fixture
def graphveil(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Graphveil:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["graphveil", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return int(left.value.code or 0), *capfd.readouterr()

    monkeypatch.setenv("COLUMNS", "200")
    return call


def test_export_prints_the_certificates(coded: Path, other: Path, graphveil: Graphveil, tmp_path: Path) -> None:
    sentence = json.loads((coded / "audit.json").read_text())["certificate"]["sentence"]
    code, said, err = graphveil("export", coded, "--out", tmp_path / "out", "--max-leak", 0.8)
    assert (code, err) == (0, "")
    assert f"Certificate for tribe: {sentence}" in said
    assert files(tmp_path / "out") == FILES
    words = ("export", coded, "--out", tmp_path / "joint", "--released-before", other, "--format", "parquet")
    code, said, err = graphveil(*words)
    assert (code, err) == (0, "")
    assert "160 of the nodes are in 1 earlier release\n" in said
    assert "Certificate for tribe, together with earlier releases: An attacker who sees only the released codes" in said
    assert files(tmp_path / "joint") == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]
    assert graphveil(*words[:2], "--out", tmp_path / "no", *words[4:6], "--max-leak", 0.8)[0] == 2


def test_embed_keeps_the_codes_of_nodes_of_the_run(coded: Path, graphveil: Graphveil, tmp_path: Path) -> None:
    """Also from a folder of embeddings, for nodes that were new there."""
    columns, links = drawn(0)
    grown = {name: [*values[::-1], *values[:40]] for name, values in columns.items()}
    grown["id"] = [*NAMES[::-1], *(f"new-{number}" for number in range(40))]
    grown["income"] = [float(value) * 1.5 for value in grown["income"]]  # by features alone, codes would change
    newer = [*links[50:], *((f"new-{number}", NAMES[number]) for number in range(40))]
    write_tables(tmp_path / "newer", grown, newer)
    words = ("--no-audit", "--device", "cpu")
    code, said, err = graphveil("embed", coded, tmp_path / "newer", "--out", tmp_path / "grown", *words)
    assert (code, err) == (0, "")
    assert "160 nodes kept their code, and 40 got a new one\n" in said
    z = RunFolder(tmp_path / "grown").embeddings().z
    assert z[:NODES].tobytes() == ROWS[CODES][::-1].tobytes()
    assert len(codes_of(z).rows) <= 6

    again = {name: values[100:] for name, values in grown.items()}
    there = {*again["id"]}
    write_tables(tmp_path / "later", again, [link for link in newer if {*link} <= there])
    code, said, _ = graphveil("embed", tmp_path / "grown", tmp_path / "later", "--out", tmp_path / "last", *words)
    assert code == 0
    assert "100 nodes kept their code, and 0 got a new one\n" in said
    assert RunFolder(tmp_path / "last").embeddings().z.tobytes() == z[100:].tobytes()
    grown_model = gv.Veil.load(tmp_path / "grown").modules_["book"]
    assert len(dict(grown_model.named_buffers())["nodes"]) == 200


def test_embed_does_not_mention_codes_if_there_are_none(
    trained: Path, tables: Path, graphveil: Graphveil, tmp_path: Path
) -> None:
    code, said, _ = graphveil("embed", trained, tables, "--out", tmp_path / "out", "--no-audit", "--device", "cpu")
    assert code == 0
    assert "kept their code" not in said


def test_codes_are_scored_if_a_secret_is_missing(coded: Path, graphveil: Graphveil, tmp_path: Path) -> None:
    columns, links = drawn(0)
    del columns["tribe"]
    write_tables(tmp_path / "newer", columns, links)
    assert graphveil("embed", coded, tmp_path / "newer", "--out", tmp_path / "out", "--device", "cpu")[0] == 0
    scores = [json.loads((folder / "run.json").read_text())["scores"] for folder in (coded, tmp_path / "out")]
    assert scores[1] == scores[0] | {"secrets": []}


def test_a_run_and_its_embedded_graph_are_released_together(coded: Path, tables: Path, tmp_path: Path) -> None:
    """A node keeps its code, so both releases together reveal what one reveals alone."""
    release(coded, tmp_path / "before")
    made = embed(coded, str(tables), tmp_path / "again", device="cpu")
    assert made.kept_codes == NODES
    both = release(made.folder, tmp_path / "out", force=True, released_before=[coded])
    assert both.joint is not None
    assert both.joint.certificates["tribe"].bounds[0].value == best_accuracy(CODES, tribes())
    assert SIGNS.tolist() == json.loads((both.folder / "code_book.json").read_text())["signs"]
