"""Several processes: their shares and sums, the same training as in one, and torchrun with a worker that is killed."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from graphveil.errors import GraphveilError
from graphveil.processes import ALONE, Processes, claim_report, current, has_begun, joined, launched
from tests.forked import Forks, happens, processes_of_group
from tests.together import run_together, start_together

# ----- one process ----------------------------------------------------------------------------------------------------


def test_without_torchrun_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")  # other launchers set it, too
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert launched() == current() == ALONE
    assert claim_report()
    assert not has_begun(Path())
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert launched() == Processes(3, 8)


def test_more_processes_than_gpus_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RUN_ID": "none", "RESTART_COUNT": "0"}.items():
        monkeypatch.setenv(f"TORCHELASTIC_{name}", value)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    refused = "torchrun started 2 processes on a machine with 1 GPUs: .* lower --nproc-per-node to 1, or give --device"
    with pytest.raises(GraphveilError, match=refused), joined(torch.device("cuda")):
        pass


def test_alone_nothing_changes() -> None:
    x = torch.randn(3, requires_grad=True)
    assert ALONE.total(x) is x
    assert ALONE.of_first(x) is x
    assert ALONE.bytes_of_first(b"x") == b"x"
    gradient = torch.ones(2)
    ALONE.add([gradient])
    assert gradient.tolist() == [1, 1]


@pytest.mark.parametrize(("count", "size"), [(7, 3), (3, 3), (2, 3), (1, 2)])
def test_shares_are_all_examples_once(count: int, size: int) -> None:
    parts = [Processes(rank, size).share(count) for rank in range(size)]
    weighted = [(place, weight) for places, weight in parts for place in places.tolist() if weight > 0]
    assert sorted(place for place, _ in weighted) == list(range(count))
    assert sum(weight for _, weight in parts) == pytest.approx(1)
    for places, weight in parts:
        assert weight == (len(places) / count if weight else 0)
        assert len(places) > 0, "a process without examples gets one, with weight 0"


# ----- sums -----------------------------------------------------------------------------------------------------------


def test_sums_over_processes_and_their_gradients(forks: Forks, tmp_path: Path) -> None:
    """Loss f(sum of parts): each process gets f' times its part, and the sum of gradients is that of one process."""
    said = run_together(
        forks,
        """
import json
from graphveil.processes import current
processes = current()
weight = torch.tensor([1.0, 2.0], requires_grad=True)
total = processes.total(weight * (rank + 1))   # [1, 2] + [2, 4] = [3, 6]
total.square().sum().backward()                # 2 * total * (rank + 1)
own = weight.grad.tolist()
other = torch.tensor([[float(rank)]])
processes.add([weight.grad, other])
print(json.dumps({"total": total.tolist(), "own": own, "sum": weight.grad.tolist(), "other": other.item(),
                  "first": processes.of_first(torch.tensor([rank + 5])).item(),
                  "bytes": processes.bytes_of_first(b"of 0" if rank == 0 else b"").decode(),
                  "none": processes.bytes_of_first(b"").decode()}))
""",
        tmp_path,
    )
    for rank, of_process in enumerate(map(json.loads, said)):
        assert of_process == {
            "total": [3, 6],
            "own": [6.0 * (rank + 1), 12.0 * (rank + 1)],
            "sum": [18, 36],  # of sum (3 w)^2, at w = (1, 2)
            "other": 1,
            "first": 5,
            "bytes": "of 0",
            "none": "",
        }


@pytest.mark.parametrize("together", ["total(torch.ones(1))", "wait()"])
def test_a_process_that_ends_is_an_error_of_the_others_in_one_sentence(
    forks: Forks, tmp_path: Path, together: str
) -> None:
    code = f"""
from graphveil.errors import GraphveilError
from graphveil.processes import current
distributed.barrier()
if rank == 1:
    import os
    os._exit(9)
try:
    while True:
        current().{together}
except GraphveilError as error:
    print(error)
"""
    first, other = start_together(forks, code, tmp_path, leave="")
    assert other.wait() == 9
    assert first.wait() == 0, first.said
    assert re.match(r"process 0 of 2 lost the connection to another one, which has probably ended \(", first.printed)
    assert first.printed.count("\n") == 1


# ----- training -------------------------------------------------------------------------------------------------------

