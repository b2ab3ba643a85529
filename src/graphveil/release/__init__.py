"""Release the codes or embeddings of a run with a card and checksums, and nothing else of it."""

from graphveil.release.evidence import Audited, Limits
from graphveil.release.export import Release, release
from graphveil.release.writers import FORMATS

__all__ = ["FORMATS", "Audited", "Limits", "Release", "release"]
