"""Assembles the importable package: the sources of rnicd/ and, below rnicd/_proto, the code made from proto/.

usage: generate.py --repository FOLDER --out FOLDER [--protoc PROGRAM]

The generated messages live in a descriptor pool of the package's own, so that they clash neither with another version
of rnicd's protos nor with another program's messages in the same process. For that, three lines of protoc's output
are rewritten, and google/protobuf/any.proto gets a private copy.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# The operator's protos are no part of a workload's client.
_EXCLUDED = ("admin_service.proto", "policy.proto")
_REWRITES = (
    (re.compile(r"^from rnicd\.v1 import ", re.MULTILINE), "from . import "),
    (re.compile(r"^from google\.protobuf import any_pb2", re.MULTILINE), "from . import any_pb2"),
    (
        re.compile(r"^from google\.protobuf import descriptor_pool as _descriptor_pool$", re.MULTILINE),
        "from . import _pool",
    ),
    (re.compile(r"_descriptor_pool\.Default\(\)"), "_pool.POOL"),
)
_REASON = re.compile(r'^RNICD_REASON\((\w+), (\d+), k\w+, k(\w+), "([^"]*)",$', re.MULTILINE)
_POOL = '''"""The descriptor pool of rnicd's messages, apart from the process's default one."""

from google.protobuf import descriptor_pool

POOL = descriptor_pool.DescriptorPool()
'''


def _protos(folder):
    """The protos of the workload's services, as paths below `folder`."""
    found = (folder / "rnicd" / "v1").glob("*.proto")
    return [str(path.relative_to(folder)) for path in sorted(found) if path.name not in _EXCLUDED]


def _google_folder(protoc):
    """The folder of google/protobuf/any.proto: beside protoc, as protobuf installs it."""
    program = shutil.which(protoc)
    if program is None:
        raise SystemExit(f"generate.py: there is no {protoc}; install protobuf-compiler")
    return Path(program).resolve().parent.parent / "include"


def _run_protoc(protoc, protos, out):
    subprocess.run(
        [
            protoc,
            f"--proto_path={protos}",
            f"--proto_path={_google_folder(protoc)}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            *_protos(protos),
            "google/protobuf/any.proto",
        ],
        check=True,
    )


def _rewritten(text):
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def write_messages(protoc, protos, package):
    """Writes the message modules, flat, into `package`."""
    with tempfile.TemporaryDirectory() as made:
        _run_protoc(protoc, protos, made)
        for path in sorted(Path(made).rglob("*_pb2.py*")):
            (package / path.name).write_text(_rewritten(path.read_text()))
    (package / "_pool.py").write_text(_POOL)
    (package / "__init__.py").write_text('"""Generated from rnicd\'s protos; not part of the interface."""\n')


def write_sentences(reasons, package):
    """Writes sentence and NTSTATUS of each error reason, so that exceptions say what rnicctl and docs/ERRORS.md say."""
    found = _REASON.findall(reasons)
    if not found:
        raise SystemExit("generate.py: found no reason in base/error_reasons.inc")
    sentences = "".join(f"    {number}: {sentence!r},\n" for _, number, _, sentence in found)
    statuses = "".join(f"    {number}: {_status_name(status)!r},\n" for _, number, status, _ in found)
    (package / "sentences.py").write_text(
        '"""Sentence and NTSTATUS of each error reason, by number."""\n\n'
        f'SENTENCES: "dict[int, str]" = {{\n{sentences}}}\n'
        f'STATUS_NAMES: "dict[int, str]" = {{\n{statuses}}}\n'
    )


def _status_name(constant):
    """Name in the protos of a constant of base/ntstatus.h: NT_STATUS_NOT_FOUND of NotFound."""
    return "NT_STATUS_" + re.sub(r"(?<!^)(?=[A-Z])", "_", constant).upper()


def assemble(repository, out, protoc):
    """Replaces `out`/rnicd."""
    package = out / "rnicd"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        repository / "client" / "python" / "rnicd", package, ignore=shutil.ignore_patterns("__pycache__", "_proto")
    )
    generated = package / "_proto"
    generated.mkdir()
    write_messages(protoc, repository / "proto", generated)
    write_sentences((repository / "base" / "error_reasons.inc").read_text(), generated)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--protoc", default="protoc")
    options = parser.parse_args()
    assemble(options.repository.resolve(), options.out.resolve(), options.protoc)


if __name__ == "__main__":
    main()
