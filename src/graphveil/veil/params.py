"""The conventions of scikit-learn for an estimator: parameters that can be read, set, cloned and shown."""

import inspect
from typing import Any, Self

from graphveil import notebook
from graphveil.errors import unknown


class Params:
    """Gives an estimator `get_params`, `set_params` and a short `repr`.

    The parameters are the arguments of its constructor. `_given` has those that the constructor keeps in another form,
    or replaces by a default: the attribute, its value, and the argument as it was given. `get_params` returns the
    argument until the attribute is changed, so that `sklearn.base.clone` works.
    """

    _given: dict[str, tuple[str, Any, Any]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn passes it
        """Return the arguments of the constructor by name.

        Args:
            deep: has no effect, since no parameter is an estimator.
        """
        return {name: self._param(name) for name in _defaults(type(self))}

    def _param(self, name: str) -> Any:
        attribute, made, given = self._given.get(name, (name, None, None))
        value = getattr(self, attribute)
        return given if name in self._given and value is made else value

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; what was fitted stays until the next `fit`.

        Args:
            params: new values by name.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise unknown("parameter", name, known)
        self.__init__(**known | params)  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        defaults = _defaults(type(self))
        changed = [(name, value) for name, value in self.get_params().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def _repr_html_(self) -> str:
        state = "fitted" if hasattr(self, "modules_") else "not fitted"
        return notebook.table(f"{type(self).__name__}, {state}", self.get_params())


def _defaults(cls: type) -> dict[str, Any]:
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {parameter.name: parameter.default for parameter in parameters}
