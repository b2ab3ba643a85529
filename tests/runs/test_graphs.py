"""The graph and the split of a run are opened again, or refused if they are others."""

import json
from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.runs.audit import audit_run


def test_another_graph_or_split_is_noticed(run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    for key, sentence in (("graph_digest", "not the graph"), ("split_digest", "use that version, or train")):
        (run / "run.json").write_text(json.dumps(record | {key: "0" * 64}))
        with pytest.raises(GraphveilError, match=sentence):
            audit_run(run, attacks="quick")
