"""Turns the results of scripts/bench --verbs into the ratios of docs/PERFORMANCE.md.

usage: verbs_bench_table.py RESULTS_FILE [--write PAGE]
"""

import json
import pathlib
import sys

from marked_text import publish


def size(count):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def ratio(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def pages(count, kind):
    return f"{count} {kind}page{'s' if count > 1 else ''}"


def registration(rows):
    yield "| pages | registered | by itself, mapping and faulting in | through rnicd | of that, calls |"
    yield "|---|---|---:|---:|---:|"
    for labels, us in rows:
        count = labels["regions"]
        what = size(labels["bytes"]) if count == 1 else f"{count:,} x {size(labels['bytes'])}"
        direct = us["direct"]
        fresh = ratio(us["direct_fresh"] / direct) if "direct_fresh" in us else ""
        through, calls = ratio(us["rnicd"] / direct), ratio(us["empty_calls"] / direct)
        yield f"| {size(labels['page_bytes'])} | {what} | {fresh} | {through} | {calls} |"


READY = (
    ("direct", "by itself: map, fault in by one system call, register"),
    ("direct_file", "by itself, a shared memory file, which is what rnicd gives out"),
    ("rnicd", "AllocateMemory, map, SealMemory, CreateMr, RegisterMr"),
    ("rnicd_populated", "the same, and the client's page tables filled"),
    ("pool", "the same, of memory that the daemon has ready (`--memory_pool`)"),
    ("pool_populated", "that, and the client's page tables filled"),
)


def title(labels):
    return f"{size(labels['bytes'])} in pages of {size(labels['page_bytes'])}"


def ready(rows):
    yield f"| from nothing to registered | {' | '.join(title(labels) for labels, _ in rows)} |"
    yield "|---|" + "---:|" * len(rows)
    for key, what in READY:
        cells = [ratio(us[key] / us["direct"]) if key in us else "" for _, us in rows]
        yield f"| {what} | {' | '.join(cells)} |"


def fast(rows):
    yield "| one request of a chain of 64 | registrations | windows | kernel module |"
    yield "|---|---:|---:|---:|"
    for scattered, base, engines in (
        ("contiguous ", "direct_one_region", ("engine_direct", "engine_window", "engine_kernel")),
        ("scattered ", "direct_region_each", ("engine_compose", "engine_window_compose", "engine_kernel_scattered")),
    ):
        for labels, us in rows:
            cells = [ratio(us[engine] / us[base]) for engine in engines]
            yield f"| {pages(labels['pages'], scattered)} | {' | '.join(cells)} |"


WRITE = (
    ("direct", "by itself, polling the completion queue"),
    ("direct_event", "by itself, sleeping until the queue's event"),
    ("rnicd_rings", "through rnicd, ring and mapped queue"),
    ("ring_entry", "of that, an entry of the ring that only looks something up"),
    ("rnicd_calls", "through rnicd, calls"),
)


def write(rows):
    yield "| a write, from posting it to its completion |" + "".join(f" {size(row['bytes'])} |" for row, _ in rows)
    yield "|---|" + "---:|" * len(rows)
    for key, what in WRITE:
        yield f"| {what} | {' | '.join(ratio(us[key] / us['direct']) for _, us in rows)} |"


def tables(path):
    rows = json.loads(path.read_text())
    parts = []
    for name, make in (
        ("registration", registration),
        ("ready", ready),
        ("write", write),
        ("fast", fast),
    ):
        chosen = [(row["labels"], row["us"]) for row in rows if row["table"] == name]
        lines = list(make(chosen)) if chosen else []
        if lines:
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    publish(tables(pathlib.Path(sys.argv[1])), "verbs-bench", sys.argv)
