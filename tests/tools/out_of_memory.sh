# out_of_memory.sh - each allocation of the tools fails in turn, and the tools fail cleanly.
# SPDX-License-Identifier: Apache-2.0
#
# FT_STARVE_EVERY=1 fails the first allocation of every call chain, which takes thousands of runs;
# by default the test tries a few dozen.

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
convert=$FT_BUILDDIR/ft-convert calibrate=$FT_BUILDDIR/ft-calibrate
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
starve=$FT_BUILDDIR/tests/programs/starve scarce=$FT_BUILDDIR/tests/lib/.libs/libscarce.so
"$starve" 2>/dev/null
if test $? -eq 77; then
    echo '1..0 # SKIP a sanitizer has the allocator for itself; tests/model/memory.t is run with it'
    exit 0
fi

# starved EVERY JOB COMMAND...: a command that writes to $dir/written fails cleanly if an allocation
# fails, tried for every EVERYth call chain.  Its standard output is compared too, unless `compare`
# is empty because the output contains times.
compare=-o
starved () {
    every=${FT_STARVE_EVERY:-$1} job=$2
    shift 2
    mkdir -p written
    is 0 "$job fails cleanly when an allocation fails" \
        "$starve" -e "$every" $compare "$scarce" written "$@"
    says out 'crashes 0' "$job exits with status 0 or 1 when an allocation fails"
    says out 'silent 0' "$job reports each failed allocation that makes it fail"
    says out 'litter 0' "$job leaves neither an output nor a temporary file when it fails"
    says out 'different 0' \
        "$job writes its usual output when it succeeds despite a failed allocation"
    says out 'leaks 0' "$job frees all memory when an allocation fails"
    grep -e '^allocations' -e '^chains' out | sed 's/^/# /'
}

quietly "$FT_BUILDDIR/tests/programs/make-decoder" llama 1
quietly "$FT_BUILDDIR/tests/programs/make-classifier" bert 3
quietly "$convert" -q -i bert -o bert.ft
quietly "$make_tensors" samples.safetensors \
    input_ids:I32:4,5=2,5,6,7,3,2,8,9,10,3,2,5,11,12,3,2,5,6,14,3 labels:I64:4=0,1,2,1
quietly "$calibrate" -q -i bert.ft -d samples.safetensors --save-counters 1.counters --samples 0:2
quietly "$calibrate" -q -i bert.ft -d samples.safetensors --save-counters 2.counters --samples 2:4

starved 17 'ft-convert' "$convert" -q --json -i llama -o written/llama.ft
starved 17 'ft-convert --rotate' "$convert" -q --rotate -i llama -o written/llama.ft
starved 17 'ft-convert -n' "$convert" -q -n -i bert
sources=$FT_SRCDIR/tests/golden/tokenizer-sources
cp -r bert words
rm words/tokenizer.json
head -n 20 "$sources/uncased.txt" >words/vocab.txt
mkdir pieces
echo '{"tokenizer_class": "LlamaTokenizer"}' >pieces/tokenizer_config.json
cp "$sources/llama.model" pieces/tokenizer.model
echo 'a text' >text
starved 31 'ft-convert with a vocab.txt' "$convert" -q -n -i words
starved 31 'ft-tokenize with a SentencePiece model' "$FT_BUILDDIR/ft-tokenize" -i pieces text
set -- "$calibrate" -q -i bert.ft -t 1
starved 11 'ft-calibrate --save-counters' "$@" -d samples.safetensors --save-counters written/1.counters
starved 37 'ft-calibrate --merge' "$@" -o written/int8.ft --merge 1.counters 2.counters
starved 61 'ft-calibrate --report' "$@" -d samples.safetensors -o written/int8.ft \
    --report written/report.json
starved 67 'ft-calibrate with imatrix, AWQ and GPTQ' \
    "$@" -d samples.safetensors -o written/w4.ft --scheme w4a16 --json \
    --group-pad --asym --clip imatrix --scale awq --round gptq
starved 67 'ft-calibrate with GPTAQ' \
    "$@" -d samples.safetensors -o written/w4.ft --scheme w4a16 --group-pad --round gptaq

quietly "$calibrate" -q -i bert.ft -d samples.safetensors -o int8.ft
starved 37 'ft-calibrate --amax' "$@" -o written/given.ft --amax int8.ft
inspect=$FT_BUILDDIR/ft-inspect
starved 7 'ft-inspect --json' "$inspect" --json bert.ft
starved 7 'ft-inspect' "$inspect" bert.ft
starved 37 'ft-inspect --selftest' "$inspect" --selftest int8.ft
starved 17 'ft-inspect --verify --json' "$inspect" --verify --json int8.ft
starved 17 'ft-inspect --diff --json' "$inspect" --diff --json int8.ft int8.ft
starved 17 'ft-inspect --amax --json' "$inspect" --amax --json int8.ft

compare=
quietly "$convert" -q -i llama -o llama.ft
quietly "$make_tensors" prompts.safetensors input_ids:I32:2,4=5,6,7,8
starved 23 'ft-run with an encoder' \
    "$FT_BUILDDIR/ft-run" -t 1 -i bert.ft -d samples.safetensors --json \
    -o written/outputs.st
starved 47 'ft-run with a decoder' \
    "$FT_BUILDDIR/ft-run" -t 1 -i llama.ft --json --max-new-tokens 4 ab cd
starved 47 'ft-eval' "$FT_BUILDDIR/ft-eval" -t 1 -i bert.ft --against bert.ft \
    -d samples.safetensors --json
if grep -q 'define HAVE_LIBPNG' "$FT_BUILDDIR/config.h"; then
    quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" vit vit
    quietly "$convert" -q -i vit -o vit.ft
    mkdir -p images/LABEL_1 images/2
    cp "$FT_SRCDIR/tests/golden/images/rgb.png" images/LABEL_1
    cp "$FT_SRCDIR/tests/golden/images/bits.png" images/2
    starved 97 'ft-calibrate with images' \
        "$calibrate" -q -t 1 -i vit.ft --image images -o written/int8.ft
    starved 31 'ft-eval with images' "$FT_BUILDDIR/ft-eval" -t 1 -i vit.ft --image images --json
else
    skip 'this build has no libpng'
fi
set -- "$FT_BUILDDIR/ft-bench" -t 1 -i bert.ft -r 1 --ops -b 1 -l 8 --json
starved 47 'ft-bench --roofline' "$@" --roofline 1,1,1,1
starved 149 'ft-bench' "$@"

echo "1..$count"
