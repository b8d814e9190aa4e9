"""JANI, the exchange format of tools for quantitative models (jani-spec.org), for DTMCs, MDPs and CTMCs.

A file becomes a program of the PRISM language (`nodes`: JSON, expressions and declarations; `read`: automata
and properties), which is then expanded and explored as every other. `write` writes such a program.
"""
