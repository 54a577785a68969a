# starved.sh - tools whose allocations find no memory, one after the other, fail cleanly.
# SPDX-License-Identifier: Apache-2.0
#
# FT_STARVE_EVERY=1 takes all allocations, which are thousands of runs; a few dozen are enough here.

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
convert=$FT_BUILDDIR/ft-convert calibrate=$FT_BUILDDIR/ft-calibrate
starve=$FT_BUILDDIR/tests/starve scarce=$FT_BUILDDIR/tests/lib/.libs/libscarce.so
OPENBLAS_NUM_THREADS=1
export OPENBLAS_NUM_THREADS

# starved RUNS TOOL COMMAND...: about so many runs of a command that writes to $dir/written.
starved () {
    runs=$1 tool=$2
    shift 2
    mkdir -p written
    allocations=$("$starve" -e 1000000 "$scarce" written "$@" | sed -n 's/^allocations //p')
    every=${FT_STARVE_EVERY:-$((${allocations:-0} / runs + 1))}
    is 0 "$tool keeps its promises where an allocation fails, every $every. of ${allocations:-0}" \
        "$starve" -e "$every" "$scarce" written "$@"
    says out 'crashes 0' "$tool ends with status 0 or 1 then"
    says out 'silent 0' "$tool says why"
    says out 'litter 0' "$tool leaves neither an output nor a temporary file when it fails"
    says out 'different 0' "$tool writes what it always writes when it does not fail"
    says out 'leaks 0' "$tool frees what it holds"
}

quietly "$FT_BUILDDIR/tests/make-decoder" llama 1
starved 30 ft-convert "$convert" -q -i llama -o written/llama.ft
starved 30 'ft-convert --json' "$convert" -q --json -i llama -o written/llama.ft

echo "1..$count"
