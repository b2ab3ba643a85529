"""What the tests of the published graphs share."""

from pathlib import Path


def left(folder: Path) -> list[str]:
    """What lies in the cache, but for the lock."""
    return sorted(p.name for p in folder.glob("*") if p.name != "fetch.lock") if folder.exists() else []
