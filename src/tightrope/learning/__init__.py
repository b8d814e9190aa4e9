"""From a parametric model and data to a robust policy and its guarantee."""
