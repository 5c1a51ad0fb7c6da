"""Turns the results of scripts/bench into the table of docs/PERFORMANCE.md.

usage: bench_table.py RESULTS_FOLDER [--write PAGE]
"""

import json
import pathlib
import sys

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
SIZES = {4096: "4 KiB", 1 << 20: "1 MiB", 1 << 26: "64 MiB", 1 << 30: "1 GiB"}
BATCH = 1265
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def medians(path):
    """Row name to median real time in microseconds."""
    rows = {}
    for row in json.loads(path.read_text())["benchmarks"]:
        if row.get("aggregate_name") == "median":
            rows[row["run_name"].replace("/real_time", "")] = row["real_time"] * NANOSECONDS[row["time_unit"]] / 1e3
    return rows


def one_core_rows(rows):
    unit = rows["unix/ping_pong"]
    empty = rows["grpc/empty_call"]
    yield "plain Unix-socket ping-pong, 64 bytes", unit, 1.0
    yield "gRPC call that does nothing", empty, empty / unit
    for size, name in SIZES.items():
        core = rows[f"core/register_deregister/{size}"]
        yield f"RegisterMr + DeregisterMr in process, {name}", core, core / unit
    for size, name in SIZES.items():
        each = rows[f"grpc/register_deregister/{size}"] / 2
        yield f"RegisterMr or DeregisterMr by gRPC, each, {name}", each, each / unit
    core = rows["core/register_1265_of_40KiB"] / BATCH
    grpc = rows["grpc/register_1265_of_40KiB"] / BATCH
    yield "1,265 regions of 40 KiB in process, per region", core, core / unit
    yield "1,265 regions of 40 KiB in one gRPC call, per region", grpc, grpc / unit
    yield "the same, beyond what it costs in process", grpc - core, (grpc - core) / unit


def client_rows(rows):
    unit = rows["unix/ping_pong"]
    for clients in (1, 4, 64):
        pair = rows[f"grpc/clients/4096/threads:{clients}"]
        # Google Benchmark divides wall time by the rounds of all threads.
        yield f"{clients} client{'s' if clients > 1 else ''}, 4 KiB: wall time per call, over all clients", pair / 2, pair / 2 / unit


def table(folder):
    lines = ["| one core for everything | us | x ping-pong |", "|---|---:|---:|"]
    for name, microseconds, ratio in one_core_rows(medians(folder / "bench_one_core.json")):
        lines.append(f"| {name} | {microseconds:.2f} | {ratio:.2f} |")
    lines += ["", "| all cores | us | x ping-pong |", "|---|---:|---:|"]
    for name, microseconds, ratio in client_rows(medians(folder / "bench_clients.json")):
        lines.append(f"| {name} | {microseconds:.2f} | {ratio:.2f} |")
    lines += ["", "| over time and in memory | |", "|---|---:|"]
    for line in (folder / "bench_report.txt").read_text().splitlines():
        name, value = line.split()
        lines.append(f"| {name} | {value} |")
    return "\n".join(lines) + "\n"


def main():
    text = table(pathlib.Path(sys.argv[1]))
    print(text)
    if "--write" in sys.argv:
        page = pathlib.Path(sys.argv[sys.argv.index("--write") + 1])
        before, _, rest = page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


if __name__ == "__main__":
    main()
