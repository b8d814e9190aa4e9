"""Graph analysis of models: components, reachability, qualitative sets, end components.

What matters of the numbers is which transitions nature can and must give positive probability: `Support`.
"""

from tightrope.model.graph.attractor import Ranked
from tightrope.model.graph.components import Components, strongly_connected_components
from tightrope.model.graph.end_components import EndComponents, maximal_end_components
from tightrope.model.graph.qualitative import almost_sure, avoiding, positive
from tightrope.model.graph.reachability import backward_reachable, forward_reachable
from tightrope.model.graph.support import Support

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
