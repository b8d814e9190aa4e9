"""From an expanded program to its reachable states: compiled expressions run on whole frontiers.

* `search`: breadth first, the order in which all of the following is done
* `frame`, `graph`, `ratio`, `compile`, `evaluate`: expressions, exactly, on whole arrays
* `key_index`, `state_space`: states as keys, numbered as they appear
* `guard_ranges`, `compiled_command`: one command on all states of a frame
* `synchronise`, `alternatives`: what can happen in a state
* `polynomial_index`, `deferred`: distinct polynomials, and combinations of them computed in the end
* `probabilities`, `interval_probabilities`: what stands on transitions
* `assemble`, `merge`, `observe`: the finished rows; labels, rewards and valuations
"""
