#!/bin/sh
# compile.sh COMPILER ARGUMENT...: the compiler by way of ccache.
#
# ccache reads what a compilation depends on, each time, and a precompiled header has up to 300 MB. So that it reads 65
# bytes instead, each of these headers gets a file with its checksum beside it, by the name that ccache looks for.

# Without the first two words ccache does not cache compilations that use precompiled headers; without the third, the
# container that builds the image, which has no LANG, shares nothing with the machine. In depend mode a file that is not
# in the cache is not preprocessed before it is compiled.
export CCACHE_SLOPPINESS=pch_defines,time_macros,locale CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1

header='' previous=''
for argument; do
  case "$previous $argument" in '-o '*.gch | '-o '*.pch) header=$argument ;; esac
  previous=$argument
done
if [ -z "$header" ]; then exec ccache "$@"; fi
# An old checksum beside a new header would find old objects.
rm -f "$header.sum"
ccache "$@" && sha256sum <"$header" >"$header.sum"
