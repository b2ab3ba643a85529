"""`--config`: the same keys as the options, values as on the command line, and a run.json as a configuration."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from graphveil.cli.verbs import Verbs
from graphveil.errors import GraphveilError
from graphveil.training.recipes import default_recipe
from tests.data.readers.made import tables
from tests.program import CommandLine
from tests.release.made import change, drawn, write_tables


def call(text: str, folder: Path, *words: str) -> dict[str, Any]:
    """The values that a verb with options of all kinds gets."""
    verbs, got = Verbs(), dict[str, Any]()

    @verbs.command()
    def verb(  # noqa: PLR0913, PLR0917 - one option of each kind
        graph: str,
        out: Annotated[Path, typer.Option()],
        secret: list[str] | None = None,
        features: str | None = None,
        bins: list[str] | None = None,
        max_leak: str | None = None,
        format_: Annotated[str | None, typer.Option("--format")] = None,
        tradeoff: float = 0.5,
        seed: int | None = None,
        controls: bool = True,
        force: Annotated[bool, typer.Option("--force")] = False,
    ) -> None:
        got.update(locals())

    (folder / "c.yaml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(verbs, ["--config", str(folder / "c.yaml"), *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return got


def test_values_are_read_as_on_the_command_line(tmp_path: Path) -> None:
    text = """
        graph: cora
        out: runs/a
        secret: [gender, city]
        features: [age, x]
        bins: {age: 4, income: 3}
        max_leak: +2
        format: npy
        tradeoff: 0.25
        seed: 007
        controls: no
        force: true
    """
    got = call(text, tmp_path)
    assert (got["graph"], got["out"]) == ("cora", Path("runs/a"))
    assert (got["secret"], got["features"], got["bins"]) == (["gender", "city"], "age,x", ["age=4", "income=3"])
    assert got["max_leak"] == "+2", "a number in YAML, but a text on the command line"
    assert (got["format_"], got["tradeoff"], got["seed"]) == ("npy", 0.25, 7)
    assert (got["controls"], got["force"]) == (False, True)


def test_the_command_line_wins_and_an_empty_value_is_none(tmp_path: Path) -> None:
    text = 'graph: cora\nout: a\nsecret: gender\ntradeoff: 0.25\nseed:\nmax-leak: null\nformat: "null"\n'
    got = call(text, tmp_path, "karate", "--tradeoff", "0.75", "--secret", "city")
    assert (got["graph"], got["tradeoff"], got["secret"]) == ("karate", 0.75, ["city"])
    assert (got["seed"], got["max_leak"], got["format_"]) == (None, None, "null")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed: 1\ntradeof: 0.5", r"c.yaml, line 2: unknown key 'tradeof': .* Did you mean 'tradeoff'\?"),
        ("config: d.yaml", "unknown key 'config'"),
        ("seed: 1\nseed: 2", "line 2: 'seed' is given twice"),
        ("seed: {a: 1}", "'seed' has keys of its own"),
        ("secret: [[a]]", "'secret' is nested too deeply"),
        ("secret: &a [*a]", "'secret' is nested too deeply"),
        ("features: ['a,b']", "a comma in a name"),
        ("- a", "has no keys"),
        ("", "has no keys"),
        ("seed: 1\n? [a]\n: 2", "line 2: a key is a list or a mapping: expected the name of an option.$"),
        ("? {a: b}\n: 2", "line 1: a key is a list or a mapping"),
        ("seed: [", "cannot be read"),
        ("seed: \x00", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match=says):
        call(text, tmp_path, "karate", "--out", "a")


def test_a_missing_file_and_a_wrong_value(tmp_path: Path, graphveil: CommandLine) -> None:
    done = graphveil("data", "show", "--config", str(tmp_path / "none.yaml"))
    assert (done.returncode, "none.yaml cannot be read (No such file" in done.stderr) == (2, True)
    (tmp_path / "c.yaml").write_text("seed: x\n")
    done = graphveil("protect", "karate", "--out", str(tmp_path / "run"), "--config", str(tmp_path / "c.yaml"))
    assert (done.returncode, "Invalid value for '--seed'" in done.stderr) == (2, True)


def test_a_verb_with_a_graph_of_its_own(tmp_path: Path, graphveil: CommandLine) -> None:
    (tmp_path / "people").mkdir()
    folder = tables(tmp_path / "people")
    (tmp_path / "c.yaml").write_text(f"graph: {folder}\nattribute: [gender, age]\nbins: {{age: 2}}\njson: true\n")
    done = graphveil("data", "show", "--config", str(tmp_path / "c.yaml"))
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["targets"]) == {"labels", "gender", "age"}


SHORT = ["--set", "rounds=2", "--set", "hidden_channels=8", "--set", "teachers=1", "--seed", "3", "--device", "cpu"]
KEEP_LINKS = ["--utility", "links", "--secret", "tribe", "--attribute", "guild"]
HIDE_LINKS = ["--label", "guild", "--utility", "labels", "--secret", "links", "--secret", "tribe"]


@pytest.fixture
def repeat(tmp_path: Path, graphveil: CommandLine) -> Callable[[list[str], list[str]], tuple[Path, Path]]:
    """Trains a run, and another one from its run.json, and returns both folders."""
    people = write_tables(tmp_path / "people", *drawn(0))
    first, second = tmp_path / "first", tmp_path / "second"

    def trained(words: list[str], others: list[str]) -> tuple[Path, Path]:
        done = graphveil("protect", str(people), *words, "--out", str(first))
        assert done.returncode == 0, done.stderr
        again = ["--config", str(first / "run.json"), "--device", "cpu", "--out", str(second)]
        done = graphveil("protect", *again, *others)
        assert done.returncode == 0, done.stderr
        return first, second

    return trained


def recipe_of(run: Path) -> dict[str, Any]:
    recipe: dict[str, Any] = json.loads((run / "run.json").read_text())["config"]["recipe"]
    return recipe


Repeat = Callable[[list[str], list[str]], tuple[Path, Path]]


@pytest.mark.parametrize(
    "words",
    [
        *([*KEEP_LINKS, "--encoder", encoder] for encoder in ("gcn", "gat", "hgcn")),
        *([*HIDE_LINKS, "--encoder", encoder] for encoder in ("gcn", "gat", "hgcn")),
        [*KEEP_LINKS, "--objective", "club", "--adversary", "linear", "--adversary-steps", "2", "--set", "dropout=0.1"],
        [*HIDE_LINKS, "--message-edges", "train", "--set", "code_size=4", "--set", "deterministic=true"],
    ],
    ids=" ".join,
)
def test_a_run_is_repeated_from_its_record(words: list[str], repeat: Repeat) -> None:
    runs = repeat([*words, *SHORT], [])
    one, other = (json.loads((run / "run.json").read_text()) | {"seconds": 0} for run in runs)
    assert one == other
    z = [np.array(pq.read_table(run / "embeddings.parquet").drop_columns("id")) for run in runs]
    assert np.array_equal(z[0], z[1])


def test_settings_of_the_command_line_are_added_to_those_of_the_run(repeat: Repeat) -> None:
    first, second = repeat([*KEEP_LINKS, *SHORT, "--set", "dropout=0.3"], ["--set", "rounds=3"])
    assert recipe_of(second) == recipe_of(first) | {"rounds": 3}
    assert recipe_of(second)["dropout"] == 0.3


def test_another_encoder_has_its_own_defaults_and_the_changed_settings(repeat: Repeat) -> None:
    _, second = repeat([*KEEP_LINKS, *SHORT, "--set", "dropout=0.3"], ["--encoder", "gat"])
    changed = {"rounds": 2, "hidden_channels": 8, "teachers": 1, "dropout": 0.3}
    assert recipe_of(second) == asdict(default_recipe("links", "gat", "codes", ["tribe"]).but(**changed))


def test_another_utility_has_its_own_message_edges(repeat: Repeat) -> None:
    _, second = repeat([*KEEP_LINKS, *SHORT], ["--utility", "guild"])
    assert json.loads((second / "run.json").read_text())["message_edges"] == "all"


def test_what_a_record_cannot_repeat_is_one_sentence(trained: Path, tmp_path: Path, graphveil: CommandLine) -> None:
    file = tmp_path / "run.json"
    file.write_text((trained / "run.json").read_text())
    done = graphveil("sweep", "--config", str(file), "--out", str(tmp_path / "out"))
    assert (done.returncode, "only `graphveil protect --config` accepts it" in done.stderr) == (2, True)
    change(file, config={"recipe": recipe_of(tmp_path) | {"encoder_options": {"smoothing": 7}}})
    done = graphveil("protect", "--config", str(file), "--out", str(tmp_path / "out"))
    assert (done.returncode, "the setting 'encoder_options', which only Python" in done.stderr) == (2, True)


def test_names_of_a_file_are_kept_beside_those_of_the_command_line(tmp_path: Path, graphveil: CommandLine) -> None:
    (tmp_path / "people").mkdir()
    rows = "".join(f"{name},{number},{-number}\n" for number, name in enumerate("abcdef"))
    folder = tables(tmp_path / "people", "source,target\na,b\nc,d\ne,f\n", f"id,age,income\n{rows}")
    (tmp_path / "c.yaml").write_text("attribute: [age, income]\nbins: {age: 2, income: 2}\njson: true\n")
    done = graphveil("data", "show", str(folder), "--config", str(tmp_path / "c.yaml"), "--bins", "age=3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["targets"]
    assert {name: len(found[name]["classes"]) for name in ("age", "income")} == {"age": 3, "income": 2}
