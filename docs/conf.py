"""How `make docs` builds the pages.

The source folder is the root of the repository, so that a link from one page to another is the same here and in a view
of the repository.
"""

import os
import re

from docutils.nodes import Element
from sphinx.application import Sphinx

import graphveil

project = "graphveil"
author = copyright = "the graphveil authors"
version = release = graphveil.__version__

root_doc = "docs/index"
include_patterns = ["docs/**", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "RESULTS.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "dist", "runs", "src", "tests"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]

# Single backticks in docstrings: a link if the name is documented, else code.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True

highlight_language = "none"  # of blocks that name no language: commands and what they print
myst_heading_anchors = 4

# Notebooks run at every build, each in an empty folder; an exception or a warning in a cell fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_output_stderr = "remove-warn"
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm, which PyG imports, looks for Jupyter's widgets

# Nothing is fetched at build time, so types of other packages have no page to link to. Names in single backticks that
# have no entry, such as arguments, stay code. The last patterns are for types that only graphveil itself makes.
nitpick_ignore_regex = [
    ("py:obj", ".*"),
    (
        "py:class",
        r"(collections|contextlib|dataclasses|networkx|numpy|os|pathlib|pyarrow|scipy|torch|torch_geometric|typing)\..*",
    ),
    ("py:class", r"(msgspec\.)?(Meta|ge=.*|le=.*|min_length=.*)"),  # ranges of the fields of records
    ("py:class", r"graphveil\.formats\..*"),
    ("py:class", r"graphveil\.(auditing\.secret\.Matched|data\.origin\.Encoding)"),
    ("py:class", r"graphveil\.(formats\.store\.AnyFile|models\.codes\.CodeBook|training\.loop\.Training)"),
]

html_theme = "furo"
html_title = f"graphveil {release}"
html_extra_path = ["_root"]
html_theme_options = {"source_directory": ""}

LIMITED = re.compile(r"~?typing\.Annotated\[([\w.~]+), ~?msgspec\.Meta\([^()]*\)\]")


def keep_sentences(_app: Sphinx, what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Stop napoleon from reading the words before a colon in a property's first line as its type."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def drop_limits(app: Sphinx, _domain: str, _kind: str, _content: Element) -> None:
    """Show the type of a checked field without the limits that msgspec checks: float and not Annotated[float, ...]."""
    for types in app.env.current_document.autodoc_annotations.values():
        types.update({name: LIMITED.sub(r"\1", text) for name, text in types.items()})


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", keep_sentences, priority=400)  # before napoleon
    app.connect("object-description-transform", drop_limits, priority=400)  # before the types are put into the page
