"""The card of a release: its purpose, how it was made, its certificates, the results of the audit, its limitations.

Every string in the template is untrusted: Markdown and HTML markup, links and table cells in it are escaped, so that a
column called `[x](http://y)` is shown as that name. The fields of the card are listed one by one; none of them is a
path, an id, a class or a value of a node.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from graphveil.codes import NOT_COVERED
from graphveil.codes.words import at_most
from graphveil.formats import Interval
from graphveil.release.certified import Certified
from graphveil.release.evidence import Evidence, Limits
from graphveil.target import METRIC_NAMES, Target

LONGEST = 1000
"""Maximum number of characters of a string on the card."""
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# An underscore between letters is no markup, and is common in names.
MARKUP = re.compile(r"[\\`*\[\]{}|~$#!]|(?<![^\W_])_|_(?![^\W_])")
LINK = re.compile(r"://|@|www\.|mailto:|xmpp:", re.IGNORECASE)


class Markdown(str):
    """A string that is Markdown already and is not escaped again."""

    __slots__ = ()


def card(evidence: Evidence, formats: Sequence[str], pseudonymous: bool) -> str:
    """Render the card as Markdown.

    Args:
        evidence: the record, the embeddings and the audits of the run, and the objections to its release.
        formats: the names of the released formats.
        pseudonymous: whether ids were replaced by pseudonyms.
    """
    record = evidence.record
    config, scores, embedded = record.config, record.scores, record.embedded
    metric = scores.utility_metric or ""
    facts = {
        "nodes": len(evidence.embeddings.z),
        "channels": evidence.embeddings.z.shape[1],
        "utility": config.utility,
        "kept": scores.utility,
        "kept_metric": METRIC_NAMES.get(metric, metric),
        "kept_chance": scores.utility_chance,
        "kept_examples": Target.of(config.utility).examples,
        "encoder": config.encoder,
        "objective": config.objective,
        "tradeoff": config.tradeoff,
        "seed": config.seed,
        "message_edges": record.message_edges,
        "versions": record.versions,
        "embedded": embedded is not None,
        "not_recorded": () if embedded is None else embedded.not_recorded,
        "warnings": []
        if embedded is None
        else [warning.partition(": ")[0].rstrip(".") for warning in embedded.warnings],
        "unknown": record.unknown,
    }
    return _template().render(
        **facts,
        audits=evidence.audits,
        limits={secret: _limit(evidence.limits, secret) for secret in evidence.audits},
        objections=evidence.objections,
        codes=None if evidence.codes is None else len(np.unique(evidence.codes.codes)),
        certificates=_certificates(evidence),
        joint=evidence.joint,
        not_covered=[objection for objection, _ in NOT_COVERED],
        formats=formats,
        pseudonymous=pseudonymous,
    )


def _limit(limits: Limits, secret: str) -> Markdown | None:
    """The limit that was applied to a secret, and who has stated it; None without one."""
    stated, of_search = limits.stated(secret), limits.of_search.get(secret)
    if stated is None:
        return None if of_search is None else Markdown(f"Limit of the search that chose the run: {of_search:g}")
    instead = "" if of_search is None else f", in place of the search's limit of {of_search:g}"
    return Markdown(f"Limit set with `--max-leak`{instead}: {stated:g}")


def _certificates(evidence: Evidence) -> dict[str, Certified]:
    """The certificates of this release alone, by secret."""
    return {
        secret: audit.certificate
        for secret, audit in evidence.audits.items()
        if audit is not None and audit.certificate is not None
    }


def escaped(text: str) -> Markdown:
    """Escape a string so that Markdown shows it unchanged, on one line.

    Some renderers turn escaped addresses into links, so a word that looks like an address is formatted as code.
    """
    visible = "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST])
    return Markdown(" ".join(_word(word) for word in visible.split()))


def _word(word: str) -> str:
    if LINK.search(word):
        return "`" + re.sub(r"[`|\\]", "?", word) + "`"
    marked = MARKUP.sub(lambda found: f"\\{found[0]}", word)
    return re.sub("[&<>]", lambda found: ENTITIES[found[0]], marked)


def _finalize(value: Any) -> Any:
    return escaped(value) if isinstance(value, str) and not isinstance(value, Markdown) else value


def _at_most(value: float | None) -> Markdown:
    return Markdown("no statement" if value is None else at_most(value))


def _percent(value: float | None) -> Markdown:
    return Markdown("not measured" if value is None else f"{100 * value:.1f} %")


def _interval(interval: Interval | None) -> Markdown:
    if interval is None:
        return Markdown("not measured")
    return Markdown(f"{100 * interval.value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]")


def _number(value: float | None) -> Markdown:
    return Markdown("not measured" if value is None else f"{value:,g}" if isinstance(value, float) else f"{value:,}")


@cache
def _template() -> Template:
    environment = Environment(  # not HTML, so no autoescape: `finalize` escapes every string for Markdown
        undefined=StrictUndefined, finalize=_finalize, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"rendered": Markdown}  # for a macro, whose strings have been escaped inside it
    environment.filters |= {"at_most": _at_most, "percent": _percent, "interval": _interval, "number": _number}
    return environment.from_string(
        resources.files("graphveil.release").joinpath("card.md.j2").read_text(encoding="utf-8")
    )
