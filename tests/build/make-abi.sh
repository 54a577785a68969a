#!/bin/sh
# make-abi.sh - write the public ABI of libftruntime as libabigail describes it.
#
#     tests/build/make-abi.sh MAP FILE [HEADER]      tests/build/make-abi.sh build/runtime/libftruntime.map \
#                                                        tests/data/abi/libftruntime.abi
#
# MAP is the version script of a build, HEADER another one than runtime/ft.h.  What the header declares is
# compiled to a library of empty functions with debugging information and that script.  So the result
# depends neither on the options of a build nor on structures that the header does not define; FILE of the
# C library is such a one, too.  CC names the compiler.
# SPDX-License-Identifier: Apache-2.0
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
map=$(readlink -f "${1:?MAP}")
file=$(readlink -m "${2:?FILE}")
header=$(readlink -f "${3:-$top/runtime/ft.h}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Declarations of functions become definitions; types stay what they are.
echo 'typedef struct opaque_file FILE;' >stdio.h
${CC:-cc} -E -P -I. "$header" -o ft.i
awk 'BEGIN { RS = ";" } { gsub(/\n/, " ") }
     /visibility\("default"\)/ { print $0 " { __builtin_trap(); }"; next }
     /[^ ]/ { print $0 ";" }' ft.i >ft.c
${CC:-cc} -w -g -O0 -fPIC -shared -Wl,-soname,libftruntime.so.0 "-Wl,--version-script=$map" ft.c \
    -o libftruntime.so
abidw --no-corpus-path --no-comp-dir-path --no-show-locs libftruntime.so --out-file "$file"
