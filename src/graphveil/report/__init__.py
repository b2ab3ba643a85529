"""Show saved results as one HTML page that needs nothing else: no network, no script, no other file.

The page is made of what lies on the disk and of nothing else, and trusts none of it. `graphveil.report(source, out)` is
the way in, and `graphveil.report` is this room too: it can be called.
"""

import sys
from types import ModuleType

from graphveil.report.page import report

__all__ = ["report"]


class _Room(ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _Room
