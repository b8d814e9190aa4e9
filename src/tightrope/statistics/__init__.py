"""From counts to confidence: intervals, confidence sequences, budgets, tying, likelihood."""
