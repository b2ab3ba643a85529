"""A trained encoder applied to its own graph, to a grown graph, and to a different graph."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.auditing.embeddings import check_embeddings
from graphveil.data import Split
from graphveil.data.datasets.catalog import open_graph
from graphveil.data.origin import ReadOptions
from graphveil.errors import GraphveilError
from graphveil.release import release
from graphveil.runs.audit import audit_run
from graphveil.runs.controls import REFITTED, encoder_controls
from graphveil.runs.embed import Embedded, embed
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import graph_of
from graphveil.runs.protect import protect
from graphveil.runs.trained_on import TRAINED_LINKS, TRAINED_ON
from tests.release.made import CLASSES, NAMES, NODES, PROTECTED, READING, change, drawn, write_tables

Columns = dict[str, list[Any]]


def on(run: Path, tmp_path: Path, columns: Columns, links: list[tuple[str, str]], **more: Any) -> Embedded:
    return embed(run, str(write_tables(tmp_path / "newer", columns, links)), tmp_path / "out", device="cpu", **more)


def test_the_same_graph_has_identical_embeddings(trained: Path, tables: Path, tmp_path: Path) -> None:
    made = embed(trained, str(tables), tmp_path / "out", device="cpu")
    assert made.warnings == made.unseen == ()
    assert (made.known, made.secrets) == (NODES, ("tribe", "links"))
    for name in ("embeddings.parquet", "model.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (trained / name).read_bytes()
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    before = json.loads((trained / "run.json").read_text())
    assert record["config"] == before["config"]
    assert record["scores"] == before["scores"], "the same split, the same heads"
    assert record["split_digest"] == before["split_digest"], "its test part was not trained on in that run either"
    assert (record["embedded"]["warnings"], record["embedded"]["not_recorded"]) == ([], [])
    for name in (TRAINED_ON, TRAINED_LINKS):
        assert pq.read_table(tmp_path / "out" / name) == pq.read_table(trained / name)


def test_a_grown_graph_keeps_its_own_ids_in_its_own_order(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    grown = {name: [*values[::-1], *values[:40]] for name, values in columns.items()}
    grown["id"] = [*NAMES[::-1], *(f"new-{number}" for number in range(40))]
    links = [*links, *((f"new-{number}", f"new-{(number + step) % 40}") for number in range(40) for step in (1, 2, 3))]
    made = on(trained, tmp_path, grown, links)
    assert made.warnings == ()
    assert (made.known, len(made.z)) == (NODES, NODES + 40)
    table = pq.read_table(tmp_path / "out" / "embeddings.parquet")
    assert table["id"].to_pylist() == grown["id"]
    z = np.stack([table[f"z{i}"].to_numpy() for i in range(6)], axis=1)
    assert np.array_equal(z, RunFolder(tmp_path / "out").embeddings().z)
    assert np.isfinite(z).all()
    before = RunFolder(trained).embeddings().z[::-1]
    assert np.allclose(z[:NODES], before, rtol=0, atol=1e-6), "nothing reaches them from nodes they are not linked with"


def test_an_embedded_graph_is_audited_and_released_like_a_run(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    made = on(trained, tmp_path, columns, links[:-30])
    found = audit_run(made.folder, made.secrets, "quick")
    assert [file.name for file in found] == ["audit.json", "audit.links.json"]
    audit = found[made.folder / "audit.json"]
    assert audit.origin.embeddings == json.loads((made.folder / "audit.json").read_text())["origin"]["embeddings"]
    assert len(check_embeddings(made.z, NODES)) == NODES
    for file in found:
        change(file, **PROTECTED)
    made_of_it = release(made.folder, tmp_path / "release")
    assert sorted(made_of_it.files) == ["CARD.md", "SHA256SUMS", "embeddings.parquet"]
    card = (made_of_it.folder / "CARD.md").read_text()
    assert "trained on another graph, or on an older version of this graph" in card
    assert "on a part of the data that the encoder was not trained on" in card
    assert "tested on none of the nodes or links that the encoder was trained on" in card


def grown_and_turned() -> tuple[Columns, list[tuple[str, str]]]:
    """The same nodes in another order, so that each part is drawn anew, and 40 new nodes."""
    columns, links = drawn(0)
    grown = {name: [*values[::-1], *values[:40]] for name, values in columns.items()}
    grown["id"] = [*NAMES[::-1], *(f"new-{number}" for number in range(40))]
    return grown, [*links, *((f"new-{number}", NAMES[number]) for number in range(40))]


def test_test_nodes_exclude_those_that_the_encoder_was_trained_on(trained: Path, tables: Path, tmp_path: Path) -> None:
    graph, split = graph_of(RunFolder(trained), RunFolder(trained).record())
    seen = {NAMES[node] for node in split.defender_nodes("all").tolist()}
    made = on(trained, tmp_path, *grown_and_turned())
    graph, split = graph_of(RunFolder(made.folder), RunFolder(made.folder).record())
    ids = graph.origin.ids.to_pylist()
    parts = [split.train_nodes, split.val_nodes, split.test_nodes, split.spare_nodes]
    train, val, test, spare = ([ids[node] for node in part.tolist()] for part in parts)
    assert not seen & {*val, *test}
    assert len({*train, *val, *test, *spare}) == NODES + 40
    whole = Split.proportional(graph, 4, "all", split.targets)
    assert {ids[node] for node in whole.test_nodes.tolist()} & seen, "else this test could not fail"
    assert len(test) == len(whole.test_nodes), "there are enough others to take their place"
    assert graph.y[split.train_nodes].bincount().equal(graph.y[whole.train_nodes].bincount()), (
        "each by one of its class"
    )

    (found,) = audit_run(made.folder, ["tribe"], "quick").values()
    queries = {ids[node] for node in found.secret.test.index.tolist()}
    assert queries == {*test}
    assert found.context.notes == ()

    again = embed(made.folder, str(tables), tmp_path / "again", device="cpu")
    graph, split = graph_of(RunFolder(again.folder), RunFolder(again.folder).record())
    assert not seen & {NAMES[node] for node in (*split.val_nodes.tolist(), *split.test_nodes.tolist())}


def as_pairs(names: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in names}


def seen_links(run: Path) -> set[frozenset[str]]:
    """The links that the run was trained on, from its file."""
    table = pq.read_table(run / TRAINED_LINKS)
    return as_pairs(zip(*(table[end].to_pylist() for end in table.column_names), strict=True))


def named_parts(made: Embedded) -> dict[str, set[frozenset[str]]]:
    """The parts of pairs in the split of a folder, by the ids of the nodes."""
    graph, split = graph_of(RunFolder(made.folder), RunFolder(made.folder).record())
    ids = graph.origin.ids.to_pylist()
    return {
        name: as_pairs((ids[one], ids[other]) for one, other in getattr(split, name).t().tolist())
        for name in ("train_links", "val_links", "test_links", "val_nonlinks", "test_nonlinks")
    }


def test_a_run_stores_the_links_it_was_trained_on(trained: Path) -> None:
    _, split = graph_of(RunFolder(trained), RunFolder(trained).record())
    expected = as_pairs((NAMES[one], NAMES[other]) for one, other in split.train_links.t().tolist())
    assert seen_links(trained) == expected
    assert len(expected) == 425, "85 of 100 of 500"


def test_test_links_exclude_those_that_the_encoder_was_trained_on(trained: Path, tmp_path: Path) -> None:
    seen = seen_links(trained)
    columns, links = drawn(0)
    turned = {name: values[::-1] for name, values in columns.items()}  # so that others are drawn for each part
    there = as_pairs(links)
    added = [pair for pair in zip(NAMES, NAMES[50:], strict=False) if frozenset(pair) not in there][:30]
    made = on(trained, tmp_path, turned, [*links, *added])
    assert (made.warnings, made.unseen) == ((), ())
    parts = named_parts(made)
    graph, _ = graph_of(RunFolder(made.folder), RunFolder(made.folder).record())
    whole = Split.proportional(graph, 4, "all", ["labels", "tribe", "links"])
    ids = graph.origin.ids.to_pylist()
    assert seen & as_pairs((ids[one], ids[other]) for one, other in whole.test_links.t().tolist()), (
        "else it cannot fail"
    )
    held_out = parts["val_links"] | parts["test_links"]
    assert not seen & held_out
    assert held_out | parts["train_links"] == there | as_pairs(added)
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes == {name: getattr(whole, name).size(1) for name in parts}, "there are enough new ones: 75 + 30 for 79"

    (found,) = audit_run(made.folder, ["links"], "quick").values()
    queries = found.secret.test.index[:, found.secret.test.y == 1].T.tolist()
    assert as_pairs((ids[one], ids[other]) for one, other in queries) == parts["test_links"]
    assert found.context.overlaps == ()
    assert "possible train/test overlap" not in {flag.name for flag in found.flags}

    again = embed(made.folder, str(tmp_path / "newer"), tmp_path / "again", device="cpu")
    assert named_parts(again) == parts, "what was embedded knows what its encoder was trained on"


@pytest.mark.parametrize(("new", "val"), [(7, 2), (3, 1)])
def test_a_few_new_links_are_split_into_validation_and_test(new: int, val: int, trained: Path, tmp_path: Path) -> None:
    seen = seen_links(trained)
    columns, links = drawn(0)
    old = [link for link in links if frozenset(link) in seen]
    others = [link for link in links if frozenset(link) not in seen][:new]
    made = on(trained, tmp_path, columns, [*old, *others])
    assert made.secrets == ("tribe", "links")
    parts = named_parts(made)
    assert parts["val_links"] | parts["test_links"] == as_pairs(others)
    assert parts["train_links"] == seen
    for name, size in (("val", val), ("test", new - val)):
        assert len(parts[f"{name}_links"]) == len(parts[f"{name}_nonlinks"]) == size
    audit_run(made.folder, ["links"], "quick")


@pytest.mark.parametrize("new", [0, 2])
def test_links_are_not_audited_if_all_were_trained_on(new: int, trained: Path, tmp_path: Path) -> None:
    seen = seen_links(trained)
    columns, links = drawn(0)
    old = [link for link in links if frozenset(link) in seen]
    others = [link for link in links if frozenset(link) not in seen][:new]
    made = on(trained, tmp_path, columns, [*old, *others])
    assert made.secrets == ("tribe",)
    assert made.unseen == ("links were not audited: too few links are new to the encoder.",)
    assert RunFolder(made.folder).record().scores.utility is not None, "the guild is a node attribute"
    graph, split = graph_of(RunFolder(made.folder), RunFolder(made.folder).record())
    found = encoder_controls(RunFolder(made.folder), graph, split)
    controls, notes = found.embeddings, found.notes
    assert controls == {}
    assert notes[0].startswith(
        "control encoders were skipped, because links cannot be evaluated: too few links are new to the encoder"
    )
    assert len(audit_run(made.folder, made.secrets, "quick")) == 1
    with pytest.raises(GraphveilError, match="links cannot be audited: too few links are new to the encoder"):
        audit_run(made.folder, attacks="quick")


def test_the_links_of_a_node_that_was_renamed_are_new(trained: Path, tmp_path: Path) -> None:
    """A node is identified only by its id."""
    seen = seen_links(trained)
    columns, links = drawn(0)
    counts = Counter(name for link in seen for name in link)
    old, count = next((name, count) for name, count in counts.most_common() if count < 20)
    columns["id"] = ["renamed" if name == old else name for name in columns["id"]]
    kept = [tuple("renamed" if name == old else name for name in link) for link in links if frozenset(link) in seen]
    made = on(trained, tmp_path, columns, kept)  # type: ignore[arg-type]
    assert made.known == NODES - 1
    parts = named_parts(made)
    held_out = parts["val_links"] | parts["test_links"]
    assert len(held_out) == count
    assert all("renamed" in link for link in held_out)


@pytest.mark.parametrize(("file", "what"), [(TRAINED_ON, "nodes"), (TRAINED_LINKS, "links")])
def test_the_audit_warns_if_it_is_unknown_what_was_trained_on(
    file: str, what: str, trained: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / file).unlink()
    made = on(tmp_path / "run", tmp_path, *grown_and_turned())
    warning = f"The run does not record which {what} it was trained on, so the test part may contain some of them."
    assert made.warnings == (warning,)
    overlaps = {audit.secret.name: audit.context.overlaps for audit in audit_run(made.folder, attacks="quick").values()}
    overlap = f"{what} that the encoder was trained on may be in the test part, and embeddings reveal less about them"
    assert overlaps == {"tribe": (), "links": ()} | {"tribe" if what == "nodes" else "links": (overlap,)}


@pytest.mark.parametrize(
    "spoilt",
    [
        pa.table({"one": ["a"], "another": ["b"]}),
        pa.table({"one": [[1]], "other": [[2]]}),
        pa.table({"one": [1.5], "other": [2.5]}),
        "a pipe",
        None,
    ],
)
def test_an_invalid_file_of_trained_links_is_refused(
    spoilt: pa.Table | str | None, trained: Path, tables: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / TRAINED_LINKS).unlink()
    if spoilt is None:
        (tmp_path / "run" / TRAINED_LINKS).write_bytes(b"PAR1 torn")
    elif isinstance(spoilt, str):
        os.mkfifo(tmp_path / "run" / TRAINED_LINKS)
    else:
        pq.write_table(spoilt, tmp_path / "run" / TRAINED_LINKS)
    with pytest.raises(GraphveilError, match=r"trained_links\.parquet cannot be read as a list of ids"):
        embed(tmp_path / "run", str(tables), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_node_secret_is_not_audited_if_all_nodes_were_trained_on(trained: Path, tmp_path: Path) -> None:
    seen = pq.read_table(trained / "trained_on.parquet")["id"].to_pylist()
    columns, links = drawn(0)
    kept = [NAMES.index(name) for name in seen]
    fewer = {name: [values[node] for node in kept] for name, values in columns.items()}
    inner = [(one, other) for one, other in links if {one, other} <= {*seen}]
    assert len(as_pairs(inner) - seen_links(trained)) > 3
    made = on(trained, tmp_path, fewer, inner)
    assert made.secrets == ("links",)
    assert "tribe was not audited: it is known for too few nodes that are new to the encoder." in made.unseen[0]
    assert json.loads((made.folder / "run.json").read_text())["scores"]["utility"] is None


def test_kept_links_are_scored_on_new_links(tables: Path, tmp_path: Path) -> None:
    graph = open_graph(str(tables), READING)
    targets = ["links", "tribe"]
    split = Split.proportional(graph, 0, message_edges="train", targets=targets)
    veil = gv.Veil("links", "tribe", objective="club", seed=0, device="cpu")
    veil.recipe = veil.recipe.but(rounds=6, warmup=2, evaluate_every=2, hidden_channels=8, out_channels=4)
    source = {"graph": str(tables), "reading": asdict(READING), "split": "proportional"}
    run = protect(veil, graph, split, tmp_path / "run", source=source)
    made = embed(tmp_path / "run", str(tables), tmp_path / "out", device="cpu")
    assert made.z.equal(veil.transform(graph))
    assert not made.z.equal(run.z)
    record = RunFolder(made.folder).record()
    assert record.scores == RunFolder(tmp_path / "run").record().scores
    assert record.message_edges == "all"
    found = encoder_controls(RunFolder(made.folder), *graph_of(RunFolder(made.folder), record))
    controls, notes = found.embeddings, found.notes
    assert notes == ()
    assert set(controls) == {"untrained encoder", "unprotected encoder", REFITTED}
    audit_run(made.folder, attacks="quick")

    seen = seen_links(tmp_path / "run")
    columns, links = drawn(0)
    old = [link for link in links if frozenset(link) in seen]
    newer = write_tables(tmp_path / "newer", columns, old)
    made = embed(tmp_path / "run", str(newer), tmp_path / "of old links", device="cpu")
    assert (made.secrets, made.unseen) == (("tribe",), ())
    assert RunFolder(made.folder).record().scores.utility is None, "it would be that of links that were trained on"
    (audit,) = audit_run(made.folder, attacks="quick").values()
    assert "utility unknown" in {flag.name for flag in audit.flags}


def test_features_from_links_are_computed_again(tmp_path: Path) -> None:
    columns, links = drawn(0)
    bare = {name: columns[name] for name in ("id", "tribe", "guild")}
    own = write_tables(tmp_path / "bare", bare, links)
    graph = open_graph(str(own), READING)
    split = Split.proportional(graph, 0, message_edges="all", targets=["labels", "tribe"])
    veil = gv.Veil("labels", "tribe", objective="club", seed=0, device="cpu")
    veil.recipe = veil.recipe.but(rounds=6, warmup=2, evaluate_every=2, hidden_channels=8, out_channels=4)
    source = {"graph": str(own), "reading": asdict(READING), "split": "proportional"}
    run = protect(veil, graph, split, tmp_path / "run", source=source)
    made = embed(tmp_path / "run", str(own), tmp_path / "out", device="cpu")
    assert made.warnings == ()
    assert made.z.equal(run.z)


def without(name: str) -> Callable[[Columns], None]:
    def remove(columns: Columns) -> None:
        del columns[name]

    return remove


def with_another(columns: Columns) -> None:
    columns["shoe_size"] = list(range(NODES))


def shifted(columns: Columns) -> None:
    columns["income"] = [float(value) + 1e6 for value in columns["income"]]


def spread(columns: Columns) -> None:
    incomes = np.array(columns["income"], dtype=float)
    columns["income"] = list(incomes.mean() + 20 * (incomes - incomes.mean()))


def renamed(columns: Columns) -> None:
    columns["home_town"] = ["atlantis"] * NODES


@pytest.mark.parametrize(
    ("change_columns", "warning"),
    [
        (without("income"), "encoder expects are missing.*'income'"),
        (with_another, "unknown to the encoder are ignored.*'shoe_size'"),
        (shifted, r"The means of 1 of 3 features differ from training by more than 0.5 standard deviations: 'income'"),
        (
            spread,
            r"deviations of 1 of 3 features differ from training by a factor of more than 2: 'income' \(20.0\)",
        ),
        (renamed, "160 values of 'home_town' are new to the encoder"),
    ],
)
def test_a_different_graph_raises_a_warning(
    change_columns: Callable[[Columns], None], warning: str, trained: Path, tmp_path: Path
) -> None:
    columns, links = drawn(0)
    change_columns(columns)
    made = on(trained, tmp_path, columns, links)
    assert [said for said in made.warnings if re.search(warning, said)], made.warnings
    assert json.loads((made.folder / "run.json").read_text())["embedded"]["warnings"] == list(made.warnings)


def test_a_column_called_encoder_is_no_difference(tmp_path: Path) -> None:
    """A note about the graph is no warning, even if it contains the name of such a column."""
    columns, links = drawn(0)
    columns["encoder"] = columns.pop("guild")
    tables = write_tables(tmp_path / "tables", columns, links)
    reading = ReadOptions(attributes=["encoder", "tribe"])
    before = open_graph(str(tables), reading)
    del columns["encoder"]
    columns["home_town"] = ["atlantis"] * NODES
    newer = write_tables(tmp_path / "newer", columns, links)
    origin = open_graph(str(newer), reading, encoding=before.origin.encoding).origin
    assert "The column 'encoder' is missing: encoder is not read." in origin.notes
    assert origin.differences == ("160 values of 'home_town' are new to the encoder and count as missing.",)
    assert set(origin.differences) < set(origin.notes)
    assert before.origin.differences == ()


def test_a_missing_secret_is_reported_and_the_others_are_audited(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    del columns["tribe"]
    made = on(trained, tmp_path, columns, links)
    assert made.secrets == ("links",)
    assert len(made.unseen) == 1
    assert made.unseen[0].startswith("tribe was not audited: the graph has no 'tribe'")
    assert json.loads((made.folder / "run.json").read_text())["scores"]["utility"] is not None
    assert [file.name for file in audit_run(made.folder, made.secrets, "quick")] == ["audit.links.json"]
    with pytest.raises(GraphveilError, match="'tribe' has not been audited"):
        release(made.folder, tmp_path / "release")


def test_a_graph_without_a_class_is_scored_and_audited(trained: Path, tmp_path: Path) -> None:
    """Classes keep the numbers of the training, even if one of them is missing."""
    columns, links = drawn(0)
    others = [node for node, guild in enumerate(columns["guild"]) if guild != CLASSES["guild"][1]]
    ids = {NAMES[node] for node in others}
    assert NODES // 4 < len(ids) < NODES
    fewer = {name: [values[node] for node in others] for name, values in columns.items()}
    made = on(trained, tmp_path, fewer, [link for link in links if {*link} <= ids])
    assert (made.secrets, made.unseen) == (("tribe", "links"), ())
    record = RunFolder(made.folder).record()
    assert record.scores.utility is not None
    graph, split = graph_of(RunFolder(made.folder), record)
    assert len({*graph.y.tolist()}) == 2
    assert len(audit_run(made.folder, attacks="quick")) == 2
    found = encoder_controls(RunFolder(made.folder), graph, split)
    controls, notes = found.embeddings, found.notes
    assert notes == ()
    assert set(controls) == {"untrained encoder", "unprotected encoder", REFITTED}


def test_a_graph_without_the_utility_is_flagged(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    del columns["guild"]
    made = on(trained, tmp_path, columns, links)
    assert json.loads((made.folder / "run.json").read_text())["scores"]["utility"] is None
    found = audit_run(made.folder, made.secrets, "quick")
    assert all("utility unknown" in {flag.name for flag in audit.flags} for audit in found.values())


def test_too_few_links_are_embedded_and_not_audited(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    made = on(trained, tmp_path, columns, links[:10])
    assert made.secrets == ()
    assert len(made.unseen) == 2
    assert "10 distinct links" in made.unseen[0]
    assert any("mean number of links per node" in warning for warning in made.warnings)
    with pytest.raises(GraphveilError, match="10 distinct links"):
        audit_run(made.folder, ["links"], "quick")


def test_features_learned_for_each_node_are_refused_for_another_graph(
    trained: Path, tables: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    change(
        tmp_path / "run" / "run.json", reading=record["reading"] | {"missing": "embedding"}, encoding={"columns": []}
    )
    with pytest.raises(GraphveilError, match="learned features per node, so it cannot embed other nodes"):
        embed(tmp_path / "run", str(tables), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_finished_run_is_not_overwritten(trained: Path, tables: Path) -> None:
    before = (trained / "run.json").read_bytes()
    with pytest.raises(GraphveilError, match="holds a finished run"):
        embed(trained, str(tables), trained)
    assert (trained / "run.json").read_bytes() == before


def test_options_of_reading_override_those_of_the_run(trained: Path, tmp_path: Path) -> None:
    columns, links = drawn(0)
    columns["clan"] = columns.pop("guild")
    with_label = on(trained, tmp_path, columns, links, otherwise={"label": "clan"})
    assert with_label.warnings == ()
    assert np.array_equal(with_label.z.numpy(), RunFolder(trained).embeddings().z)


def test_a_graph_by_name_is_read_in_one_way(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match="karate is a named graph; reading options do not apply"):
        embed(trained, "karate", tmp_path / "out", {"direction": "mutual"})


def test_the_graph_of_the_test_is_read_as_it_was_written(tables: Path) -> None:
    graph = open_graph(str(tables), READING)
    assert graph.origin.ids.to_pylist() == NAMES
    assert graph.x.size(1) == 3
