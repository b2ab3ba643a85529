"""One small file of every kind, as plain JSON values."""

from typing import Any

import numpy as np

from graphveil.codes import class_certificate, link_certificate
from graphveil.formats.audit import AuditRecord
from graphveil.formats.experiment import CellRecord, ExperimentRecord, TableRecord
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.record import File
from graphveil.formats.release import LedgerRecord
from graphveil.formats.results import (
    AuditsRecord,
    EmbedRecord,
    ExperimentsRecord,
    GraphRecord,
    GraphsRecord,
    GridRecord,
    ReleaseRecord,
    ReportRecord,
)
from graphveil.formats.run import RunRecord, VeilRecord
from graphveil.formats.tune import TuneRecord

CODES = np.array([0, 0, 0, 1, 1, 1, 1, 1])
LINKS = np.array([[0, 0, 1, 2, 4, 5], [1, 2, 2, 3, 5, 6]])
ATTACK = "majority class per code"
READ = {"value": 0.4, "ci": [0.3, 0.5]}
VERSIONS = {"graphveil": "0.1.0"}


def certificate(secret: str = "labels") -> dict[str, Any]:
    """Of eight nodes with two codes."""
    if secret == "links":
        return link_certificate(CODES, LINKS, np.arange(8) % 2).to_dict()
    strata = {"degree tercile": np.arange(8) % 3}
    return class_certificate(CODES, np.arange(8) % 2, np.arange(4), strata, secret=secret).to_dict()


def counts() -> dict[str, Any]:
    """Five nodes with two codes and two classes."""
    return {"of": "nodes", "counts": [[2, 1], [1, 1]], "codes": 2, "names": ["a", "b"]}


def veil() -> dict[str, Any]:
    """As `Veil.save` writes it."""
    return {
        "schema": "graphveil/run/8",
        "config": {
            "utility": "links",
            "secrets": ["labels"],
            "encoder": "gcn",
            "tradeoff": 0.5,
            "objective": "codes",
            "adversary": {"head": None, "steps": 5, "knows": "all"},
            "recipe": {"rounds": 300, "encoder_options": {}},
            "seed": 0,
        },
        "shapes": {
            "in_channels": 4,
            "classes": {"utility": 2, "adversary": 2},
            "codes": {"groups": 2, "size": 2},
            "graph_digest": "abc",
            "scaling": "sum",
            "book": [4, 2, 3, 8],
            "grid": 0,
        },
        "selected_round": 120,
        "versions": VERSIONS,
    }


def run() -> dict[str, Any]:
    """As `graphveil protect` writes it."""
    score = {"secret": "labels", "metric": "accuracy", "value": 0.4, "rounded": 0.4, "chance": 0.3, "attack": ATTACK}
    return veil() | {
        "scores": {"utility": 0.9, "utility_metric": "auc", "utility_chance": 0.5, "secrets": [score]},
        "graph": "cora",
        "graph_digest": "abc",
        "reading": None,
        "encoding": {"columns": []},
        "features": {"nodes": 8, "mean_degree": 1.5},
        "split": "paper",
        "split_digest": "def",
        "message_edges": "train",
        "targets": ["links", "labels"],
        "ids_digest": "ghi",
        "unknown": {"labels": 0},
        "audited_as": "jkl",
        "certificates": {"labels": certificate(), "links": certificate("links"), "town": None},
        "seconds": 3.125,
        "rounds": 300,
        "processes": 2,
        "split_seed": 4,
        "embedded": None,
    }


