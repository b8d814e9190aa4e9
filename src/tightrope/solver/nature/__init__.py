"""Nature's problem at one choice: intervals, polytopes and ellipsoids."""
