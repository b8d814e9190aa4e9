"""From a syntax tree to a program: constants, formulas, renamed modules and types."""
