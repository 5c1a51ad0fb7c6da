#!/usr/bin/env bash
# Runs the simulation PROGRAM twice from one seed: both runs must print the same, the digest of all steps included.
# usage: same_twice.sh PROGRAM
set -euo pipefail
first=$("$1" --seed 42 --sessions 200)
second=$("$1" --seed 42 --sessions 200)
printf '%s\n%s\n' "$first" "$second"
[[ $first == *digest* && $first == "$second" ]]
