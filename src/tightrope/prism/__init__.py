"""The PRISM language: from text to a model (`parse`, `expand`, `explore`) or a question (`properties`)."""
