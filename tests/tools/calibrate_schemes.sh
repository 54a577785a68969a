# calibrate_schemes.sh - ft-calibrate's other schemes on a trained model: what they cost, the same
# bytes by any number of threads, and what is no scheme.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
run=$FT_BUILDDIR/ft-run
inspect=$FT_BUILDDIR/ft-inspect
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run beside this one: threads that wait shall leave their processor to them.
unset FT_CPU

# wrong TEXT OPTION...: the command line is refused with TEXT in one line.
wrong () {
    text=$1
    shift
    is 2 "usage: $*" "$calibrate" -i model.ft "$@"
    says err "$text" '... and why is said'
}

cd "$dir" || exit 99
if test ! -f "$sample/model.safetensors"; then
    echo '1..0 # SKIP no samples/source-language-bert'
    exit 0
fi
"$convert" -q -i "$sample" -o model.ft || exit 99

# The float model has 0.8625: 414 of 480 samples; 8 bits may differ in two, 4 in six.
for scheme in w8a16 w8a8-block 'w8a16 --asym --group 0' 'w8a8-block --group 128'; do
    is 0 "$scheme: quantizes" "$calibrate" -q -i model.ft -o new.ft -f --scheme $scheme
    accurate 0.858 new.ft "$scheme: is accurate"
done
for scheme in w4a16 'w4a16 --clip mse' 'w4a16 --asym --group 64'; do
    is 0 "$scheme: quantizes" "$calibrate" -q -i model.ft -o new.ft -f --scheme $scheme
    accurate 0.850 new.ft "$scheme: is accurate"
done
is 0 'the artifact is intact' "$inspect" --verify new.ft
is 0 'and tells what it is' "$inspect" new.ft
says out 'new.ft: bert, blocks, written by ft-calibrate' 'by its state'
says out 'panel32  64,zeros' 'and by its groups'
is 0 'the plan of one in blocks can be shown' "$inspect" --plan new.ft
is 1 'it is not quantized again' "$calibrate" -i new.ft -o again.ft --scheme w8a16
says err 'new.ft: has state blocks, expected a float artifact' '... and that is said'

"$calibrate" -q -i model.ft -o one.ft --scheme w4a16 --clip mse -t 1
"$calibrate" -q -i model.ft -o three.ft --scheme w4a16 --clip mse -t 3
same one.ft three.ft 'three threads give the bytes of one'

is 0 'matrices may differ' "$calibrate" -i model.ft -o new.ft -f --scheme w4a16 \
    --exclude 'layer\.0\.' --tensor '(up|down)=w8a16' --tensor 'up=w8a8-block' --json
says out '"scheme": "float"' 'some stay float'
"$inspect" new.ft | awk '$2 == "linear" { n[$3]++ } END { exit !(n["U4"] == 12 && n["U8"] == 6) }'
check $? 'the first rule that fits decides'
is 0 'int8 and blocks go together' "$calibrate" -i model.ft -o new.ft -f \
    -d "$sample/calibration.safetensors" --samples 16 --tensor 'ffn=w8a16'
says out 'w8a16        32      max' 'and are reported'
says out 'logits of the quantized model against float, 64 held-out samples' 'and compared with floats'
accurate 0.850 new.ft 'and are accurate'
is 0 'a dry run tells what it would cost' "$calibrate" -i model.ft -n --scheme w4a16
says out 'layer.3.ffn.down.weight      w4a16        32      max' 'matrix by matrix'

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
is 1 'a rule that fits nothing is refused' "$calibrate" -i model.ft -o no.ft --scheme w4a16 \
    --exclude fnn
says err '"fnn" matches the name of no quantizable matrix' '... and named'
test ! -e no.ft && test -z "$(find . -name '.*ft-tmp*')"
check $? 'no file is left of what was refused'

echo "1..$count"
