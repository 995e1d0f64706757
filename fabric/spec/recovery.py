"""Recovery: what the fabric, its hosts and its jobs do about failures, and when.

A failure is noticed in levels, each a time after it began. *Suspect*: somebody has seen it; nothing is done.
*Isolated*: the switch or NIC next to it no longer uses the link. *Dead*: jobs give up what hangs on it. Other
switches learn of it `convergence` later; in between they go on sending into a black hole. A failure that is
over before it is isolated changes no route. A link that comes back is used again when it has been up for
`restore` (hold-down), so that a link that flaps stays out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, quantity
from fabric.spec.failure_sources import LARGEST_TIME_PS
from fabric.units import Duration

__all__ = ["Recovery"]

MOST_BUCKETS = 256


class Recovery(Spec, frozen=True, kw_only=True):
    """What is done about failures.

    Parameters
    ----------
    reroute : {"ecmp", "up_down", "resilient", "end_host", "none"}
        What switches do. "ecmp" (default): shortest paths anew; where a group of next hops changes its size,
        flows of the others move too, and paths that go up again after down are taken where they are
        the shortest. "up_down": only paths that never do that, or none. "resilient": as "ecmp", but groups
        are tables of fixed size in which only the shares of dead next hops change hands. "end_host":
        switches do nothing; a flow changes its path after a time-out, its answers when frames come again
        (Wetherall et al., "Improving Network Availability with Protective ReRoute", SIGCOMM 2023). "none":
        nothing.
    suspect, isolate, dead : Duration
        Levels of detection, after the failure; each at least the one before. Default 10us, 50us, 10ms: short,
        so that a run of milliseconds sees them; operators' are a thousand times that.
    convergence : Duration
        From isolation until every other switch has its new next hops. Default 200us.
    restore : Duration
        Until a link that is up again is used. Default 1ms.
    failover : {"next_port", "none"}
        What a NIC with several ports does with the flows of one that is isolated, or that no route leads on
        from: they move to the next port of the host, and back (default); or they wait.
    collective_timeout : Duration
        A collective operation fails that is not done so long after its first rank has entered it (NCCL's
        watchdog); at least `dead`. Default 20ms.
    on_timeout : {"wait", "fail", "reform"}
        What a job does then (`fabric.resilience.run_recovering`): go on waiting (default); end; or form anew
        without the hosts that are dead by then, and do what is left to do.
    reform : Duration
        How long that takes. Default 50ms.
    buckets : int
        Shares of each next hop in the tables of "resilient", 1 to 256. Default 16.
    """

    reroute: Literal["ecmp", "up_down", "resilient", "end_host", "none"] = "ecmp"
    suspect: Duration = quantity("10us")
    isolate: Duration = quantity("50us")
    dead: Duration = quantity("10ms")
    convergence: Duration = quantity("200us")
    restore: Duration = quantity("1ms")
    failover: Literal["next_port", "none"] = "next_port"
    collective_timeout: Duration = quantity("20ms")
    on_timeout: Literal["wait", "fail", "reform"] = "wait"
    reform: Duration = quantity("50ms")
    buckets: int = 16

    def problems(self) -> Iterator[Problem]:
        for name in ("suspect", "isolate", "dead", "convergence", "restore", "collective_timeout", "reform"):
            if getattr(self, name) > LARGEST_TIME_PS:
                yield name, getattr(self, name), "a duration of at most 2^60 ps (about 13 days)"
        if self.isolate < self.suspect:
            yield "isolate", self.isolate, f"a duration of at least suspect ({self.suspect})"
        if self.dead < self.isolate:
            yield "dead", self.dead, f"a duration of at least isolate ({self.isolate})"
        if self.collective_timeout < self.dead:
            allowed = f"a duration of at least dead ({self.dead})"
            yield "collective_timeout", self.collective_timeout, allowed
        if not 1 <= self.buckets <= MOST_BUCKETS:
            yield "buckets", self.buckets, f"an integer from 1 to {MOST_BUCKETS}"
