"""`--config FILE`: options of a verb from a YAML file, or from the run.json of an earlier run of `protect`.

A key is the name of an option without its dashes, or of an argument, and a value is read as on the command line: `+2`
stays a text. Options that are given on the command line win.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphveil.errors import GraphveilError, first_line, unknown

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

    from graphveil.formats.run import RunRecord

OWN_KEY = "config"
"""A file cannot name another one."""


def apply_config(context: typer.Context, file: Path | None) -> Path | None:
    """Use the values of a file as defaults of the verb that is about to run.

    Args:
        context: The context of the verb.
        file: A YAML file or a run.json; None leaves the defaults as they are.
    """
    if file is not None and not context.resilient_parsing:
        parameters = {_key(one): one for one in context.command.params if one.name != OWN_KEY}
        root = _root(file)
        if _schema(root).startswith("graphveil/run/"):
            context.default_map = _options_of_run(file, str(context.command.name))
        else:
            context.default_map = _defaults(file, root, parameters)
    return file


def _key(parameter: Any) -> str:
    """The name of an option or an argument in a file."""
    options = [name for name in parameter.opts if name.startswith("--")]
    return str(max(options, key=len).removeprefix("--") if options else parameter.name)


def _root(file: Path) -> "MappingNode":
    """The keys and values of a file, not yet interpreted."""
    import yaml

    try:
        if file.exists() and not file.is_file():
            raise ValueError("it is not a plain file")  # a pipe might never end
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else first_line(error)
        raise GraphveilError(f"--config {file} cannot be read ({why}): give a YAML file or a run.json.") from error
    if not isinstance(root, yaml.MappingNode):
        raise GraphveilError(f"--config {file} has no keys: expected lines such as `tradeoff: 0.5`.")
    return root


def _schema(root: "MappingNode") -> str:
    return next((str(value.value) for key, value in root.value if key.value == "schema"), "")


def _defaults(file: Path, root: "MappingNode", parameters: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in root.value:
        key, place = str(key_node.value).replace("_", "-"), f"{file}, line {key_node.start_mark.line + 1}"
        if key not in parameters:
            raise GraphveilError(f"{place}: {unknown('key', key, parameters)}")
        parameter = parameters[key]
        if parameter.name in found:
            raise GraphveilError(f"{place}: {key!r} is given twice: keep one of the two.")
        try:
            found[parameter.name] = _value(value_node, getattr(parameter, "multiple", False))
        except ValueError as error:
            raise GraphveilError(f"{place}: {key!r} {error}") from error
    return {name: value for name, value in found.items() if value is not None}


def _value(node: "Node", repeated: bool) -> str | list[str] | None:
    """A value as the command line would have it; None if it is empty.

    A list is for an option that may be repeated, or that takes names separated by commas. A mapping is for one that
    takes NAME=VALUE.
    """
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if node.style is None and node.value in ("", "~", "null"):
            return None
        return [node.value] if repeated else str(node.value)
    texts = list(_texts(node))
    if repeated:
        return texts
    if isinstance(node, yaml.MappingNode):
        raise ValueError("has keys of its own: give a text, a number or a list.")
    if any("," in text for text in texts):
        raise ValueError("is a list with a comma in a name: a comma separates names.")
    return ",".join(texts)


def _texts(node: "Node") -> Iterator[str]:
    import yaml

    for item in node.value:
        parts = item if isinstance(item, tuple) else (item,)
        if not all(isinstance(part, yaml.ScalarNode) for part in parts):
            raise ValueError("is nested too deeply: give a text, a number or a list.")
        yield "=".join(part.value for part in parts)


def _options_of_run(file: Path, verb: str) -> dict[str, Any]:
    """The options of `protect` that repeat a run."""
    from graphveil.formats.run import RunRecord
    from graphveil.formats.store import read, reason

    if verb != "protect":
        raise GraphveilError(f"{file} is the run.json of a run: only `graphveil protect --config` accepts it.")
    try:
        record = read(file, RunRecord)
    except (OSError, ValueError) as error:
        raise GraphveilError(f"--config {file} cannot be read ({reason(error)}): give the file of a run.") from error
    if record.embedded is not None or record.split_seed not in (None, record.config.seed):
        verb = "embed" if record.embedded is not None else "tune"
        raise GraphveilError(f"{file} was written by `graphveil {verb}`: give the run.json of `graphveil protect`.")
    return {name: value for name, value in _run_options(file, record).items() if value not in (None, [])}


def _run_options(file: Path, record: "RunRecord") -> dict[str, Any]:
    config, reading = record.config, dict(record.reading or {})
    recipe = {name: value for name, value in config.recipe.items() if value is not None and value != {}}
    if others := [name for name, value in recipe.items() if isinstance(value, dict | list)]:
        raise GraphveilError(f"{file} has the setting {others[0]!r}, which only Python can set: use gv.Veil.")
    names, attributes, bins = (reading.pop(name, None) for name in ("features", "attributes", "bins"))
    if any("," in name for name in names or ()):
        raise GraphveilError(f"{file} has a feature with a comma in its name, which --features cannot state.")
    return {
        **reading,
        "attribute": list(attributes or ()),
        "features": names and ",".join(names),
        "bins": [f"{name}={count}" for name, count in (bins or {}).items()],
        "graph": record.graph,
        "utility": config.utility,
        "secret": list(config.secrets),
        "encoder": config.encoder,
        "tradeoff": config.tradeoff,
        "objective": config.objective,
        "adversary": config.adversary.head,
        "adversary_steps": config.adversary.steps,
        "adversary_knows": config.adversary.knows,
        "message_edges": record.message_edges,
        "split": record.split,
        "set_": [f"{name}={value}" for name, value in recipe.items()],
        "seed": config.seed,
    }
