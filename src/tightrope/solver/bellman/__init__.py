"""Loops over a model under one kind of sets: sweeps, backups rounded to the safe side, frozen choices."""
