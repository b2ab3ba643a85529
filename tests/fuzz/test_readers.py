"""Every reader, on good files, spoiled ones and traps: a graph that holds, or one sentence that names the file."""

import os
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from graphveil.data import check_graph
from graphveil.data.graph import UNKNOWN, both_directions, node_attributes, node_classes, undirected_pairs
from graphveil.data.origin import node_ids
from graphveil.data.readers import read_graph
from graphveil.errors import GraphveilError
from tests.fuzz.files import KINDS, described, options, spoil, write
from tests.fuzz.harness import LONGEST, Case, run_cases
from tests.fuzz.nasties import REFUSED, TAKEN

GOOD = "good"
HEAVY = ("gzip bomb", "parquet bomb", "npz bomb", "pt bomb", "many members")
"""Traps that take seconds to make."""


def attempt(name: str, pick: random.Random, place: Path) -> Sequence[str]:
    """Read a file of a kind, spoiled unless the name says that it is good, or one of the nasty ones."""
    inside = place / "in"
    inside.mkdir()
    os.chdir(inside)
    kind = name.removeprefix(f"{GOOD} ")
    given: dict[str, Any] = {}
    if kind in KINDS:
        path = write(kind, pick, inside)
        if kind == name:
            spoil(pick, path)
            given = options(pick)
    else:
        path = (REFUSED | TAKEN)[kind](inside)
    before = listing(place)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            graph = read_graph(str(path), **given)
            ended, faults = "graph", faults_of_graph(graph)
        except GraphveilError as error:
            ended, faults = "refused", faults_of_sentence(str(error), place, path, given)
    if (name in REFUSED and ended == "graph") or (name.startswith(GOOD) and ended != "graph"):
        faults.append(f"it was {ended}")
    faults += [f"warned: {warning.message}"[:200] for warning in warned]
    faults += [f"{file} is new" for file in sorted(listing(place) - before)]
    return ended, *(f"{fault} {described(given)}" for fault in faults)


def listing(place: Path) -> set[str]:
    return {str(file.relative_to(place)) for file in place.rglob("*")}


def faults_of_graph(graph: Data) -> list[str]:
    """Faults of a graph that was read."""
    try:
        check_graph(graph)
    except GraphveilError as error:
        return [f"no graph: {error}"]
    faults = []
    count = graph.x.size(0)
    if not both_directions(undirected_pairs(graph.edge_index)).equal(graph.edge_index):
        faults.append("links are not simple and in both directions")
    ids = node_ids(graph)
    if len(ids) != count or len(ids.unique()) != count or ids.null_count:
        faults.append(f"{len(ids)} ids, {len(ids.unique())} different ones, of {count} nodes")
    for name in [*(["labels"] if "y" in graph else []), *node_attributes(graph)]:
        codes = node_classes(graph, name)
        if codes.shape != (count,) or codes.dtype != torch.int64 or int(codes.min()) < UNKNOWN:
            faults.append(f"{name} has no classes")
    faults += [f"note of {len(note)} characters" for note in graph.origin.notes if len(note) > 4 * LONGEST]
    return faults


def faults_of_sentence(message: str, place: Path, path: Path, given: Mapping[str, Any]) -> list[str]:
    """Faults of a message; the length of the folder's path does not count.

    It must name a file, or an option and its value.
    """
    short = message.replace(str(place), "").replace(str(path), path.name[:100])
    names = {file.name for file in place.rglob("*")} | {str(path), repr(str(path))[1:-1]}
    faults = []
    if not message or "\n" in message or len(short) > LONGEST or not short.isprintable():
        faults.append(f"no sentence, {len(short)} characters: {short[:200]!r}")
    names |= {f"{option} {value!r}" for option, value in given.items()} | {repr(given.get("nodes"))}
    if not any(name in message for name in names):
        faults.append(f"no file is named: {short[:300]!r}")
    return faults


def cases(count: int) -> list[Case]:
    good = [(f"{GOOD} {kind}", number) for kind in KINDS if kind != "odd types" for number in range(1 + count // 100)]
    return [*good, *((kind, number) for kind in KINDS for number in range(count))]


def test_a_few_files_of_every_kind(tmp_path: Path) -> None:
    tally = run_cases(cases(8), attempt, tmp_path)
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.ended["graph"] > 15
    assert tally.ended["refused"] > 15


def test_traps_and_oddities(tmp_path: Path) -> None:
    tally = run_cases([(name, 0) for name in (*REFUSED, *TAKEN) if name not in HEAVY], attempt, tmp_path)
    assert not tally.faults, "\n".join(tally.faults)
    assert not list(tmp_path.rglob("*canary*"))


@pytest.mark.slow
def test_heavy_traps(tmp_path: Path) -> None:
    tally = run_cases([(name, 0) for name in HEAVY], attempt, tmp_path)
    assert not tally.faults, "\n".join(tally.faults)
    assert set(tally.ended) == {"refused"}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_thousands_of_files_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_cases(cases(int(os.environ.get("GRAPHVEIL_CASES", "450"))), attempt, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\nreaders: {tally}\n")
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.tried.total() > 7000
