"""`--config FILE`: options of a verb from a YAML file, or from the run.json of an earlier run of `protect`.

A key is the name of an option without its dashes, or of an argument, and a value is read as on the command line: `+2`
stays a text. Options that are given on the command line win; of those that take NAME=VALUE, such as --set, the names
that the command line omits are kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphveil.errors import GraphveilError, first_line, unknown

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

    from graphveil.formats.run import Config, RunRecord

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


def merge_with_config(context: typer.Context, parameter: typer.CallbackParam, given: list[str] | None) -> list[str]:
    """Add NAME=VALUE of the command line to those of the file; the last value of a name is used.

    Args:
        context: The context of the verb.
        parameter: An option that may be repeated.
        given: The values of the command line or, if it has none, of the file.
    """
    of_file = list((context.default_map or {}).get(str(parameter.name), ()))
    values = list(given or ())
    return values if values == of_file else [*of_file, *values]


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
    import yaml

    found: dict[str, Any] = {}
    for key_node, value_node in root.value:
        place = f"{file}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise GraphveilError(f"{place}: a key is a list or a mapping: expected the name of an option.")
        key = str(key_node.value).replace("_", "-")
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
    from graphveil.target import Target

    config, reading = record.config, dict(record.reading or {})
    default_edges = Target.of(config.utility).message_edges
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
        "message_edges": None if record.message_edges == default_edges else record.message_edges,
        "split": record.split,
        "set_": [f"{name}={value}" for name, value in _changed_settings(file, config).items()],
        "seed": config.seed,
    }


def _changed_settings(file: Path, config: "Config") -> dict[str, Any]:
    """The settings that differ from the default recipe of a run; another encoder has other defaults for the rest.

    With a batch size the dropout is among them, since by mini-batches its default may be lower.
    """
    from graphveil.training.recipes import default_recipe

    default = asdict(default_recipe(config.utility, config.encoder, config.objective, config.secrets))
    kept = {"dropout"} if config.recipe.get("batch_size") is not None else set()
    changed = {
        name: value
        for name, value in config.recipe.items()
        if name not in default or value != default[name] or name in kept
    }
    if others := [name for name, value in changed.items() if value is None or isinstance(value, dict | list)]:
        raise GraphveilError(f"{file} has the setting {others[0]!r}, which only Python can set: use gv.Veil.")
    return changed
