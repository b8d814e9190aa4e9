"""The value of a policy over the coupled set: one parameter vector for the whole run."""
