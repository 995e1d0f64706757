"""Pictures of results and networks. One picture a file, one style for all (`fabric.plot.style`).

Functions take `ax=` (axes to draw on; without it a new figure is made) and return the axes; those that draw
several panels make the figure themselves.
matplotlib is imported when the first picture is drawn.
"""

from .bandwidth import bandwidth
from .comparison import comparison
from .completion import fct_cdf, slowdown_by_size
from .deadlock import deadlock
from .domains import failure_domains
from .matrix import matrices, matrix
from .pairs import side_by_side
from .pauses import pause_tree
from .queues import queues
from .rates import rates
from .redundancy import redundancy
from .step_shares import scale_curve, step_shares
from .style import to_image
from .through_failure import through_failure
from .timeline import timeline
from .topology import topology
from .utilisation import utilisation

__all__ = [
    "bandwidth",
    "comparison",
    "deadlock",
    "failure_domains",
    "fct_cdf",
    "matrices",
    "matrix",
    "pause_tree",
    "queues",
    "rates",
    "redundancy",
    "scale_curve",
    "side_by_side",
    "slowdown_by_size",
    "step_shares",
    "through_failure",
    "timeline",
    "to_image",
    "topology",
    "utilisation",
]
