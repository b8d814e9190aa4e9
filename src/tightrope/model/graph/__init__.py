"""Graph analysis of models: components, reachability, qualitative sets, end components.

What matters of the numbers is which transitions nature can and must give positive probability: `Support`.
"""

from tightrope.model.graph.components import (
    Components,
    EndComponents,
    backward_reachable,
    forward_reachable,
    maximal_end_components,
    strongly_connected_components,
)
from tightrope.model.graph.qualitative import almost_sure, avoiding, positive
from tightrope.model.graph.support import Ranked, Support

__all__ = [
    "Components",
    "EndComponents",
    "Ranked",
    "Support",
    "almost_sure",
    "avoiding",
    "backward_reachable",
    "forward_reachable",
    "maximal_end_components",
    "positive",
    "strongly_connected_components",
]
