"""`limits.json`: the limits of the search that chose a run, and what an audit that misses them is called."""

from collections.abc import Sequence
from typing import ClassVar

from graphveil.formats.audit import AuditRecord
from graphveil.formats.record import File, Share

HIDDEN = ("protected", "traces")
"""The verdicts of a secret that is hidden: a missed limit replaces them, and is stated beside the others."""


class LimitsRecord(File, frozen=True):
    """The limits of a search. `graphveil export` applies those of the leak to the run that the search chose.

    Args:
        max_leak: the highest attack accuracy or AUC to accept, by secret; a secret without a limit is left out.
        min_utility: the smallest utility to accept; None if none was stated.
    """

    SCHEMA: ClassVar[str] = "graphveil/limits/1"

    max_leak: dict[str, Share]
    min_utility: Share | None

    def missed(self, audits: Sequence[AuditRecord]) -> dict[str, str]:
        """What to call audits in place of their verdicts, by secret, if a limit is missed; empty if all limits are met.

        Args:
            audits: the audits of the chosen run.
        """
        limited = [one for one in audits if one.secret in self.max_leak]
        if any(one.bound > self.max_leak[one.secret] for one in limited):
            titles = {one.secret: self._compared(one) for one in limited}
        elif any(self._has_too_little(one) for one in audits):
            titles = {one.secret: f"utility below {_percent(self.min_utility or 0.0)}" for one in audits}
        else:
            return {}
        verdicts = {one.secret: one.verdict for one in audits if one.verdict not in HIDDEN}
        return {name: f"{verdicts[name]}, {title}" if name in verdicts else title for name, title in titles.items()}

    def _compared(self, audit: AuditRecord) -> str:
        limit = self.max_leak[audit.secret]
        return f"{'above' if audit.bound > limit else 'within'} the limit of {_percent(limit)}"

    def _has_too_little(self, audit: AuditRecord) -> bool:
        if self.min_utility is None:
            return False
        return audit.utility is None or audit.utility.value < self.min_utility


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
