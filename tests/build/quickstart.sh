# quickstart.sh - the quick start works as documented: its examples, its output in the README and
# the device that it chooses.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# ---- Examples -----------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/ft-convert" -q -i "$sample" -o float.ft
quietly "$FT_BUILDDIR/ft-calibrate" -q -i float.ft -o int8.ft --text "$sample/calibration.txt"
printf '%s\n' c cpp python perl shell cmake >languages
for model in float int8; do
    "$run" -i $model.ft --text "$FT_SRCDIR/samples/snippets.txt" >$model.out 2>err
    awk '{ print $1 }' $model.out | cmp -s - languages
    check $? "the $model model classifies all snippets in samples/ correctly"
    sed 's/^/# /' $model.out err
done

# The part of the README from "Accuracy on" on repeats the end of the script's output.
awk '/^```/ { shown = 0 } /^Accuracy on 480/ { shown = 1 } shown' "$FT_SRCDIR/README.md" >block
awk 'NF > 2 && $2 ~ /^[01]\.[0-9]+$/' block >readme
# Final probabilities are computed in float, so their last digits differ between processors.
awk 'NR == FNR { line[FNR] = $0; p[FNR] = $2; next }
     { mine = $0; theirs = line[FNR]; off = $2 - p[FNR]
       sub($2, "P", mine); sub(p[FNR], "P", theirs)
       if (mine != theirs || off > 0.005 || off < -0.005) { print; wrong = 1 } }
     END { exit wrong || FNR != 6 }' readme int8.out >found
check $? 'the README shows the class and probability that the int8 model gives each snippet'
sed 's/^/# /' found

for model in float int8; do
    "$FT_BUILDDIR/ft-eval" -i $model.ft --text "$sample/evaluation.jsonl" >out 2>err
    measured=$(awk '$1 == "accuracy" { print $2 }' out)
    told=$(awk -v model=$model '$1 == model { print $2 }' block)
    # One of 480 snippets may change its class with the order of a processor's float additions.
    awk -v a="$measured" -v b="$told" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < 0.003 ^ 2) }'
    check $? "the README states the measured accuracy of the $model model"
    echo "# measured $measured, told $told"
done

# The texts are the token ids of the safetensors files, so both ways of calibration give one artifact.
quietly "$FT_BUILDDIR/ft-calibrate" -q -i float.ft -o ids.ft -d "$sample/calibration.safetensors"
same_model ids.ft int8.ft 'the texts of the sample calibrate to the model of its token ids'

# example FILE: the first quoted snippet that FILE passes to int8.ft.
example () {
    sed 's/\\-/-/g' "$FT_SRCDIR/$1" | sed -n "s/.*int8\.ft '\(.*\)'.*/\1/p" | head -n 1
}
for file in runtime/tools/run/ft-run.1 samples/README.md; do
    "$run" -i int8.ft "$(example $file)" >out 2>err
    grep -q '^python .*def greet' out
    check $? "the first example of $file is classified as Python"
    sed 's/^/# /' out err
done

# ---- The device ---------------------------------------------------------------------------------

. "$FT_SRCDIR/samples/device.sh"
mkdir bin
real=$PATH

# machine NVCC GPUS: nvcc is in PATH if NVCC is yes; nvidia-smi lists these capabilities, or fails.
machine () {
    rm -f bin/*
    test "$1" = no || printf '#!/bin/sh\n' >bin/nvcc
    {
        echo '#!/bin/sh'
        test "$2" != none || echo 'echo "No devices were found"; exit 6'
        echo "case \$1 in *compute_cap*) printf '%s\n' $2 ;; *) echo 'NVIDIA Test' ;; esac"
    } >bin/nvidia-smi
    chmod +x bin/*
    PATH=$dir/bin:$real
    ft_choose_device
    PATH=$real
}

# chooses DEVICE OPTIONS WHY SENTENCE
chooses () {
    test "$ft_device" = "$1" && test "$ft_configure" = "$2" && test "$ft_why" = "$3"
    found=$?
    check $found "$4"
    test $found -eq 0 || echo "# $ft_device, $ft_configure, $ft_why"
}

if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    skip 'this machine has nvcc'
else
    machine no 9.0
    chooses cpu --with-cuda=no 'no nvcc in PATH or /usr/local/cuda/bin' \
        'without nvcc the quick start builds for the CPU and says why'
fi
machine yes none
chooses cpu --with-cuda=no 'nvcc is installed, but nvidia-smi lists no NVIDIA GPU' \
    'with nvcc but without a GPU the quick start builds for the CPU and says why'
machine yes 7.0
chooses cpu --with-cuda=no "the card's compute capability 7.0 is below 7.5" \
    'with a GPU that is too old the quick start builds for the CPU and says why'
machine yes 9.0
chooses cuda '--with-cuda=auto --with-cuda-arch=90a' 'NVIDIA Test' \
    'with nvcc and a GPU the quick start builds for that GPU and names it'
machine yes '12.0 8.6 8.6 7.0'
chooses cuda '--with-cuda=auto --with-cuda-arch=86,120' 'NVIDIA Test' \
    'with several GPUs the quick start builds once for each supported architecture'

if grep -q '^#define HAVE_CUDA' "$FT_BUILDDIR/config.h"; then
    skip 'this build has a CUDA backend'
else
    is 1 'a build without CUDA refuses --device cuda' "$run" -i int8.ft --device cuda 'def f(x): return x'
    says err 'device cuda: this build has no CUDA backend; install the CUDA Toolkit (nvcc, cuBLAS, cuRAND), then run configure --with-cuda and make' \
        'a build without CUDA that gets --device cuda says how to enable CUDA'
    sed 's/^/# /' err
fi

fails () { echo "ft-run: device cuda: the driver is too old" >&2; return 1; }
machine yes 9.0
ft_try_device fails
test "$ft_device" = cpu && test "$ft_why" = 'cuda failed: ft-run: device cuda: the driver is too old'
check $? 'the quick start falls back to the CPU if the GPU fails, and gives the reason'
fine () { test "$1 $2" = '--device cuda'; }
machine yes 9.0
ft_try_device fine
test "$ft_device" = cuda
check $? 'the quick start uses a GPU that works'

echo "1..$count"
