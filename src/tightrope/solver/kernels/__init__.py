"""Loops over a model under one kind of sets: sweeps, backups that are believed, frozen choices."""
