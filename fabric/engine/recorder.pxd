# The recorder: rows of what happened, each stream off until asked for, and the fingerprint of a run.
#
# Rows are appended in the order in which the engine happens to handle nodes; they are sorted by their
# fields when handed out, so that order is not observable. Queue depth and throughput are recorded
# lazily: an interval's row is written when the value changes after the interval's end.

from libc.stdlib cimport realloc

from fabric.engine.packet cimport NO_FLOW, Packet, looks, marked
from fabric.engine.port cimport (
    RECORD_CHOSEN_FLOWS,
    RECORD_PACKETS,
    RECORD_QUEUE,
    RECORD_THROUGHPUT,
    Port,
)
from fabric.engine.rng cimport mix64
from fabric.engine.types cimport i64, u8, u32, u64
from fabric.engine.world cimport (
    ERROR_MEMORY,
    RECORD_DROPS,
    RECORD_MARKS,
    RECORD_PAUSES,
    STREAM_DROP,
    STREAM_MARK,
    STREAM_PACKET,
    STREAM_PAUSE,
    STREAM_QUEUE,
    STREAM_RATE,
    STREAM_THROUGHPUT,
    LinkWatch,
    QueueWatch,
    Row,
    Stream,
    World,
)

cdef enum:
    FLOW_RECORD_RATE = 1
    FLOW_RECORD_PACKETS = 2


cdef inline void append_row(World* w, int stream_number, const Row* row) noexcept nogil:
    cdef Stream* stream = &w.streams[stream_number]
    cdef u64 capacity
    cdef Row* rows
    if stream.count == stream.capacity:
        capacity = 1024 if stream.capacity == 0 else 2 * stream.capacity
        rows = <Row*>realloc(stream.rows, capacity * sizeof(Row))
        if rows == NULL:
            w.error = ERROR_MEMORY
            return
        stream.rows = rows
        stream.capacity = capacity
    stream.rows[stream.count] = row[0]
    stream.count += 1


cdef inline Row make_row(i64 time_ps, i64 value, u32 port, u32 flow, u8 traffic_class) noexcept nogil:
    cdef Row row
    row.time_ps = time_ps
    row.value = value
    row.aux = 0.0
    row.port = port
    row.flow = flow
    row.sequence = 0
    row.kind = 0
    row.traffic_class = traffic_class
    row.mark = 0
    row.pad = 0
    return row


cdef inline u64 frame_identity(const Packet* frame) noexcept nogil:
    return (<u64>frame.sequence << 32) | frame.flow


cdef inline void fingerprint_arrival(World* w, u32 port, const Packet* frame) noexcept nogil:
    cdef u64 place = <u64>frame.time_ps + (<u64>port + 1) * <u64>0x9E3779B97F4A7C15
    cdef u64 content = frame_identity(frame) * <u64>0xD6E8FEB86659FD93 + looks(frame)
    w.fingerprint += place * ((content << 1) | 1)


cdef inline void record_drop(
    World* w, u32 port, const Packet* frame, i64 time_ps, u8 reason
) noexcept nogil:
    """Counts a dropped frame at `port`, folds it into the fingerprint, and records it."""
    cdef Row row
    w.drops_by_reason[reason] += 1
    w.queues[port * w.n_classes + frame.traffic_class].drops += 1
    if w.fingerprint_on:
        w.fingerprint += mix64(
            (<u64>time_ps + (<u64>port + 1) * <u64>0x9E3779B97F4A7C15)
            ^ (frame_identity(frame) * <u64>0xD6E8FEB86659FD93)
            ^ reason
        )
    if w.record & RECORD_DROPS:
        row = make_row(time_ps, reason, port, frame.flow, frame.traffic_class)
        row.sequence = frame.sequence
        row.kind = frame.kind
        append_row(w, STREAM_DROP, &row)


cdef inline void record_mark(World* w, u32 port, const Packet* frame, i64 time_ps, i64 depth) noexcept nogil:
    cdef Row row
    if w.record & RECORD_MARKS:
        row = make_row(time_ps, depth, port, frame.flow, frame.traffic_class)
        row.sequence = frame.sequence
        append_row(w, STREAM_MARK, &row)


