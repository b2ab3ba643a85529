"""Give a verb parameters that it does not declare, so that options of several verbs are declared once."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any


def with_parameters(
    verb: Callable[..., None],
    run: Callable[..., None],
    added: Mapping[str, tuple[Any, Any]],
    replaced: Collection[str] = (),
) -> Callable[..., None]:
    """Return `run` with the name, the docstring and the parameters of `verb`, and with further parameters.

    Args:
        verb: The verb.
        run: What the command line calls instead, with all parameters by name.
        added: The annotation and the default of each further parameter.
        replaced: Parameters of the verb that the command line does not have.
    """
    kept = [one for name, one in inspect.signature(verb).parameters.items() if name not in replaced]
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    wrapped = functools.update_wrapper(run, verb)
    wrapped.__signature__ = inspect.Signature([*kept, *further])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in (*kept, *further)}
    return wrapped
