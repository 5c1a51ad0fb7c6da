"""The README's examples: exact copies of programs that the build compiles and the tests run."""

from .markers import between

# Marker, language and program of each example.
_EXAMPLES = (
    ("example", "cpp", "examples/register_memory.cc"),
    ("python", "python", "examples/python/first_lines.py"),
)


def make(repo):
    """{path: text} of the README with each program between its markers."""
    path = repo / "README.md"
    text = path.read_text()
    for marker, language, program in _EXAMPLES:
        text = between("README.md", text, marker, f"```{language}\n{(repo / program).read_text()}```\n")
    return {path: text}
