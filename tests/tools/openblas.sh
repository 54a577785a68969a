# openblas.sh - OpenBLAS is loaded only by models that use it for float GEMMs.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
tools='ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-bench'
echo 1..11

# value NAME: a variable of the Makefile, as set by configure.
value () {
    sed -n "s/^$1 = //p" "$FT_BUILDDIR/Makefile"
}

! $(value READELF) -d "$FT_BUILDDIR/.libs/libftruntime.so" | grep -E 'NEEDED.*(libopenblas|libgomp|libomp)' >&2
check $? "libftruntime.so is not linked with OpenBLAS or OpenMP"

# limited KILOBYTES COMMAND...: runs it with that much address space, for five seconds at most.
limited () {
    kilobytes=$1
    shift
    (ulimit -v "$kilobytes" && exec timeout 5 "$@") >out 2>err
}

if test -n "$(value FT_SAN_FLAGS)$(value CUDA_LIBS)"; then
    for tool in $tools ft-run; do
        skip "$tool: sanitizers and CUDA's libraries take more addresses than the limit leaves"
    done
else
    for tool in $tools; do
        limited 300000 "$FT_BUILDDIR/$tool" --version
        check $? "$tool --version works with 300 MB of address space"
    done
    quietly "$FT_BUILDDIR/ft-convert" -i "$FT_SRCDIR/samples/source-language-bert" -o bert.ft
    limited 300000 "$FT_BUILDDIR/ft-run" -i bert.ft -t 1 'int main(void)'
    test $? = 1 && grep -q 'OpenBLAS takes .* MB of addresses for 1 threads' err
    check $? "ft-run refuses a float model if OpenBLAS would wait forever for address space"
fi

# loads_openblas COMMAND...: whether the command loads OpenBLAS.
loads_openblas () {
    LD_DEBUG=files "$@" 2>&1 >/dev/null | grep -q 'file=libopenblas.*generating link map'
}

quietly "$FT_BUILDDIR/ft-convert" -i "$FT_SRCDIR/samples/source-language-bert" -o bert2.ft
loads_openblas "$FT_BUILDDIR/ft-run" -i bert2.ft 'int main(void)'
check $? "ft-run loads OpenBLAS for a float encoder"
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$FT_BUILDDIR/ft-convert" -i decoder -o decoder.ft
! loads_openblas "$FT_BUILDDIR/ft-run" -i decoder.ft --max-new-tokens 2 'a'
check $? "ft-run does not load OpenBLAS for a decoder"
! loads_openblas "$FT_BUILDDIR/ft-inspect" bert2.ft
check $? "ft-inspect does not load OpenBLAS"
