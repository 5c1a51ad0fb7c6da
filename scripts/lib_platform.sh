# shellcheck shell=bash
# Sourced by scripts/arm64-test and scripts/windows-test, after lib.sh: their steps with a table at the end, and the option
# --within, by which CI runs them where the compiler's cache is warm.

# Status of a run that did nothing, for .ci/run.
DAYS_WARM=7

passed=0 failed=0
rows=()
within=''

# What the calling script undoes at its end.
undo() { :; }

summary() {
  local status=$?
  trap - EXIT
  undo
  if ((status != 0 && failed == 0)); then failed=1; fi
  if ((${#rows[@]} > 0)); then printf '\n%-34s %8s %8s %8s %8s\n' step seconds passed failed listed; fi
  printf '%s\n' "${rows[@]}"
  printf '%-34s %8d\n\n' all "$SECONDS"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  if ((failed > 0 || passed == 0)); then exit 1; fi
  exit 0
}

# Every way out ends with the table and the line that CI reads.
begin_summary() {
  trap summary EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# note NAME BEGAN PASSED FAILED LISTED
note() {
  passed=$((passed + $3)) failed=$((failed + $4))
  rows+=("$(printf '%-34s %8d %8d %8d %8d' "$1" $((SECONDS - $2)) "$3" "$4" "$5")")
}

# note_suite NAME BEGAN FILE: what run_suite.py wrote; one failure if it wrote nothing.
note_suite() {
  local good bad left_out
  if [[ ! -f $3 ]]; then
    note "$1" "$2" 0 1 0
    return
  fi
  read -r good bad left_out < <(sed -E 's/.*"passed": ([0-9]+), "failed": ([0-9]+), "listed": ([0-9]+).*/\1 \2 \3/' "$3")
  note "$1" "$2" "$good" "$bad" "$left_out"
}

# must NAME COMMAND...: a step that is no test; the script ends when it fails.
must() {
  local name=$1 began=$SECONDS
  shift
  heading "$name"
  if ! "$@"; then
    note "$name" "$began" 0 1 0
    exit 1
  fi
  note "$name" "$began" 0 0 0
}

# set_within SECONDS TEST_SECONDS: the value of --within, of which the tests need TEST_SECONDS.
set_within() {
  if [[ ! $1 =~ ^[0-9]+$ ]] || (($1 <= $2)); then fail "--within needs more seconds than $2"; fi
  within=$1 test_seconds=$2
}

# leave_out PLATFORM WHY: ends the script as one that did nothing.
leave_out() {
  say "$1 is left out: $2"
  trap - EXIT
  exit "$STATUS_LEFT_OUT"
}

# The file whose time says when a clone of this user completed a build, so that the compiler's cache has most of its
# objects; older ones give way to those of other builds. CI has options of its own.
built_stamp() { say "$1/built${CI:+-for-ci}"; }
was_built_lately() { [[ -n $(find "$(built_stamp "$1")" -mtime "-$DAYS_WARM" 2>/dev/null) ]]; }

# build_platform PRESET FOLDER [OPTION...]: FOLDER has the stamp, the options are CMake's. With --within it ends in time for
# the tests.
build_platform() {
  local status=0 left=''
  configure "$1" "${@:3}" || return
  if [[ -n $within ]]; then
    left=$((within - test_seconds - SECONDS))
    if ((left <= 0)); then leave_out "$1" "tools and libraries took $SECONDS s"; fi
  fi
  BUILD_SECONDS=$left build "$1" || status=$?
  if [[ -n $within ]] && ((status == 124)); then
    leave_out "$1" "its build was not complete after $SECONDS s; the next run goes on from there"
  fi
  if ((status == 0)); then touch "$(built_stamp "$2")"; fi
  return "$status"
}

# check_list FILE FOLDER: every name of the list of tests left out must be that of a test, in FOLDER/*.json.
check_list() {
  local pattern
  local -i unknown=0
  while IFS= read -r pattern; do
    if ! grep -qF "\"$pattern\"" "$2"/*.json; then
      say "   $pattern stands in $1 and is no test: correct the name, or remove the line"
      unknown=1
    fi
  done < <(sed 's/^#.*//; s/ | .*//; /^$/d' "$1")
  ((!unknown))
}
