"""The site: Sphinx with MyST, built by `make docs` into build/site. CONTRIBUTING.md says why these.

Warnings are errors: a link or an anchor that leads nowhere, a page in no table of contents, a docstring that
cannot be read. Nothing is loaded from the net, neither while building nor while reading.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_tools"))

from generated_parts import (
    fill_in,
    is_left_out,
    keep_colons,
    read_docstring,
    write_api_pages,
    write_redirects,
)
from prism_lexer import PrismLexer
from sphinx.application import Sphinx

import tightrope

gc.set_threshold(200_000, 50, 50)  # pages are trees of very many small objects that stay

project = "tightrope"
author = "The tightrope maintainers"
copyright = author
release = version = tightrope.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_tools"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
smartquotes = False
default_role = "code"  # docstrings write names in single backticks

autodoc_default_options = {
    "members": True,
    "inherited-members": "object, Env, Wrapper",
    "exclude-members": "__new__, __init__",
}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"tightrope {release}"
html_static_path = ["_static"]
html_extra_path = ["verify.html"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which pages on a disk may not do
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app: Sphinx) -> None:
    app.add_lexer("prism", PrismLexer)
    app.connect("builder-inited", write_api_pages)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("build-finished", write_redirects)
