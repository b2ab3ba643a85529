"""A row of a table that tests modify."""

from graphveil.experiments.tables import Mean, Row

PLAIN = Row(
    variant="unprotected",
    dataset="cora",
    encoder="gcn",
    secret="labels",
    tradeoff=1.0,
    seeds=5,
    utility=Mean(0.92, 0.91, 0.93),
    protocol=Mean(0.74, 0.73, 0.75),
    fresh=Mean(0.85, 0.84, 0.86),
    fresh_attack="MLP, all",
    finer=None,
    utility_chance=0.5,
    chance=0.3,
    floor=None,
    flagged=0.0,
    paper=(0.893, 0.72),
)
