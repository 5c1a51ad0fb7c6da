"""Turns the results of scripts/bench into the table of docs/PERFORMANCE.md.

usage: bench_table.py RESULTS_FOLDER [--write PAGE]
"""

import json
import pathlib
import sys

from marked_text import publish

SIZES = {4096: "4 KiB", 1 << 20: "1 MiB", 1 << 26: "64 MiB", 1 << 30: "1 GiB"}
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
    """(name, microseconds, the most that it shall take of the bare echo on nghttp2 or None)."""
    yield "plain Unix-socket ping-pong, 64 bytes", rows["unix/ping_pong"], None
    yield "bare echo on nghttp2", rows["echo/http2"], None
    yield "bare echo on gRPC's callback API", rows["echo/grpc"], None
    yield "empty call", rows["grpc/empty_call"], 1.15
    yield "RegisterMr or DeregisterMr by gRPC, each, 4 KiB", rows["grpc/register_deregister/4096"] / 2, 1.3


def one_core_rows(rows):
    unit = rows["unix/ping_pong"]
    yield "plain Unix-socket ping-pong, 64 bytes", unit, 1.0
    for size, name in SIZES.items():
        core = rows[f"core/register_deregister/{size}"]
        yield f"RegisterMr + DeregisterMr in process, {name}", core, core / unit
    scattered = rows["core/register_every_second_page_of_1GiB"]
    yield "the same, every second page of 1 GiB, in 16 regions", scattered, scattered / unit
    for size, name in SIZES.items():
        each = rows[f"grpc/register_deregister/{size}"] / 2
        yield f"RegisterMr or DeregisterMr by gRPC, each, {name}", each, each / unit
    core = rows["core/register_1265_of_40KiB"] / BATCH
    grpc = rows["grpc/register_1265_of_40KiB"] / BATCH
    yield "1,265 regions of 40 KiB in process, per region", core, core / unit
    yield "1,265 regions of 40 KiB in one gRPC call, per region", grpc, grpc / unit
    yield "the same, beyond what it costs in process", grpc - core, (grpc - core) / unit


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
    """Microseconds for each request of a chain: half of them register, half invalidate."""
    empty = rows["grpc/empty_call"]
    pair = rows["core/register_deregister/4096"] / 2
    yield "RegisterMr or DeregisterMr in process, 4 KiB, each", pair
    yield "FastRegister or Invalidate at the provider alone, 1 page", rows["fast/provider_chain_64"] / (2 * CHAIN)
    for chain, how in ((1, "one request a Post"), (CHAIN, "chains of 64")):
        for pages in PAGES:
            for scattered, name in ((0, "contiguous"), (1, "scattered")):
                each = rows[f"fast/core_chain_{chain}/{pages}/{scattered}"] / (2 * chain)
                yield f"in process, {how}, {pages} {name} page{'s' if pages > 1 else ''}", each
    for chain, how in ((1, "one request a Post"), (CHAIN, "chains of 64")):
        for pages in PAGES:
            each = rows[f"fast/grpc_chain_{chain}/{pages}"] / (2 * chain)
            yield f"by gRPC, {how}, {pages} scattered page{'s' if pages > 1 else ''}", each
    chained = rows[f"fast/grpc_chain_{CHAIN}/1"] / 2
    yield "the same, chains of 64, 1 page, beyond an empty gRPC call", (chained - empty) / CHAIN


def live_rows(rows):
    for name, what in (
        ("invalidate_and_fast_register", "Invalidate + FastRegister"),
        ("get_remote_token", "GetRemoteToken"),
        ("create_register_close", "CreateMr + RegisterMr + CloseMr"),
    ):
        few, many = rows[f"live/{name}/1000"], rows[f"live/{name}/1000000"]
        yield f"{what} in process, on a region drawn at random", few, many, many / few


def metrics_rows(rows):
    yield "counting a registration that succeeds", rows["metrics/registration"]
    yield "counting a call", rows["metrics/call"]
    yield "counting a completion", rows["metrics/completion"]
    yield "a scrape with 1,000 tenants, 100 of them named (the default)", rows["metrics/scrape/100"]
    yield "a scrape with 1,000 tenants, all of them named", rows["metrics/scrape/1000"]


def client_rows(rows):
    unit = rows["unix/ping_pong"]
    for clients in (1, 4, 64):
        pair = rows[f"grpc/clients/4096/threads:{clients}"]
        # Google Benchmark divides wall time by the rounds of all threads.
        yield f"{clients} client{'s' if clients > 1 else ''}, 4 KiB: wall time per call, over all clients", pair / 2, pair / 2 / unit


def call_table(rows):
    unit, echo = rows["unix/ping_pong"], rows["echo/http2"]
    lines = ["| a call, one core | us | x ping-pong | x bare nghttp2 | goal |", "|---|---:|---:|---:|---:|"]
    for name, microseconds, goal in call_rows(rows):
        at_most = "" if goal is None else f"{goal:.2f}"
        lines.append(
            f"| {name} | {microseconds:.2f} | {microseconds / unit:.2f} | {microseconds / echo:.2f} | {at_most} |"
        )
    return lines


def table(folder):
    lines = call_table(medians(folder / "bench_calls.json"))
    lines += ["", "| one core for everything | us | x ping-pong |", "|---|---:|---:|"]
    for name, microseconds, ratio in one_core_rows(medians(folder / "bench_one_core.json")):
        lines.append(f"| {name} | {microseconds:.2f} | {ratio:.2f} |")
    one_core = medians(folder / "bench_one_core.json")
    lines += ["", "| 1,265 regions of 40 KiB, one core, each region | us | goal |", "|---|---:|---:|"]
    for name, microseconds, goal in provision_rows(medians(folder / "bench_provision.json")):
        lines.append(f"| {name} | {microseconds / BATCH:.2f} | {goal or ''} |")
    lines += ["", "| fast registration, one core, each request | us |", "|---|---:|"]
    for name, microseconds in fast_rows(one_core):
        lines.append(f"| {name} | {microseconds:.2f} |")
    lines += ["", "| live regions, one core | 1,000: us | 1,000,000: us | ratio |", "|---|---:|---:|---:|"]
    for name, few, many, ratio in live_rows(one_core):
        lines.append(f"| {name} | {few:.2f} | {many:.2f} | {ratio:.2f} |")
    lines += ["", "| metrics, one core | us |", "|---|---:|"]
    for name, microseconds in metrics_rows(one_core):
        lines.append(f"| {name} | {microseconds:.3f} |")
    lines += ["", "| all cores | us | x ping-pong |", "|---|---:|---:|"]
    for name, microseconds, ratio in client_rows(medians(folder / "bench_clients.json")):
        lines.append(f"| {name} | {microseconds:.2f} | {ratio:.2f} |")
    lines += ["", "| over time and in memory | |", "|---|---:|"]
    for line in (folder / "bench_report.txt").read_text().splitlines():
        name, value = line.split()
        lines.append(f"| {name} | {value} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    publish(table(pathlib.Path(sys.argv[1])), "bench", sys.argv)
