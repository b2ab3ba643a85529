"""Every record is read as it was written, and whatever does not match it is refused with the place."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphveil import formats
from graphveil.formats.audit import AuditRecord
from graphveil.formats.record import File
from graphveil.formats.store import parse, read, read_sealed, reason, write, write_sealed
from tests.formats import made

KINDS = pytest.mark.parametrize("kind", made.FILES, ids=lambda kind: kind.__name__)


def test_every_record_of_a_file_is_tested_here() -> None:
    for module in pkgutil.iter_modules(formats.__path__):
        importlib.import_module(f"{formats.__name__}.{module.name}")
    kinds = {kind for kind in _below(File) if kind.__module__.startswith(formats.__name__)}
    assert kinds == set(made.FILES)


@KINDS
def test_a_record_is_read_as_it_was_written(kind: type[File], tmp_path: Path) -> None:
    record = parse(made.FILES[kind], kind)
    assert record.to_dict() == made.FILES[kind]
    write(tmp_path / "plain.json", record)
    assert json.loads((tmp_path / "plain.json").read_text()) == made.FILES[kind]
    assert read(tmp_path / "plain.json", kind) == record
    write_sealed(tmp_path / "sealed.json", record)
    assert read_sealed(tmp_path / "sealed.json", kind) == record


@KINDS
def test_a_missing_key_is_named(kind: type[File]) -> None:
    for holder, key, place in _places(content := _copy(kind)):
        if isinstance(holder, dict) and key not in OPTIONAL:
            value = holder.pop(key)
            with pytest.raises(ValueError, match=f"^{re.escape(place)} is missing$"):
                parse(content, kind)
            holder[key] = value


@KINDS
def test_a_wrong_value_is_refused_with_its_place(kind: type[File]) -> None:
    wrongs: dict[type, list[object]] = {
        str: [7, [], {}, True],
        float: ["much", True, [], {}, -1e16, float("inf"), float("nan"), 10**400],
        int: ["much", True, [], {}, 0.5, -1e16, float("nan")],
        bool: ["much", 7, 0.5, [], {}],
        list: ["much", 7, {}],
    }
    for holder, key, place in _places(content := _copy(kind)):
        value = holder[key]
        for wrong in wrongs.get(type(value), ()):
            holder[key] = wrong
            with pytest.raises(ValueError, match=f"^{re.escape(place)}(:| has)") as refused:
                parse(content, kind)
            assert len(str(refused.value)) < 400
        holder[key] = value


@KINDS
def test_another_version_is_refused_with_both_versions(kind: type[File]) -> None:
    name, _, version = kind.SCHEMA.rpartition("/")
    for other in (f"{name}/{int(version) - 1}", f"{name}/{int(version) + 1}", "other/1"):
        with pytest.raises(ValueError, match=f"^its schema is {other!r}, expected {kind.SCHEMA!r}$"):
            parse(made.FILES[kind] | {"schema": other}, kind)
    for nothing in (7, None, ["graphveil"]):
        with pytest.raises(ValueError, match=f"^it has no schema, expected {kind.SCHEMA!r}$"):
            parse(made.FILES[kind] | {"schema": nothing}, kind)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", "expected an object, got a list"),
        ("null", "expected an object, got null"),
        ("7", "expected an object, got a whole number"),
        ('{"schema": NaN}', "it contains NaN, which is not a number in JSON"),
        ('{"schema": -Infinity}', "it contains -Infinity"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"schema": ' + "[" * 60 + "]" * 60 + "}", "it is nested too deeply"),
        ('{"schema": 1' + "0" * 5000 + "}", "4300 digits"),
    ],
    ids=range(10),
)
def test_what_is_no_record_is_one_short_reason(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        read(tmp_path / "audit.json", AuditRecord)
    assert len(reason(refused.value)) < 400


def test_a_folder_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a plain file"):
        read(tmp_path, AuditRecord)
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="utf-8"):
        read(tmp_path / "audit.json", AuditRecord)
    with pytest.raises(FileNotFoundError) as missing:
        read(tmp_path / "missing.json", AuditRecord)
    assert reason(missing.value) == "No such file or directory"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chance": "much"}, "chance: expected a number, got a text"),
        ({"chance": True}, "chance: expected a number, got true or false"),
        ({"chance": 30.2}, "chance: expected a number <= 1.000001"),
        ({"chance": 10**400}, "chance: number out of range"),
        ({"verdict": "fine"}, "verdict has the unknown value 'fine'"),
        ({"verdict": "a\n - at `$.b`"}, r"verdict has the unknown value 'a\n - at `$.b`'"),
        ({"dropped": ["a", 7]}, "dropped[1]: expected a text, got a whole number"),
        ({"map": []}, "map: expected an object or null, got a list"),
        ({"certificate": {}}, "certificate.kind is missing"),
        ({"certificate": {"kind": "other"}}, "certificate.kind has the unknown value 'other'"),
        ({"floor": {"value": 0.5, "ci": [1, 2, 3], "excess": 0}}, "floor.ci: expected a list of length 2, got 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_reason_says_what_came_and_what_was_expected(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        parse(made.audit() | change, AuditRecord)


def test_an_edited_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    write_sealed(file, parse(made.audit(), AuditRecord))
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"verdict": "protected"}))
    with pytest.raises(ValueError, match="it was changed after it was written"):
        read_sealed(file, AuditRecord)
    write(file, parse(made.audit(), AuditRecord))
    with pytest.raises(ValueError, match="it was changed after it was written"):
        read_sealed(file, AuditRecord)


def test_half_a_surrogate_pair_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text(json.dumps(made.audit() | {"secret": "la\ud800bels"}))
    assert read(tmp_path / "audit.json", AuditRecord).secret == "la\ud800bels"
    (tmp_path / "audit.json").write_text(json.dumps(made.audit() | {"\ud800": 1}))
    with pytest.raises(ValueError, match="surrogates not allowed"):
        read(tmp_path / "audit.json", AuditRecord)


OPTIONAL = {"processes", "seconds", "rounds", "embedded", "answers_sha256", "ci", "excess", "split_seed"}
OPTIONAL |= {"equal_classes", "certified", "with_features", "epsilon"}
OPTIONAL |= {"limit", "class_matched", "true_classes", "over_true_classes"}
FREE = {"recipe", "features", "encoding", "cell", "selection"}
"""Objects whose keys are defined elsewhere."""
BY_NAME = {"versions", "unknown", "certificates", "controls", "classes", "metrics", "attacks", "secrets"}
BY_NAME |= {"certificate_on_test", "audits", "files", "together", "experiments", "targets", "columns", "max_leak"}
"""Objects with names as keys."""


def _below(kind: type[File]) -> Iterator[type[File]]:
    for one in kind.__subclasses__():
        yield from (one, *_below(one))


def _copy(kind: type[File]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(made.FILES[kind]))
    return copy


def _places(content: dict[str, Any], place: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every value that a record defines: what holds it, its key there, and its place in words."""
    for key, value in list(content.items()):
        own = f"{place}.{key}" if place else key
        if key == "schema" or key in FREE or (key == "config" and "recipe" not in value):
            continue
        yield content, key, own
        if isinstance(value, dict) and key in BY_NAME:
            yield from _inside(value, value, f"{own}[...]")
        elif isinstance(value, dict):
            yield from _places(value, own)
        elif isinstance(value, list):
            yield from _items(value, own)


def _items(values: list[Any], place: str) -> Iterator[tuple[Any, Any, str]]:
    for number, value in enumerate(values):
        yield from _inside(values, {number: value}, f"{place}[{number}]")


def _inside(holder: Any, values: dict[Any, Any], place: str) -> Iterator[tuple[Any, Any, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _places(value, place)
        elif isinstance(value, list):
            yield from _items(value, place)
        elif isinstance(holder, list):
            yield holder, key, place
