"""Show saved results as one self-contained HTML page, without network access or other files.

The page of a sweep or a search has a slider, and one script of our own for it; other pages have no script. The page is
made from the records of `graphveil.formats` alone. The entry point is `graphveil.report`.
"""

from graphveil.reporting.page import report

__all__ = ["report"]
