#!/bin/sh
# same-code.sh - check that two revisions compile to the same functions, regardless of their names
# and files: the proof that a commit only moves or renames code.
#
#     tests/build/same-code.sh [--cuda] OLD NEW
#
# Builds both revisions in a temporary folder, without CUDA unless --cuda adds the kernels for one
# architecture, 90a.  Compares the instructions of each function as text without symbols and
# addresses: whether an instruction refers to a symbol matters, but not which symbol.  The
# functions of a revision form a multiset, so that a function may move to another file.  If only
# one revision has a function, the script names it and exits with 1.
#
# Needs git, objdump, and cuobjdump with --cuda.  Uses CC and CFLAGS.
# SPDX-License-Identifier: Apache-2.0
set -eu

cuda=no
if test "${1-}" = --cuda; then
    cuda=90a
    shift
fi
if test $# -ne 2; then
    echo "usage: tests/build/same-code.sh [--cuda] OLD NEW" >&2
    exit 2
fi
top=$(git rev-parse --show-toplevel)
dir=$(mktemp -d)
clean () {
    for side in old new; do
        git -C "$top" worktree remove --force "$dir/$side" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM

with_cuda () {
    if test $cuda = no; then echo --with-cuda=no; else echo --with-cuda-arch=$cuda; fi
}

# build SIDE REVISION
build () {
    echo "building $2" >&2
    git -C "$top" worktree add -q --detach "$dir/$1" "$2" || exit 99
    mkdir "$dir/$1/same"
    (
        cd "$dir/$1"
        autoreconf -fi
        cd same
        ../configure -q "$(with_cuda)" CFLAGS="${CFLAGS--O2} -g0 -DNDEBUG -ffunction-sections"
        make -s -j"$(nproc)"
    ) >"$dir/$1.log" 2>&1 || {
        tail -n 20 "$dir/$1.log" >&2
        echo "$2 does not build" >&2
        exit 99
    }
}

# objects SIDE: the objects of the programs and libraries; libtool puts some of them into .libs/.
objects () {
    find "$dir/$1/same" -name '*.o' ! -path '*/tests/*' | sort
}

# functions SIDE: one line per function with its instructions and its name, separated by a tab.
functions () {
    objects "$1" | while read -r object; do
        objdump -d --no-show-raw-insn --no-addresses "$object"
    done | awk '
        function finish() {
            sub(/(\|(nop[lw]?|xchg|data16|cs)[^|]*)*$/, "", body) # what pads to the next function
            if (name != "")
                print body "\t" name
            name = body = ""
        }
        /^<.*>:$/ { finish(); name = substr($0, 2, length($0) - 3); next }
        /^\t/ {
            line = $0
            gsub(/<[^>+]*/, "<", line) # a symbol; how far behind it stays
            gsub(/[ \t]+/, " ", line)
            body = body "|" line
        }
        END { finish() }'
    test $cuda = no || objects "$1" | while read -r object; do
        cuobjdump -sass "$object" 2>/dev/null || true
    done | awk '
        function finish() {
            if (name != "")
                print body "\t" name
            name = body = ""
        }
        /Function : / { finish(); name = $3; next }
        name != "" && /^[ \t]*\/\*[0-9a-f]+\*\// {
            line = $0
            gsub(/\/\*[^*]*\*\//, "", line) # address and encoding
            gsub(/[ \t]+/, " ", line)
            body = body "|" line
        }
        END { finish() }'
}

# only SIDE: the functions whose instructions occur less often on the other side.
only () {
    other=$(test "$1" = old && echo new || echo old)
    awk -F '\t' 'NR == FNR { count[$1]++; next }
                 count[$1]-- <= 0 { print $2 }' "$dir/$other.functions" "$dir/$1.functions" | sort
}

build old "$1"
build new "$2"
for side in old new; do
    functions $side >"$dir/$side.functions"
done
only old >"$dir/old.only"
only new >"$dir/new.only"
sed "s/^/only in $1: /" "$dir/old.only"
sed "s/^/only in $2: /" "$dir/new.only"
echo "$(wc -l <"$dir/old.functions") and $(wc -l <"$dir/new.functions") functions," \
    "$(wc -l <"$dir/old.only") and $(wc -l <"$dir/new.only") without a counterpart"
test ! -s "$dir/old.only" && test ! -s "$dir/new.only" && test -s "$dir/old.functions"
