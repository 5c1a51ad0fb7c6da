"""Turns the results of scripts/bench into the table of docs/PERFORMANCE.md.

usage: bench_table.py RESULTS_FOLDER [--write PAGE]
"""

import json
import pathlib
import sys

from marked_text import publish

SIZES = {4096: "4 KiB", 1 << 30: "1 GiB"}
BATCH = 1265
CHAIN = 64
PAGES = (1, 16, 256, 1024)
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def medians(path):
    """{row name: median real time in microseconds}."""
    rows = {}
    for row in json.loads(path.read_text())["benchmarks"]:
        if row.get("aggregate_name") == "median":
            rows[row["run_name"].replace("/real_time", "").replace("/manual_time", "")] = row["real_time"] * NANOSECONDS[row["time_unit"]] / 1e3
    return rows


def call_rows(rows):
    """(name, microseconds, the most ping-pongs that it shall take or None)."""
    yield "plain Unix-socket ping-pong, 64 bytes", rows["unix/ping_pong"], None
    yield "bare echo", rows["library/bare_echo"], None
    yield "empty call", rows["library/empty_call"], 1.9
    yield "RegisterMr or DeregisterMr, each, 4 KiB", rows["library/register_deregister"] / 2, 2.8
    yield "connect, open a session, allocate and register 4 KiB, close", rows["library/first_byte"], None
    yield "empty call, gRPC's C++ library", rows["grpc/empty_call"], None
    yield "RegisterMr or DeregisterMr, gRPC's C++ library", rows["grpc/register_deregister/4096"] / 2, None


def connect_rows(rows):
    """(name, microseconds, the most empty calls that it shall take or None)."""
    yield "a Unix socket: connect, and one byte arrives", rows["library/connect/unix_socket"], None
    yield "Connect by name, until the peer has accepted", rows["library/connect/connect"], 3
    yield "CompleteConnect", rows["library/connect/complete"], 3
    yield "the first message, posted until it has arrived", rows["library/connect/first_message"], 3
    yield "all of it", rows["library/connect/all"], None


def one_core_rows(rows):
    """(name, microseconds) of registrations and scrapes in process."""
    for size, name in SIZES.items():
        yield f"RegisterMr + DeregisterMr, {name}", rows[f"core/register_deregister/{size}"]
    yield "the same, every second page of 1 GiB, in 16 regions", rows["core/register_every_second_page_of_1GiB"]
    yield "a scrape of 1,000 tenants, 100 of them named (the default)", rows["metrics/scrape/100"]
    yield "a scrape of 1,000 tenants, all of them named", rows["metrics/scrape/1000"]


def provision_rows(rows):
    """(name, microseconds for each region, the goal for what is beyond the card or None)."""
    card, call = rows["provision/card_register"], rows["provision/one_call"]
    least = rows["provision/card_from_nothing"]
    bare, whole = rows["provision/from_nothing/0"], rows["provision/from_nothing/1"]
    yield "registered by the soft card alone, in process", card, None
    yield "ProvisionMemory of sealed memory, by librnicd", call, None
    yield "the same, beyond the card", call - card, 2
    yield "from nothing to tokens, the soft card alone, in process", least, None
    yield "from nothing to tokens by librnicd, page table left to the first access", bare, None
    yield "the same, beyond the card", bare - least, 2
    yield "from nothing to tokens by librnicd, page table filled", whole, None


def fast_rows(rows):
    """(pages, microseconds for each request of a chain: half of them register, half invalidate)."""
    for pages in PAGES:
        yield pages, [rows[f"fast/core_chain_{chain}/{pages}/{scattered}"] / (2 * chain)
                      for chain in (1, CHAIN) for scattered in (0, 1)]


def call_table(title, unit, each):
    lines = [f"| {title} | goal |", "|---|---:|---:|---:|"]
    for name, microseconds, goal in each:
        lines.append(f"| {name} | {microseconds:.2f} | {microseconds / unit:.2f} | {goal or ''} |")
    return lines


def table(folder):
    calls = medians(folder / "bench_calls.json")
    lines = call_table("a call of librnicd, one core | us | x ping-pong", calls["unix/ping_pong"], call_rows(calls))
    lines += ["", *call_table("a connection between two clients, by calls, one core | us | x empty call",
                              calls["library/empty_call"], connect_rows(calls))]
    one_core = medians(folder / "bench_one_core.json")
    lines += ["", "| in process, one core | us |", "|---|---:|"]
    for name, microseconds in one_core_rows(one_core):
        lines.append(f"| {name} | {microseconds:.2f} |")
    lines += ["", "| 1,265 regions of 40 KiB, one core, each region | us | goal |", "|---|---:|---:|"]
    for name, microseconds, goal in provision_rows(medians(folder / "bench_provision.json")):
        lines.append(f"| {name} | {microseconds / BATCH:.2f} | {goal or ''} |")
    lines += ["", "| FastRegister or Invalidate in process, pages | one a Post, contiguous | scattered "
              "| chain of 64, contiguous | scattered |", "|---:|---:|---:|---:|---:|"]
    for pages, microseconds in fast_rows(one_core):
        lines.append(f"| {pages} | " + " | ".join(f"{each:.2f}" for each in microseconds) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    publish(table(pathlib.Path(sys.argv[1])), "bench", sys.argv)
