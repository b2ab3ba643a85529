"""Draw the picture of the README: Cora's embeddings without and with protection, their utility and their leak.

    python examples/picture.py docs/before_after.png

The left and middle panels are the map of the audit: 300 test nodes, coloured by the secret (the topic of a paper).
"""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import graphveil as gv
from graphveil.auditing.map import draw


def main(path: Path) -> None:
    graph = gv.load("cora")
    split = gv.Split.paper(graph, seed=0)
    protected = gv.Veil()
    veils = {"unprotected": protected.unprotected().fit(graph, split), "protected": protected.fit(graph, split)}
    z = {title: veil.transform(graph, split).numpy() for title, veil in veils.items()}
    audits = {title: gv.audit(rows, graph, split, "labels", attacks="quick") for title, rows in z.items()}

    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), width_ratios=(1, 1, 0.9), layout="constrained")
    points = draw(audits["protected"].secret, z["protected"], z["unprotected"])
    assert points is not None
    assert points.before is not None
    for axis, title, side in zip(axes, veils, (points.before, points.after), strict=False):
        axis.scatter(side.x, side.y, c=points.classes, cmap="tab10", s=12, linewidths=0)
        axis.set(title=f"{title}: z coloured by the secret", xticks=[], yticks=[])
    kept = {title: veil.score(graph, split).utility for title, veil in veils.items()}
    draw_bars(axes[2], kept, audits)
    figure.savefig(path, dpi=150)


def draw_bars(axis: Axes, kept: dict[str, float], audits: dict[str, gv.Audit]) -> None:
    groups = ["links kept\n(test AUC)", "strongest attack on\nlabels (accuracy)"]
    for shift, title, colour in zip((-0.2, 0.2), audits, ("#9aa5b1", "#1f6feb"), strict=True):
        values = [100 * kept[title], 100 * audits[title].strongest.headline.value]
        bars = axis.bar([i + shift for i in range(2)], values, width=0.38, label=title, color=colour)
        axis.bar_label(bars, fmt="%.1f")
    for i, chance in enumerate((50, 100 * next(iter(audits.values())).secret.chance)):
        axis.hlines(
            chance,
            i - 0.42,
            i + 0.42,
            colors="black",
            linestyles="dashed",
            label="chance level" if i == 0 else "_nolegend_",
        )
    axis.set(xticks=range(2), xticklabels=groups, ylim=(0, 112), ylabel="%", title="Cora, GCN")
    axis.legend(loc="upper right", frameon=False, ncols=3, fontsize=8)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
