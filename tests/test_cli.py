"""The program as a person meets it: help, names in any language, too little memory, and folders of others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import CommandLine

VERBS = [
    [],
    ["data"],
    ["data", "list"],
    ["data", "fetch"],
    ["protect"],
    ["audit"],
    ["export"],
    ["embed"],
    ["grid"],
    ["tune"],
    ["data", "show"],
    ["report"],
    ["sweep"],
    ["reproduce"],
    ["demo"],
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_reads_well_and_carries_an_example(verb: list[str], graphveil: CommandLine) -> None:
    done = graphveil(*verb, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    assert re.search(r"(Example|Start with):  graphveil|Examples:\s+graphveil .*\n(.*\n)*\s*graphveil ", done.stdout)


def test_help_imports_neither_torch_nor_pyg() -> None:
    code = "import sys, graphveil.cli; print([m for m in ('torch', 'torch_geometric', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_and_data_list(graphveil: CommandLine) -> None:
    assert re.fullmatch(r"graphveil \d+\.\d+\.\d+\n", graphveil("--version").stdout)
    listing = graphveil("data", "list").stdout
    for name in ("cora", "citeseer", "pubmed", "karate", "synthetic"):
        assert name in listing
    assert "19,717" in listing


@pytest.mark.parametrize(
    "command",
    [
        ["protect", "nowhere"],
        ["sweep", "nowhere"],
        ["reproduce", "table1"],
        ["reproduce", "table2"],
    ],
    ids=" ".join,
)
def test_no_verb_writes_into_a_folder_with_other_files(
    command: list[str], tmp_path: Path, graphveil: CommandLine
) -> None:
    (tmp_path / "customers.csv").write_text("id\n1\n")
    done = graphveil(*command, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "customers.csv' and no files of this command: choose a folder that is new or empty" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["customers.csv"]


@pytest.mark.parametrize(
    "command",
    [
        ["protect", "nowhere", "--tradeoff", "7"],
        ["protect", "nowhere", "--set", "leak_limit=-1"],
        ["protect", "nowhere", "--device", "tpu"],
        ["sweep", "nowhere", "--tradeoff", "0.5,7"],
    ],
    ids=" ".join,
)
def test_a_bad_setting_is_reported_before_a_graph_is_read(
    command: list[str], tmp_path: Path, graphveil: CommandLine
) -> None:
    done = graphveil(*command, "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    expected = {"7": "7", "leak_limit=-1": "leak_limit=-1.0: expected a number of at least 0", "tpu": "'tpu'"}
    assert expected[command[-1].removeprefix("0.5,")] in done.stderr
    assert "dropout" not in done.stderr
    assert "nowhere" not in done.stderr


@pytest.fixture
def own_tables(tmp_path: Path) -> Path:
    """A user's own small graph, with names that ASCII does not have."""
    folder = tmp_path / "Müller 数据"
    folder.mkdir()
    nodes = "".join(f"{i},{('Genève', '京都')[i % 2]},{i}\n" for i in range(40))
    (folder / "nodes.csv").write_text(f"id,city,age\n{nodes}", encoding="utf-8")
    links = "".join(f"{i},{(i + step) % 40}\n" for i in range(40) for step in (1, 3))
    (folder / "edges.csv").write_text(f"source,target\n{links}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("encoding", "says"),
    [("ascii", b"Gen\\xe8ve 20, \\u4eac\\u90fd 20"), ("cp1252", b"Gen\xe8ve 20, \\u4eac\\u90fd 20")],
)
def test_characters_that_a_terminal_cannot_show_are_escaped(encoding: str, says: bytes, own_tables: Path) -> None:
    command = [sys.executable, "-m", "graphveil", "data", "show", str(own_tables), "--attribute", "city"]
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "200"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert b"| target |" in done.stdout, "no lines that it cannot draw either"


def test_names_of_files_are_utf8_whatever_the_locale_is(own_tables: Path) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out = own_tables.with_name("Größe")
    command = [sys.executable, "-m", "graphveil", "protect", own_tables.name, "--secret", "city", "--out", out.name]
    done = subprocess.run(
        [*command, "--set", "rounds=2", "--device", "cpu"],
        cwd=own_tables.parent,
        env=os.environ | locale,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "files in Größe" in done.stdout.decode()
    assert (out / "embeddings.parquet").exists()


def test_a_name_that_is_not_utf8_is_one_sentence(graphveil: CommandLine) -> None:
    done = graphveil("data", "show", "M\udcfcller")
    assert done.returncode == 2
    assert "'M\\udcfcller' is not UTF-8" in done.stderr


def test_too_little_memory_is_one_sentence(tmp_path: Path, graphveil: CommandLine) -> None:
    """A terabyte and more, which no machine gives."""
    done = graphveil(
        "protect",
        "karate",
        "--split",
        "proportional",
        "--set",
        f"hidden_channels={10**12}",
        "--out",
        str(tmp_path / "run"),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("graphveil: out of memory: lower --set hidden_channels")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
