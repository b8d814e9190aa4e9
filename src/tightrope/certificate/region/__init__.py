"""From statements about the true parameters to bounds on every transition's probability."""
