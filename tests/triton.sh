# triton.sh - the backend in the server of the wheel nvidia-pytriton, asked by tritonclient.
#
# pip reads the settings of this machine and fetches both.  FT_TRITON_SERVER may name a folder where
# the wheel has been unpacked.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests
. "$FT_SRCDIR/tests/lib/tap.sh"
FT_SRCDIR=$(cd "$FT_SRCDIR" && pwd) FT_BUILDDIR=$(cd "$FT_BUILDDIR" && pwd)
export FT_SRCDIR FT_BUILDDIR PYTHONDONTWRITEBYTECODE=1 TMPDIR="$dir"

skip_all () {
    echo "1..0 # SKIP $1"
    exit 0
}

test "$(uname -m)" = x86_64 || skip_all 'the wheel nvidia-pytriton is for x86-64'
python3 -m venv "$dir/env" >"$dir/log" 2>&1 || skip_all 'no pip: python3 cannot make an environment'
"$dir/env/bin/pip" install -q 'tritonclient[http,grpc]' >"$dir/log" 2>&1 ||
    skip_all "pip cannot install tritonclient: $(tail -n 1 "$dir/log")"
if test -z "${FT_TRITON_SERVER-}"; then
    "$dir/env/bin/pip" download -q --no-deps -d "$dir" nvidia-pytriton==0.7.0 >"$dir/log" 2>&1 ||
        skip_all "pip cannot fetch the server: $(tail -n 1 "$dir/log")"
    export FT_TRITON_SERVER="$dir/server"
    quietly "$dir/env/bin/python" -m zipfile -e "$dir"/nvidia_pytriton-*.whl "$FT_TRITON_SERVER"
    chmod +x "$FT_TRITON_SERVER/pytriton/tritonserver/bin/tritonserver"
fi

quietly make -C "$FT_BUILDDIR" triton
timeout 300 "$dir/env/bin/python" "$FT_SRCDIR/tests/triton/test_triton.py"
