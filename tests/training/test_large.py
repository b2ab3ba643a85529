"""A graph of a million nodes trains in the memory of a laptop."""

import subprocess
import sys
from pathlib import Path

import pytest

MILLION = """
import resource
import graphveil as gv
from graphveil.training import prediction

spec = gv.GraphSpec(num_nodes=1_000_000, num_edges=10_000_000, num_features=64, num_classes=8)
graph = gv.generate(spec, seed=1)
split = gv.Split.proportional(graph, 0, targets=("links", "labels"))
prediction.CLASSIFIER = prediction.CLASSIFIER.but(rounds=2)  # a round needs as much memory as many
veil = gv.Veil("links", "labels", device="cpu")
veil.recipe = veil.recipe.but(rounds=4, warmup=2, ramp=2, evaluate_every=2)
veil.fit(graph, split)
assert veil.code_shape_.codes == 216
assert len(veil.codes(graph, split)) == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


BY_BATCHES = """
import resource, sys
import numpy as np
import torch
import graphveil as gv
from graphveil.training import prediction

graph = gv.generate(gv.GraphSpec(num_nodes=1_000_000, num_edges=10_000_000, num_features=16, num_classes=8), seed=1)
x = np.lib.format.open_memmap(sys.argv[1], "w+", np.float32, (1_000_000, 128))
for first in range(0, 1_000_000, 50_000):
    x[first : first + 50_000] = np.random.default_rng(first).standard_normal((50_000, 128), dtype=np.float32)
del x
graph.x = torch.from_numpy(np.load(sys.argv[1], mmap_mode="c"))
split = gv.Split.proportional(graph, 0, targets=("links", "labels"))
prediction.CLASSIFIER = prediction.CLASSIFIER.but(rounds=2)
veil = gv.Veil("links", "labels", device="cpu")
veil.recipe = veil.recipe.by_batches(12_288).but(fanout=5, rounds=6, warmup=2, ramp=2, evaluate_every=3)
assert len(veil.fit(graph, split).codes(graph, split)) == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.slow
def test_mini_batches_of_a_million_nodes_and_ten_million_links_train_in_4_gib(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BY_BATCHES, str(tmp_path / "x.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 4


@pytest.mark.slow
def test_codes_of_a_million_nodes_and_ten_million_links_train_in_12_gib() -> None:
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 12
