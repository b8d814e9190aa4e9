"""Campaigns of the paper's tables: cells, their processes, records, tables and pages; the command `bench`."""

__version__ = "0.3.0.dev0"
