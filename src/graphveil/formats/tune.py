"""`tune.json`: the candidates of a search, what each keeps and leaks on validation, and the one that was chosen."""

from typing import ClassVar

from graphveil.formats.audit import CodeCounts
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.record import File, Record, Share


class CandidateRecord(Record, frozen=True):
    """What distinguishes one training of a search from the others."""

    encoder: str
    tradeoff: Share
    gain: Share
    seed: int


class SecretLimit(Record, frozen=True):
    """A secret with its chance level, and the highest attack accuracy or AUC to accept."""

    secret: str
    chance: Share
    limit: Share


class PointRecord(Record, frozen=True):
    """A trained candidate.

    Args:
        folder: the name of its run folder.
        utility: AUC or accuracy on the validation part.
        leaks: for each secret, the best possible attack on the codes alone: for a class, a forecast of the certificate
            of all nodes; for links, the certificate of the links outside the test part.
        codes: for each secret, the nodes outside the test part, counted by code; for links, pairs by two codes.
        within: whether all limits hold outside the test part.
        on_front: whether no other candidate is better in utility or leak and not worse in the other. With several
            secrets, the leak is the largest gain over chance, (leak - chance) / (1 - chance).
    """

    candidate: CandidateRecord
    folder: str
    utility: Share
    leaks: tuple[Share, ...]
    codes: tuple[CodeCounts | None, ...]
    within: bool
    on_front: bool


class TuneRecord(File, frozen=True, kw_only=True):
    """A finished search.

    Args:
        min_utility: the smallest utility to accept; None if a limit was given.
        points: all candidates, the best first.
        chosen: the folder of the chosen candidate.
        met: whether the final certificate or audit, on the test part, is within all limits.
    """

    SCHEMA: ClassVar[str] = "graphveil/tune/2"

    graph: str
    utility: str
    secrets: tuple[SecretLimit, ...]
    min_utility: Share | None
    points: tuple[PointRecord, ...]
    chosen: str
    met: bool

    @property
    def limits(self) -> LimitsRecord:
        """The limits that were stated; a limit of 1 is none."""
        return LimitsRecord({one.secret: one.limit for one in self.secrets if one.limit < 1}, self.min_utility)
