# shellcheck shell=bash
# Sourced by scripts/arm64-test, after sysroot.sh: runs test programs of build/arm64 under the emulator.

RESULTS=build/arm64/results/arm64
NOT_ON_QEMU=tests/arm64/not_on_qemu.txt
# An emulated program is about ten times as slow.
SLOWNESS=10
# Emulator and libraries where every user may read them, as the tests have clients that are nobody.
runtime=''

# Not the whole sysroot: qemu opens a file of the prefix instead of the machine's wherever there is one, also of /tmp.
make_runtime() {
  local libraries=usr/lib/aarch64-linux-gnu
  runtime=$(mktemp -d /tmp/rnicd-arm64.XXXXXX)
  mkdir -p "$runtime/$libraries" "$runtime/one-thread"
  touch "$runtime/one-thread/1"
  ln -s usr/lib "$runtime/lib"
  cp --no-dereference "$SYSROOT/usr/lib/ld-linux-aarch64.so.1" "$runtime/usr/lib"
  find "$SYSROOT/$libraries" -maxdepth 1 -name '*.so.*' -exec cp --no-dereference -t "$runtime/$libraries" {} +
  cp "$QEMU" "$runtime"
  aarch64-linux-gnu-gcc --sysroot="$SYSROOT" -shared -fPIC -O1 -Wall -Wextra -Werror -o "$runtime/one_thread.so" \
    tests/arm64/one_thread.c
  chmod -R a+rX "$runtime"
}

remove_runtime() { if [[ -n $runtime ]]; then rm -rf "$runtime"; fi; }

# The words in front of a program, and in front of one that the tests start.
emulator() { say "$runtime/qemu-aarch64-static -L $runtime"; }
emulator_of_children() {
  say "$(emulator) -E LD_PRELOAD=$runtime/one_thread.so -E RNICD_ONE_THREAD=$runtime/one-thread"
}

unit_test_programs() { find build/arm64 -name '*_test' -type f -executable | sort; }

# run_suite NAME DATA_PATH PROGRAM...: the daemons without a filter of system calls, which qemu does not have.
run_suite() {
  local name=$1 data_path=$2
  shift 2
  RNICD_TEST_EMULATOR=$(emulator_of_children) RNICD_TEST_DAEMON_FLAGS=--system_call_filter=off \
    RNICD_TEST_SLOWNESS=$SLOWNESS RNICD_TEST_DATA_PATH=$data_path \
    python3 tests/arm64/run_suite.py --emulator "$(emulator)" --list "$NOT_ON_QEMU" --results "$RESULTS" \
    --name "$name" ${listed:+"$listed"} ${within:+--seconds $((within - SECONDS))} "$@" || true
}
