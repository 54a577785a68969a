# run_cuda.sh [ARTIFACT DATA] - convert, calibrate and run a trained model on a GPU and compare it
# with the CPU: all named values of int8 plans have the same bytes.  With an int8 artifact and
# samples for it, compare only these.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
run=$FT_BUILDDIR/ft-run
inspect=$FT_BUILDDIR/ft-inspect
pick=$FT_BUILDDIR/tests/programs/pick-rows
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/need_gpu.sh"
unset FT_CPU FT_CUDA_GEMM

# The values of a plan, except outputs of float GEMMs, which two different libraries compute.
names () {
    "$inspect" --plan "$1" | awk '$1 ~ /^[0-9]+$/ && !($2 == "linear" && /weight \[(F32|F16|BF16)\]/) {
        print $3
        for (i = 4; i < NF; i++) if ($i == "and") print $(i + 1)
    }'
}

# The same with the values that fused operations do not store; --no-fuse plans have them.
alone () {
    names "$1" | sed -n '/\.[qkv]$/s/$/.float/p; /\.context$/s/$/.float/p; /\.act$/s/$/.float/p'
    names "$1"
}

# keep ARTIFACT DATA DEVICE OPTION VALUE...: runs the artifact, writes these values to DEVICE.out.
keep () {
    artifact=$1 samples=$2 device=$3 option=$4
    shift 4
    for value; do
        set -- "$@" --keep "$value"
        shift
    done
    "$run" -i "$artifact" -d "$samples" --device "$device" --outputs last_hidden_state -f \
        -o "$device.out" $option "$@" \
        >out 2>err || sed 's/^/# /' err
}

# compare ARTIFACT DATA SENTENCE [OPTION]: every value in the file `values` has the same bytes on
# the CPU and the GPU.
compare () {
    split -l 25 values part.
    found=0 wanted=0
    for part in part.*; do
        wanted=$((wanted + 1))
        rm -f cpu.out cuda.out
        for device in cpu cuda; do
            keep "$1" "$2" $device "$4" $(cat "$part")
        done
        if cmp cpu.out cuda.out >difference 2>&1; then
            found=$((found + 1))
        else
            echo "# one of these differs: $(tr '\n' ' ' <"$part")"
            sed 's/^/# /' difference
        fi
    done
    rm -f part.*
    test "$(wc -l <values)" -gt 20 && test $found -eq $wanted
    check $? "$3: all $(wc -l <values) values have the same bytes on the GPU and the CPU"
}

# compare_all ARTIFACT DATA SENTENCE: with fused operations and without.
compare_all () {
    names "$1" >values
    compare "$1" "$2" "$3"
    alone "$1" >values
    compare "$1" "$2" "$3, with --no-fuse" --no-fuse
}

if test $# -eq 2; then
    artifact=$(realpath "$1") samples=$(realpath "$2")
    cd "$dir" || exit 99
    need_gpu "$artifact" "$samples"
    compare_all "$artifact" "$samples" "$(basename "$artifact")"
    echo "1..$count"
    exit 0
fi

cd "$dir" || exit 99
if test ! -f "$sample/model.safetensors"; then
    echo '1..0 # SKIP no samples/source-language-bert'
    exit 0
fi
"$convert" -q -i "$sample" -o model.ft || exit 99
need_gpu model.ft "$sample/calibration.safetensors"

accurate 0.8625 model.ft 'the float model is as accurate on the GPU as on the CPU' --device cuda
for dtype in f32 f16 bf16; do
    "$convert" -q -i "$sample" -o $dtype.ft --dtype $dtype
    accurate 0.8500 $dtype.ft "the $dtype model is accurate on the GPU" --device cuda
done

