"""Turns the table of scripts/bench --noisy into the ratios of p99 of docs/PERFORMANCE.md.

usage: noisy_bench_table.py RESULTS_FILE [--write PAGE]
"""

import pathlib
import sys

from marked_text import publish

HEADING = ["| the victim calls | 8 processes flood with | limit | no limit |", "|---|---|---:|---:|"]


def rows(path):
    ratios = {}
    for line in path.read_text().splitlines()[2:]:
        call, flood, limit, *_, p99 = [cell.strip() for cell in line.strip("|").split("|")]
        ratios.setdefault((call, flood), {})[limit] = p99
    for (call, flood), cells in ratios.items():
        yield f"| {call} | {flood} | {cells['on']} | {cells['off']} |"


if __name__ == "__main__":
    publish("\n".join([*HEADING, *rows(pathlib.Path(sys.argv[1]))]) + "\n", "noisy-bench", sys.argv)
