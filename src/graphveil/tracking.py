"""Log a finished run to an MLflow server: its configuration, its rounds, its scores, and what audits of it found.

Saved files are read, and only numbers and names are sent: never embeddings, weights, links, ids, anybody's secret or a
path. The run is finished before anything is sent, so no fault of a server costs it a file. Needs the extra `mlflow`.
"""

import hashlib
import importlib.util
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.data.datasets.catalog import BUILT_IN, PAPER_GRAPHS
from graphveil.errors import GraphveilError
from graphveil.formats.audit import FURTHER, AuditRecord
from graphveil.formats.certificate import LinkCertificate
from graphveil.formats.store import read, reason
from graphveil.runs.folder import RunFolder

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

EXPERIMENT = "graphveil"
RUN_TAG = "graphveil.run"
"""Holds the hash of run.json, by which a second log of the same run finds the first."""
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # else its client also reports its use to a server of MLflow's makers
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""MLflow's own defaults keep a finished run waiting four minutes for a server that is not there."""
BATCH = 1000
"""Metrics that a server takes at once; of params and tags it takes 100."""


@dataclass(frozen=True)
class Entry:
    """What is logged of a run; metrics by their name, and then by their step."""

    digest: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, Mapping[int, float]]


def check_address(uri: str) -> None:
    """Refuse, before anything is trained, to log where it cannot be."""
    if importlib.util.find_spec("mlflow") is None:
        raise GraphveilError(
            "--mlflow needs MLflow's client, which is not installed: install the extra mlflow (in the clone: pip"
            " install -c constraints.txt '.[mlflow]')."
        )
    try:
        parts = urlsplit(uri)
        whole = parts.scheme not in ("http", "https") or (parts.hostname and parts.port != 0)
    except ValueError:  # a port that is no number, half a bracket
        whole = False
    if not uri.strip() or not whole:
        raise GraphveilError(
            f"{_without_password(uri)!r} is not the address of an MLflow server: give one such as http://localhost:5000."
        )


def log_run(uri: str, folder: Path) -> str:
    """Log what lies in the folder of a run, and give the id of its MLflow run.

    Logged again, after an audit for instance, the same MLflow run is brought up to date.
    """
    check_address(uri)
    entry = read_entry(folder)
    try:
        with _environment():
            return _send(uri, entry)
    except Exception as error:  # whatever client, server and network come up with
        raise GraphveilError(
            f"{folder} was not logged to {_without_password(uri)} ({_reason(error)}). Its files are complete; the next"
            " command on it with --mlflow logs them too."
        ) from error


def read_entry(folder: Path) -> Entry:
    """What is to be logged, from run.json, history.parquet and every audit*.json."""
    record = RunFolder(folder).record()
    config, scores = record.config, record.scores
    known = record.graph in (*PAPER_GRAPHS, *BUILT_IN)
    params = _flat(config.to_dict() | {"secrets": ", ".join(config.secrets)}) | {
        "graph": record.graph if known else "(own)",  # a path may name a person or a project
        "split": record.split,
        "message_edges": record.message_edges,
    }
    tags = {f"versions.{name}": version for name, version in record.versions.items()}
    tags["mlflow.runName"] = f"{config.encoder}, trade-off {config.tradeoff:g}, seed {config.seed}"
    file = folder / "history.parquet"
    try:
        metrics = _history(file) if file.exists() else {}  # `graphveil embed` trains nothing
        if scores.utility is not None:
            metrics["utility_test"] = {0: scores.utility}
        for score in scores.secrets:
            metrics[f"{_key(score.secret)}/joint_adversary"] = {0: score.value}
        for file in sorted(folder.glob("audit*.json")):
            found = read(file, AuditRecord)
            if record.audited_as not in (None, found.origin.embeddings):
                continue  # an audit of other embeddings
            metrics |= _audit_metrics(found)
            tags |= _audit_tags(found)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise GraphveilError(
            f"{folder} cannot be logged ({file.name}: {reason(error)}): audit it again, or train it again."
        ) from error
    digest = hashlib.sha256((folder / "run.json").read_bytes()).hexdigest()
    return Entry(digest, params, {RUN_TAG: digest} | tags, metrics)


