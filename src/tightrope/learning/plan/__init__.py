"""How much more data, collected how: the question, the answer, and its files."""
