"""Pictures of results and networks. One picture a file, one style for all (`fabric.plot.style`).

Every function takes `ax=` (axes to draw on; without it a new figure is made) and returns the axes.
matplotlib is imported when the first picture is drawn.
"""

from .completion import fct_cdf, slowdown_by_size
from .queues import queues
from .rates import rates
from .style import to_image
from .topology import topology
from .utilisation import utilisation

__all__ = ["fct_cdf", "queues", "rates", "slowdown_by_size", "to_image", "topology", "utilisation"]
