"""Results as `graphveil audit`, `tune`, `reproduce` and `sweep` write them, made up with a fixed seed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.codes import Certificate, class_certificate
from tests.formats.made import run

DATASETS = {"cora": (7, 0.302), "citeseer": (6, 0.211), "pubmed": (3, 0.399)}
ENCODERS = ("gcn", "gat", "hgcn")
VARIANTS = ("unprotected", "published", "minimax", "club", "codes")
VERDICTS = ("reproduced", "better", "not reproduced", "")


def estimate(value: float, half: float = 0.012) -> dict[str, Any]:
    value = round(float(np.clip(value, 0, 1)), 4)
    return {"value": value, "ci": [value - half, value + half]}


def history(rng: np.random.Generator, rounds: int = 200) -> dict[str, Any]:
    at = list(range(0, rounds, 5))
    rise = 1 - np.exp(-np.array(at) / 40)
    columns = {"utility": 0.5 + 0.42 * rise, "adversary": 0.6 - 0.25 * rise, "probe": 0.65 - 0.15 * rise}
    noise = {name: (values + rng.normal(0, 0.01, len(at))).tolist() for name, values in columns.items()}
    noise["probe"][0] = None
    return {"round": at, **noise}


def picture(rng: np.random.Generator, classes: int, apart: float, before: float | None = None) -> dict[str, Any]:
    """A map of 400 points; `apart` and `before` say how far apart the classes are."""
    own = rng.integers(0, classes, 400)

    def plane(apart: float) -> dict[str, list[float]]:
        z = rng.normal(size=(classes, 2))[own] * apart + rng.normal(size=(400, 2))
        return {"x": z[:, 0].round(3).tolist(), "y": z[:, 1].round(3).tolist()}

    names = [f"topic {c}" for c in range(classes)]
    codes = {"of": "nodes", "counts": rng.integers(0, 90, (8, classes)).tolist(), "codes": 8, "names": names}
    planes = {"before": None if before is None else plane(before), "after": plane(apart)}
    return {"of": "nodes", **planes, "class": own.tolist(), "names": names, "codes": codes}


def row(rng: np.random.Generator, variant: str, dataset: str, encoder: str, tradeoff: float) -> dict[str, Any]:
    classes, chance = DATASETS[dataset]
    utility = 0.93 - 0.3 * (1 - tradeoff) ** 2 + rng.normal(0, 0.01)
    fresh = chance + (0.85 - chance) * tradeoff**0.5 + rng.normal(0, 0.02)
    joint = chance + (fresh - chance) * (0.2 if variant == "published" else 0.7)
    with_history = variant in ("club", "codes") and tradeoff == 0.5
    return {
        "variant": variant,
        "dataset": dataset,
        "encoder": encoder,
        "secret": "labels",
        "tradeoff": tradeoff,
        "seeds": 10,
        "utility": estimate(utility),
        "protocol": estimate(joint),
        "fresh": estimate(fresh, 0.02),
        "finer": estimate(fresh - 0.1, 0.03),
        "chance": chance,
        "floor": 0.86,
        "utility_chance": 0.5,
        "flagged": 0.1,
        "paper": [round(utility - 0.01, 3), round(joint + 0.02, 3)] if tradeoff in (0.5, 1.0) else None,
        "verdict": VERDICTS[int(rng.integers(0, 3))] if tradeoff in (0.5, 1.0) else "",
        "fresh_attack": "ensemble",
        "history": history(rng) if with_history else None,
        "map": picture(rng, classes, 3 * fresh) if encoder == "gcn" and variant in ("unprotected", "codes") else None,
        "attacks": {"ensemble": estimate(fresh, 0.02), "MLP, all": estimate(fresh - 0.03, 0.02)},
    }


def experiment(name: str, tradeoffs: Sequence[float] = (0.5,), variants: Sequence[str] = VARIANTS) -> dict[str, Any]:
    rng = np.random.default_rng(sum(map(ord, name)))
    return {
        "schema": "graphveil/experiment/4",
        "name": name,
        "title": f"{name.capitalize()}: link prediction, labels hidden",
        "utility": "links",
        "metric": "auc",
        "secrets": [{"secret": "labels", "metric": "accuracy", "papers_attacker": "logistic regression, few"}],
        "versions": {"graphveil": "0.1.0", "torch": "2.13.0"},
        "config": {"split": "paper", "variants": {"club": {"steps": 5, "nothing": None}}},
        "failed": [],
        "selection": {},
        "rows": [
            row(rng, variant, dataset, encoder, tradeoff)
            for variant in variants
            for dataset in DATASETS
            for encoder in ENCODERS
            for tradeoff in ((1.0,) if variant == "unprotected" else tradeoffs)
        ],
    }


def table1() -> dict[str, Any]:
    return {
        "schema": "graphveil/table/1",
        "title": "Table 1: the graphs",
        "columns": ["graph", "nodes", "links"],
        "rows": [["cora", "2708", "5278"], ["citeseer", "3327", "4552"]],
    }


def experiments(folder: Path) -> Path:
    """A folder of `graphveil reproduce all`."""
    eleven = [round(0.1 * i, 1) for i in range(11)]
    contents = {
        "table1": table1(),
        "table2": experiment("table2"),
        "table3": experiment("table3"),
        "figure2": experiment("figure2", eleven, ["club"]),
    }
    contents["table3"]["failed"] = [{"cell": "club · pubmed · hgcn · seed 4", "fault": "the loss is not finite"}]
    for name, content in contents.items():
        write(folder / f"{name}.json", content)
    return folder


def search(folder: Path, limit: float = 0.32, met: bool = True, min_utility: float | None = None) -> Path:
    """A folder of `graphveil tune` with four candidates: three on the front, of which the second is chosen."""
    rng, names = np.random.default_rng(5), [f"topic {c}" for c in range(7)]
    points = [
        {
            "candidate": {"encoder": "gcn", "tradeoff": tradeoff, "gain": 0.01, "seed": 0},
            "folder": f"gcn-{tradeoff}-0.01-0",
            "utility": utility,
            "leaks": [leak],
            "codes": [{"of": "nodes", "counts": rng.integers(0, 90, (6, 7)).tolist(), "codes": 6, "names": names}],
            "within": leak <= limit,
            "on_front": tradeoff != 0.7,
        }
        for tradeoff, utility, leak in ((0.5, 0.8, 0.31), (0.3, 0.7, 0.305), (0.7, 0.75, 0.35), (0.9, 0.9, 0.4))
    ]
    record = {
        "schema": "graphveil/tune/2",
        "graph": "/home/me/cora",
        "utility": "links",
        "secrets": [{"secret": "labels", "chance": 0.302, "limit": limit}],
        "min_utility": min_utility,
        "points": points,
        "chosen": points[0]["folder"],
        "met": met,
    }
    write(folder / "tune.json", record)
    write(folder / "chosen" / "run.json", run() | {"audited_as": "abc"})
    write(folder / "chosen" / "audit.json", audit())
    return folder


def audit() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    names = ("logistic regression, few", "MLP, all", "gradient boosting, all", "k nearest neighbours, few")
    ensemble = _attack("ensemble", 0.331)
    found = [_attack(name, 0.15 + 0.05 * i) for i, name in enumerate(names)]
    return {
        "schema": "graphveil/audit/9",
        "origin": {"panel": "full", "seed": 0, "split": "def", "embeddings": "abc", "graphveil": "0.1.0"},
        "secret": "labels",
        "verdict": "leaks",
        "reasons": [{"sentence": "ensemble: accuracy 33.1 [30.3, 36.1] is above its reference, 30.2", "size": 0.12}],
        "chance": 0.302,
        "strongest": {name: ensemble[name] for name in ("attack", "metric", "value", "ci")} | {"upper": 0.371},
        "higher": "MLP, all has a higher accuracy, 35.0 [32.0, 38.0]; the headline is chosen without the test part",
        "scale": {"reference": 0.302, "compared_with": "chance level", "unprotected": 0.86, "size": 0.052}
        | {"ci": [0.002, 0.106], "certified": 0.21},
        "utility": {"name": "links", "value": 0.824, "chance": 0.5, "unprotected": 0.929},
        "worst_group": groups()[0],
        "certificate": certificate().to_dict(),
        "certificate_on_test": {"accuracy": 0.345, "balanced_accuracy": 0.262},
        "balanced": {"attack": "MLP, all", "metric": "balanced_accuracy", "chance": 0.143, "value": 0.24}
        | {"ci": [0.211, 0.268]},
        "class_matched": None,
        "with_public_graph": {
            "attack": "GNN",
            "metric": "accuracy",
            "value": 0.852,
            "ci": [0.829, 0.873],
            "chance": 0.302,
        }
        | {"excess": {"value": -0.004, "ci": [-0.015, 0.007]}},
        "with_features": {"attack": "MLP, all, with features", "metric": "accuracy", "value": 0.751}
        | {"chance": 0.302, "ci": [0.723, 0.777], "excess": {"value": 0.011, "ci": [-0.002, 0.024]}},
        "with_links": None,
        "floor": {"value": 0.856, "ci": [0.833, 0.876], "excess": -0.525},
        "joint_adversary": {"value": 0.284, "gap": 0.047},
        "mutual_information": {
            "unit": "nats",
            "entropy": 1.806,
            "lower_bound": {"value": 0.0406, "ci": [0.0105, 0.0706], "warning": None},
            "vclub": {"value": 0.162, "ci": [0.107, 0.217], "warning": "too few examples"},
        },
        "attacks": [*found, ensemble],
        "controls": {
            "public graph": [_attack("label propagation", 0.856)],
            "unprotected encoder": [_attack(name, 0.6 + 0.04 * i) for i, name in enumerate(names)][::-1],  # best first
        },
        "groups": groups(),
        "flags": [{"name": "too few examples", "sentence": "one class has 12 test examples"}],
        "dropped": [],
        "samples": [{"what": "test nodes", "used": 1000, "of": 2500}],
        "notes": ["labels of 15 nodes are unknown"],
        "test_examples": 1000,
        "map": picture(rng, 7, 0.5, before=4),
    }


def groups() -> list[dict[str, Any]]:
    """Of a class, of a degree tercile and, with too few examples, of a column."""
    own = {"kind": "class", "by": "labels", "group": "Theory", "measure": "tpr_minus_fpr", "examples": 130}
    third = {"kind": "degree", "by": "degree", "group": "0 to 2", "measure": "accuracy", "examples": 333}
    few = {"kind": "column", "by": "town", "group": "Bath", "measure": "accuracy", "examples": 12}
    chance = {"compared_with": "chance level"}
    return [
        own | {"value": 0.112, "ci": [0.021, 0.203], "reference": 0.0} | chance,
        third | {"value": 0.31, "ci": [0.241, 0.38], "reference": 0.322} | chance,
        few | {"value": None, "ci": None, "reference": None} | chance,
    ]


def certificate() -> Certificate:
    """Of 400 nodes with 4 codes: code 0 has 60 nodes of class 0 and 40 of class 1, the others the reverse.

    The best balanced accuracy is (60 / 180 + 3 * 60 / 220) / 2 = 57.6 %.
    """
    codes, place = np.repeat(np.arange(4), 100), np.tile(np.arange(100), 4)
    y = np.where(codes == 0, place >= 60, place < 60).astype(np.int64)
    return class_certificate(codes, y, calibration=np.arange(0, 400, 2), secret="labels")


def _attack(name: str, value: float) -> dict[str, Any]:
    read = {"value": value, "ci": [value - 0.028, value + 0.03]}
    rest = {"metrics": {"accuracy": read, "balanced_accuracy": read}, "validation": value - 0.01, "seconds": 0.2}
    return {"attack": name, "needs": ["z", "secrets"], "metric": "accuracy", **read, **rest}


def write(path: Path, content: object) -> Path:
    """Write JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
