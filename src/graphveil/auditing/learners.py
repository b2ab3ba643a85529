"""What learns to tell classes from rows of numbers: the engines inside the attacks.

Every learner is tuned over a small grid on rows it did not learn from, and those that train in rounds stop when these
rows no longer get better. Rows come standardised. Answers are log-probabilities, (n, classes).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import stratified
from graphveil.codes import class_table
from graphveil.randomness import global_stream, stream

Rows = NDArray[np.floating[Any]]
"""Numbers about examples, (n, columns): float64 where they come from a file, float32 where a learner takes them."""

FEW_ROWS, MANY_ROWS = 2_000, 6_000
"""Of more rows than this, settings are chosen with so many, drawn at random: all of them, and then the best ones."""
KEPT = 3
"""Settings that are tried again with more rows."""
GPU_FROM = 20_000
"""Rows below which a GPU waits for its next small step longer than a CPU takes for it."""
UNLIKELY = 0.005
"""The least that least squares may take for a probability."""
SMALLEST = 1e-6
"""No class is given less probability than this, so that one confident error is not an infinite surprise."""


@dataclass(frozen=True, eq=False)
class Taught:
    """Rows (n, columns) and their classes (n,)."""

    x: Rows
    y: Integers


Fold = tuple[Taught, Taught]
"""Rows to learn from, and rows that are held out."""
Stop = Taught | int | None
"""When to stop: when these rows get no better, after so many rounds, or when the learner thinks so."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that answers, and after how many rounds it was best."""

    log_probabilities: Callable[[Rows], Array]
    rounds: int = 0


