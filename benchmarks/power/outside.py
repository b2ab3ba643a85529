"""Attackers from outside the panel: models of other libraries, tuned by random search, against an audit.

    python -m benchmarks.power --only outside        needs LightGBM, and CatBoost if its rows are wanted

Each library searches for some minutes, on raw and on whitened embeddings. The best model on held-out known secrets is
fitted to all known secrets and scored on the test part, as the attacks of the panel are.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import graphveil as gv
from benchmarks.power.worlds import Rows
from graphveil.auditing import NodeSecret
from graphveil.auditing.attacks import whitened
from graphveil.auditing.metrics import Integers
from graphveil.auditing.pairs import geometry
from graphveil.auditing.secret import Queries, Secret

Examples = tuple[Rows, Integers]
View = Callable[[Queries], Rows]
MAX_ROWS = 8_000
"""Rows that kernel machines and networks are tuned on at most."""


def outside(graph_name: str, secret: str, objective: str, minutes: float, seed: int) -> dict[str, Any]:
    """The full panel and each library on the same partly protected embeddings.

    Args:
        graph_name: one of the named graphs.
        secret: "labels" or "links"; the other is the utility.
        objective: of the training, at a trade-off of 0.7.
        minutes: the time of each library's search.
        seed: of the split, the training and the searches.
    """
    graph = gv.load(graph_name)
    of_links = secret == "links"
    split = gv.Split.paper(graph, seed, message_edges="all" if of_links else "train")
    veil = gv.Veil("labels" if of_links else "links", secret, tradeoff=0.7, objective=objective, seed=seed)
    z = veil.fit(graph, split).transform(graph, split).numpy()
    audit = gv.audit(z, graph, split, secret, seed=seed)
    found = {name: search(z, audit.secret, models, minutes, seed) for name, models in libraries().items()}
    return {
        "headline": audit.strongest.headline.value,
        "upper": audit.upper,
        "attack": audit.strongest.attack,
        "libraries": found,
    }


def search(z: Rows, secret: Secret, models: Callable[[int], Iterator[Any]], minutes: float, seed: int) -> float:
    """The test value of the best model that a random search finds."""
    random, until = np.random.default_rng(seed), time.monotonic() + 60 * minutes
    views, value = _views(z, secret), _accuracy if isinstance(secret, NodeSecret) else _area
    learn, held_out, known = _parts(secret)
    tried = []
    for number, model in enumerate(models(seed)):
        if time.monotonic() > until and number >= len(views):
            break
        view = views[number % len(views)]
        x, y = _sample((view(learn), learn.y), random)
        tried.append((value(clone(model).fit(x, y), view(held_out), held_out.y), -number, model, view))
    _, _, model, view = max(tried, key=lambda one: one[:2])
    fitted = clone(model).fit(*_sample((view(known), known.y), random, 4 * MAX_ROWS))
    return value(fitted, view(secret.test), secret.test.y)


def libraries() -> dict[str, Callable[[int], Iterator[Any]]]:
    """Endless models of each installed library, with settings drawn from wide ranges."""
    found: dict[str, Callable[[int], Iterator[Any]]] = {"scikit-learn": _scikit_learn, "LightGBM": _lightgbm}
    if importlib.util.find_spec("catboost") is not None:
        found["CatBoost"] = _catboost
    return found


def _scikit_learn(seed: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    while True:
        state = int(random.integers(2**31))
        leaf, width = (int(randint(*limits).rvs(random_state=state)) for limits in ((1, 8), (32, 200)))
        neighbours = int(randint(1, 60).rvs(random_state=state))
        kinds = [
            SVC(C=loguniform(0.1, 300).rvs(random_state=state), gamma=loguniform(1e-3, 3).rvs(random_state=state)),
            ExtraTreesClassifier(400, min_samples_leaf=leaf, random_state=state),
            RandomForestClassifier(300, min_samples_leaf=leaf, random_state=state),
            MLPClassifier(
                (width, width),
                alpha=loguniform(1e-5, 1).rvs(random_state=state),
                early_stopping=True,
                random_state=state,
            ),
            KNeighborsClassifier(neighbours),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(uniform(0, 1).rvs(random_state=state))),
            QuadraticDiscriminantAnalysis(reg_param=float(uniform(0.01, 0.99).rvs(random_state=state))),
        ]
        for kind in kinds:
            yield from [make_pipeline(StandardScaler(), kind)] * 2  # once for each view


def _lightgbm(seed: int) -> Iterator[Any]:
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - only a search needs it

    random = np.random.default_rng(seed)
    while True:
        state = int(random.integers(2**31))
        yield from [
            LGBMClassifier(
                n_estimators=int(randint(50, 500).rvs(random_state=state)),
                learning_rate=loguniform(0.01, 0.2).rvs(random_state=state),
                num_leaves=int(randint(4, 64).rvs(random_state=state)),
                reg_lambda=uniform(0, 5).rvs(random_state=state),
                random_state=state,
                n_jobs=1,
                verbose=-1,
            )
        ] * 2


def _catboost(seed: int) -> Iterator[Any]:
    from catboost import CatBoostClassifier  # noqa: PLC0415 - as above

    random = np.random.default_rng(seed)
    while True:
        state = int(random.integers(2**31))
        yield from [
            CatBoostClassifier(
                iterations=int(randint(50, 400).rvs(random_state=state)),
                learning_rate=loguniform(0.02, 0.3).rvs(random_state=state),
                depth=int(randint(3, 8).rvs(random_state=state)),
                l2_leaf_reg=loguniform(0.5, 20).rvs(random_state=state),
                random_seed=state,
                thread_count=1,
                verbose=False,
                allow_writing_files=False,
            )
        ] * 2


def _views(z: Rows, secret: Secret) -> list[View]:
    """Raw and whitened rows of nodes; of pairs, `geometry`, and products and differences of whitened rows."""
    white = whitened(z)
    if isinstance(secret, NodeSecret):
        return [lambda part: z[part.index], lambda part: white[part.index]]
    pairs = geometry(z.astype(np.float32))
    return [
        lambda part: pairs(part.index),
        lambda part: np.concatenate([white[part.index[0]] * white[part.index[1]], abs(_difference(white, part))], 1),
    ]


def _difference(rows: Rows, part: Queries) -> Rows:
    difference: Rows = rows[part.index[0]] - rows[part.index[1]]
    return difference


def _parts(secret: Secret) -> tuple[Queries, Queries, Queries]:
    """What a model is tuned on, what it is compared on, and all that is known."""
    if isinstance(secret, NodeSecret):
        return *secret.held_out[0], secret.known["all"]
    return secret.known, secret.val, secret.known


def _sample(examples: Examples, random: np.random.Generator, rows: int = MAX_ROWS) -> Examples:
    x, y = examples
    chosen = random.permutation(len(y))[:rows]
    return x[chosen], y[chosen]


def _accuracy(model: Any, x: Rows, y: Integers) -> float:
    return float((np.ravel(model.predict(x)) == y).mean())


def _area(model: Any, x: Rows, y: Integers) -> float:
    score = model.predict_proba(x)[:, 1] if hasattr(model, "predict_proba") else model.decision_function(x)
    return float(roc_auc_score(y, score))