def audit() -> dict[str, Any]:
    """As `Audit.save` writes it, without the seal."""
    attack = READ | {"attack": "MLP, all", "needs": ["z", "secrets"], "metric": "accuracy", "validation": 0.41}
    attack |= {"metrics": {"accuracy": READ, "balanced_accuracy": READ}, "seconds": 0.2}
    further = READ | {"attack": "MLP, all", "metric": "accuracy", "chance": 0.3, "excess": READ}
    group = {"kind": "column", "by": "town", "group": "Bath", "measure": "accuracy", "examples": 40}
    group |= READ | {"reference": 0.3, "compared_with": "chance level"}
    plane = {"x": [0.0, 1.0], "y": [2.0, 3.0]}
    return {
        "schema": "graphveil/audit/9",
        "origin": {"panel": "full", "seed": 0, "split": "def", "embeddings": "jkl", "graphveil": "0.1.0"},
        "secret": "labels",
        "verdict": "leaks",
        "reasons": [{"sentence": "MLP, all: accuracy 40.0 [30.0, 50.0] is above its reference, 30.0", "size": 0.2}],
        "chance": 0.3,
        "strongest": READ | {"attack": "MLP, all", "metric": "accuracy", "upper": 0.55},
        "higher": "a tree has a higher accuracy, 41.0 [31.0, 51.0]; the headline is chosen without the test part",
        "scale": {"reference": 0.3, "compared_with": "chance level", "unprotected": 0.8, "size": 0.2}
        | {"ci": [0.0, 0.4], "certified": 0.5},
        "utility": {"name": "links", "value": 0.8, "chance": 0.5, "unprotected": 0.9},
        "worst_group": group,
        "certificate": certificate(),
        "certificate_on_test": {"accuracy": 0.5},
        "balanced": further | {"metric": "balanced_accuracy", "excess": None},
        "class_matched": None,
        "with_public_graph": further,
        "with_features": further,
        "with_links": None,
        "floor": READ | {"excess": -0.1},
        "joint_adversary": {"value": 0.35, "gap": 0.05},
        "mutual_information": {
            "unit": "nats",
            "entropy": 1.2,
            "lower_bound": READ | {"warning": None},
            "vclub": READ | {"warning": "only 40 examples"},
        },
        "attacks": [attack],
        "controls": {"public graph": [attack]},
        "groups": [group, group | {"value": None, "ci": None, "reference": None}],
        "flags": [{"name": "too few examples", "sentence": "one class has 12 examples"}],
        "dropped": [],
        "samples": [{"what": "test nodes", "used": 40, "of": 60}],
        "notes": [],
        "test_examples": 40,
        "map": {"of": "nodes", "before": None, "after": plane, "class": [0, 1], "names": ["a", "b"], "codes": counts()},
        "answers_sha256": None,
    }


def cell() -> dict[str, Any]:
    """One cell of an experiment, without the seal."""
    secret = {
        "joint": 0.35,
        "fresh": 0.4,
        "fresh_attack": "MLP, all",
        "attacks": {"MLP, all": 0.4},
        "chance": 0.3,
        "floor": None,
        "equal_classes": None,
        "class_matched": None,
        "balanced": 0.25,
        "certificate": {"best": 0.5, "guessing": 0.3, "limit": None, "class_matched": None},
        "with_features": {"attack": "MLP, all", "value": 0.6, "alone": 0.6, "z_adds": 0.0}
        | {"true_classes": None, "over_true_classes": None},
        "flags": [],
        "joint_rounded": 0.35,
        "history": {"adversary": [0.4, 0.35], "probe": [None, 0.36]},
        "map": audit()["map"],
    }
    rest = {"utility": 0.9, "utility_chance": 0.5, "history": {"round": [5.0, 10.0], "utility": [0.7, 0.9]}}
    return {
        "schema": "graphveil/cell/7",
        "key": "abc",
        "cell": {"dataset": "cora", "seed": 0},
        "versions": VERSIONS,
        **rest,
        "secrets": {"labels": secret},
    }


def experiment() -> dict[str, Any]:
    """A table with one row."""
    row = {
        "variant": "codes",
        "dataset": "cora",
        "encoder": "gcn",
        "secret": "labels",
        "tradeoff": 0.5,
        "seeds": 1,
        "utility": {"value": 0.9, "ci": None},
        "protocol": READ,
        "fresh": READ,
        "fresh_attack": "MLP, all",
        "finer": None,
        "utility_chance": 0.5,
        "chance": 0.3,
        "floor": None,
        "flagged": 0.0,
        "paper": [0.89, 0.3],
        "equal_classes": None,
        "certified": {"best": READ, "excess": READ, "limit": None, "class_matched": None},
        "with_features": {"value": READ, "alone": READ, "z_adds": READ}
        | {"true_classes": None, "over_true_classes": None},
        "epsilon": None,
        "verdict": "reproduced",
        "history": {"round": [5.0, 10.0], "utility": [0.7, 0.9], "adversary": [0.4, 0.35], "probe": [None, 0.36]},
        "map": audit()["map"],
        "attacks": {"MLP, all": READ},
    }
    return {
        "schema": "graphveil/experiment/4",
        "name": "table2",
        "title": "Table 2",
        "utility": "links",
        "metric": "auc",
        "secrets": [{"secret": "labels", "metric": "accuracy", "papers_attacker": "logistic regression, few"}],
        "versions": VERSIONS,
        "config": {"split": "paper"},
        "failed": [{"cell": "cora gcn", "fault": "the loss is not finite"}],
        "rows": [row],
        "selection": {"datasets": None},
    }


