"""What the tests of the estimator share."""

import graphveil as gv


def veil(quick: gv.Recipe, utility: str = "links", secret: str = "labels", **arguments: object) -> gv.Veil:
    head = "bilinear" if utility == "links" else "linear"
    return gv.Veil(utility, secret, recipe=quick.but(head=head), device="cpu", **arguments)  # type: ignore[arg-type]
