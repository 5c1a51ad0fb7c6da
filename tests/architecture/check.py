"""The architecture test: checks the whole repository against rules.py. usage: check.py [ROOT]"""

import pathlib
import sys

sys.dont_write_bytecode = True

import check_comments
import check_contract
import check_files
import check_includes
import check_markdown
import check_methods
import check_sizes
import check_sleeps
from tree import Tree

CHECKS = [*check_includes.CHECKS, *check_files.CHECKS, *check_sizes.CHECKS, *check_methods.CHECKS,
          *check_comments.CHECKS, *check_contract.CHECKS, *check_sleeps.CHECKS, *check_markdown.CHECKS]


def violations(root):
    tree = Tree(root)
    return [violation for check in CHECKS for violation in check(tree)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    found = violations(root)
    for violation in found:
        print(violation)
    print(f"{len(found)} violations" if found else "the architecture holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
