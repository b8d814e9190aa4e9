"""Plans of data collection: how much more data, and which policy collects them (docs/planning.md).

Everything is plain float64 at an estimate, and no guarantee uses it.
"""
