"""Guarantees for units that differ: most units, the next one, and the average one."""
