# need_gpu.sh - skips a test on machines without a GPU; needs tap.sh.
# SPDX-License-Identifier: Apache-2.0

# need_gpu ARTIFACT DATA: skips the test without a GPU and fails it if the model does not run.
need_gpu () {
    if "$FT_BUILDDIR/ft-run" -i "$1" -d "$2" --device cuda >out 2>err; then
        return
    fi
    if grep -qE 'no CUDA (device|backend)' err; then
        echo "1..0 # SKIP $(cut -d ' ' -f 2- err)"
        exit 0
    fi
    echo "not ok 1 - ft-run --device cuda runs the model"
    sed 's/^/# /' err
    echo '1..1'
    exit 1
}
