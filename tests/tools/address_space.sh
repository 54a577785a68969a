# address_space.sh - the tools need little address space, and no library for matrices or threads.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
tools='ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-bench'
echo 1..8

# value NAME: a variable of the Makefile, as set by configure.
value () {
    sed -n "s/^$1 = //p" "$FT_BUILDDIR/Makefile"
}

# cuBLAS computes on GPUs.
! $(value READELF) -d "$FT_BUILDDIR/.libs/libftruntime.so" | grep -v libcublas |
    grep -E 'NEEDED.*(blas|lapack|gfortran|gomp|libomp)' >&2
check $? "libftruntime.so is linked with neither a BLAS for CPUs nor OpenMP"

# limited KILOBYTES COMMAND...: runs it with that much address space, for a minute at most.
limited () {
    kilobytes=$1
    shift
    (ulimit -v "$kilobytes" && exec timeout 60 "$@") >out 2>err
}

if test -n "$(value FT_SAN_FLAGS)$(value CUDA_LIBS)"; then
    for tool in $tools ft-run; do
        skip "$tool: sanitizers and CUDA's libraries take more addresses than the limit leaves"
    done
else
    for tool in $tools; do
        limited 100000 "$FT_BUILDDIR/$tool" --version
        check $? "$tool --version works with 100 MB of address space"
    done
    quietly "$FT_BUILDDIR/ft-convert" -i "$FT_SRCDIR/samples/source-language-bert" -o bert.ft
    limited 200000 "$FT_BUILDDIR/ft-run" -i bert.ft -t 1 'int main(void)'
    check $? "ft-run runs a float encoder with 200 MB of address space"
fi
