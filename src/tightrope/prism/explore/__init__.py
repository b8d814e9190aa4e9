"""From an expanded program to its reachable states: compiled expressions run on whole frontiers.

* `search`: breadth first, the order in which all of the following is done
* `frame`, `nodes`, `compile`: expressions, exactly, on whole arrays; states as keys
* `key_index`: states and polynomials numbered as they appear
* `commands`: one command on all states of a frame, and what can happen in a state
* `probabilities`, `intervals`: what stands on transitions
* `assemble`, `observe`: the finished rows; labels, rewards and valuations
* `narrow`: deep and narrow models, state by state in one compiled loop
"""
