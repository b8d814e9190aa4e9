"""How much more data, collected how: information of an episode, and exploration that makes the most of it.

    information = Information.at(model, estimate)             # Fisher information of visits, at a point
    episodes = Episodes.of(model, information, stop, cap)     # what an episode is: where it ends
    directions = find_directions(...)                         # what a gap is made of
    found = design(information, directions, past, amount, best_episodes(episodes))

`design` finds the mixture of policies whose data shrink the gap most, with a certified distance from the
best one; its oracle is an argument, `reward per choice -> Answer`, so that what is bounded or paid for while
exploring goes there (an `Atom` has a cost, and may be a mixture itself). `forecast` says what a region will
be like after so many episodes. Everything here is plain float64 at an estimate: it decides what to collect
and what to expect, and no guarantee rests on it.

    information  M(ρ) = Σ occupancy·I_c by expression, rewards tr(C·I_c)
    directions   v_c with weights, merged where collinear; the criterion Φ and its slope
    episodes     occupancies of policies from the initial state to the end of an episode
    oracle       the policy that collects most of a reward: one pass, capped sweeps, or policy iteration
    design       Frank–Wolfe over mixtures with a duality bound
    forecast     K of the likelihood region to come, the curve of gaps and its inverse
"""
