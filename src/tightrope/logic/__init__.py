"""Linear temporal logic: formulas, deterministic automata for them, and products of models with automata."""
