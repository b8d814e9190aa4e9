"""Model checking: what every kind of query asks, answered by products, end components and solves."""
