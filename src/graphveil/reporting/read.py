"""Read an audit, a run's folder or a folder of experiments, and refuse whatever is not one in one sentence."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeVar

import pyarrow.parquet as pq

from graphveil.errors import GraphveilError
from graphveil.files import read_json
from graphveil.reporting.checks import Fields, Interval
from graphveil.reporting.parts import MEASURES
from graphveil.reporting.results import (
    Attack,
    Audit,
    Beside,
    Certificate,
    Experiment,
    Group,
    Hidden,
    History,
    Points,
    Row,
    Run,
    SecretResults,
    Words,
)

KEPT_BACK = ("config", "versions", "graph", "reading", "encoding", "features", "certificates")
"""What of a run's record has a place of its own, or is the owner's: where the graph lies, and the words in it."""
EXPERIMENTS = ("table1", "table2", "table3", "figure2", "figure3", "sweep")

Parsed = TypeVar("Parsed")


def read(source: Path) -> Audit | Run | Sequence[Experiment | Words]:
    """Whatever lies at `source`."""
    if source.is_dir():
        if (source / "run.json").is_file():
            return read_run(source)
        files = [file for name in EXPERIMENTS if (file := source / f"{name}.json").is_file()]
        if files:
            return [_load(file, _table) if file.stem == "table1" else _load(file, _experiment) for file in files]
        raise GraphveilError(
            f"{source} holds neither run.json nor any of {', '.join(f'{name}.json' for name in EXPERIMENTS)}: give a"
            " folder of `graphveil protect`, `reproduce` or `sweep`, or an audit's own file."
        )
    return _load(source, _audit)


def read_run(folder: Path) -> Run:
    """The run, and its history and its audits where they are, in the order of the secrets."""
    run, history = _load(folder / "run.json", _run), folder / "history.parquet"
    names = [hidden.secret for hidden in run.secrets]
    audits, strange = [], []
    for file in sorted(folder.glob("audit*.json")):
        audit = _load(file, _audit)
        if run.audited_as and audit.of != run.audited_as:
            strange.append(file.name)
        else:
            audits.append(audit)
    audits.sort(key=lambda audit: names.index(audit.secret) if audit.secret in names else len(names))
    histories = _histories(history, names or [""]) if history.exists() else {}
    return replace(run, histories=histories, audits=audits, strange=strange)


def _load(file: Path, parse: Callable[[Fields], Parsed]) -> Parsed:
    with _blame(file):
        return parse(Fields.of(read_json(file), ""))


@contextmanager
def _blame(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, OverflowError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise GraphveilError(
            f"{file} cannot be shown ({reason}): expected what graphveil wrote, so write it again or give another."
        ) from error


def _audit(fields: Fields) -> Audit:
    _check_schema(fields, "graphveil/audit/4")
    told = fields.inner("mutual_information") or Fields({}, "mutual_information")
    best = fields.inner("strongest") or Fields({}, "strongest")
    joint, floor = fields.inner("joint_adversary"), fields.reading("floor")
    controls = {}
    if (inner := fields.inner("controls")) is not None:
        controls = {
            name: [_attack(found) for found in inner.objects(name)]
            for name, value in inner.content.items()
            if name != "guessing" and value is not None
        }
    return Audit(
        secret=fields.text("secret"),
        verdict=fields.text("verdict", ("leaks", "protected", "flagged")),
        chance=fields.share("chance"),
        strongest=_attack(best),
        certificate=_certificate(fields.inner("certificate")),
        beside=_beside(fields),
        floor=floor,
        joint=None if joint is None else joint.share("value"),
        information={name: _nats(told, name) for name in ("lower_bound", "vclub")},
        entropy=told.number("entropy"),
        attacks=[_attack(found) for found in fields.objects("attacks")],
        groups=[_group(found) for found in fields.objects("groups")],
        worst_group=None if (worst := fields.inner("worst_group")) is None else _group(worst),
        controls=controls,
        flags=[(flag.text("name"), flag.text("sentence")) for flag in fields.objects("flags")],
        notes=[*fields.texts("notes")],
        examples=fields.number("test_examples"),
        maps=_before_and_after(fields.inner("map")),
        origin=_printed(fields.content.get("origin")),
        of=(fields.inner("origin") or Fields({}, "")).text("embeddings"),
    )


def _attack(fields: Fields) -> Attack:
    metrics = fields.inner("metrics") or Fields({}, "")
    return Attack(
        name=fields.text("attack"),
        metric=fields.text("metric"),
        reading=fields.as_reading(),
        needs=fields.texts("needs"),
        finer=metrics.reading("class_matched_auc") or metrics.reading("balanced_accuracy"),
        validation=fields.share("validation"),
    )


def _group(fields: Fields) -> Group:
    name, by = fields.text("group"), fields.text("by")
    return Group(
        label=f"degree {name}" if fields.text("kind") == "degree" else f"{by} = {name}",
        measure=fields.text("measure", list(MEASURES)),
        examples=fields.number("examples"),
        reading=fields.as_reading(any_number=True),
        reference=fields.share("reference"),
        compared_with=fields.text("compared_with"),
    )


def _beside(fields: Fields) -> dict[str, Beside]:
    """The other readings that stand beside the headline, where there are any."""
    found = {}
    for name, chance in (
        ("balanced", None),
        ("class_matched", 0.5),
        ("with_public_graph", None),
        ("with_features", None),
        ("with_links", None),
    ):
        if (inner := fields.inner(name)) is not None:
            excess = inner.inner("excess")
            found[name] = Beside(
                attack=inner.text("attack"),
                reading=inner.as_reading(),
                chance=inner.share("chance") or chance,
                excess=None if excess is None else excess.as_reading(any_number=True),
            )
    return found


def _certificate(fields: Fields | None) -> Certificate | None:
    """As an audit or a run has it; a run has the sentence and no rows."""
    if fields is None:
        return None
    nothing = Fields({}, "")
    calibration, worst = fields.inner("calibration") or nothing, fields.inner("worst") or nothing
    of_links = "auc" in fields.content
    return Certificate(
        sentence=fields.text("sentence"),
        metric="AUC" if of_links else "accuracy",
        best=fields.share("auc" if of_links else "accuracy"),
        elsewhere=calibration.share("auc_limit" if of_links else "accuracy_limit"),
        confidence=fields.share("confidence"),
        finer=fields.share("class_matched_auc" if of_links else "balanced_accuracy"),
        worst=worst.share("share"),
        worst_nodes=worst.number("nodes"),
        codes=fields.number("codes"),
        bits=fields.number("bits_per_node"),
        rows=_two_texts(fields, "rows"),
        not_covered=_two_texts(fields, "not_covered"),
    )


def _two_texts(fields: Fields, name: str) -> list[tuple[str, str]]:
    """A list of pairs of texts."""
    found = []
    for i, row in enumerate(fields.items(name)):
        place = f"{fields.place}.{name}[{i}]"
        texts = Fields({place: row}, "").texts(place)
        if len(texts) != 2:
            raise ValueError(f"{place} has {len(texts)} texts, expected two")
        found.append((texts[0], texts[1]))
    return found


def _nats(told: Fields, name: str) -> tuple[Interval | None, str]:
    inner = told.inner(name)
    return (None, "") if inner is None else (inner.as_reading(any_number=True), inner.text("doubt"))


def _before_and_after(fields: Fields | None) -> list[Points]:
    if fields is None:
        return []
    titles = {"before": "before: unprotected", "after": "after: these embeddings"}
    return [
        _points(fields, inner, title) for name, title in titles.items() if (inner := fields.inner(name)) is not None
    ]


def _points(labels: Fields, places: Fields, title: str) -> Points:
    x, y, classes = places.numbers("x"), places.numbers("y"), labels.numbers("class")
    if not len(x) == len(y) == len(classes):
        raise ValueError(f"{places.place} has {len(x)} x, {len(y)} y and {len(classes)} classes, expected as many")
    return Points(title, x, y, [-1 if one is None else int(one) for one in classes], labels.texts("names"))


def _run(fields: Fields) -> Run:
    _check_schema(fields, "graphveil/run/5")
    config, scores = fields.inner("config") or Fields({}, ""), fields.inner("scores") or Fields({}, "")
    told = {one.text("secret"): one for one in scores.objects("secrets")}
    certificates = fields.inner("certificates") or Fields({}, "")
    return Run(
        graph=PurePath(fields.text("graph")).name,  # without the folders above somebody's own
        utility=config.text("utility"),
        secrets=[
            Hidden(name, *((one.share("value"), one.share("chance")) if (one := told.get(name)) else (None, None)))
            for name in config.texts("secrets")
        ],
        encoder=config.text("encoder"),
        objective=config.text("objective"),
        tradeoff=config.number("tradeoff"),
        rounds=fields.number("rounds"),
        selected_round=fields.number("selected_round"),
        kept=scores.share("utility"),
        kept_metric=scores.text("utility_metric"),
        config=_printed(config.content),
        versions=_printed(fields.content.get("versions")),
        audited_as=fields.text("audited_as"),
        certificates={
            name: found
            for name in certificates.content
            if (found := _certificate(certificates.inner(name))) is not None
        },
        record=_printed({k: v for k, v in fields.content.items() if k not in KEPT_BACK}),
    )


def _history(fields: Fields | None) -> History | None:
    if fields is None:
        return None
    rounds = fields.numbers("round")
    columns = [fields.shares(name) or [None] * len(rounds) for name in ("utility", "adversary", "probe")]
    if any(len(column) != len(rounds) for column in columns):
        raise ValueError(f"the columns of {fields.place or 'the history'} are not equally long")
    return History(rounds, *columns)


def _histories(file: Path, secrets: Sequence[str]) -> dict[str, History]:
    """By secret; the columns of a second one end in -2."""
    found = {}
    with _blame(file):
        table = pq.read_table(file)
        for number, secret in enumerate(secrets, start=1):
            mark = "" if number == 1 else f"-{number}"
            columns = {"round": "round", "utility": "utility", "adversary": f"adversary{mark}", "probe": f"probe{mark}"}
            there = {name: table[own].to_pylist() for name, own in columns.items() if own in table.column_names}
            if (history := _history(Fields(there, ""))) is not None:
                found[secret] = history
    return found


def _experiment(fields: Fields) -> Experiment:
    _check_schema(fields, "graphveil/experiment/2")
    rows = [_row(one) for one in fields.objects("rows")]
    return Experiment(
        name=fields.text("name"),
        title=fields.text("title") or fields.text("name"),
        utility=fields.text("utility"),
        metric=fields.text("metric"),
        secrets=[_told(one, rows) for one in fields.objects("secrets")],
        failed=[(one.text("cell"), one.text("fault")) for one in fields.objects("failed")],
        config=_printed(fields.content.get("config")),
        versions=_printed(fields.content.get("versions")),
    )


def _told(fields: Fields, rows: Sequence[Row]) -> SecretResults:
    secret = fields.text("secret")
    own = [row for row in rows if row.secret == secret]
    return SecretResults(secret, fields.text("metric"), fields.text("papers_attacker"), own)


def _row(fields: Fields) -> Row:
    places, paper = fields.inner("map"), fields.shares("paper") or [None, None]
    if len(paper) != 2:
        raise ValueError(f"{fields.place}.paper has {len(paper)} numbers, expected utility and secret")
    return Row(
        variant=fields.text("variant"),
        dataset=fields.text("dataset"),
        encoder=fields.text("encoder"),
        secret=fields.text("secret"),
        tradeoff=fields.number("tradeoff"),
        seeds=fields.number("seeds"),
        utility=fields.reading("utility"),
        protocol=fields.reading("protocol"),
        fresh=fields.reading("fresh"),
        finer=fields.reading("finer"),
        utility_chance=fields.share("utility_chance"),
        chance=fields.share("chance"),
        floor=fields.share("floor"),
        flagged=fields.share("flagged"),
        paper=(paper[0], paper[1]),
        verdict=fields.text("verdict", ("reproduced", "better", "not reproduced", "")),
        history=_history(fields.inner("history")),
        map=None if places is None else _points(places, places, fields.text("variant")),
        epsilon=fields.number("epsilon"),
    )


def _table(fields: Fields) -> Words:
    _check_schema(fields, "graphveil/table/1")
    columns = fields.texts("columns")
    rows = [Fields({"row": row}, f"rows[{i}]").texts("row") for i, row in enumerate(fields.items("rows"))]
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"not every row has {len(columns)} texts, as many as there are columns")
    return Words(fields.text("title"), columns, rows)


def _check_schema(fields: Fields, schema: str) -> None:
    if (came := fields.content.get("schema")) != schema:
        raise ValueError(f"its schema is {str(came)[:60]!r}, not {schema!r}")


def _printed(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
