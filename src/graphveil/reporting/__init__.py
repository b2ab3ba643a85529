"""Show saved results as one HTML page that needs nothing else: no network, no script, no other file.

The page is made from files alone, and none of them is trusted. The entry point is `graphveil.report`.
"""

from graphveil.reporting.page import report

__all__ = ["report"]
