"""Flows as a connection matrix of htsim, with starts in picoseconds."""

from __future__ import annotations

from fabric.errors import SpecError
from fabric.formats.data import FlowData

__all__ = ["matrix_text"]


def matrix_text(data: FlowData, *, n_hosts: int) -> str:
    """Return the text of a `.cm` with starts in picoseconds.

    Parameters
    ----------
    data : FlowData
        Waits become one-shot triggers and barriers, activated when the flow before is sent and
        acknowledged if both have one source, else when it is received.
    n_hosts : int

    Returns
    -------
    str

    Raises
    ------
    SpecError
        If one flow would have to activate two triggers of one kind.
    """
    number = {name: flow for flow, name in enumerate(data.names or ()) if name}
    groups: dict[frozenset[int], int] = {}
    trigger_of: dict[int, int] = {}
    for flow, names in data.waits:
        before = frozenset(number[name] for name in names)
        trigger_of[flow] = groups.setdefault(before, len(groups) + 1)
    done: dict[int, str] = {}
    starts = {trigger: flow for flow, trigger in trigger_of.items()}
    for before, trigger in groups.items():
        for flow in before:
            sent = data.source[flow] == data.source[starts[trigger]]
            key = "send_done_trigger" if sent else "recv_done_trigger"
            if f" {key} " in done.get(flow, ""):
                name = (data.names or ())[flow]
                raise SpecError(".cm", name, f"flows that activate one {key} (this one would need several)")
            done[flow] = f"{done.get(flow, '')} {key} {trigger}"
    columns = (data.source, data.destination, data.size_bytes, data.start_ps)
    rows = enumerate(zip(*(column.tolist() for column in columns), strict=True))
    lines = [f"Nodes {n_hosts}", f"Connections {len(data.source)}"]
    lines += [f"Triggers {len(groups)}"] if groups else []
    for flow, (source, destination, size, start) in rows:
        begin = f"trigger {trigger_of[flow]}" if flow in trigger_of else f"start {start}"
        lines.append(f"{source}->{destination} id {flow + 1} {begin} size {size}{done.get(flow, '')}")
    for before, trigger in groups.items():
        kind = "oneshot" if len(before) == 1 else f"barrier count {len(before)}"
        lines.append(f"trigger id {trigger} {kind}")
    return "\n".join(lines) + "\n"
