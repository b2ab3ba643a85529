"""Command lines: every verb of the program, found in it, with options that fit, and with some that should not.

What is plain for an option follows from its name, else from its type: a new verb is fuzzed without a change here.
"""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from graphveil.cli import app
from tests.fuzz.files import NAMES, NASTY

WORDS = tuple(word for word in NASTY if not word.startswith("/"))
"""Without those that root could overwrite."""

LONG = ("rounds", "adversary_steps", "set_")
"""Options that take as long as their number says: a huge number is no fault of the program."""

PLACES = (
    *("", ".", "..", "../../x", "/dev/null", "/dev/full", "/dev/zero", "/dev/stdin", "/proc/nonexistent/a/b", "pipe"),
    *(
        "folder",
        "file.txt",
        "edges.csv",
        "z.npy",
        "run",
        "run/run.json",
        "run/embeddings.parquet",
        "run/x/y",
        "-",
        "--",
    ),
    *("--out", "~", "x" * 300, "a/" * 2000, "\x00", "new\nline", "[red]new[/red]", "\x1b[31mnew", "%s", "{0}", "new"),
    *("new.html", "new.json", "link"),
)
"""Paths, none of which leads out of the folder of a case to where something may be written."""

NUMBERS = (
    *("-1", "0", "1", "2", "0.5", "1e309", "-inf", "nan", "1e-320", str(2**31), str(2**63), str(10**400), "1."),
    *("0x1", "1_0", "½"),
)
ODD = ("x=y", "=", "a=1=2", "os:system", "pkg.mod:Class", "," * 50, "gcn,gat", "x" * 100_000)


@dataclass(frozen=True)
class Verb:
    """A command and its parameters."""

    words: tuple[str, ...]
    parameters: Sequence[Any]

    @property
    def name(self) -> str:
        return " ".join(self.words)