TRAIN = """
import functools
import json
import sys
import torch
import graphveil as gv
from graphveil.training import prediction
torch.optim.Adam = functools.partial(torch.optim.Adam, eps=1e-2)  # the default enlarges the rounding of small gradients
prediction.CLASSIFIER = prediction.CLASSIFIER.but(dropout=0.0)
graph = gv.generate(
    gv.GraphSpec(num_nodes=150, num_edges=500, num_features=40, num_classes={classes}, homophily={homophily}), seed=5)
split = gv.Split.proportional(graph, seed=2)
for utility, secret, objective, head in {problems!r}:
    recipe = gv.Veil(utility, secret, objective=objective, encoder={encoder!r}).recipe.by_batches(40).but(
        rounds=25, warmup=8, ramp=8, fanout=150, dropout=0.0, hidden_channels=8, evaluate_every=5)
    adversary = None if head is None else gv.Adversary(head)  # the default one has dropout
    veil = gv.Veil(utility, secret, {encoder!r}, objective=objective, recipe=recipe, adversary=adversary, device="cpu")
    veil.fit(graph, split)
    losses = [done.utility_loss for done in veil.history_]
    print(json.dumps([losses, veil.encode(graph, split).flatten().tolist(), veil.best_round_]))
"""
PROBLEMS = [
    ("links", "labels", "codes", None),
    ("labels", "links", "codes", None),
    ("links", "labels", "club", "linear"),
    ("labels", "links", "club", "bilinear"),
]


def results(printed: str) -> list[tuple[Tensor, Tensor, int]]:
    lines = map(json.loads, printed.splitlines())
    return [(torch.tensor(losses), torch.tensor(z), best) for losses, z, best in lines]


@pytest.mark.parametrize(("encoder", "classes", "homophily"), [("gcn", 3, 0.8), ("sage", 3, 0.8), ("gcn", 2, 1.0)])
def test_two_processes_train_as_one_does(
    forks: Forks, tmp_path: Path, encoder: str, classes: int, homophily: float
) -> None:
    """With all neighbours and without dropout, the same global batch has the same gradient, up to rounding.

    Without links between two classes, each process has the nodes of a single class.
    """
    code = TRAIN.format(problems=PROBLEMS, encoder=encoder, classes=classes, homophily=homophily)
    alone = results(forks.script("import torch\ntorch.set_num_threads(1)\n" + code))
    first, other = map(results, run_together(forks, code, tmp_path))
    for problem, (losses, z, best), together, same in zip(PROBLEMS, alone, first, other, strict=True):
        # codes start nearly independent of links: their first gradients are small differences of large terms
        tolerance = 1e-2 if problem[:3] == ("links", "labels", "codes") else 1e-5
        assert torch.allclose(together[0], losses, rtol=tolerance, atol=1e-4)
        assert (together[1] - z).norm() < tolerance * z.norm()
        assert together[2] == best
        assert together[0].equal(same[0]), "all processes have the same state"
        assert together[1].equal(same[1])
        assert together[2] == same[2]


OTHERS = """
import graphveil as gv
from pathlib import Path
features, seed, channels, with_checkpoint = {given}
graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=500, num_features=features, num_classes=3), seed=seed)
recipe = gv.Veil().recipe.by_batches(40).but(rounds=2, hidden_channels=channels)
try:
    gv.Veil(recipe=recipe, device="cpu").fit(
        graph, gv.Split.proportional(graph, 2), checkpoint=Path({checkpoint!r}) if with_checkpoint else None)
except gv.GraphveilError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "given",
    ["40, 5 + rank, 8, True", "40, 5 + rank, 8, False", "40 + rank, 5, 8, True", "40, 5, 8 + rank, False"],
)
def test_a_process_with_another_graph_or_recipe_is_refused(forks: Forks, tmp_path: Path, given: str) -> None:
    """Before they exchange anything else: gloo ends a process whose tensors have other sizes."""
    code = OTHERS.format(given=given, checkpoint=str(tmp_path / "c"))
    first, other = start_together(forks, code, tmp_path, leave="")
    assert other.wait() == 0, other.said
    assert "process 1 has another graph, split or configuration than process 0" in other.printed
    first.wait()
    assert not (tmp_path / "c").exists()
    assert len(list(tmp_path.iterdir())) == 1, "nothing is left but the store of the test"


RESUMED = """
import logging
import sys
import graphveil as gv
from pathlib import Path
logging.basicConfig(stream=sys.stdout, format="%(message)s")
graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=500, num_features=40, num_classes=3), seed=5)
split, file = gv.Split.proportional(graph, 2), Path({checkpoint!r})
for seed in range(3):
    recipe = gv.Veil().recipe.by_batches(40).but(rounds=20, hidden_channels=8)
    try:
        gv.Veil(recipe=recipe, device="cpu", seed=seed // 2).fit(graph, split, file)
    except gv.GraphveilError as error:
        print(error)
    distributed.barrier()
    if rank == 0 and seed == 0:
        file.write_bytes(file.read_bytes()[:-9] + b"damaged!!")
    distributed.barrier()
"""


def test_messages_name_the_checkpoint_of_the_first_process(forks: Forks, tmp_path: Path) -> None:
    """The others read a copy of it. It is damaged for the second training, and of another seed for the third."""
    file = tmp_path / "checkpoint"
    first, other = run_together(forks, RESUMED.format(checkpoint=str(file)), tmp_path)
    refused = f"{file} was written by a run with another configuration, graph or split: resume with the same options"
    assert first.splitlines()[0] == f"{file} is damaged: the run starts over."
    assert first.splitlines()[1].startswith(refused)
    assert other.startswith(refused)


DIVERGES = """
import graphveil as gv
from pathlib import Path
graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=500, num_features=40, num_classes=3), seed=5)
recipe = gv.Veil().recipe.by_batches(40).but(
    rounds=60, hidden_channels=8, evaluate_every=50, lr_encoder=1e30, clip=1e30)
