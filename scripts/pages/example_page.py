"""The README's examples: exact copies of programs that the build compiles and the tests run."""

from .problem import Problem

# Marker, language and program of each example.
_EXAMPLES = (
    ("example", "cpp", "examples/register_memory.cc"),
    ("python", "python", "examples/python/first_lines.py"),
)


def _replaced(text, marker, language, program):
    """`text` with the program between its markers."""
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    if begin not in text or end not in text:
        raise Problem(f"README.md has no {begin} ... {end}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n```{language}\n{program}```\n{end}{after}"


def make(repo):
    """{path: text} of the README with each program between its markers."""
    path = repo / "README.md"
    text = path.read_text()
    for marker, language, program in _EXAMPLES:
        text = _replaced(text, marker, language, (repo / program).read_text())
    return {path: text}
