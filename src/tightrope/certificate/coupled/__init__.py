"""Values of a policy over the region itself, one instantiation for the whole run."""
