"""Plans of data collection: how much more data, and which policy collects them.

    information  Fisher information M(ρ) = Σ occupancy·I_c of visits at an estimate
    directions   directions v_c that make up a gap, with weights; the criterion Φ and its gradient
    episodes     occupancies of policies from the initial state to the end of an episode
    oracle       the policy that collects most of a reward: one pass, capped sweeps, or policy iteration
    design       Frank–Wolfe over mixtures of policies, with a duality bound
    forecast     K of the future likelihood region, the curve of gaps and its inverse

The oracle is an argument of `design` (`reward per choice -> Answer`); bounds and prices of exploration
belong there. Everything is plain float64 at an estimate, and no guarantee uses it.
"""
