# calibrate_schemes.sh - weight-only and group-wise schemes of ft-calibrate on a trained model: their
# accuracy, identical bytes for any number of threads, and refusal of invalid schemes.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
run=$FT_BUILDDIR/ft-run
inspect=$FT_BUILDDIR/ft-inspect
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run at the same time: waiting threads yield the processor to them.
unset FT_CPU

# wrong TEXT OPTION...: ft-calibrate refuses the options, and its message contains TEXT.
wrong () {
    text=$1
    shift
    is 2 "ft-calibrate refuses '$*' with status 2" "$calibrate" -i model.ft "$@"
    says err "$text" "the message for '$*' says: $text"
}

cd "$dir" || exit 99
if test ! -f "$sample/model.safetensors"; then
    echo '1..0 # SKIP no samples/source-language-bert'
    exit 0
fi
"$convert" -q -i "$sample" -o model.ft || exit 99

# The float model has an accuracy of 0.8625, 414 of 480 samples; 8-bit weights may change two of them,
# 4-bit weights six.
for scheme in w8a16 w8a8-block 'w8a16 --asym --group 0' 'w8a8-block --group 128'; do
    is 0 "ft-calibrate quantizes with --scheme $scheme" \
        "$calibrate" -q -i model.ft -o new.ft -f --scheme $scheme
    accurate 0.858 new.ft "the artifact with --scheme $scheme keeps its accuracy"
done
for scheme in w4a16 'w4a16 --clip mse' 'w4a16 --asym --group 64'; do
    is 0 "ft-calibrate quantizes with --scheme $scheme" \
        "$calibrate" -q -i model.ft -o new.ft -f --scheme $scheme
    accurate 0.850 new.ft "the artifact with --scheme $scheme keeps its accuracy"
done
is 0 'ft-inspect --verify finds no fault in a group-wise artifact' "$inspect" --verify new.ft
is 0 'ft-inspect lists a group-wise artifact' "$inspect" new.ft
says out 'new.ft: bert, blocks, written by ft-calibrate' \
    'ft-inspect shows the state of a group-wise artifact'
says out 'panel32  64,zeros' 'ft-inspect shows the group size and the zero points of a matrix'
is 0 'ft-inspect --plan shows the plan of a group-wise artifact' "$inspect" --plan new.ft
is 1 'ft-calibrate refuses to quantize a group-wise artifact again' \
    "$calibrate" -i new.ft -o again.ft --scheme w8a16
says err 'new.ft: has state blocks, expected a float artifact' \
    'ft-calibrate says that it expects a float artifact'

"$calibrate" -q -i model.ft -o one.ft --scheme w4a16 --clip mse -t 1
"$calibrate" -q -i model.ft -o three.ft --scheme w4a16 --clip mse -t 3
same one.ft three.ft 'ft-calibrate --clip mse writes the same bytes with 1 and 3 threads'

is 0 'ft-calibrate accepts --exclude and several --tensor rules' \
    "$calibrate" -i model.ft -o new.ft -f --scheme w4a16 \
    --exclude 'layer\.0\.' --tensor '(up|down)=w8a16' --tensor 'up=w8a8-block' --json
says out '"scheme": "float"' 'the report lists excluded matrices as float'
"$inspect" new.ft | awk '$2 == "linear" { n[$3]++ } END { exit !(n["U4"] == 12 && n["U8"] == 6) }'
check $? 'the first --tensor rule that matches decides the scheme of a matrix'
is 0 'ft-calibrate combines w8a8 with group-wise matrices' "$calibrate" -i model.ft -o new.ft -f \
    -d "$sample/calibration.safetensors" --samples 16 --tensor 'ffn=w8a16'
matches out 'w8a16 *32  max' 'the report lists the group-wise matrices of a mixed artifact'
says out 'logits of the quantized model against float, 64 held-out samples' \
    'the report compares the logits of a mixed artifact with the float model'
accurate 0.850 new.ft 'the mixed artifact keeps its accuracy'
is 0 'ft-calibrate -n reports what group-wise quantization would cost' \
    "$calibrate" -i model.ft -n --scheme w4a16
matches out 'layer\.3\.ffn\.down\.weight *w4a16 *32  max' 'the dry run reports each matrix'

wrong 'unknown scheme "w3a16"' -o no.ft --scheme w3a16
wrong '"96" is neither 32, 64, 128 nor 0' -o no.ft --scheme w4a16 --group 96
wrong '"max" is neither none, mse nor imatrix' -o no.ft --scheme w4a16 --clip max
wrong '"ffn" is not REGEX=SCHEME' -o no.ft --scheme w4a16 --tensor ffn
wrong 'unknown scheme "int4"' -o no.ft --scheme w4a16 --tensor ffn=int4
wrong '--exclude: "(": ' -o no.ft --scheme w4a16 --exclude '('
wrong 'are for group-wise schemes' -o no.ft -d x --asym
wrong 'no sample data given' -o no.ft --scheme w4a16 --tensor ffn=w8a8
wrong '--head int8 is for int8 schemes' -o no.ft --scheme w4a16 --head int8
wrong 'w4a16 has no counters to save or merge' --scheme w4a16 --save-counters no.counts
is 1 'ft-calibrate refuses an --exclude pattern that matches no matrix' \
    "$calibrate" -i model.ft -o no.ft --scheme w4a16 \
    --exclude fnn
says err '"fnn" matches the name of no quantizable matrix' \
    'ft-calibrate names the pattern that matches no matrix'
test ! -e no.ft && test -z "$(find . -name '.*ft-tmp*')"
check $? 'refused command lines leave no file behind'

echo "1..$count"
