"""The README's example: an exact copy of a program that the build compiles."""

from .problem import Problem

_BEGIN, _END = "<!-- example:begin -->", "<!-- example:end -->"


def make(repo):
    """{path: text} of the README with the program between its markers."""
    path = repo / "README.md"
    text = path.read_text()
    if _BEGIN not in text or _END not in text:
        raise Problem(f"README.md has no {_BEGIN} ... {_END}")
    program = (repo / "examples/register_memory.cc").read_text()
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return {path: f"{before}{_BEGIN}\n```cpp\n{program}```\n{_END}{after}"}