data=$sample/calibration.safetensors
"$pick" "$data" few.safetensors 0:14 || exit 99
for residual in float int8; do
    is 0 "ft-calibrate --residual $residual calibrates on the CPU" \
        "$calibrate" -q -i model.ft -d "$data" --residual $residual -o $residual.ft
    compare_all $residual.ft few.safetensors "the model with a $residual residual stream"
    accurate 0.850 $residual.ft \
        "the model with a $residual residual stream is accurate on the GPU" --device cuda
done
for kernel in simt mma wgmma cublaslt; do
    if FT_CUDA_GEMM=$kernel "$run" -i float.ft -d few.safetensors --device cuda -f -o $kernel.out \
        --outputs last_hidden_state >out 2>err; then
        "$run" -i float.ft -d few.safetensors --outputs last_hidden_state -f -o cpu.out >out
        same cpu.out $kernel.out "int8 GEMMs with FT_CUDA_GEMM=$kernel give the same bytes as the CPU"
    else
        skip "$(cut -d ' ' -f 2- err)"
    fi
done

# The plan names the kernel of each GEMM; it also says if a requested kernel is unavailable.
is 0 'ft-inspect --plan --device cuda lists the kernels of the int8 GEMMs' \
    "$inspect" --plan --device cuda float.ft
test "$(sed -n 's/^ *gemm  *.*, \([0-9]*\) times*: .*\(mma\|lt\|plain\).*/\1/p' out |
    awk '{ n += $1 } END { print n + 0 }')" -eq "$(grep -c '^ *[0-9].* linear .*I8 col4' out)"
check $? 'the listed kernels cover all int8 GEMMs of the plan'
grep '^ *gemm' out | sed 's/^/# /'
FT_CUDA_GEMM=simt "$inspect" --plan --device cuda float.ft >out
grep '^ *gemm' out >found
test -s found && ! grep -qv 'simt: requested by FT_CUDA_GEMM$' found
check $? 'FT_CUDA_GEMM=simt selects the SIMT kernel for all GEMMs'
sed 's/^/# /' found
FT_CUDA_GEMM=abacus "$run" -v -i float.ft -d few.safetensors --device cuda >out 2>err
grep -q '^ *gemm .*FT_CUDA_GEMM=abacus is not a kernel' err
check $? 'ft-run -v says that FT_CUDA_GEMM names an unknown kernel'

"$run" -i float.ft -d few.safetensors --device cuda --outputs last_hidden_state -f -o all.out >out
"$run" -i float.ft -d few.safetensors --device cuda --outputs last_hidden_state -f -o single.out \
    --max-tokens 1 >out
same all.out single.out 'a sequence gives the same results alone as in a batch on the GPU'
"$run" -i float.ft -d few.safetensors --device cuda -f -o all.out >out
"$run" -i float.ft -d few.safetensors --device cuda -f -o unfused.out --no-fuse >out
same all.out unfused.out 'the GPU gives the same results with --no-fuse'

is 0 'ft-calibrate --device cuda calibrates a model' \
    "$calibrate" -q -i model.ft -d "$data" --device cuda -m max -o gpu.ft --save-counters a.counts
accurate 0.850 gpu.ft 'the model calibrated on the GPU is accurate' --device cuda
is 0 'ft-calibrate --device cuda calibrates the model again' \
    "$calibrate" -q -i model.ft -d "$data" --device cuda -m max -o again.ft --save-counters b.counts
same a.counts b.counts 'the GPU counts the same samples to the same bytes'

is 1 'ft-inspect --device cuda fails without a GPU' \
    env CUDA_VISIBLE_DEVICES= "$inspect" --plan --device cuda float.ft
grep -q '^ft-inspect: device cuda:0: no CUDA device: ' err
check $? 'ft-inspect says that there is no CUDA device'
is 1 'ft-run --device cuda:1000 fails' \
    "$run" -i float.ft -d few.safetensors --device cuda:1000
grep -q '^ft-run: device cuda:1000: no such device: the driver lists [0-9]*$' err
check $? 'ft-run says how many devices the driver lists'

echo "1..$count"
