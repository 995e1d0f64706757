"""What must hold whenever the engine stands still, whatever the scenario.

Frames are neither made nor lost by accident: all that began to exist are waiting, in flight, at their
end, or dropped. Memory is charged for exactly what waits in a switch. And when nothing is left to
happen and every flow is complete, nothing is left behind.
"""

from __future__ import annotations

from .clock import Clock, Phase
from .node import Node
from .port import Port
from .receiver import Receiver
from .sender import Sender
from .switch import Switch
from .tally import Tally

__all__ = ["check_empty", "check_flows", "check_frames", "check_memory"]


def check_frames(tally: Tally, *, clock: Clock, ports: list[Port]) -> None:
    """Frames started = arrived + in flight + lost with their link.

    And created = waiting + in flight + consumed + dropped.
    """
    flying = (event.frame for event in clock.pending() if event.phase == Phase.ARRIVAL)
    in_flight = sum(frame is not None and not frame.is_lost for frame in flying)
    assert tally.started == tally.arrived + in_flight + tally.lost_in_flight, (
        f"{tally.started} frames started, but {tally.arrived} arrived, {in_flight} are in flight and "
        f"{tally.lost_in_flight} were on links that went down"
    )
    waiting = sum(_waiting_frames(port) for port in ports)
    dropped = sum(tally.drops_by_reason)
    assert tally.created == waiting + in_flight + tally.consumed + dropped, (
        f"{tally.created} frames were created, but {waiting} wait, {in_flight} are in flight, "
        f"{tally.consumed} reached their end and {dropped} were dropped"
    )
    by_port = sum(sum(row) for row in tally.drops)
    assert dropped == by_port, f"{dropped} drops by reason, but {by_port} by port and class"


def check_memory(switch: Switch) -> None:
    """Queues hold what their frames say; accounts hold what queues hold; the pool what accounts share."""
    name = f"switch node {switch.number}"
    queues = [queue for row in switch.queues for queue in row]
    for queue in queues:
        counted = queue.frame_bytes()
        assert queue.bytes == counted, f"{name}: a queue says {queue.bytes} bytes, its frames {counted}"
    accounts = [account for row in switch.accounts for account in row]
    queued = sum(queue.bytes for queue in queues)
    charged = sum(account.bytes + account.headroom_bytes for account in accounts)
    assert queued == charged, f"{name}: {queued} bytes are queued, but {charged} are charged"
    shared = sum(account.shared_bytes() for account in accounts)
    used, size = switch.pool.used_bytes, switch.pool.size_bytes
    assert used == shared, f"{name}: the pool says {used} bytes used, the accounts {shared}"
    assert 0 <= used <= size, f"{name}: {used} of {size} bytes of the pool are used"
    for account in accounts:
        over = account.headroom_bytes - account.profile.headroom_bytes
        assert over <= 0 or not account.profile.lossless, f"{name}: headroom exceeded by {over} bytes"
        assert account.bytes >= 0, f"{name}: an ingress account holds {account.bytes} bytes"


def check_flows(senders: list[Sender], receivers: list[Receiver]) -> None:
    """A sender never knows more than the receiver has, nor has a receiver more than was sent."""
    for sender, receiver in zip(senders, receivers, strict=True):
        flow = sender.flow
        frames = sender.messages.frames
        assert sender.acked <= receiver.expected <= min(frames, sender.sent), (
            f"flow {flow.number}: {sender.sent} frames sent, {receiver.expected} of {frames} received, "
            f"{sender.acked} acknowledged"
        )
        assert flow.is_connection or sender.is_complete == sender.is_idle, (
            f"flow {flow.number}: {sender.acked} of {frames} frames acknowledged, "
            f"complete: {sender.is_complete}"
        )


def check_empty(nodes: list[Node], *, tally: Tally) -> None:
    """After a finished run no frame waits or flies, and no memory is charged."""
    assert tally.in_flight == 0, f"finished, but {tally.in_flight} frames are in flight"
    for node in nodes:
        for port in node.ports:
            waiting = _waiting_frames(port)
            assert waiting == 0, f"finished, but {waiting} frames wait at port {port.number}"
        if isinstance(node, Switch):
            used = node.pool.used_bytes
            assert used == 0, f"finished, but {used} shared bytes of node {node.number} are used"
            for port, row in zip(node.ports, node.accounts, strict=True):
                held = sum(account.bytes + account.headroom_bytes for account in row)
                assert held == 0, f"finished, but {held} bytes are charged to port {port.number}"


def _waiting_frames(port: Port) -> int:
    return len(port.mac_queue) + sum(queue.waiting_frames() for queue in port.queues)