def _history(file: Path) -> dict[str, dict[int, float]]:
    """The readings of every round; in rounds that were not evaluated some are not numbers."""
    rows = pq.read_table(file).to_pylist()
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        step = row.pop("round")
        for name, value in row.items():
            if value is not None and math.isfinite(value):
                found.setdefault(name, {})[step] = value
    return found


def _audit_metrics(found: AuditRecord) -> dict[str, dict[int, float]]:
    """The most important results of an audit."""
    best, group, certificate = found.strongest, found.worst_group, found.certificate
    values: dict[str, float | None] = {
        "strongest": best.value,
        "strongest_low": best.low,
        "strongest_high": best.high,
        "chance": found.chance,
        "leak_size": found.scale.size,
        "information": found.mutual_information.lower_bound.value,
    }
    values |= {name: found.further[name].value for name in FURTHER if name in found.further}
    if group is not None and group.interval is not None:
        values |= {"worst_group": group.interval.value, "worst_group_low": group.interval.low}
        values |= {"worst_group_reference": group.reference}
    if certificate is not None:
        values["certificate"] = certificate.auc if isinstance(certificate, LinkCertificate) else certificate.accuracy
    prefix = _key(found.secret)
    return {f"{prefix}/{name}": {0: value} for name, value in values.items() if value is not None}


def _audit_tags(found: AuditRecord) -> dict[str, str]:
    prefix = f"audit.{_key(found.secret)}"
    return {
        f"{prefix}.verdict": found.verdict,
        f"{prefix}.strongest": found.strongest.attack,
        f"{prefix}.panel": found.origin.panel,
        f"{prefix}.flags": ", ".join(flag.name for flag in found.flags) or "none",
    }


def _send(uri: str, entry: Entry) -> str:
    """Find or make the run, and send what the server does not have."""
    from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415 - an extra, and slow to import
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

    client = MlflowClient(tracking_uri=uri)  # the client alone: MLflow's `start_run` would also log user and script
    run = _find_or_make(client, entry)
    now = int(1000 * time.time())
    metrics = []
    for name, values in entry.metrics.items():
        there = {}
        if name in run.data.metrics:
            there = {metric.step: metric.value for metric in client.get_metric_history(run.info.run_id, name)}
        metrics += [Metric(name, value, now, step) for step, value in values.items() if there.get(step) != value]
    params = [Param(name, value) for name, value in entry.params.items() if name not in run.data.params]
    tags = [RunTag(name, value) for name, value in entry.tags.items()]
    client.log_batch(run.info.run_id, params=params, tags=tags)
    for start in range(0, len(metrics), BATCH):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + BATCH])
    client.set_terminated(run.info.run_id)
    return str(run.info.run_id)


def _find_or_make(client: "MlflowClient", entry: Entry) -> "Run":
    experiment = client.get_experiment_by_name(EXPERIMENT)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT)
    found = client.search_runs([experiment_id], f"tags.`{RUN_TAG}` = '{entry.digest}'", max_results=1)
    return found[0] if found else client.create_run(experiment_id, tags={RUN_TAG: entry.digest})


@contextmanager
def _environment() -> Iterator[None]:
    """MLflow takes these from the environment alone; patience of the caller's own goes first."""
    before = dict(os.environ)
    os.environ.update(QUIET | {name: before.get(name, value) for name, value in PATIENCE.items()})
    try:
        yield
    finally:
        for name in (*QUIET, *PATIENCE):
            del os.environ[name]
            if name in before:
                os.environ[name] = before[name]


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """{"recipe": {"rounds": 400}} as {"recipe.rounds": "400"}."""
    found: dict[str, str] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": str(value)}
    return found


def _key(name: str) -> str:
    """A secret's name as part of a metric's, in which few signs are allowed; no two names become the same."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:40]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _without_password(text: str) -> str:
    """Without all that may be one: what an address has before its last @, since a password may hold / and @ itself."""
    return re.sub(r"//.*@", "//", text, flags=re.DOTALL) if "//" in text else text.rpartition("@")[2]


def _reason(error: BaseException) -> str:
    """What the machine said at the bottom of it, or else the client's first sentence."""
    bottom = error
    while (inner := bottom.__cause__ or bottom.__context__) is not None:
        bottom = inner
    text = bottom.strerror if isinstance(bottom, OSError) and bottom.strerror else str(error).strip()
    first = re.split(r"\n|\. ", text or type(error).__name__)[0]
    return _without_password(first)[:200].rstrip(".")
