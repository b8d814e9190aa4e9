"""JANI, the exchange format of tools for quantitative models (jani-spec.org), for DTMCs, MDPs and CTMCs.

`read_jani` makes a file a program of the PRISM language (`nodes`: JSON and expressions, `declarations`,
`automata`), which is then expanded and explored as every other. `write_jani` writes such a program.
"""

from __future__ import annotations

from tightrope.io.jani.read import (
    is_jani_ctmc,
    read_jani,
    read_jani_rates,
    read_program,
    read_properties,
)
from tightrope.io.jani.write import write_jani

__all__ = [
    "is_jani_ctmc",
    "read_jani",
    "read_jani_rates",
    "read_program",
    "read_properties",
    "write_jani",
]
