# layering.sh - who may know whom: the include rules of CONTRIBUTING.md, kept by grep.
# SPDX-License-Identifier: Apache-2.0

cd "${FT_SRCDIR:-.}" || exit 99
. tests/lib/tap.sh
build=${FT_BUILDDIR:-build}
echo 1..17

# none SENTENCE: one line of TAP; standard input lists those who break the rule.
none () {
    offenders=$(cat)
    if test -z "$offenders"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "$offenders" | sed 's/^/# /'
    fi
}

# sources FOLDER...: every C and CUDA source file in them.
sources () {
    find "$@" -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | sort
}

# includes FOLDER...: "FILE:LINE:#include "..."" of every file of ours that they include.
includes () {
    sources "$@" | xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null
}

# except PATTERN: those lines that include something else than "PATTERN".
except () {
    grep -vE "include[[:space:]]*\"($1)\""
}

vocabulary='runtime/(ft|error|mem|tensor)\.h'

for name in ft error mem tensor; do
    grep -HnE 'include[[:space:]]*"' "runtime/$name.h" | except "$vocabulary"
done | none "the vocabulary includes nothing above itself"

includes kernels | except "kernels/.*|$vocabulary" |
    none "kernels/ includes itself and the vocabulary"
includes kernels | grep -v '^kernels/c' | grep -E '"kernels/(cpu|cuda)/' |
    none "operations do not know who computes them"
includes kernels/cpu | grep '"kernels/cuda/' | none "kernels/cpu/ does not know CUDA"
includes kernels/cuda | grep '"kernels/cpu/' | none "kernels/cuda/ does not know the CPU's kernels"

includes runtime | except 'runtime/.*|kernels/[a-z_0-9]*\.h' |
    none "runtime/ includes itself and kernels/*.h, no backend and no tool above it"
includes runtime | grep -v '^runtime/tools/' | grep '"runtime/tools/' |
    none "the library does not know its tools"
includes convert | except 'convert/.*|runtime/.*|kernels/[a-z_0-9]*\.h' |
    none "convert/ includes itself, runtime/ and kernels/*.h"
includes calibrate | except 'calibrate/.*|runtime/.*|kernels/[a-z_0-9]*\.h' |
    none "calibrate/ includes itself, runtime/ and kernels/*.h, not convert/"
includes samples | none "samples/ includes <ft.h> alone"
includes kernels runtime convert calibrate | grep '"tests/' | none "nothing knows its tests"

sources kernels runtime convert calibrate samples | grep -vx 'runtime/devices.c' |
    xargs grep -n 'HAVE_CUDA' /dev/null | none "only runtime/devices.c knows whether CUDA was built in"
sources kernels runtime convert calibrate samples | grep -v '^kernels/cuda/' |
    xargs grep -nE 'include[[:space:]]*<(cuda|cublas|curand|cub/|nccl)' /dev/null |
    none "only kernels/cuda/ includes CUDA's headers"

sources kernels runtime | grep -v '^runtime/tools/' |
    xargs grep -nE '(^|[^a-z_])(exit|_exit|abort|puts|putchar|printf|perror)[[:space:]]*\(|stderr' \
        /dev/null | grep -vE ':[[:space:]]*/?\*|format\(printf' |
    none "the library neither exits nor prints"

find kernels runtime convert calibrate samples tests m4 configure.ac Makefile.am \
    \( -name '*.[ch15]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' -o -name '*.sh' \
    -o -name '*.py' -o -name '*.mk' -o -name '*.m4' -o -name '*.in' -o -name '*.a[cm]' \) \
    ! -path 'm4/l[it]*' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0' |
    none "every source file names its licence"

# value NAME: of a variable of the Makefile, as configure found it.
value () {
    sed -n "s/^$1 = //p" "$build/Makefile"
}

cc=$(value CC)
flags=
for library in LIBZIP JANSSON OPENBLAS LIBCRYPTO UTF8PROC PCRE2; do
    flags="$flags $(value ${library}_CFLAGS)"
done
flags="$flags $(value CUDA_CPPFLAGS)"

# headers: all of ours that stand for themselves.
headers () {
    sources kernels runtime convert calibrate samples tests | grep '\.h$' |
        xargs grep -L 'The including file defines'
}

# with_cuda: those that include CUDA's headers, be it through another of ours.
with_cuda () {
    cuda='<(cuda|cublas|curand)|"kernels/cuda/'
    before=all found=
    while test "$found" != "$before"; do
        before=$found
        found=$(headers | xargs grep -lE "include[[:space:]]*($cuda)")
        cuda=$cuda$(echo "$found" | sed 's/.*/|"&"/' | tr -d '\n')
    done
    echo "$found"
}

if echo '#include <cuda_runtime_api.h>' | $cc $flags -fsyntax-only -x c - >/dev/null 2>&1; then
    not_here=
    echo "ok - the headers for CUDA are compiled with the others"
else
    not_here=$(with_cuda)
    echo "ok # SKIP no CUDA backend, so $(echo "$not_here" | wc -l) headers for it are not compiled"
fi
headers | while read -r header; do
    echo "$not_here" | grep -qxF "$header" && continue
    case $header in
    kernels/cpu/*) set_flags=$(value FT_AVXVNNI_FLAGS) ;; # some are for vectors alone
    *) set_flags= ;;
    esac
    echo "#include \"$header\"" |
        $cc -std=gnu11 -fsyntax-only -I. -I"$build" $flags $set_flags -x c - >/dev/null 2>&1 ||
        echo "$header"
done | none "each header compiles alone"