cdef inline void record_pause(World* w, u32 port, u8 traffic_class, i64 begin_ps, i64 end_ps) noexcept nogil:
    cdef Row row
    if w.record & RECORD_PAUSES:
        row = make_row(begin_ps, end_ps, port, 0, traffic_class)
        append_row(w, STREAM_PAUSE, &row)


cdef inline void record_rate(World* w, u32 flow, i64 time_ps, double rate, u32 window_frames) noexcept nogil:
    cdef Row row = make_row(time_ps, window_frames, 0, flow, 0)
    row.aux = rate
    append_row(w, STREAM_RATE, &row)


cdef inline bint queue_interval_row(World* w, u32 port, u8 traffic_class, const QueueWatch* watch, i64 before_ps) noexcept nogil:
    """Writes the depth that held at the first interval end since it last changed, if before `before_ps`."""
    cdef Row row
    cdef i64 interval = w.queue_interval_ps
    cdef i64 sample_ps = (watch.changed_ps + interval - 1) // interval * interval
    if sample_ps >= before_ps or watch.value == watch.recorded:
        return False
    row = make_row(sample_ps, watch.value, port, 0, traffic_class)
    append_row(w, STREAM_QUEUE, &row)
    return True


cdef inline void record_queue(World* w, u32 port, u8 traffic_class, i64 time_ps) noexcept nogil:
    """The depth of a recorded port's class queue has (perhaps) changed at `time_ps`."""
    cdef u32 index = port * w.n_classes + traffic_class
    cdef QueueWatch* watch = &w.queue_watch[index]
    cdef i64 depth = w.queues[index].bytes
    cdef i64 change = depth - watch.recorded
    cdef Row row
    if w.queue_interval_ps:
        if depth != watch.value:
            if time_ps > watch.changed_ps:
                if queue_interval_row(w, port, traffic_class, watch, time_ps):
                    watch.recorded = watch.value
                watch.changed_ps = time_ps
            watch.value = depth
    elif (change if change >= 0 else -change) >= w.queue_delta:
        row = make_row(time_ps, depth, port, 0, traffic_class)
        append_row(w, STREAM_QUEUE, &row)
        watch.recorded = depth


cdef inline void throughput_row(World* w, u32 port, const LinkWatch* watch) noexcept nogil:
    cdef Row row
    if watch.bytes:
        row = make_row(watch.interval * w.throughput_interval_ps, watch.bytes, port, 0, 0)
        append_row(w, STREAM_THROUGHPUT, &row)


cdef inline void record_start(World* w, Port* p, const Packet* frame, i64 start_ps, u32 wire_bytes) noexcept nogil:
    """A recorded port begins to send a frame."""
    cdef u32 port = <u32>(p - w.ports)
    cdef LinkWatch* watch
    cdef i64 interval
    cdef Row row
    if p.record & RECORD_THROUGHPUT:
        watch = &w.link_watch[port]
        interval = start_ps // w.throughput_interval_ps
        if interval != watch.interval:
            throughput_row(w, port, watch)
            watch.interval = interval
            watch.bytes = 0
        watch.bytes += wire_bytes
    if p.record & RECORD_PACKETS or (
        p.record & RECORD_CHOSEN_FLOWS and frame.flow != NO_FLOW and w.flow_record[frame.flow] & FLOW_RECORD_PACKETS
    ):
        row = make_row(start_ps, frame.size_bytes, port, frame.flow, frame.traffic_class)
        row.sequence = frame.sequence
        row.kind = frame.kind
        row.mark = marked(frame)
        append_row(w, STREAM_PACKET, &row)


cdef inline void append_pending_rows(World* w) noexcept nogil:
    """Appends what is still open: samples, bins, pauses without an end.

    Nothing else changes, so that a caller who cuts the streams back afterwards has taken a snapshot.
    """
    cdef u32 port, index
    cdef u32 c
    for port in range(w.n_ports):
        if w.ports[port].record & RECORD_THROUGHPUT:
            throughput_row(w, port, &w.link_watch[port])
        for c in range(w.n_classes):
            index = port * w.n_classes + c
            if w.ports[port].record & RECORD_QUEUE and w.queue_interval_ps:
                queue_interval_row(w, port, <u8>c, &w.queue_watch[index], w.end_ps + 1)
            if w.ports[port].paused >> c & 1:
                record_pause(w, port, <u8>c, w.pauses[index].since_ps, -1)
