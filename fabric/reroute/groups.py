"""Groups of next hops: as they come, weighted by rate, or as resilient tables.

A hash picks one place of a group. In a plain group the number of places is that of the next hops, so when
one is lost some flows of the others move too: with `hash * n >> 32` a fifth of them at n = 8 (with
`hash % n` all but an eighth would). A resilient group has a fixed number of places, `buckets` for each next
hop there is when all is well; the places of a lost one go to the others in turn, and come back with it, so
that nobody else moves (resilient hashing, as switch chips have it). While nothing is lost both pick alike.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Group", "resilient_group"]

Group = tuple[int, ...]


def resilient_group(members: Group, *, left: Group, buckets: int) -> Group:
    """The places of a resilient group.

    Parameters
    ----------
    members : tuple of int
        Its next hops when all is well, in order.
    left : tuple of int
        Those that lead on now; if none of the members does, they make a new table.
    buckets : int
        Places of each member.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> resilient_group((4, 5, 6), left=(4, 6), buckets=2)
    (4, 4, 6, 4, 6, 6)
    """
    alive = [member in left for member in members]
    if not any(alive):
        return tuple(np.repeat(np.array(left, dtype=np.int64), buckets).tolist())
    count = len(members)
    places: list[int] = []
    for index, member in enumerate(members):
        for bucket in range(buckets):
            if alive[index]:
                places.append(member)
                continue
            heir = (index + 1 + bucket % (count - 1)) % count
            while not alive[heir]:
                heir = (heir + 1) % count
            places.append(members[heir])
    return tuple(places)
