"""Graph analysis of models: components, reachability, qualitative sets, end components.

What matters of the numbers is which transitions nature can and must give positive probability: `Support`.
"""
