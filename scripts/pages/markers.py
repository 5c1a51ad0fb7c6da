"""Generated text between two markers of a page that is otherwise written by hand."""

from .problem import Problem


def between(page, text, name, content):
    """`text` of the page with `content` between the markers of that name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if begin not in text or end not in text:
        raise Problem(f"{page} has no {begin} ... {end}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}{end}{after}"
