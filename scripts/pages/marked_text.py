"""Shared by the table generators: prints the text, and writes it between a page's markers."""

import pathlib


def publish(text, name, arguments):
    """Prints the text; with "--write PAGE" also replaces the text between the page's markers of that name."""
    print(text)
    if "--write" not in arguments:
        return
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = pathlib.Path(arguments[arguments.index("--write") + 1])
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}{end}{after}")
