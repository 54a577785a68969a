# tuning_cuda.sh - results on a GPU with a tuning file have the bytes that they have without one,
# whichever kernel it chooses: for an encoder, and with FT_MODELS for the decoder python-llama.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bench=$FT_BUILDDIR/ft-bench
run=$FT_BUILDDIR/ft-run
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/need_gpu.sh"
unset FT_CPU FT_CUDA_GEMM FT_TUNING
cd "$dir" || exit 99

# result ARTIFACT FILE OUT: what the model computes with this tuning file; empty: with none.
result () {
    case $1 in
    llama*) FT_TUNING=$2 "$run" -i "$1" -d prompts.safetensors --device cuda \
        --max-new-tokens 24 --logprobs -f -o "$3" >out 2>err ;;
    *) FT_TUNING=$2 "$run" -i "$1" -d few.safetensors --device cuda -f -o "$3" >out 2>err ;;
    esac || sed 's/^/# /' err
}

# compare ARTIFACT FAMILY SENTENCE: tuned, and with each kernel of the family for all GEMMs.
compare () {
    result "$1" '' plain.out
    is 0 "ft-bench --tune finds kernels for $3" \
        "$bench" -i "$1" --device cuda --tune --tuning "$1.json"
    result "$1" "$1.json" tuned.out
    same plain.out tuned.out "$3 gives the same bytes with a tuning file"
    "$FT_BUILDDIR/tests/programs/gemm-candidates" "$2" >names
    wrong=0
    while read -r name; do
        sed "s|\"kernel\": \"[^\"]*\"|\"kernel\": \"$name\"|" "$1.json" >forced.json
        result "$1" forced.json forced.out
        cmp -s plain.out forced.out && ! test -s err || { echo "# $name differs"; wrong=$((wrong + 1)); }
    done <names
    test -s names && test -s plain.out && test $wrong = 0
    check $? "$3 gives the same bytes with each kernel for all of its GEMMs"
}

"$FT_BUILDDIR/ft-convert" -q -i "$sample" --dtype f16 -o bert.ft || exit 99
"$FT_BUILDDIR/tests/programs/pick-rows" "$sample/calibration.safetensors" few.safetensors 0:14 || exit 99
need_gpu bert.ft few.safetensors
"$FT_BUILDDIR/ft-calibrate" -q -i bert.ft -d "$sample/calibration.safetensors" -o bert.int8.ft || exit 99
compare bert.ft f16 'a BERT in f16'
compare bert.int8.ft int8 'an int8 BERT'
# Four prompts of 40, 1, 7 and 3 tokens, padded with token 0.
ids=$(seq -s , 5 44),9,$(yes 0 | head -n 39 | tr '\n' , | sed 's/,$//')
ids=$ids,$(seq -s , 50 56),$(yes 0 | head -n 33 | tr '\n' , | sed 's/,$//')
ids=$ids,7,8,9,$(yes 0 | head -n 37 | tr '\n' , | sed 's/,$//')
"$FT_BUILDDIR/tests/programs/make-tensors" prompts.safetensors "input_ids:I32:4,40=$ids" || exit 99
if test -f "$FT_MODELS/python-llama/config.json"; then
    "$FT_BUILDDIR/ft-convert" -q -i "$FT_MODELS/python-llama" --dtype f16 -o llama.ft || exit 99
    for scheme in w4a16 w8a8-block w8a8-dynamic; do
        "$FT_BUILDDIR/ft-calibrate" -q -i llama.ft --scheme $scheme -o llama.$scheme.ft || exit 99
    done
    compare llama.ft f16 'a decoder in f16'
    compare llama.w4a16.ft groupwise 'a decoder in w4a16'
    compare llama.w8a8-block.ft groupwise 'a decoder in w8a8-block'
    compare llama.w8a8-dynamic.ft int8 'a decoder in w8a8-dynamic'
else
    skip 'the decoder: FT_MODELS has no python-llama'
fi
echo "1..$count"
