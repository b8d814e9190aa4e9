"""The door: from the bytes of a file to typed, range-checked, size-capped values, and nothing else."""
