"""Releases of codes: files, certificates, limits, the card, the ledger and earlier releases."""

import json
import re
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
from graphveil.codes import NOT_COVERED
from graphveil.codes.words import at_most
from graphveil.errors import GraphveilError
from graphveil.release import FORMATS, Limits, release
from graphveil.release.card import card
from graphveil.release.codes import codes_of
from graphveil.release.evidence import gather
from graphveil.release.pseudonyms import pseudonyms
from graphveil.runs.folder import Embeddings, RunFolder
from graphveil.runs.graphs import graph_of
from tests.release.made import CODES, FILES, NAMES, NODES, ROWS, best_accuracy, change, drawn, tribes, write_tables
from tests.release.test_card import NASTY, shape
from tests.release.test_export import KEY, files, forbidden, found


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
    assert section.count("accuracy among the nodes with degree tercile ") == 3
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


# Earlier releases


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
    code, said, err = graphveil(*words, "--max-leak", 1)
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
    assert "160 nodes kept their code, and 40 new nodes were assigned one\n" in said
    z = RunFolder(tmp_path / "grown").embeddings().z
    assert z[:NODES].tobytes() == ROWS[CODES][::-1].tobytes()
    assert len(codes_of(z).rows) <= 6

    again = {name: values[100:] for name, values in grown.items()}
    there = {*again["id"]}
    write_tables(tmp_path / "later", again, [link for link in newer if {*link} <= there])
    code, said, _ = graphveil("embed", tmp_path / "grown", tmp_path / "later", "--out", tmp_path / "last", *words)
    assert code == 0
    assert "100 nodes kept their code, and 0 new nodes were assigned one\n" in said
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
