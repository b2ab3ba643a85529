"""What may leave the building, and nothing else: embeddings, a card, checksums."""

from graphveil.release.evidence import Audited, Limits
from graphveil.release.export import Release, release
from graphveil.release.formats import FORMATS

__all__ = ["FORMATS", "Audited", "Limits", "Release", "release"]
