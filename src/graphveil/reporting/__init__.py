"""Show saved results as one self-contained HTML page, without network access, scripts or other files.

The page is made from the records of `graphveil.formats` alone. The entry point is `graphveil.report`.
"""

from graphveil.reporting.page import report

__all__ = ["report"]
