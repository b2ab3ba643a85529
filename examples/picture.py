"""Draw the picture of the README: Cora's embeddings before and after, and what each costs and tells.

    python examples/picture.py docs/before_after.png

The left and middle panels are the first two principal components of z, coloured by the secret (the paper's topic).
"""

import sys
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

import graphveil as gv


def main(path: Path) -> None:
    graph = gv.load("cora")
    split = gv.Split.paper(graph, seed=0)
    tradeoffs = {"unprotected": 1.0, "protected": 0.5}
    veils = {title: gv.Veil(tradeoff=value).fit(graph, split) for title, value in tradeoffs.items()}
    scores = {title: veil.score(graph, split) for title, veil in veils.items()}

    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), width_ratios=(1, 1, 0.9), layout="constrained")
    for axis, (title, veil) in zip(axes, veils.items(), strict=False):
        draw_map(axis, veil.transform(graph, split), graph.y, f"{title}: z coloured by the secret")
    draw_bars(axes[2], scores)
    figure.savefig(path, dpi=150)


def draw_map(axis: Axes, z: Tensor, y: Tensor, title: str) -> None:
    z = (z - z.mean(dim=0)) / z.std(dim=0).clamp(min=1e-6)
    _, _, directions = torch.pca_lowrank(z, q=2, niter=8)
    x1, x2 = (z @ directions).t()
    axis.scatter(x1, x2, c=y, cmap="tab10", s=4, alpha=0.7, linewidths=0)
    axis.set(title=title, xticks=[], yticks=[])


def draw_bars(axis: Axes, scores: dict[str, gv.Score]) -> None:
    groups = ["links kept\n(test AUC)", "labels read by the\njoint adversary (accuracy)"]
    for shift, (title, score), colour in zip((-0.2, 0.2), scores.items(), ("#9aa5b1", "#1f6feb"), strict=True):
        values = [100 * score.utility, 100 * score.adversary]
        bars = axis.bar([i + shift for i in range(2)], values, width=0.38, label=title, color=colour)
        axis.bar_label(bars, fmt="%.1f")
    for i, guess in enumerate((50, 100 * next(iter(scores.values())).adversary_chance)):
        axis.hlines(
            guess, i - 0.42, i + 0.42, colors="black", linestyles="dashed", label="guessing" if i == 0 else None
        )
    axis.set(xticks=range(2), xticklabels=groups, ylim=(0, 112), ylabel="%", title="Cora, GCN")
    axis.legend(loc="upper right", frameon=False, ncols=3, fontsize=8)


if __name__ == "__main__":
    torch.manual_seed(0)  # pca_lowrank draws a start
    main(Path(sys.argv[1]))
