"""From an expanded program to its reachable states.

* `search`: breadth-first search
* `frame`, `nodes`, `compile`: exact expressions on whole arrays; states as keys
* `key_index`: states and polynomials numbered as they appear
* `commands`: commands on all states of a frame
* `probabilities`, `intervals`: values of transitions
* `assemble`, `observe`: the finished rows; labels, rewards and valuations
* `narrow`: deep and narrow models, state by state in one compiled loop
"""