veil = gv.Veil(objective={objective!r}, recipe=recipe, device="cpu")
try:
    veil.fit(graph, gv.Split.proportional(graph, 2), checkpoint=Path({checkpoint!r}))
except gv.DivergedError as error:
    print(error)
    print(len(veil.history_))
"""


@pytest.mark.parametrize("objective", ["codes", "club"])
def test_all_processes_notice_divergence_at_a_checkpoint(forks: Forks, tmp_path: Path, objective: str) -> None:
    """The first evaluation, at which they notice it too, comes later."""
    code = DIVERGES.format(objective=objective, checkpoint=str(tmp_path / "checkpoint"))
    first, other = run_together(forks, code, tmp_path)
    assert first == other
    assert "training diverged in round " in first


# ----- torchrun -------------------------------------------------------------------------------------------------------

PROTECT = ["protect", "karate", "--batch-size", "16", "--set", "fanout=3"]
PROTECT += ["--set", "rounds=300", "--set", "warmup=100", "--set", "ramp=100"]


def torchrun(*options: str, out: Path, arguments: Sequence[str] = PROTECT) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *options,
        "-m",
        "graphveil",
        *arguments,
        "--out",
        out.name,
    ]
    with out.with_suffix(".log").open("w") as log:
        return subprocess.Popen(command, cwd=out.parent, stdout=log, stderr=log, text=True, start_new_session=True)


def ended(launcher: "subprocess.Popen[str]", out: Path) -> str:
    """What all processes have printed; none of them is left."""
    code = launcher.wait(300)
    said = out.with_suffix(".log").read_text()
    assert code == 0, said
    assert processes_of_group(launcher.pid) == []
    return said


def workers_of(launcher: "subprocess.Popen[str]") -> dict[str, int]:
    """The ids of the workers by rank."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = dict(
                pair.split("=", 1) for pair in (folder / "environ").read_text().split("\0") if "=" in pair
            )
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        if parent == launcher.pid and "RANK" in environment:
            found[environment["RANK"]] = int(folder.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rank", ["0", "1"])
def test_torchrun_with_a_killed_worker_ends_with_the_same_bytes(tmp_path: Path, rank: str) -> None:
    """Worker 0 is the one that writes."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ended(torchrun("--standalone", "--nproc-per-node", "2", out=whole), whole)
    launcher = torchrun("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", out=killed)
    assert happens((killed / "checkpoint.safetensors").exists, 120)
    os.kill(workers_of(launcher)[rank], signal.SIGKILL)
    said = ended(launcher, killed)
    assert said.count("round 1 of 300") == 1, "the second time it continues"
    for name in ("embeddings.parquet", "model.safetensors", "history.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert {file.name for file in killed.iterdir()} == {file.name for file in whole.iterdir()}
    assert said.count("rounds in") == 1, "one process prints"


@pytest.mark.slow
def test_two_machines(tmp_path: Path) -> None:
    """Two launchers with a process each, in folders of their own: the first one writes the run."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = str(bound.getsockname()[1])
    outs = [tmp_path / f"machine-{rank}" / "run" for rank in range(2)]
    launchers = []
    for rank, out in enumerate(outs):
        out.parent.mkdir()
        options = ("--nnodes", "2", "--node-rank", str(rank), "--master-addr", "127.0.0.1", "--master-port", port)
        launchers.append(torchrun(*options, "--nproc-per-node", "1", out=out))
    first, other = (ended(*machine) for machine in zip(launchers, outs, strict=True))
    assert "300 rounds in" in first
    assert (outs[0] / "run.json").exists()
    assert not outs[1].exists()
    assert "round" not in other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["protect", "karate"], "torchrun started 2 processes, which train by mini-batches only: give a --batch-size"),
        (["protect", "karate", "--batch-size", "500"], "which train by mini-batches only"),
        (["protect", "nowhere", "--batch-size", "8"], "nowhere"),
        (["sweep", "karate"], "torchrun started 2 processes, which only `protect` uses: leave out torchrun."),
    ],
)
def test_an_error_is_reported_once(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    out = tmp_path / "out"
    launcher = torchrun("--standalone", "--nproc-per-node", "2", out=out, arguments=arguments)
    assert launcher.wait(120) != 0
    (said,) = sentences(out)
    assert sentence in said
    assert not out.exists()
    assert processes_of_group(launcher.pid) == []


def sentences(out: Path) -> list[str]:
    return [line for line in out.with_suffix(".log").read_text().splitlines() if line.startswith("graphveil: ")]


@pytest.mark.slow
def test_ctrl_c_is_answered_once_and_says_how_to_resume(tmp_path: Path) -> None:
    """torchrun passes it to its workers, which are in groups of their own."""
    out = tmp_path / "out"
    launcher = torchrun("--standalone", "--nproc-per-node", "2", out=out)
    assert happens((out / "checkpoint.safetensors").exists, 120)
    os.kill(launcher.pid, signal.SIGINT)
    assert launcher.wait(120) != 0
    answer = "graphveil: interrupted; run the same command with --resume to continue in out."
    assert sentences(out) == [answer], out.with_suffix(".log").read_text()
    assert processes_of_group(launcher.pid) == []
    resumed = torchrun("--standalone", "--nproc-per-node", "2", out=out, arguments=[*PROTECT, "--resume"])
    assert "300 rounds in" in ended(resumed, out)


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_restart_does_not_continue_the_run_of_another_launch(tmp_path: Path, processes: str) -> None:
    out = tmp_path / "out"
    launcher = torchrun("--standalone", "--nproc-per-node", processes, out=out)
    assert happens((out / "checkpoint.safetensors").exists, 120)
    for process in (launcher.pid, *workers_of(launcher).values()):
        os.kill(process, signal.SIGKILL)
    launcher.wait()
    left = (out / "checkpoint.safetensors").read_bytes()
    again = torchrun("--standalone", "--nproc-per-node", processes, "--max-restarts", "1", out=out)
    assert again.wait(120) != 0
    refused = "graphveil: out holds an unfinished run: add --resume to continue it, or choose another folder."
    assert sentences(out) == [refused, refused], "at the start and at the restart"
    assert (out / "checkpoint.safetensors").read_bytes() == left


@pytest.mark.slow
def test_the_cause_is_reported_and_not_the_lost_connection(tmp_path: Path) -> None:
    out = tmp_path / "out"
    launcher = torchrun("--standalone", "--nproc-per-node", "2", out=out)
    assert happens((out / "checkpoint.safetensors").exists, 120)
    shutil.rmtree(out)
    assert launcher.wait(120) != 0
    (sentence,) = sentences(out)
    assert re.match(r"graphveil: (cannot write )?out", sentence)
    assert "connection" not in sentence


@pytest.mark.slow
def test_divergence_is_reported_with_the_last_good_state(tmp_path: Path) -> None:
    out = tmp_path / "out"
    diverging = [*PROTECT, "--set", "lr_encoder=1e30", "--set", "clip=1e30", "--set", "evaluate_every=50"]
    launcher = torchrun("--standalone", "--nproc-per-node", "2", out=out, arguments=diverging)
    assert launcher.wait(120) != 0
    (sentence,) = sentences(out)
    assert sentence.startswith("graphveil: training diverged in round ")
    assert sentence.endswith("It can be loaded from out/last_good.")
    assert (out / "last_good" / "model.safetensors").exists()


@pytest.mark.slow
def test_a_port_in_use_ends_torchrun_and_leaves_nothing(tmp_path: Path) -> None:
    """torchrun itself needs the port, so this is the one error that is not a sentence of ours."""
    out = tmp_path / "out"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        launcher = torchrun("--master-addr", "127.0.0.1", "--master-port", port, "--nproc-per-node", "2", out=out)
        assert launcher.wait(120) != 0
    assert "address already in use" in out.with_suffix(".log").read_text()
    assert not out.exists()
    assert processes_of_group(launcher.pid) == []
