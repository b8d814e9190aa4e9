"""From an expanded program to its reachable states.

`search` (breadth-first) runs `commands` on frames (`frame`, `nodes`, `compile`), numbers states and
polynomials (`key_index`), values transitions (`probabilities`, `intervals`) and finishes rows (`assemble`,
`observe`); `narrow` explores deep and narrow models state by state in one compiled loop.
"""