def table() -> dict[str, Any]:
    return {"schema": "graphveil/table/1", "title": "Table 1", "columns": ["graph", "nodes"], "rows": [["cora", "1"]]}


def ledger() -> dict[str, Any]:
    entry = {
        "time": "2024-01-01T00:00:00+00:00",
        "files": ["CARD.md"],
        "secrets": ["labels"],
        "pseudonyms": False,
        "codes": 1,
        "codes_sha256": "abc",
        "graph_digest": "def",
        "split_digest": "ghi",
    }
    return {"schema": "graphveil/releases/1", "releases": [entry]}


def tune() -> dict[str, Any]:
    candidate = {"encoder": "gcn", "tradeoff": 0.5, "gain": 0.012, "seed": 0}
    point = {"candidate": candidate, "folder": "gcn-0.5-0.012-0", "utility": 0.8, "leaks": [0.31]}
    point["codes"] = [counts()]
    return {
        "schema": "graphveil/tune/2",
        "graph": "cora",
        "utility": "links",
        "secrets": [{"secret": "labels", "chance": 0.302, "limit": 0.322}],
        "min_utility": None,
        "points": [point | {"within": True, "on_front": True}],
        "chosen": "gcn-0.5-0.012-0",
        "met": True,
    }


def limits() -> dict[str, Any]:
    return {"schema": "graphveil/limits/1", "max_leak": {"labels": 0.322}, "min_utility": None}


def nested(content: dict[str, Any]) -> dict[str, Any]:
    """A file within a printed result."""
    return {key: value for key, value in content.items() if key != "schema"}


def printed() -> dict[type[File], dict[str, Any]]:
    """What --json prints."""
    sizes = {"nodes": 34, "links": 78, "features": 34}
    audits = {"runs/a/audit.json": nested(audit())}
    secret = {"verdict": "leaks", "attack": "MLP, all", "metric": "accuracy", "value": READ, "chance": 0.3}
    named = {"name": "karate", **sizes, "classes": 4, "cached": None}
    target = {"classes": {"a": 20, "b": 10}, "unknown": 4, "columns": {"age": 0.25}}
    embed: dict[str, Any] = {
        "folder": "runs/b",
        "nodes": 8,
        "known": 6,
        "kept_codes": 6,
        "warnings": ["w"],
        "not_audited": ["n"],
    }
    release: dict[str, Any] = {
        "folder": "release",
        "files": {"CARD.md": 20},
        "secrets": {"labels": secret | {"certificate": "c"}},
    }
    release |= {"objections": ["o"], "earlier_releases": 1, "together": {"labels": "t"}}
    experiments = {"folder": "runs/c", "table1": nested(table()), "experiments": {"table2": nested(experiment())}}
    graph = {"graph": "karate", **sizes, "notes": ["n"], "targets": {"labels": target}}
    results: dict[type[File], dict[str, Any]] = {
        AuditsRecord: {"audits": audits},
        EmbedRecord: embed | {"audits": audits},
        ReleaseRecord: release,
        GridRecord: {"file": "z.npy", "columns": 3},
        ReportRecord: {"file": "report.html"},
        ExperimentsRecord: experiments,
        GraphsRecord: {"graphs": [named]},
        GraphRecord: graph,
    }
    return {kind: {"schema": kind.SCHEMA, **content} for kind, content in results.items()}


FILES: dict[type[File], dict[str, Any]] = {
    VeilRecord: veil(),
    RunRecord: run(),
    AuditRecord: audit(),
    CellRecord: cell(),
    ExperimentRecord: experiment(),
    TableRecord: table(),
    LedgerRecord: ledger(),
    TuneRecord: tune(),
    LimitsRecord: limits(),
    **printed(),
}
"""A file of every record; a new record belongs here, and the tests take it up."""
