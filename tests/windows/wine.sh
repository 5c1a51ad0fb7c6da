# shellcheck shell=bash
# Sourced by scripts/windows-test, after libraries.sh: runs test programs of build/windows under wine.

RESULTS=build/windows/results/windows
LEFT_OUT=tests/windows/left_out.txt
WINE=/usr/lib/wine

# The prefix that cmake/windows.cmake names, too: 700 MB, so that all clones share it. No dialogue offers to download .NET or
# a browser.
export WINEPREFIX=$WINDOWS_DIR/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
# The server of the prefix ends this long after its last program: nobody stops it, as another clone may use it.
SERVER_SECONDS=30

# One clone at a time.
prepare_wine() {
  (
    flock 9
    if [[ ! -f $WINEPREFIX/system.reg ]]; then
      say "making wine's prefix"
      "$WINE/wine64" wineboot --init >"$WINDOWS_DIR/wine.log" 2>&1 9>&-
    fi
  ) 9>"$WINDOWS_DIR/lock"
}

# With a server that stays, a program starts in a tenth of a second instead of three. It keeps what it inherits open.
start_wine() { "$WINE/wineserver" --persistent="$SERVER_SECONDS" >/dev/null 2>&1 9>&- || true; }

unit_test_programs() { find build/windows -path build/windows/tests -prune -o -name '*_test.exe' -type f -print | sort; }
contract_programs() {
  say build/windows/tests/provider_contract/rnicd_provider_contract_test.exe
  say build/windows/tests/networkdirect_model/rnicd_networkdirect_model_test.exe
}

# NDK's cases, against rnicd.exe.
# shellcheck disable=SC2034  # for scripts/windows-test
CONFORMANCE_PROGRAM=build/windows/tests/conformance/rnicd_conformance.exe

# rnicd.exe as a process and as a service.
# shellcheck disable=SC2034  # for scripts/windows-test
DAEMON_PROGRAM=build/windows/tests/windows_daemon/rnicd_windows_daemon_test.exe

# run_suite NAME PROGRAM...
run_suite() {
  local name=$1
  shift
  python3 tests/arm64/run_suite.py --emulator "$WINE/wine64" --list "$LEFT_OUT" --results "$RESULTS" \
    --name "$name" ${listed:+"$listed"} ${within:+--seconds $((within - SECONDS))} "$@" || true
}
