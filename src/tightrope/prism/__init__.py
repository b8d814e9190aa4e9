"""The PRISM language: grammar, syntax tree, expansion, vectorised exploration, properties."""
