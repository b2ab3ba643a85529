"""The files of the experiments: complete, and refused with one sentence if they are not valid."""

from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments import cells as cells_module
from graphveil.experiments.spec import load_experiment, parse


def test_the_required_utilities() -> None:
    assert load_experiment("table2").required == {"cora": 79, "citeseer": 76, "pubmed": 92}
    assert load_experiment("table3").required == {"cora": 79, "citeseer": 65, "pubmed": 76.5}


def test_the_published_numbers_are_complete() -> None:
    tables = [load_experiment("table2"), load_experiment("table3")]
    printed = [
        experiment.paper(variant, dataset, encoder)
        for experiment in tables
        for variant in ("unprotected", "club")
        for dataset in experiment.datasets
        for encoder in experiment.encoders
    ]
    assert len(printed) == 36
    assert None not in printed
    assert tables[0].paper("club", "pubmed", "gcn") == pytest.approx((0.8124, 0.4250))
    assert tables[1].paper("unprotected", "citeseer", "gat") == pytest.approx((0.71, 0.8212))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("secrets:", "secret:"), "unknown key of x.yaml 'secret'"),
        (lambda text: text.replace("    steps: 5 ", "    step: 5 ", 1), "unknown key of x.yaml, variant"),
        (lambda text: text.replace("utility: links\n", ""), "x.yaml has no utility"),
        (lambda text: text.replace("panel: full", "panel: whole"), "unknown panel 'whole'"),
        (lambda _: "- a\n- b\n", "x.yaml holds list"),
        (lambda _: "a: [", "x.yaml is not YAML"),
    ],
)
def test_an_invalid_file_is_refused_with_one_sentence(change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    text = (Path(cells_module.__file__).parent / "table2.yaml").read_text()
    with pytest.raises(GraphveilError, match=sentence):
        parse(change(text), "x.yaml")
