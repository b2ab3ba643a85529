"""The result of a cell: what an audit becomes in it, and which files are used."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphveil as gv
from graphveil.auditing import Context, Utility, audit, links, nodes
from graphveil.auditing.controls import classes_and_features, raw_features
from graphveil.auditing.tasks import Task
from graphveil.codes import ClassCertificate, LinkCertificate
from graphveil.experiments.cells import read_result, summary
from graphveil.formats.experiment import CertifiedCell, Curves
from tests.experiments.made import TINY, write_result


def test_a_summary_has_the_certificate_and_the_attacks_with_features() -> None:
    """Twelve codes, which reveal the class of every second node on average."""
    graph = gv.generate(gv.GraphSpec(num_nodes=300, num_edges=1200, num_features=12, num_classes=3), seed=4)
    split = gv.Split.proportional(graph, seed=2, message_edges="all")
    random = np.random.default_rng(0)
    codes = 4 * np.where(random.random(300) < 0.5, graph.y.numpy(), random.integers(0, 3, 300)) + random.integers(0, 4)
    z = random.normal(size=(12, 4)).astype(np.float32)[codes]
    context = Context(utility=Utility("labels", 0.9, 0.3, 100))
    table = audit(z, graph, split, "labels", nodes.counting())
    found_labels = summary(table, 0.5, Curves((), ()), None)
    certificate = gv.certify(z, graph, split, "labels")
    assert isinstance(certificate, ClassCertificate)
    assert certificate.calibration is not None
    limit = certificate.calibration.accuracy_limit
    assert found_labels.certificate == CertifiedCell(certificate.accuracy, certificate.majority, limit, None)
    assert found_labels.with_features is None
    found = audit(z, graph, split, "links", links.counting(), context=context)
    features = raw_features(graph, 0)
    both = np.concatenate([z, features], axis=1)
    trees = links.with_features()[1]
    held = Task("embeddings", trees, both)(found.secret, 0)
    alone = Task("raw features", replace(trees, name="boosted trees on pairs"), features)(found.secret, 0)  # type: ignore[type-var]
    control = classes_and_features(found.secret, features)[1](found.secret, 0)
    whole = replace(
        found,
        findings=[*found.findings, held],
        controls={"raw features": [alone], "true classes and features": [control]},
    )
    found_links = summary(whole, 0.5, Curves((), ()), None)
    certificate = gv.certify(z, graph, split, "links")
    assert isinstance(certificate, LinkCertificate)
    assert found_links.certificate is not None
    assert found_links.certificate.best == certificate.auc
    assert found_links.certificate.class_matched == certificate.class_matched_auc
    assert found_links.with_features is not None
    assert found_links.with_features.to_dict() == {
        "attack": "boosted trees on pairs, with features",
        "value": held.headline.value,
        "alone": alone.headline.value,
        "z_adds": pytest.approx(held.headline.value - alone.headline.value),
        "true_classes": control.headline.value,
        "over_true_classes": pytest.approx(held.headline.value - control.headline.value),
    }


def test_an_incomplete_edited_or_foreign_result_is_not_used(tmp_path: Path) -> None:
    write_result(TINY, tmp_path, {"utility": 0.7})
    assert read_result(TINY, tmp_path) is not None
    other = replace(TINY, seed=1)
    assert other.file(tmp_path) != TINY.file(tmp_path)
    assert replace(TINY, rounds=2).key != TINY.key
    text = TINY.file(tmp_path).read_text()
    other.file(tmp_path).write_text(text)
    assert read_result(other, tmp_path) is None
    for torn in (text[: len(text) // 2], text.replace("0.7", "0.8"), "", "[]"):
        TINY.file(tmp_path).write_text(torn)
        assert read_result(TINY, tmp_path) is None
