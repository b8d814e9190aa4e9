"""From text to a syntax tree: grammar, parser, builders, and errors that point into the text."""
