"""From counts to what holds at the true parameters with probability at least 1 − δ."""