class Learner(Protocol):
    """One kind of model with a grid of settings to choose from."""

    @property
    def grid(self) -> Sequence[Any]:
        """What `fit` takes as a setting, the likeliest first."""

    def fit(self, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Learn to answer."""


@dataclass(frozen=True)
class Tuned:
    """What was chosen: the number of a view, a setting, and rounds to train for; 0 if these are not known."""

    view: int
    setting: Any
    rounds: int = 0


def tune(learner: Learner, views: Sequence[Sequence[Fold]], num_classes: int, seed: int) -> Tuned:
    """The view of the rows and the setting that read most in what is held out.

    Where there are many rows, all are tried on few of them, and the best few on more.

    Args:
        views: the same folds, with rows of several kinds.
    """
    tried = [(view, setting) for view in range(len(views)) for setting in range(len(learner.grid))]
    if len(tried) == 1:
        return Tuned(0, learner.grid[0])
    most = max(len(part.y) for fold in views[0] for part in fold)
    for rows, kept in ((FEW_ROWS, KEPT), (MANY_ROWS, 1)):
        found = [
            (*_tried(learner, views[view], num_classes, setting, seed, rows), view, setting) for view, setting in tried
        ]
        found.sort(key=lambda one: one[0], reverse=True)
        tried = [(view, setting) for *_, view, setting in found[:kept]]
        if rows >= most:
            break
    (_, rounds, view, setting), *_ = found
    return Tuned(view, learner.grid[setting], rounds if rows >= most else 0)


def _tried(
    learner: Learner, folds: Sequence[Fold], num_classes: int, setting: int, seed: int, rows: int
) -> tuple[tuple[float, float], int]:
    """How good a setting is and after how many rounds, with at most so many rows."""
    draft = getattr(learner, "draft", None) or learner
    answers, rounds, y = [], [], []
    for taught, held_out in ((_some(one, rows, seed), _some(other, rows, seed)) for one, other in folds):
        model = fit(draft, taught, num_classes, draft.grid[setting], seed, stop=held_out)
        answers.append(model.log_probabilities(held_out.x))
        rounds.append(model.rounds)
        y.append(held_out.y)
    return _quality(np.concatenate(answers), np.concatenate(y)), round(float(np.mean(rounds)))


def learn(learner: Learner, views: Sequence[Fold], num_classes: int, seed: int) -> tuple[int, Fitted]:
    """The number of the best view, and the model of the best setting for it."""
    tuned = tune(learner, [[fold] for fold in views], num_classes, seed)
    taught, held_out = views[tuned.view]
    return tuned.view, fit(learner, taught, num_classes, tuned.setting, seed, stop=tuned.rounds or held_out)


def fit(learner: Learner, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
    """`learner.fit`, but where only one class was taught that one is the answer to everything."""
    (classes,) = np.bincount(taught.y, minlength=num_classes).nonzero()
    if len(classes) > 1:
        return learner.fit(taught, num_classes, setting, seed, stop)
    certain = _log(np.eye(num_classes)[classes[:1]])
    return Fitted(lambda x: np.repeat(certain, len(x), axis=0))


def _some(taught: Taught, rows: int, seed: int) -> Taught:
    """At most about `rows`, each class in its share and with at least ten, or all it has."""
    if len(taught.y) <= rows:
        return taught
    order = np.random.default_rng(stream(seed, "tuning")).permutation(len(taught.y))
    place = np.empty(len(order), dtype=np.int64)  # of each row among those of its class
    by_class = order[np.argsort(taught.y[order], kind="stable")]
    size = np.bincount(taught.y)
    place[by_class] = np.arange(len(order)) - np.repeat(size.cumsum() - size, size)
    wanted = np.maximum(10, np.ceil(size * rows / len(order)))
    chosen = place < wanted[taught.y]
    return Taught(taught.x[chosen], taught.y[chosen])


@dataclass(frozen=True)
class Sklearn:
    """Any scikit-learn classifiers that give probabilities: each of the grid is a setting.

    Args:
        draft: cheaper ones to tune with, in the same order.
    """

    grid: Sequence[Any]
    draft: "Sklearn | None" = None

    def fit(self, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        del stop  # they stop by themselves
        model = clone(setting)
        random = [name for name in model.get_params() if name.endswith("random_state")]
        model.set_params(**dict.fromkeys(random, stream(seed, "attack") % 2**32))
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # BLAS sets the flag for lanes it does not use
            warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that has not converged loses the tuning
            warnings.filterwarnings("ignore", message="n_components > n_samples")  # it then takes all there are
            model.fit(taught.x, taught.y)

        def log_probabilities(x: Rows) -> Array:
            answers = np.zeros((len(x), num_classes))
            with np.errstate(invalid="ignore"):  # as above
                answers[:, model.classes_] = model.predict_proba(x)
            return _log(answers)

        return Fitted(log_probabilities)


def logistic_regression(strengths: Sequence[float] = (1.0, 0.1, 0.01, 0.001, 10.0, 100.0)) -> Sklearn:
    """A linear reader, from heavily to lightly shrunk."""
    return Sklearn([LogisticRegression(C=c, max_iter=300) for c in strengths])


def neighbours() -> Sklearn:
    """A vote of the nearest known rows."""
    measures = [(metric, k) for metric in ("euclidean", "cosine") for k in (15, 5, 40)]
    return Sklearn([_Neighbours(k, weights="distance", metric=metric) for metric, k in measures])


def trees() -> Sklearn:
    """Gradient-boosted trees on histograms of the columns, deep and shallow; the drafts are half as many."""

    def boosted(rounds: int, rate: float) -> Sklearn:
        deep = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=2 * rounds, max_leaf_nodes=15, min_samples_leaf=10
        )
        shallow = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=rounds, max_leaf_nodes=6, l2_regularization=1.0
        )
        return Sklearn([deep, shallow])

    return replace(boosted(30, 0.2), draft=boosted(15, 0.3))


def forest() -> Sklearn:
    """Many trees grown at random, which see weak traces that boosting passes over."""
    draft, final = (
        Sklearn([ExtraTreesClassifier(trees, min_samples_leaf=leaf) for leaf in (2, 5)]) for trees in (50, 200)
    )
    return replace(final, draft=draft)


@dataclass(frozen=True)
class Kernel:
    """Least squares on a Gaussian kernel's features of 400 rows (Nystroem), with the classes as 0 and 1.

    Args:
        grid: the width of the kernel for one column, and how much the weights are shrunk.
    """

    grid: Sequence[tuple[float, float]] = tuple(
        (width, shrink) for width in (0.7, 0.2, 2.0) for shrink in (0.1, 1.0, 10.0)
    )

    def fit(self, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        del stop  # it has no rounds
        width, shrink = setting
        count = min(400, len(taught.y))
        view = Nystroem(
            gamma=width / taught.x.shape[1], n_components=count, random_state=stream(seed, "attack") % 2**32
        )
        x = view.fit_transform(taught.x).astype(np.float64)
        centre, share = x.mean(axis=0), np.bincount(taught.y, minlength=num_classes) / len(taught.y)
        x -= centre
        squares = x.T @ x + shrink * np.eye(count)
        weights = np.linalg.solve(squares, x.T @ (np.eye(num_classes)[taught.y] - share))

        def log_probabilities(rows: Rows) -> Array:
            answers = np.clip((view.transform(rows) - centre) @ weights + share, UNLIKELY, None)
            return _log(answers / answers.sum(axis=1, keepdims=True))

        return Fitted(log_probabilities)


class _Neighbours(KNeighborsClassifier):  # type: ignore[misc]
    """k-NN that takes fewer neighbours where fewer rows are known."""

    def fit(self, x: Rows, y: Integers) -> "_Neighbours":
        self.set_params(n_neighbors=min(self.get_params()["n_neighbors"], len(y)))
        super().fit(x, y)
        return self


@dataclass(frozen=True)
class CountTable:
    """Class counts by code, p(y | c) = (n(c, y) + s * share(y)) / (n(c) + s); a row is the code alone, (n, 1).

    Args:
        grid: s, the number of known nodes that the class shares count as.
    """

    grid: Sequence[float] = (1.0, 4.0, 0.25, 16.0, 64.0)

    def fit(self, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        del seed, stop  # counting draws nothing and takes no rounds
        codes = taught.x[:, 0].astype(np.int64)
        unseen = int(codes.max()) + 1  # the last line of the table is for every code without a known node
        counts = class_table(codes, taught.y, unseen + 1, num_classes)
        share = counts.sum(axis=0) / len(codes)
        log_p = _log((counts + setting * share) / (counts.sum(axis=1, keepdims=True) + setting))
        return Fitted(lambda x: log_p[np.minimum(x[:, 0].astype(np.int64), unseen)])


@dataclass(frozen=True)
class NetworkSetting:
    """Sizes and rates of a network."""

    hidden_channels: int = 64
    dropout: float = 0.0
    weight_decay: float = 1e-4
    lr: float = 5e-3


@dataclass(frozen=True)
class Network:
    """A torch module trained by Adam, on the GPU where there is one and enough for it to do."""

    build: Callable[[int, int, NetworkSetting], nn.Module]
    grid: Sequence[NetworkSetting]
    epochs: int = 200
    patience: int = 12

    def fit(self, taught: Taught, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        enough = len(taught.y) >= GPU_FROM and torch.cuda.is_available()
        device = torch.device("cuda" if enough else "cpu")
        with global_stream(seed, "attack"):
            module = self.build(taught.x.shape[1], num_classes, setting).to(device)
            rounds = self._train(module, taught, setting, stop)

        def log_probabilities(x: Rows) -> Array:
            with torch.no_grad():
                parts = [module.eval()(part) for part in torch.from_numpy(x).to(device).split(2**16)]
            return _log(torch.cat(parts).double().softmax(dim=1).cpu().numpy())

        return Fitted(log_probabilities, rounds)

    def _train(self, module: nn.Module, taught: Taught, setting: NetworkSetting, stop: Stop) -> int:
        """Leave the module at its best, and say after how many epochs that was."""
        device = next(module.parameters()).device
        x, y = torch.from_numpy(taught.x).to(device), torch.from_numpy(taught.y).to(device)
        batch = min(len(y), max(128, 2 ** round(np.log2(max(len(y), 64) / 48))))
        optimizer = torch.optim.Adam(module.parameters(), lr=setting.lr, weight_decay=setting.weight_decay, fused=True)
        watched = (
            (torch.from_numpy(stop.x).to(device), torch.from_numpy(stop.y).to(device))
            if isinstance(stop, Taught)
            else None
        )
        best, best_loss, best_state = 0, np.inf, module.state_dict()
        for epoch in range(1, (stop if isinstance(stop, int) else self.epochs) + 1):
            module.train()
            for rows in torch.randperm(len(y)).to(device).split(batch):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(module(x[rows]), y[rows]).backward()
                optimizer.step()
            if watched is None:
                continue
            with torch.no_grad():
                loss = float(F.cross_entropy(module.eval()(watched[0]), watched[1]))
            if loss < best_loss:
                best, best_loss = epoch, loss
                best_state = {name: value.clone() for name, value in module.state_dict().items()}
            elif epoch - best >= self.patience:
                break
        if watched is None:
            return epoch
        module.load_state_dict(best_state)
        return best


def mlp() -> Network:
    """Two hidden layers, small to large."""
    grid = [
        NetworkSetting(),
        NetworkSetting(hidden_channels=128, dropout=0.3, weight_decay=1e-3),
        NetworkSetting(hidden_channels=32, dropout=0.0, weight_decay=1e-2),
    ]
    return Network(_mlp, grid)


def one_mlp() -> Network:
    """The first of them alone, for a quick look."""
    return Network(_mlp, mlp().grid[:1])


def bilinear() -> Network:
    """a' W b for rows that are two ends beside each other, with a symmetric W."""
    return Network(lambda columns, *_: _Bilinear(columns // 2), [NetworkSetting(weight_decay=w) for w in (1e-4, 1e-2)])


def _mlp(columns: int, num_classes: int, setting: NetworkSetting) -> nn.Module:
    width = setting.hidden_channels
    return nn.Sequential(
        nn.Linear(columns, width),
        nn.ReLU(),
        nn.Dropout(setting.dropout),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(setting.dropout),
        nn.Linear(width, num_classes),
    )


class _Bilinear(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(columns) / columns)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, ends: Tensor) -> Tensor:
        a, b = ends.chunk(2, dim=1)
        logit = (a @ (self.weight + self.weight.T) * b).sum(dim=1) + self.bias
        return torch.stack([torch.zeros_like(logit), logit], dim=1)


def folds_of(taught: Taught, seed: int, count: int = 4) -> list[Fold]:
    """Each of `count` parts held out in turn; every part has its share of each class."""
    fold = stratified(taught.y, count, stream(seed, "folds"))
    return [
        (Taught(taught.x[fold != k], taught.y[fold != k]), Taught(taught.x[fold == k], taught.y[fold == k]))
        for k in range(count)
    ]


def _quality(log_p: Array, y: Integers) -> tuple[float, float]:
    """How good answers are: the share of right ones (of two classes: their AUC), then minus the cross-entropy."""
    surprise = -float(log_p[np.arange(len(y)), y].mean())
    if log_p.shape[1] == 2 and 0 < y.sum() < len(y):
        return area(log_p[:, 1] - log_p[:, 0], y), -surprise
    return float((log_p.argmax(axis=1) == y).mean()), -surprise


def area(score: Array, y: Integers) -> float:
    """The area under the ROC curve."""
    return float(roc_auc_score(y, score))


def _log(probabilities: Array) -> Array:
    result: Array = np.log(np.clip(probabilities, SMALLEST, None))
    return result
