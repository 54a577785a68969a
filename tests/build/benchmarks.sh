# benchmarks.sh - the benchmarks, which make check does not run, build.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests
. "$FT_SRCDIR/tests/lib/tap.sh"

${MAKE:-make} -s -k -C "$FT_BUILDDIR" benchmarks >"$dir/out" 2>&1
built=$?
check $built 'every benchmark builds'
test $built -eq 0 || show "$dir/out"
echo "1..$count"
