# round_cuda.sh - GPTQ and GPTAQ on a GPU: as accurate as on the CPU, and the same bytes in each run.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
llama=$FT_MODELS/python-llama
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/need_gpu.sh"
unset FT_CPU

# learn ARTIFACT OPTION...: quantizes model.ft by 64 of the samples.
learn () {
    artifact=$1
    shift
    is 0 "ft-calibrate quantizes with $*" \
        "$FT_BUILDDIR/ft-calibrate" -q -f -i model.ft -o "$artifact" -d "$llama/calibration.safetensors" \
        --samples 64 --no-selftest "$@"
}

# distance ARTIFACT: its KL divergence from model.ft on other data, as $found.
distance () {
    "$FT_BUILDDIR/ft-eval" -i "$1" --against model.ft -d "$llama/reference.safetensors" --json \
        >out 2>err || sed 's/^/# /' err
    found=$(sed -n 's/^ *"kl_mean": \([^,]*\),\{0,1\}$/\1/p' out)
    echo "# $* $found"
}

cd "$dir" || exit 99
if test ! -f "$llama/config.json"; then
    echo "1..0 # SKIP no checkpoint python-llama in $FT_MODELS"
    exit 0
fi
quietly "$FT_BUILDDIR/ft-convert" -q -i "$llama" -o model.ft
need_gpu model.ft "$llama/calibration.safetensors"

for how in '--scheme w4a16 --round gptq' '--scheme w4a16 --round gptaq' \
    '--scheme w4a16 --asym --clip imatrix --round gptaq' \
    '--scheme w8a16 --group 128 --group-pad --round gptaq'; do
    learn cpu.ft $how
    learn cuda.ft $how --device cuda
    learn again.ft $how --device cuda
    same cuda.ft again.ft "$how on a GPU writes the same bytes in every run"
    distance cpu.ft
    expected=$found
    distance cuda.ft
    # The GPU observes inputs in half precision, which costs 8 bits 0.00014 of 0.00102.
    awk -v a="$found" -v b="$expected" 'BEGIN { exit !(a != "" && b > 0 && a <= 1.05 * b + 2e-4) }'
    check $? "$how on a GPU is as close to the float model as on the CPU"
done
echo "1..$count"
