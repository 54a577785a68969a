# calibrate_heads.sh - int8 calibration on texts runs for every head of BERT, RoBERTa and DistilBERT, and
# its outputs stay near those in float; and samples of encoder-decoders differ by their targets, too.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
bin=$FT_BUILDDIR
cd "$dir" || exit 99

# RoBERTa leaves 8 of 10 positions.
printf 'b c d\na e\nf g h i j k\nl\nc c a\n' >one.txt
printf 'b\tc d\na e\tf\ng\th i\nk j\tl a\n' >two.txt

# quantize_head NAME LABELS CLASS TEXTS MEMBERS: calibrates that head of all three families and compares its
# outputs.  They reach 3; 8 bits in two layers of 8 columns shift them by up to 0.05.
quantize_head () {
    pairs=
    test "$4" != two || pairs=--pairs
    for family in Bert Roberta DistilBert; do
        quietly "$bin/tests/programs/make-classifier" $family-$1 $2 \
            "{\"architectures\": [\"${family}For$3\"]$5}"
        quietly "$bin/ft-convert" -i $family-$1 -o $family-$1.ft --dtype f32
        is 0 "ft-calibrate --text quantizes the $1 of $family" "$bin/ft-calibrate" -q -i $family-$1.ft \
            -o $family-$1.int8.ft --text $4.txt $pairs
        quietly "$bin/ft-run" -i $family-$1.ft --text $4.txt $pairs -o float.out -f
        quietly "$bin/ft-run" -i $family-$1.int8.ft --text $4.txt $pairs -o int8.out -f
        is 0 "the int8 outputs of the $1 of $family are near those in float" \
            "$bin/tests/programs/near-tensors" int8.out float.out 0.1
        is 1 "the $1 of $family is quantized: its outputs are not those in float" \
            "$bin/tests/programs/near-tensors" int8.out float.out 0
    done
}

quantize_head token-classifier 3 TokenClassification one ''
quantize_head question-answering 2 QuestionAnswering two ''
quantize_head masked-lm 1 MaskedLM one ''
quantize_head multi-label 4 SequenceClassification one ', "problem_type": "multi_label_classification"'
quantize_head regression 1 SequenceClassification one ', "problem_type": "regression"'
quantize_head reranker 1 SequenceClassification two ''

quietly "$bin/tests/programs/make-checkpoint" translator m2m-untied translator
quietly "$bin/ft-convert" -i translator -o translator.ft
for target in 60 70; do
    quietly "$bin/tests/programs/make-tensors" $target.safetensors input_ids:I32:1,4=40,41,42,2 \
        labels:I32:1,3=$target,61,2
    quietly "$bin/ft-calibrate" -q -i translator.ft -d $target.safetensors --save-counters $target.counters
done
is 0 'counters of samples with the same sources and other targets are merged' \
    "$bin/ft-calibrate" -q -i translator.ft -o translator.int8.ft --merge 60.counters 70.counters
is 1 'counters of the same sources and targets are not merged' \
    "$bin/ft-calibrate" -q -i translator.ft -n --merge 60.counters 60.counters
says err 'which are counted already' 'the message says that these samples are counted already'

echo "1..$count"
