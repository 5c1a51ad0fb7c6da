#!/bin/sh
# Builds hello.rs, by bindgen and rustc alone.
# usage: sh build.sh PROGRAM [FOLDER_OF_RNICD_H FOLDER_OF_LIBRNICD]; without the folders pkg-config finds them
set -eu
here=$(dirname "$0")
headers=${2:-$(pkg-config --variable=includedir librnicd)} libraries=${3:-$(pkg-config --variable=libdir librnicd)}
bindgen "$headers/rnicd.h" --output "$1.bindings.rs" --allowlist-function 'rnicd_.*' --allowlist-type 'rnicd_.*' \
  --allowlist-var 'RNICD_.*' --no-prepend-enum-name --with-derive-default --size_t-is-usize --no-rustfmt-bindings
RNICD_BINDINGS=$(realpath "$1.bindings.rs") rustc --edition 2021 -O -D warnings "$here/hello.rs" -o "$1" \
  -L "$libraries" -l rnicd
