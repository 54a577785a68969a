# benchmarks.sh - the benchmarks, which make check does not run, build.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests

${MAKE:-make} -s -k -C "$FT_BUILDDIR" benchmarks >"$dir/out" 2>&1
status=$?
test $status -eq 0 && echo 'ok 1 - every benchmark builds' || echo 'not ok 1 - every benchmark builds'
test $status -eq 0 || sed 's/^/# /' "$dir/out"
echo 1..1