def verbs() -> list[Verb]:
    """All that the program has."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[Verb]:
        if not hasattr(command, "commands"):
            yield Verb(words, [one for one in command.params if one.name != "help"])
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    return list(walk(typer.main.get_command(app), ()))


def command_line(verb: Verb, pick: random.Random) -> list[str]:
    """Words for a verb: those that it needs, some more that fit, and mostly one or two in their place that do not."""
    known = pick.choice(KNOWN.get(verb.name, [{one.name: plain(one, pick) for one in verb.parameters if one.required}]))
    given = dict(known)
    others = [one for one in verb.parameters if one.name not in given and one.name not in (*FEW, "root")]
    for one in pick.sample(others, min(len(others), pick.choice([0, 0, 1, 2]))):
        given[one.name] = plain(one, pick)
    for one in pick.sample(verb.parameters, min(len(verb.parameters), pick.choice([0, 1, 1, 1, 2]))):
        given[one.name] = nasty(one, pick)
    words = [word for one in verb.parameters if one.name in given for word in _given(one, given[one.name])]
    if pick.random() < 0.05:
        words.insert(pick.randint(0, len(words)), pick.choice([*WORDS, "--help", "--no-such", "-x", "--seed", "--set"]))
    # the operating system lets no zero through
    words = [word.replace("\x00", "\ufffd") if pick.random() < 0.9 else word for word in words]
    return [*verb.words, *words, *_few(verb, given)]


KNOWN: dict[str, list[dict[str, str]]] = {
    "protect": [
        {"graph": "edges.csv", "out": "new"},
        {"graph": "karate", "out": "new", "split": "proportional"},
        {"graph": ".", "out": "new", "secret": "gender", "utility": "labels"},
    ],
    "audit": [
        {"run": "run", "panel": "quick"},
        {"embeddings": "z.npy", "graph": "edges.csv", "secret": "labels", "panel": "quick", "out": "new.json"},
    ],
    "tune": [{"graph": "edges.csv", "out": "new", "encoder": "gcn", "rounds": "1"}],
    "sweep": [{"graph": "edges.csv", "out": "new", "tradeoff": "1"}],
    "reproduce": [{"what": "table2", "dataset": "cora", "encoder": "gcn", "variant": "club"}],
    "export": [
        {"run": "run", "out": "new", "force": ""},
        {"run": "run", "out": "new", "force": "", "pseudonyms": "key"},
    ],
    "embed": [{"run": "run", "graph": "edges.csv", "out": "new", "panel": "quick"}],
    "grid": [{"file": "z.npy", "out": "new.npy"}],
    "report": [{"source": "run"}, {"source": "run/audit.json", "out": "new.html"}],
    "data show": [{"graph": "."}, {"graph": "karate"}],
}
"""Command lines that work; a verb that is not here is given what it needs."""

FEW = {"set_": ["rounds=1", "patience=1"], "rounds": ["1"], "seeds": ["1"], "jobs": ["1"]}
"""So that nothing is trained for long, and no process is started."""

PLAIN: dict[str, tuple[str, ...]] = {
    "graph": ("karate", "edges.csv", "."),
    "name": ("cora", "karate"),
    "utility": ("links", "labels"),
    "secret": ("labels", "gender"),
    "by": ("gender", "labels"),
    "encoder": ("gcn", "gat", "hgcn"),
    "objective": ("codes", "club", "entropy"),
    "split": ("proportional",),
    "panel": ("quick",),
    "device": ("cpu",),
    "tradeoff": ("1", "0.5"),
    "embeddings": ("z.npy",),
    "format_": ("parquet", "npy,word2vec", "safetensors,projector"),
    "max_leak": ("1", "labels=0.9"),
    "missing": ("degree", "embedding"),
    "direction": ("either", "mutual"),
    "loops": ("drop", "refuse"),
    "duplicates": ("drop",),
    "bad_values": ("missing", "refuse"),
    "nodes": ("nodes.csv",),
    "bins": ("age=3",),
    "features": ("score,age", "score"),
    "attribute": ("gender", "age"),
    "drop": ("age", "score"),
    "id": ("id",),
    "label": ("label", "gender"),
    "source": ("source",),
    "target": ("target",),
    "text_encoding": ("utf-8", "latin-1"),
    "adversary": ("linear", "mlp"),
    "adversary_knows": ("few", "all"),
    "message_edges": ("train", "all"),
}
"""What fits an option, by its name."""


def plain(one: Any, pick: random.Random) -> str:
    """What fits."""
    if one.name in PLAIN:
        return pick.choice(PLAIN[one.name])
    return {"whole": "1", "number": "0.5", "path": "new", "flag": ""}.get(_kind(one), pick.choice(NAMES))


def nasty(one: Any, pick: random.Random) -> str:
    """What may not."""
    kind = _kind(one)
    if one.name in LONG:
        settings = [f"{name}={pick.choice(NUMBERS)}" for name in ("x", "dropout", "learning_rate", "=")]
        return pick.choice(["-1", "0", "nan", "1.5", "", "x", *settings])
    if one.name in ("jobs", "seeds"):
        return pick.choice(["-1", "0", "x", "", str(10**400), "1.5"])
    if kind == "path" or one.name in ("graph", "run", "source", "nodes", "out"):
        return pick.choice([*PLACES, *PLACES, *WORDS])
    if kind in ("whole", "number"):
        return pick.choice([*NUMBERS, *NUMBERS, *WORDS])
    return pick.choice([*WORDS, *NUMBERS, *ODD])


def _kind(one: Any) -> str:
    if getattr(one, "is_flag", False):
        return "flag"
    kinds = {"Path": "path", "float": "number", "int": "whole"}
    said = str(one.type_descriptor.annotation)
    return next((kind for word, kind in kinds.items() if word in said), "text")


def _given(one: Any, value: str) -> list[str]:
    if one.param_type_name == "argument":
        return [value]
    if _kind(one) == "flag":
        return [one.opts[0]]
    return [one.opts[0], value]


def _few(verb: Verb, given: Mapping[str, str]) -> list[str]:
    names = {one.name: one.opts[0] for one in verb.parameters}
    few = {name: values for name, values in FEW.items() if name in names and (name == "set_" or name not in given)}
    return [word for name, values in few.items() for value in values for word in (names[name], value)]


def make_inputs(folder: Path) -> None:
    """What the words above name."""
    (folder / "folder").mkdir()
    (folder / "file.txt").write_text("hello\n")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/nonexistent")
    (folder / "key").write_text("ab" * 32)
