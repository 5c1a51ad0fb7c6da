"""Shared by the table generators: prints the text, and writes it between a page's markers."""

import os
import pathlib
import re
import subprocess


def measured_where():
    """The commit and the machine of the run, as a line of the page."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"Commit `{commit.stdout.strip()}`, {os.cpu_count()} cores{f' of {model[1]}' if model else ''}."


def publish(text, name, arguments):
    """Prints the text; with "--write PAGE" also replaces the text between the page's markers of that name."""
    print(text)
    if "--write" not in arguments:
        return
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = pathlib.Path(arguments[arguments.index("--write") + 1])
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{measured_where()}\n\n{text}{end}{after}")
