"""What `--json` prints. `protect` and `tune` print run.json and tune.json; the other verbs print one of these."""

from typing import ClassVar

from graphveil.formats.audit import AuditRecord
from graphveil.formats.experiment import ExperimentRecord, TableRecord
from graphveil.formats.interval import Interval
from graphveil.formats.record import Count, File, Record, Share


class AuditsRecord(File, frozen=True):
    """The result of `audit` and `demo`: the content of each written audit.json, by its path."""

    SCHEMA: ClassVar[str] = "graphveil/audits/1"

    audits: dict[str, AuditRecord]


class EmbedRecord(File, frozen=True):
    """The result of `embed`.

    Args:
        folder: the folder that was written.
        nodes: the number of nodes.
        known: the number of them that are in the run too.
        kept_codes: the number of nodes that kept their code; None for a run without codes.
        warnings: a sentence for each way in which the graph differs from the one trained on.
        not_audited: a sentence for each secret that cannot be audited.
        audits: the audits by their files; empty with --no-audit.
    """

    SCHEMA: ClassVar[str] = "graphveil/embed/1"

    folder: str
    nodes: Count
    known: Count
    kept_codes: Count | None
    warnings: tuple[str, ...]
    not_audited: tuple[str, ...]
    audits: dict[str, AuditRecord]


class ReleasedSecret(Record, frozen=True):
    """What the audit of a secret says about a release.

    Args:
        attack: the strongest attack.
        value: its accuracy or AUC.
        chance: the chance level; None if it is unknown.
        certificate: the sentence of the certificate; None without one.
    """

    verdict: str
    attack: str
    metric: str
    value: Interval
    chance: Share | None
    certificate: str | None


class ReleaseRecord(File, frozen=True):
    """The result of `export`.

    Args:
        folder: the folder that was written.
        files: the size of each file in bytes.
        secrets: the audited secrets by name; None for a secret without an audit.
        objections: the objections that --force has overruled.
        earlier_releases: the number of earlier releases with the same nodes.
        together: the sentence of the certificate for this release and the earlier ones together, by secret.
    """

    SCHEMA: ClassVar[str] = "graphveil/release/1"

    folder: str
    files: dict[str, Count]
    secrets: dict[str, ReleasedSecret | None]
    objections: tuple[str, ...]
    earlier_releases: Count
    together: dict[str, str]


class GridRecord(File, frozen=True):
    """The result of `grid`: the file that was written, and the number of rounded columns."""

    SCHEMA: ClassVar[str] = "graphveil/grid/1"

    file: str
    columns: Count


class ReportRecord(File, frozen=True):
    """The result of `report`: the page that was written."""

    SCHEMA: ClassVar[str] = "graphveil/report/1"

    file: str


class ExperimentsRecord(File, frozen=True):
    """The result of `sweep` and `reproduce`.

    Args:
        folder: the folder of the tables.
        table1: Table 1; None if it was not reproduced.
        experiments: the results by name.
    """

    SCHEMA: ClassVar[str] = "graphveil/experiments/1"

    folder: str
    table1: TableRecord | None
    experiments: dict[str, ExperimentRecord]


class NamedGraph(Record, frozen=True):
    """A named graph.

    Args:
        cached: whether it is in the cache; None for a graph that is built in.
    """

    name: str
    nodes: Count
    links: Count
    features: Count
    classes: Count
    cached: bool | None


class GraphsRecord(File, frozen=True):
    """The result of `data list` and `data fetch`."""

    SCHEMA: ClassVar[str] = "graphveil/graphs/1"

    graphs: tuple[NamedGraph, ...]


class TargetRecord(Record, frozen=True):
    """The classes of a target.

    Args:
        classes: the number of nodes of each class.
        unknown: the number of nodes without a class.
        columns: the skill of the three single feature columns that predict it best.
    """

    classes: dict[str, Count]
    unknown: Count
    columns: dict[str, float]


class GraphRecord(File, frozen=True):
    """The result of `data show`; `notes` say how the graph was read."""

    SCHEMA: ClassVar[str] = "graphveil/graph/1"

    graph: str
    nodes: Count
    links: Count
    features: Count
    notes: tuple[str, ...]
    targets: dict[str, TargetRecord]
