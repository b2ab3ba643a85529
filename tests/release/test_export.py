"""The files of a release and their content, and every reason to refuse an export."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from filelock import FileLock

from graphveil import cli
from graphveil.data.datasets.catalog import open_graph
from graphveil.errors import GraphveilError
from graphveil.release import FORMATS, Limits, release
from graphveil.release import export as export_module
from graphveil.release.pseudonyms import pseudonyms
from graphveil.runs.folder import RunFolder
from tests.release.made import CLASSES, NAMES, READING, audit_files, change

FILES = [
    "CARD.md",
    "SHA256SUMS",
    "embeddings.atlas.parquet",
    "embeddings.npy",
    "embeddings.parquet",
    "embeddings.safetensors",
    "embeddings.word2vec.txt",
    "ids.jsonl",
    "projector/metadata.tsv",
    "projector/projector_config.pbtxt",
    "projector/tensors.tsv",
]
KEY = b"a key of the test's own, long enough"
VECTORS = [name for name in FORMATS if name != "codes"]
FORCE = "Use --force to export anyway; the card will say so."


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_bytes(KEY)
    return tmp_path / "key"


def files(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def views(file: Path) -> Iterator[bytes]:
    """The bytes of a file and, if it is compressed, its decoded content."""
    yield file.read_bytes()
    if file.suffix == ".parquet":
        table, meta = pq.read_table(file), pq.read_metadata(file)
        yield repr((table.to_pydict(), table.schema, meta, meta.metadata)).encode()
        for column in table.columns:
            if column.type != "string":
                yield column.to_numpy().tobytes()
    if file.suffix == ".safetensors":
        with safetensors.safe_open(file, "np") as tensors:
            yield repr((list(tensors.keys()), tensors.metadata())).encode()


def forbidden(run: Path, tables: Path) -> dict[str, list[bytes]]:
    """Bytes that must not be in a release, by kind."""
    graph = open_graph(str(tables), READING)
    incomes = [row.split(",")[-1] for row in (tables / "nodes.csv").read_text().splitlines()[1:]]
    weights = safetensors.numpy.load_file(run / "model.safetensors")
    history = pq.read_table(run / "history.parquet")
    codes = [graph["tribe"].numpy(), graph.y.numpy()]
    seen = pq.read_table(run / "trained_links.parquet").to_pydict()
    x = graph.x.to_dense().numpy()
    return {
        "classes and values": [word.encode() for words in CLASSES.values() for word in words],
        "names of features": [b"income", b"home_town"],
        "secrets as numbers": [array.astype(kind).tobytes() for array in codes for kind in ("i8", "i4", "i1", "f4")],
        "raw features": [value.encode() for value in incomes]
        + [np.array(float(value), kind).tobytes() for value in incomes for kind in ("f4", "f8")],
        "encoded features": [x[:, i].tobytes() for i in range(x.shape[1])] + [row.tobytes() for row in x],
        "weights": [array.tobytes()[:16] for array in weights.values() if array.nbytes >= 16 and array.any()],
        "history": [column.to_numpy()[-8:].tobytes() for column in history.columns],
        "links": [graph.edge_index[side, :8].numpy().tobytes() for side in (0, 1)],
        "links by their ids": [repr(ends[:8])[1:-1].encode() for ends in seen.values()],
        "places": [str(folder).encode() for folder in (run, tables, tables.parent)],
        "the key": [KEY],
    }


def found(folder: Path, bytes_of: dict[str, list[bytes]]) -> set[tuple[str, str]]:
    return {
        (name, what)
        for name in files(folder)
        for view in views(folder / name)
        for what, needles in bytes_of.items()
        if any(needle in view for needle in needles)
    }


def test_no_file_of_a_release_has_forbidden_content(run: Path, tables: Path, tmp_path: Path) -> None:
    bytes_of = forbidden(run, tables)
    made = release(run, tmp_path / "out", VECTORS)
    assert files(made.folder) == FILES == list(made.files)
    assert found(made.folder, bytes_of) == set()

    assert pq.read_schema(made.folder / "embeddings.parquet").names == ["id", *(f"z{i}" for i in range(6))]
    assert pq.read_schema(made.folder / "embeddings.atlas.parquet").names == ["id", "vector"]
    assert set(safetensors.numpy.load_file(made.folder / "embeddings.safetensors")) == {"z"}
    assert np.array_equal(np.load(made.folder / "embeddings.npy"), RunFolder(run).embeddings().z)

    # A list of links would repeat an id, or have two on a line. Each file has every id once, or no id.
    for name in files(made.folder):
        if name.endswith(".parquet"):
            lines = [row["id"] for row in pq.read_table(made.folder / name).to_pylist()]
        else:
            lines = [
                line for line in (made.folder / name).read_bytes().decode("latin-1").split("\n") if "person-" in line
            ]
        assert all(line.count("person-") == 1 for line in lines)
        inside = [id_ for line in lines for id_ in NAMES if id_ in line]
        assert inside in ([], NAMES), f"{name}: not in the order of the graph"


def test_the_search_finds_every_kind_of_forbidden_content(run: Path, tables: Path, tmp_path: Path) -> None:
    """In the files of the run and in the tables."""
    (tmp_path / "key").write_bytes(KEY)
    shutil.copytree(tables, tmp_path / "all")
    for file in (*run.glob("*.*"), tmp_path / "key"):
        shutil.copy(file, tmp_path / "all" / file.name)
    graph = open_graph(str(tables), READING)
    np.save(tmp_path / "all" / "x.npy", graph.x.to_dense().numpy())
    np.save(tmp_path / "all" / "tribe.npy", graph["tribe"].numpy())
    np.save(tmp_path / "all" / "edges.npy", graph.edge_index.numpy())
    bytes_of = forbidden(run, tables)
    assert {what for _, what in found(tmp_path / "all", bytes_of)} == set(bytes_of)


def test_pseudonyms_replace_all_ids_and_determine_the_order(run: Path, key: Path, tmp_path: Path) -> None:
    made = release(run, tmp_path / "out", VECTORS, key)
    for name in files(made.folder):
        for view in views(made.folder / name):
            assert b"person-" not in view, name
            assert KEY not in view
    table = pq.read_table(made.folder / "embeddings.parquet")
    names = table["id"].to_pylist()
    assert names == sorted(names)
    before = pq.read_table(run / "embeddings.parquet")
    rows = dict(zip(pseudonyms(before["id"].combine_chunks(), KEY).to_pylist(), before["z0"].to_pylist(), strict=True))
    assert table["z0"].to_pylist() == [rows[name] for name in names]
    assert np.load(made.folder / "embeddings.npy")[:, 0].tolist() == table["z0"].to_pylist()
    for file, place in (("projector/metadata.tsv", 0), ("embeddings.word2vec.txt", 1)):
        lines = (made.folder / file).read_text().splitlines()[place:]
        assert [line.split()[0] for line in lines] == names
    assert [json.loads(line) for line in (made.folder / "ids.jsonl").read_text().splitlines()] == names
    assert "Pseudonyms are not anonymity" in (made.folder / "CARD.md").read_text()


def test_the_checksums_of_all_files_are_correct(run: Path, tmp_path: Path) -> None:
    made = release(run, tmp_path / "out", VECTORS)
    check = ["sha256sum", "--strict", "-c", "SHA256SUMS"]
    done = subprocess.run(check, cwd=made.folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name}: OK" for name in FILES if name != "SHA256SUMS"]
    with (made.folder / "CARD.md").open("a") as file:
        file.write("!")
    assert subprocess.run(check, cwd=made.folder, capture_output=True, check=False).returncode == 1


def test_the_same_run_gives_the_same_release(run: Path, key: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        release(run, tmp_path / name, VECTORS, key)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def alter_embeddings(run: Path) -> None:
    """Newer embeddings without an audit."""
    table = pq.read_table(run / "embeddings.parquet")
    z = np.stack([table[f"z{i}"].to_numpy() for i in range(6)], axis=1).copy()
    z[3, 2] += np.float32(1)
    pq.write_table(table.set_column(3, "z2", [z[:, 2]]), run / "embeddings.parquet")


def swap_ids(run: Path) -> None:
    """The rows are those of the audit, but two ids are swapped."""
    table = pq.read_table(run / "embeddings.parquet")
    ids = table["id"].to_pylist()
    pq.write_table(table.set_column(0, "id", [[ids[1], ids[0], *ids[2:]]]), run / "embeddings.parquet")


def edit_verdict(run: Path) -> None:
    """A verdict that was edited by hand."""
    file = audit_files(run)["tribe"]
    change(file, verdict="leaks")
    file.write_text(file.read_text().replace('"leaks"', '"protected"'))


OBJECTIONS: list[tuple[Callable[[Path], object], str]] = [
    (lambda run: audit_files(run)["tribe"].unlink(), "the secret 'tribe' has not been audited"),
    (lambda run: audit_files(run)["links"].unlink(), "the secret 'links' has not been audited"),
    (lambda run: audit_files(run)["links"].write_text("{"), r"the audit of 'links' cannot be read \("),
    (lambda run: shutil.copy(*reversed([*audit_files(run).values()])), "the audit of 'tribe' cannot be read .*'links'"),
    (edit_verdict, r"the audit of 'tribe' cannot be read \(it was changed after it was written\)"),
    (lambda run: change(audit_files(run)["links"], schema="x"), "the audit of 'links' cannot be read"),
    (lambda run: change(audit_files(run)["links"], strongest={"value": None}), "cannot be read"),
    (
        lambda run: change(audit_files(run)["tribe"], flags=[{"name": "too few examples", "sentence": "of all"}]),
        r"the audit of 'tribe' is flagged: too few examples \(of all\)",
    ),
    (
        lambda run: change(audit_files(run)["links"], origin={"panel": "quick"}),
        "the audit of 'links' is flagged: not the full panel",
    ),
    (alter_embeddings, "the audit of 'tribe' does not match these emb.*the audit of 'links' does not match these emb"),
    (swap_ids, "the ids in embeddings.parquet differ from those of the run, or are in another order"),
    (lambda run: change(run / "run.json", split_digest="0"), "the audit of 'tribe' does not match this split"),
]


def test_a_refusal_without_an_audit_names_the_command(run: Path, tmp_path: Path) -> None:
    audit_files(run)["tribe"].unlink()
    says = rf"Audit it first: `graphveil audit {re.escape(shlex.quote(str(run)))}`\. Use --force"
    with pytest.raises(GraphveilError, match=says):
        release(run, tmp_path / "out")


@pytest.mark.parametrize(("spoil", "sentence"), OBJECTIONS)
def test_an_objection_refuses_the_export_or_is_on_the_card(
    spoil: Callable[[Path], object], sentence: str, run: Path, tmp_path: Path
) -> None:
    spoil(run)
    with pytest.raises(GraphveilError, match=rf"run was not exported: .*{sentence}.* {FORCE}"):
        release(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    made = release(run, tmp_path / "out", force=True)
    card = (made.folder / "CARD.md").read_text()
    assert "**This release was forced.**" in card
    listed = [line for line in card.splitlines() if line.startswith("- Objection: ")]
    assert len(listed) == len(made.objections) > 0
    assert str(run) not in card


LEAKS: dict[str, Any] = {
    "verdict": "leaks",
    "reasons": [
        {"sentence": "boosted trees, all: accuracy 89.3 [86.0, 92.0] is above its reference, 51.0", "size": 0.7}
    ],
    "chance": 0.51,
    "strongest": {"attack": "boosted trees, all", "value": 0.893, "ci": [0.86, 0.92]},
    "balanced": {"value": 0.89, "ci": [0.85, 0.91]},
    "attacks": [],
}
LEAK = (
    "the verdict of the audit of 'tribe' is leaks: the strongest attack (boosted trees, all) has an accuracy of 89.3 %"
    " (chance level 51.0 %)"
)


def test_a_leaking_run_is_refused(run: Path, tmp_path: Path) -> None:
    change(audit_files(run)["tribe"], **LEAKS)
    with pytest.raises(GraphveilError) as refused:
        release(run, tmp_path / "out")
    assert (
        str(refused.value)
        == f"{run} was not exported: {LEAK}. State the highest accuracy or AUC to accept with --max-leak. {FORCE}"
    )
    with pytest.raises(GraphveilError, match=re.escape(LEAK)):
        release(run, tmp_path / "out", max_leak=Limits.parsed(["links=1"]))  # a limit for another secret
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["0.92", "links=1"], ["tribe=0.92"]])
def test_a_leaking_run_within_its_limit_is_exported_and_the_card_states_verdict_and_limit(
    words: list[str], run: Path, tmp_path: Path
) -> None:
    change(audit_files(run)["tribe"], **LEAKS)
    made = release(run, tmp_path / "out", max_leak=Limits.parsed(words))
    assert made.objections == ()
    card = (made.folder / "CARD.md").read_text()
    assert "This release was forced" not in card
    tribe, links = card.split("### Secret: ")[1:]
    assert tribe.startswith("tribe\n\nVerdict: **leaks**")
    assert "\nLimit set with `--max-leak`: 0.92, for the upper bound over all attacks" in tribe
    assert ("--max-leak`: 1, for" in links) == (len(words) == 2), "a secret without a limit has no such line"


def test_a_leaking_run_above_its_limit_is_refused(run: Path, tmp_path: Path) -> None:
    change(audit_files(run)["tribe"], **LEAKS)
    with pytest.raises(
        GraphveilError, match=r"has an accuracy of up to 0\.920 .*, above the limit of 0\.919"
    ) as refused:
        release(run, tmp_path / "out", max_leak=Limits.parsed(["tribe=0.919"]))
    assert "the verdict" not in str(refused.value), "the limit decides instead of the verdict"
    assert "State the highest" not in str(refused.value), "a limit was given"
    assert not (tmp_path / "out").exists()


def test_a_forced_export_has_the_objection_on_the_card(run: Path, tmp_path: Path) -> None:
    change(audit_files(run)["tribe"], **LEAKS)
    made = release(run, tmp_path / "out", force=True)
    assert made.objections == (LEAK,)
    lines = (made.folder / "CARD.md").read_text().splitlines()
    assert "**This release was forced.** `graphveil export` had objections to it:" in lines
    assert f"- Objection: {LEAK}." in lines


@pytest.mark.parametrize(
    ("verdict", "released", "within_limit"),
    [
        ("protected", True, True),
        ("traces", True, True),
        ("leaks", False, True),
        ("unprotected", False, True),
        ("flagged", False, False),
    ],
)
def test_the_rule_of_a_release(verdict: str, released: bool, within_limit: bool, run: Path, tmp_path: Path) -> None:
    """Each row of the table in docs/how-to/export-with-a-limit.md."""
    flags = [{"name": "utility at chance", "sentence": "nothing is kept"}] if verdict == "flagged" else []
    change(audit_files(run)["tribe"], **LEAKS | {"verdict": verdict, "flags": flags})
    for words, expected in (([], released), (["tribe=0.92"], within_limit), (["tribe=0.6"], False)):
        if expected:
            assert release(run, tmp_path / f"out{words}", max_leak=Limits.parsed(words)).objections == ()
        else:
            with pytest.raises(GraphveilError, match="was not exported"):
                release(run, tmp_path / f"out{words}", max_leak=Limits.parsed(words))


def test_a_protected_run_is_exported(run: Path, tmp_path: Path) -> None:
    made = release(run, tmp_path / "out")
    assert made.objections == ()
    card = (made.folder / "CARD.md").read_text()
    assert card.count("Verdict: **protected**") == 2
    assert "--max-leak" not in card
    assert "Objection" not in card


def test_the_reason_of_the_audit_is_stated_if_the_strongest_attack_is_at_chance(run: Path, tmp_path: Path) -> None:
    """If one in twenty nodes is in the rare class, only the balanced accuracy shows the leak."""
    balanced = "k nearest neighbours, all: balanced accuracy 81.0 [75.0, 86.0] is above 50.0"
    near = {"attack": "logistic regression, all", "value": 0.95, "ci": [0.93, 0.97]}
    change(
        audit_files(run)["tribe"],
        verdict="leaks",
        chance=0.95,
        strongest=near,
        reasons=[{"sentence": balanced, "size": 0.6}],
    )
    with pytest.raises(
        GraphveilError, match=re.escape(f"the verdict of the audit of 'tribe' is leaks: {balanced}. State")
    ):
        release(run, tmp_path / "out")


def test_the_modification_time_of_an_audit_does_not_matter(run: Path, tmp_path: Path) -> None:
    alter_embeddings(run)
    for file in audit_files(run).values():
        file.touch()
    with pytest.raises(GraphveilError, match="does not match these embeddings"):
        release(run, tmp_path / "out")


def test_the_limit_is_compared_with_the_upper_end_of_the_interval(run: Path, tmp_path: Path) -> None:
    for name, high, beside in (("tribe", 0.7, "balanced"), ("links", 0.8, "class_matched")):
        low = {"value": 0.5, "ci": [0.4, 0.6]}
        best = {"value": 0.6, "ci": [0.5, high], "upper": high}
        change(audit_files(run)[name], strongest=best, attacks=[], **{beside: low})
    for words in (["0.8"], ["0.8", "tribe=0.7"], ["tribe=0.7", "links=0.8"], ["0.1", "tribe=1", "links=1"]):
        release(run, tmp_path / "out", max_leak=Limits.parsed(words))
        shutil.rmtree(tmp_path / "out")
    for words, sentence in (
        (["0.79"], "on 'links' has an AUC of up to 0.800 .* above the limit of 0.79"),
        (["0.8", "tribe=0.69"], "on 'tribe' has an accuracy of up to 0.700 .* above the limit of 0.69"),
    ):
        with pytest.raises(GraphveilError, match=sentence) as refused:
            release(run, tmp_path / "out", max_leak=Limits.parsed(words))
        assert str(refused.value).count("above the limit") == 1
    with pytest.raises(GraphveilError, match=r"unknown secret of --max-leak 'tribes'.*Did you mean 'tribe'"):
        release(run, tmp_path / "out", max_leak=Limits.parsed(["tribes=0.5"]))


def test_the_limit_is_compared_with_the_upper_bound_over_all_attacks(run: Path, tmp_path: Path) -> None:
    """The bound holds for every attack on z alone, so it is above the interval of the strongest attack."""
    low = {"value": 0.5, "ci": [0.4, 0.6]}
    graph = {"attack": "a GNN", "needs": ["z", "graph"], "metric": "accuracy", "value": 0.9, "ci": [0.85, 0.95]}
    graph |= {"metrics": {}, "validation": 0.9, "seconds": 0.1}
    change(audit_files(run)["tribe"], strongest=low | {"upper": 0.7502}, balanced=low, attacks=[graph])
    release(run, tmp_path / "out", max_leak=Limits.parsed(["tribe=0.751"]))
    sentence = r"an attack on 'tribe' has an accuracy of up to 0.7502 .*all attacks.* above the limit of 0.75\b"
    with pytest.raises(GraphveilError, match=sentence):
        release(run, tmp_path / "other", max_leak=Limits.parsed(["tribe=0.75"]))


@pytest.mark.parametrize(
    ("secret", "beside", "said"),
    [("tribe", "balanced", "balanced accuracy"), ("links", "class_matched", "class-matched AUC")],
)
def test_the_limit_applies_to_metrics_that_show_a_rare_class(
    secret: str, beside: str, said: str, run: Path, tmp_path: Path
) -> None:
    """If one in twenty nodes is in the rare class, always naming the other class has a high accuracy."""
    change(audit_files(run)[secret], strongest={"value": 0.5, "ci": [0.4, 0.6], "upper": 0.6}, attacks=[])
    change(audit_files(run)[secret], **{beside: {"value": 0.9, "ci": [0.85, 0.94]}})
    release(run, tmp_path / "out", max_leak=Limits.parsed([f"{secret}=0.94"]))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        GraphveilError, match=f"on '{secret}' has a {said} of up to 0.940 .* above the limit of 0.93"
    ) as refused:
        release(run, tmp_path / "out", max_leak=Limits.parsed([f"{secret}=0.93"]))
    assert str(refused.value).count("above the limit") == 1


@pytest.mark.parametrize(
    "words", [["1.1"], ["-0.1"], ["nan"], ["much"], ["=0.5"], ["a="], ["0.5", "0.6"], ["a=0", "a=1"]]
)
def test_an_invalid_limit_is_refused(words: list[str]) -> None:
    with pytest.raises(GraphveilError, match="--max-leak"):
        Limits.parsed(words)


def test_no_file_is_overwritten_and_run_and_release_are_separate(run: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "file", "link"):
        with pytest.raises(GraphveilError, match="already exists"):
            release(run, tmp_path / name)
    for out in (run, run / "release", tmp_path, run.parent):
        with pytest.raises(GraphveilError, match="overlap: choose a folder outside"):
            release(run, out)
    assert files(tmp_path / "full") == ["mine"]
    (tmp_path / "empty").mkdir()
    assert files(release(run, tmp_path / "empty").folder) == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]


def test_a_key_in_the_run_or_the_release_is_refused(run: Path, tmp_path: Path) -> None:
    (run / "key").write_bytes(KEY)
    (tmp_path / "out").mkdir()
    for file in (run / "key", tmp_path / "out" / "key"):
        with pytest.raises(GraphveilError, match="is inside"):
            release(run, tmp_path / "out", key_file=file)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError])
def test_a_failed_export_leaves_no_files(
    fault: BaseException | type[BaseException], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        assert len(list(tmp_path.glob(".out.*.unfinished/embeddings.npy"))) == 1, "the export has started"
        raise fault

    monkeypatch.setattr(export_module, "card", fail)
    before = files(tmp_path)
    with pytest.raises(GraphveilError if isinstance(fault, OSError) else fault):  # type: ignore[arg-type]
        release(run, tmp_path / "out", VECTORS)
    assert files(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


KILLED = """
import os, signal, sys
from pathlib import Path
from graphveil.release import export
export.card = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
export.release(Path(sys.argv[1]), Path(sys.argv[2]), ["npy"])
"""


def test_an_export_after_a_killed_one_is_complete(run: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, run, tmp_path / "out"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "out").exists()
    assert len(list(tmp_path.glob(".out.*.unfinished/embeddings.npy"))) == 1, "the export had started"
    release(run, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]
    assert files(tmp_path / "out") == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]


def test_only_unlocked_temporary_folders_are_removed(run: Path, tmp_path: Path) -> None:
    for name in ("dead", "alive"):
        (tmp_path / f".out.{name}.unfinished" / "projector").mkdir(parents=True)
        (tmp_path / f".out.{name}.unfinished" / "embeddings.npy").touch()
    with FileLock(tmp_path / ".out.alive.unfinished" / ".lock"):
        release(run, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.alive.unfinished", "out", "run"]


def test_a_symbolic_link_named_like_a_temporary_folder_is_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".out.0.unfinished").symlink_to(tmp_path / "mine")
    release(run, tmp_path / "out")
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.parametrize("formats", [[], ["parquet", "csv"]])
def test_formats_are_checked_first(formats: list[str], run: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match=r"no format|unknown format 'csv'"):
        release(run, tmp_path / "out", formats)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: (run / "embeddings.parquet").unlink(),
        lambda run: (run / "embeddings.parquet").write_bytes(b"PAR1"),
        lambda run: pq.write_table(pq.read_table(run / "embeddings.parquet").drop(["id"]), run / "embeddings.parquet"),
        lambda run: pq.write_table(
            (table := pq.read_table(run / "embeddings.parquet")).set_column(0, "id", [["same"] * len(table)]),
            run / "embeddings.parquet",
        ),
        lambda run: (run / "run.json").unlink(),
    ],
)
def test_an_invalid_run_is_refused_even_with_force(spoil: Callable[[Path], object], run: Path, tmp_path: Path) -> None:
    spoil(run)
    with pytest.raises(GraphveilError, match=r"cannot be read as the embeddings|not a finished run"):
        release(run, tmp_path / "out", force=True)
    assert not (tmp_path / "out").exists()


def test_on_the_command_line(
    run: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def graphveil(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["graphveil", *words])
        with pytest.raises(SystemExit) as left:
            cli.run()
        return int(left.value.code or 0), *capfd.readouterr()

    monkeypatch.setenv("COLUMNS", "200")
    for verb in ("export", "embed"):
        assert re.search(rf"Examples?:\s+graphveil {verb} runs/a", graphveil(verb, "--help")[1])
    out = tmp_path / "out"
    code, said, err = graphveil("export", str(run), "--out", str(out), "--max-leak", "links=0")
    assert (code, said) == (2, "")
    assert err.startswith("graphveil:")
    assert "above the limit of 0." in err
    words = ["--format", "word2vec, npy", "--pseudonyms", str(key), "--max-leak", "links=0", "--force"]
    change(audit_files(run)["tribe"], **LEAKS)
    code, said, err = graphveil("export", str(run), "--out", str(out), *words)
    assert (code, err) == (0, "")
    assert f"the embeddings reveal more than traces of tribe: {LEAKS['reasons'][0]['sentence']}" in said
    assert "traces of links" not in said
    assert files(out) == ["CARD.md", "SHA256SUMS", "embeddings.npy", "embeddings.word2vec.txt", "ids.jsonl"]
    forced = "exported in spite of an objection: "
    for part in (
        "boosted trees, all",
        f"{forced}the verdict of the audit of 'tribe' is leaks",
        f"{forced}an attack on 'links'",
    ):
        assert part in said
    for name in files(out):
        assert name in said
