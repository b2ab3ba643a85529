"""Codes: no attack on z alone exceeds the certificate, both show leaks, and z adds to the features."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logit
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Audit, Context, Finding, Utility, links, nodes
from graphveil.auditing.attacks import CLASSES_AND_FEATURES, Attack, by_row
from graphveil.auditing.certify import certificate_of, limits_on_test
from graphveil.auditing.controls import classes_and_features
from graphveil.auditing.finding import ensemble
from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import auc, auc_difference
from graphveil.auditing.secret import LinkSecret, NodeSecret, link_secret, node_secret
from graphveil.auditing.tasks import Task
from graphveil.codes import ClassCertificate, LinkCertificate
from graphveil.codes.tables import Integers
from tests.auditing.made import sentences

CODES = 200
USEFUL = Context(utility=Utility("links", 0.9, 0.5, 1000))
ALL = [attack for attack in nodes.panel() if attack.name.endswith("all") and "graph" not in attack.needs]
METRICS = {
    "accuracy": "headline",
    "balanced_accuracy": "balanced",
    "auc": "headline",
    "class_matched_auc": "matched",
}
FAST = ("k nearest neighbours, all", "label propagation over predicted links, all")


@pytest.fixture(scope="module")
def village() -> tuple[Data, gv.Split]:
    """240 nodes, so that random variation is large, with a coin and three classes."""
    spec = gv.GraphSpec(num_nodes=240, num_edges=900, num_features=12, num_classes=3)
    graph = gv.generate(spec, seed=4)
    graph.coin = torch.from_numpy(np.random.default_rng(5).integers(0, 2, 240))
    return graph, gv.Split.proportional(graph, seed=2, message_edges="all")


def rows_of(codes: Integers, seed: int = 0) -> Rows:
    """A random row for each code."""
    random = np.random.default_rng(seed)
    return random.normal(size=(int(codes.max()) + 1, int(random.integers(1, 20)))).astype(np.float32)[codes]


def random_codes(num_nodes: int, seed: int) -> Integers:
    """Often 2 to 4 codes, otherwise up to the limit of a certificate; equally frequent or not."""
    random = np.random.default_rng(seed)
    count = random.choice([2, 3, 4, int(random.integers(5, num_nodes // 5 + 1))])
    drawn = random.choice(count, num_nodes, p=random.dirichlet(np.full(count, random.choice([0.5, 10.0]))))
    drawn[:2] = 0, 1
    return np.unique(drawn, return_inverse=True)[1].astype(np.int64)


def trained_like(graph: Data, seed: int) -> Integers:
    """The signs of a few directions of the features, averaged over the neighbours: they reveal links and classes."""
    x, (source, target) = graph.x.to_dense().numpy(), graph.edge_index.numpy()
    total = np.zeros_like(x)
    np.add.at(total, target, x[source])
    smooth = x + total / np.maximum(np.bincount(target, minlength=len(x)), 1)[:, None]
    side = (smooth - smooth.mean(axis=0)) @ np.random.default_rng(seed).normal(size=(x.shape[1], 4)) > 0
    return np.asarray(side @ [1, 2, 4, 8], dtype=np.int64)


def found_by(attacks: list[Attack], z: Rows, secret: NodeSecret | LinkSecret) -> list[Finding]:
    findings = [Task("embeddings", attack, z)(secret, seed=0) for attack in attacks]
    return [*findings, *ensemble(findings)]


def check_below(findings: list[Finding], codes: Integers, secret: NodeSecret | LinkSecret) -> None:
    """Exactly: the best rule on these very examples bounds every rule."""
    for metric, limit in limits_on_test(codes, secret).items():
        for finding in findings:
            estimate = getattr(finding, METRICS[metric])
            assert estimate.value <= limit + 1e-12, (finding.attack, metric)


# ----- never above the certificate ------------------------------------------------------------------------------------


def test_fast_node_attacks_do_not_exceed_the_certificate_of_the_same_nodes(village: tuple[Data, gv.Split]) -> None:
    """The table, and two attacks that break ties between neighbours at random."""
    secrets = [node_secret(*village, name, 0) for name in ("coin", "labels")]
    with_ties = [attack for attack in ALL if attack.name in FAST]
    for seed in range(CODES):
        codes, secret = random_codes(240, seed), secrets[seed % 2]
        attacks = [*nodes.counting(), *with_ties[seed % 4 > 0 :]]
        check_below(found_by(attacks, rows_of(codes, seed), secret), codes, secret)


def test_all_node_attacks_do_not_exceed_the_certificate_of_the_same_nodes(village: tuple[Data, gv.Split]) -> None:
    codes, secret = trained_like(village[0], 0), node_secret(*village, "labels", 0)
    result = found_by([*nodes.counting(), *ALL], rows_of(codes), secret)
    check_below(result, codes, secret)
    audit = Audit(secret, result, {}, context=USEFUL, limits=limits_on_test(codes, secret))
    assert "attack above certificate" not in {flag.name for flag in audit.flags}


def test_link_attacks_do_not_exceed_the_certificate_of_the_same_pairs(village: tuple[Data, gv.Split]) -> None:
    secret = link_secret(*village, 0)
    quick = [attack for attack in [*links.counting(), *links.panel(secret)] if attack.cost < 2]
    assert len(quick) == 10
    for seed in range(12):
        codes = trained_like(village[0], seed) if seed % 4 == 0 else random_codes(240, seed)
        check_below(found_by(quick, rows_of(codes, seed), secret), codes, secret)
    codes = trained_like(village[0], 0)
    check_below(found_by(links.quick()[-2:], rows_of(codes), secret), codes, secret)


def test_an_attack_that_knows_more_than_z_is_flagged(village: tuple[Data, gv.Split]) -> None:
    """It claims to see z alone, and answers with the secret."""

    class Cheat:
        name, needs, cost = "cheat", ("z",), 1.0

        def __call__(self, z: Any, secret: Any, seed: int) -> Answers:  # noqa: ARG002
            return Answers(*(np.log(0.01 + 0.98 * np.eye(2)[part.y]) for part in (secret.val, secret.test)))

    codes = random_codes(240, 1)
    audit = gv.audit(rows_of(codes), *village, "coin", attacks=[Cheat()])
    flag = next(flag for flag in audit.flags if flag.name == "attack above certificate")
    limit = limits_on_test(codes, audit.secret)["accuracy"]
    assert (
        f"cheat has accuracy 100.00 on the test part, but the distinct rows of z allow only {100 * limit:.2f}"
        in flag.sentence
    )
    assert "attack above certificate" in str(audit)


def test_examples_with_equal_rows_get_the_mean_of_their_answers(village: tuple[Data, gv.Split]) -> None:
    secret = node_secret(*village, "coin", 0)
    z = np.zeros((240, 1), dtype=np.float32)
    z[secret.test.index[:2]] = 1
    answers = by_row(Answers(np.eye(2)[secret.val.y], np.eye(2)[secret.test.y]), z, secret)
    np.testing.assert_allclose(answers.test[:2], np.tile(np.eye(2)[secret.test.y[:2]].mean(axis=0), (2, 1)))
    np.testing.assert_allclose(answers.test[2:], np.tile(np.eye(2)[secret.test.y[2:]].mean(axis=0), (118, 1)))
    pairs = link_secret(*village, 0)
    score = np.arange(len(pairs.test.y), dtype=float)
    tied = by_row(Answers(np.zeros(len(pairs.val.y)), score), z, pairs)
    first = z[pairs.test.index[0], 0] + z[pairs.test.index[1], 0]
    for cell in np.unique(first):
        np.testing.assert_allclose(tied.test[first == cell], score[first == cell].mean())


def test_held_out_answers_are_not_averaged_over_folds(village: tuple[Data, gv.Split]) -> None:
    """The models of the other folds know the class of a held-out node."""
    secret = node_secret(*village, "coin", 0)
    fold = np.concatenate([np.full(len(held_out.y), k) for k, (_, held_out) in enumerate(secret.held_out)])
    by_fold = np.stack([fold, -fold], axis=1).astype(float)
    answers = by_row(Answers(by_fold, np.zeros((len(secret.test.y), 2))), np.zeros((240, 1), dtype=np.float32), secret)
    np.testing.assert_array_equal(answers.val, by_fold)


def test_the_strongest_attack_on_random_codes_names_the_largest_class(town: Data, town_split: gv.Split) -> None:
    """Codes that are independent of the classes: whatever else an attack predicts, it loses accuracy."""
    graph = town.clone()
    random = np.random.default_rng(1)
    graph.secret = torch.from_numpy(random.choice(7, 1500, p=[0.31, 0.16, 0.15, 0.13, 0.1, 0.08, 0.07]))
    attacks = [*nodes.counting(), *(attack for attack in ALL if attack.name in FAST)]
    for seed in (1, 2, 3):
        audit = gv.audit(rows_of(random.integers(0, 28, 1500)), graph, town_split, "secret", attacks, seed)
        assert isinstance(audit.secret, NodeSecret)
        largest = np.bincount(audit.secret.known["all"].y).argmax()
        assert audit.strongest.headline.value >= (audit.secret.test.y == largest).mean() - 0.005


# ----- leaks ----------------------------------------------------------------------------------------------------------


def test_certificate_and_panel_show_a_planted_leak(town: Data, town_split: gv.Split) -> None:
    """Of the nodes of each of ten codes, 90 % have the same side of the coin."""
    random = np.random.default_rng(0)
    side = np.where(random.random(1500) < 0.9, town.coin.numpy(), 1 - town.coin.numpy())
    codes = 5 * side + random.integers(0, 5, 1500)
    audit = gv.audit(rows_of(codes), town, town_split, "coin", attacks="quick", context=USEFUL)
    correct = float((side == town.coin.numpy()).mean())
    assert isinstance(audit.certificate, ClassCertificate)
    assert audit.certificate.accuracy == pytest.approx(correct, abs=1e-12)
    table = next(finding for finding in audit.findings if finding.attack == "table of distinct rows")
    on_test = float((side == town.coin.numpy())[audit.secret.test.index].mean())
    assert table.headline.value == pytest.approx(on_test, abs=1e-12)
    assert audit.limits["accuracy"] == pytest.approx(on_test, abs=1e-12)
    assert audit.verdict == "unprotected"
    written = audit.to_dict()
    assert written["certificate"]["sentence"] == audit.certificate.sentence
    assert written["certificate"]["rows"][0] == ["this release", *audit.certificate.rows[0][1:]]
    assert written["certificate"]["not_covered"]
    assert written["certificate_on_test"] == audit.limits
    text = " ".join(str(audit).split())
    assert f"predicts the coin of at most {np.ceil(1000 * correct - 1e-9) / 10:.1f} % of" in text
    assert "3.32 bits per node, from 10 codes in use" in text


def test_certificate_and_panel_show_planted_links() -> None:
    """Six groups in a ring with links between adjacent groups only; distances of random rows do not predict them."""
    random, group = np.random.default_rng(0), np.arange(600) % 6
    u, v = random.integers(0, 600, (2, 30_000))
    ring = (group[u] + 1) % 6 == group[v]
    graph = Data(x=torch.ones(600, 1), edge_index=torch.from_numpy(np.stack([u, v])[:, ring]))
    split = gv.Split.proportional(graph, 0, message_edges="all", targets=("links",))
    audit = gv.audit(rows_of(group), graph, split, "links", attacks=links.counting(), context=USEFUL)
    assert isinstance(audit.certificate, LinkCertificate)
    assert audit.certificate.auc > 0.83
    assert audit.strongest.headline.value == pytest.approx(audit.certificate.auc, abs=0.03)
    assert audit.strongest.headline.value <= audit.limits["auc"] + 1e-12


@pytest.mark.parametrize(("count", "learns"), [(4, False), (60, True)])
def test_the_quick_panel_runs_no_learners_if_known_examples_fill_the_table(
    town: Data, town_split: gv.Split, count: int, learns: bool
) -> None:
    """Both find the leak. Learners attack a continuous control in both cases."""
    random = np.random.default_rng(1)
    codes = 2 * random.integers(0, count // 2, 1500) + np.where(random.random(1500) < 0.8, town.coin.numpy(), 0)
    z, control = rows_of(codes), random.normal(size=(1500, 3))
    audit = gv.audit(z, town, town_split, "coin", "quick", controls={"noise": control})
    assert ("MLP, all" in {finding.attack for finding in audit.findings}) == learns
    assert "table of distinct rows" in {finding.attack for finding in audit.findings}
    assert audit.strongest.headline.value > 0.85
    assert "MLP, all" in {finding.attack for finding in audit.controls["noise"]}


def test_a_continuous_embedding_has_no_certificate(town: Data, town_split: gv.Split) -> None:
    z = np.random.default_rng(0).normal(size=(1500, 3))
    assert certificate_of(z, town, town_split, "coin") is None
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert audit.certificate is None
    assert "table of distinct rows" not in {finding.attack for finding in audit.findings}
    written = audit.to_dict()
    assert written["certificate"] is written["certificate_on_test"] is written["with_features"] is None


# ----- attackers who hold the features --------------------------------------------------------------------------------


def holding_features(z: Rows, x: Rows, secret: NodeSecret | LinkSecret) -> Audit:
    """An audit of attackers with the features, of the same attackers without z, and of the table of codes.

    Networks, which take most of the time, are left out.
    """
    if isinstance(secret, LinkSecret):
        attacks, table = links.with_features()[1:], links.counting()
        panel: list[Attack] = [replace(links.panel(secret)[-1], separate_matched=False)]  # type: ignore[type-var]
    else:
        attacks = [attack for attack in nodes.with_features(z.shape[1]) if "MLP" not in attack.name]
        table, panel = nodes.counting(), nodes.panel()
    alone = [attack for attack in panel if f"{attack.name}, with features" in {one.name for one in attacks}]
    both = np.concatenate([z, x], axis=1).astype(np.float32)
    result = [Task("embeddings", attack, both)(secret, 0) for attack in attacks]
    control = [Task("raw features", attack, x)(secret, 0) for attack in alone]
    return Audit(secret, [*found_by(table, z, secret), *result], {"raw features": control}, context=USEFUL)


@pytest.fixture(scope="module")
def features(town: Data) -> Rows:
    """Twenty columns, of which the first is a fair bit."""
    x = np.random.default_rng(8).normal(size=(1500, 20)).astype(np.float32)
    x[:, 0] = np.random.default_rng(9).integers(0, 2, 1500)
    return x


def test_a_code_that_is_the_secret_xor_a_feature(town: Data, town_split: gv.Split, features: Rows) -> None:
    """The documented limit of a certificate: the code alone reveals nothing, with the feature everything."""
    secret, bit = node_secret(town, town_split, "coin", 0), features[:, 0].astype(np.int64)
    codes = 2 * np.random.default_rng(1).integers(0, 2, 1500) + (bit ^ town.coin.numpy())
    z = rows_of(codes)
    certificate = certificate_of(z, town, town_split, "coin")
    assert isinstance(certificate, ClassCertificate)
    assert certificate.accuracy - certificate.majority < 0.02
    audit = holding_features(z, features, secret)
    assert audit.strongest.attack == "table of distinct rows"
    assert audit.strongest.headline.low < secret.chance
    assert audit.excess_with_features is not None
    assert audit.excess_with_features.low > 0.4
    assert audit.verdict == "unprotected"
    assert any("points for attackers with the features" in sentence for sentence in sentences(audit))
    written = audit.to_dict()["with_features"]
    assert set(written) == {"attack", "metric", "chance", "value", "ci", "excess"}
    assert written["value"] > 0.95
    assert written["excess"]["value"] == audit.excess_with_features.value
    assert f"z adds +{100 * audit.excess_with_features.value:.1f}" in " ".join(str(audit).split())


def test_noise_adds_nothing_to_the_features(town: Data, town_split: gv.Split) -> None:
    """Features that predict the labels well, and codes unrelated to them: for a class and for links."""
    x = (np.eye(4)[town.y.numpy()] + 0.7 * np.random.default_rng(3).normal(size=(1500, 4))).astype(np.float32)
    z = rows_of(random_codes(1500, 2) % 12)
    for secret in (node_secret(town, town_split, "labels", 0), link_secret(town, town_split, 0)):
        audit = holding_features(z, x, secret)
        assert audit.with_features is not None
        assert audit.with_features.headline.low > secret.chance + 0.1
        assert audit.excess_with_features is not None
        assert audit.excess_with_features.covers(0.0)
        assert audit.excess_with_features.half < 0.04
        assert not any("points for attackers with the features" in sentence for sentence in sentences(audit))


def test_true_classes_and_features_are_a_control_of_links(town: Data, town_split: gv.Split) -> None:
    """Codes that are the true classes have the AUC of the control; noise has a lower one."""
    secret, x = link_secret(town, town_split, 0), np.random.default_rng(3).normal(size=(1500, 4)).astype(np.float32)
    (control,) = (task(secret, 0) for task in classes_and_features(secret, x)[1:])
    assert control.subject == CLASSES_AND_FEATURES
    excess = []
    for codes in (town.y.numpy(), random_codes(1500, 2) % 12):
        both = np.concatenate([rows_of(codes), x], axis=1).astype(np.float32)
        held = Task("embeddings", links.with_features()[1], both)(secret, 0)
        audit = Audit(secret, [held], {CLASSES_AND_FEATURES: [control]}, context=USEFUL)
        assert audit.classes_and_features is control
        assert audit.excess_over_classes is not None
        assert audit.excess_over_classes.value == pytest.approx(held.headline.value - control.headline.value)
        excess.append(audit.excess_over_classes)
    assert audit.floor is not None
    assert audit.equal_classes is not None
    assert control.headline.value == pytest.approx(audit.floor.value, abs=0.03)
    assert abs(excess[0].value) < 0.02
    assert excess[1].high < -0.1
    unknown = replace(secret, classes=None)
    assert classes_and_features(unknown, x) == classes_and_features(node_secret(town, town_split, "coin", 0), x) == []
    assert replace(audit, secret=unknown).equal_classes is None


def test_unknown_classes_have_the_same_row_in_the_control(town: Data, town_split: gv.Split) -> None:
    secret = link_secret(town, town_split, 0)
    assert secret.classes is not None
    classes = np.where(np.arange(1500) < 10, -1, secret.classes)
    rows = classes_and_features(replace(secret, classes=classes), np.zeros((1500, 1), np.float32))[0].rows
    assert rows.shape == (1500, 4 + 1)
    assert (rows[:10] == rows[0]).all()
    assert len(np.unique(rows, axis=0)) == 5


def test_comparing_two_classes_for_equality(town: Data, town_split: gv.Split) -> None:
    """Its AUC is 1/2 + (share of links - share of non-links with equal classes) / 2."""
    secret = link_secret(town, town_split, 0)
    audit = Audit(secret, [], {}, context=USEFUL)
    y = town.y.numpy()[secret.test.index]
    same = y[0] == y[1]
    linked = secret.test.y == 1
    assert audit.equal_classes is not None
    assert audit.floor is not None
    assert audit.equal_classes.value == pytest.approx(0.5 + (same[linked].mean() - same[~linked].mean()) / 2)


def test_the_difference_of_two_aucs() -> None:
    """Its interval is that of the AUC if the other score is constant, and has no width if both are the same."""
    random = np.random.default_rng(0)
    y, pairs = np.repeat([1, 0], 300), random.integers(0, 200, (2, 600))
    score, flat = y + random.normal(size=600), np.zeros(600)
    alone, over_flat = auc(score, y, pairs), auc_difference(score, flat, y, pairs)
    assert over_flat.value == pytest.approx(alone.value - 0.5, abs=1e-12)
    on_logits = (logit(alone.high) - logit(alone.low)) / 2
    assert over_flat.half == pytest.approx(on_logits * alone.value * (1 - alone.value), rel=1e-9)
    same = auc_difference(score, 3 * score + 1, y, pairs)
    assert (same.value, same.half) == (0.0, 0.0)


def test_the_interval_of_a_difference_covers_zero_in_95_percent() -> None:
    """Two equally good scores, 400 times: the same signal with independent noise."""
    random, covered = np.random.default_rng(1), 0
    y, pairs = np.repeat([1, 0], 100), random.integers(0, 400, (2, 200))
    for _ in range(400):
        signal = y + random.normal(size=200)
        one, other = (signal + random.normal(size=200) for _ in range(2))
        covered += auc_difference(one, other, y, pairs).covers(0.0)
    assert 0.92 <= covered / 400 <= 0.98
