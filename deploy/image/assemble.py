"""Assembles all files of the image, from built programs and the packages of this machine. Runs as root.

usage: assemble.py --out FOLDER --debug FOLDER --version VERSION [--epoch SECONDS] [--sysroot FOLDER] PROGRAM...
  --out      folder for the image: programs without symbols, their libraries, users, licences, the list of packages
  --debug    folder for the programs' symbols, where debuggers look for them
  --epoch    Unix time of all files, so that the same programs make the same image; default: 0
  --sysroot  the packages unpacked there instead of this machine's, for programs of another architecture; the tools for
             it are those of the environment variable OBJCOPY
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import closure
import packages
import sysroot

USER = 65532
PASSWD = (f"root:x:0:0:root:/:/usr/sbin/nologin\nrnicd:x:{USER}:{USER}:rnicd:/nonexistent:/usr/sbin/nologin\n")
GROUP = f"root:x:0:\nrnicd:x:{USER}:\n"
# Path, mode, owner. Workloads see the first directory, and each a door in the third; the second is for the operator.
FOLDERS = [("run/rnicd", 0o755, USER), ("run/rnicd-admin", 0o700, USER),
           ("run/rnicd-doors", 0o700, USER), ("tmp", 0o1777, 0), ("dev", 0o755, 0), ("proc", 0o755, 0), ("sys", 0o755, 0)]
LICENCE = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def copy(path, source, root):
    """Copies a file or link below source to the same place below root."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source / path.lstrip("/"), target, follow_symlinks=False)


def add_program(program, out, debug):
    """Writes the program without its symbols, and the symbols under the program's build id."""
    build_id = re.search(r"Build ID: ([0-9a-f]{6,})", run("readelf", "--notes", program))[1]
    symbols = debug / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    symbols.parent.mkdir(parents=True, exist_ok=True)
    objcopy = os.environ.get("OBJCOPY", "objcopy")
    run(objcopy, "--only-keep-debug", program, symbols)
    symbols.chmod(0o644)
    target = out / "usr/bin" / program.name
    target.parent.mkdir(parents=True, exist_ok=True)
    run(objcopy, "--strip-all", f"--add-gnu-debuglink={symbols}", program, target)
    target.chmod(0o755)


def add_system(out, source):
    write(out / "etc/passwd", PASSWD)
    write(out / "etc/group", GROUP)
    for path, mode, owner in FOLDERS:
        folder = out / path
        folder.mkdir(parents=True)
        os.chown(folder, owner, owner)
        folder.chmod(mode)
    # As on Debian: programs name their loader as /lib64/...
    for name in ("lib", "lib64"):
        if (source / name).is_symlink():
            (out / name).symlink_to(os.readlink(source / name))


def add_licences(out, files, source, version, epoch):
    """Writes the list of packages and their licences."""
    names = packages.owners(files, source) | set(packages.COMPILED_IN)
    for name in sorted(names):
        write(out / "usr/share/doc" / name / "copyright", (source / "usr/share/doc" / name / "copyright").read_text())
    write(out / "usr/share/doc/rnicd/copyright", LICENCE.read_text())
    bill = packages.bill(version, [packages.facts(name, source) for name in sorted(names)], epoch)
    write(out / "usr/share/rnicd/sbom.json", json.dumps(bill, indent=1) + "\n")


def settle(root, epoch):
    """Sets reproducible times and modes. Files first: changing them would change the time of their folder."""
    for folder, folders, files in os.walk(root, topdown=False):
        for name in sorted(files) + sorted(folders):
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
        os.utime(folder, (epoch, epoch))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--debug", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--sysroot", type=pathlib.Path)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    out, debug = arguments.out.resolve(), arguments.debug.resolve()
    os.umask(0o022)
    for root in (out, debug):
        root.mkdir(parents=True)
    source = (arguments.sysroot or pathlib.Path("/")).resolve()
    files = sysroot.needed_files(arguments.programs, source) if arguments.sysroot else closure.needed_files(
        arguments.programs)
    for program in arguments.programs:
        add_program(program, out, debug)
    for path in files:
        copy(path, source, out)
    add_system(out, source)
    (sysroot if arguments.sysroot else closure).check(out)
    add_licences(out, files, source, arguments.version, arguments.epoch)
    for root in (out, debug):
        settle(root, arguments.epoch)


if __name__ == "__main__":
    try:
        main()
    except (closure.Missing, packages.Unknown) as error:
        sys.exit(f"assemble.py: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"assemble.py: {' '.join(error.cmd)}: {(error.stdout + error.stderr).strip()}")
