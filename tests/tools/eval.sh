# eval.sh - ft-eval: perplexity, divergence from another model, accuracy, and error messages.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
convert=$FT_BUILDDIR/ft-convert
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
make_decoder=$FT_BUILDDIR/tests/programs/make-decoder
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
pick_rows=$FT_BUILDDIR/tests/programs/pick-rows
. "$FT_SRCDIR/tests/lib/tap.sh"

# value FILE KEY: the number of a key in a JSON object.
value () {
    sed -n "s/^ *\"$2\": \([^,]*\),\{0,1\}$/\1/p" "$1"
}

# numbers FILE: a JSON object without its run time.
numbers () {
    grep -v '"seconds"' "$1"
}

# within A B TOLERANCE: |A - B| <= TOLERANCE x |B|.
within () {
    awk -v a="$1" -v b="$2" -v s="$3" \
        'BEGIN { d = a - b; if (d < 0) d = -d; if (b < 0) b = -b; exit !(a != "" && d <= s * b) }'
}

cd "$dir" || exit 99
for seed in 7 8; do
    quietly "$make_decoder" checkpoint$seed $seed 98
    quietly "$convert" -i checkpoint$seed -o m$seed.ft
done

# ---- Perplexity ---------------------------------------------------------------------------------

# Rows of 70, 2, 1 and 33 tokens: some are longer than a prefill chunk, one has nothing to predict.
ids=$(awk 'BEGIN { for (i = 0; i < 280; i++) printf "%s%d", i ? "," : "", (i * i * 7 + i * 13 + 5) % 97 }')
quietly "$make_tensors" rows.st "input_ids:I32:4,70=$ids" lengths:I32:4=70,2,1,33
is 0 'ft-eval evaluates rows of token ids' "$eval" -i m7.ft -d rows.st --json
numbers out >whole
test "$(value whole rows) $(value whole tokens) $(value whole predictions)" = '4 106 102'
check $? 'ft-eval predicts every token except the first of each row'
for chunk in 1 7 64; do
    quietly "$eval" -i m7.ft -d rows.st --json --chunk $chunk
    numbers log >again
    same whole again "ft-eval prints the same numbers with prefill chunks of $chunk tokens"
done
quietly "$pick_rows" rows.st one.st 3:4
quietly "$eval" -i m7.ft -d one.st --json
numbers log >alone
sed -n '/"nll"/,/]/p' whole | sed -n 5p | tr -d ' ,' >expected
sed -n '/"nll"/,/]/p' alone | sed -n 2p | tr -d ' ,' >found
test -s expected
same expected found 'a row has the same negative log-likelihood alone as in a batch'
sed -n '/"nll_mean"/,/]/p' whole | sed -n 4p | grep -q null
check $? 'a row of one token has no mean negative log-likelihood'
is 0 'ft-eval prints a summary without --json' "$eval" -i m7.ft -d rows.st
says out "perplexity $(printf %.5f "$(value whole perplexity)")" \
    'the summary gives the same perplexity as the JSON'

# An independent path: the log-probability that generation reports for the most likely token.
quietly "$make_tensors" five.st input_ids:I32:1,1=5
quietly "$run" -i m7.ft -d five.st --max-new-tokens 1 --ignore-end --json
next=$(sed -n '/"ids"/,/]/p' log | sed -n '2s/[ ,]//gp')
logprob=$(sed -n '/"logprobs"/,/]/p' log | sed -n '2s/[ ,]//gp')
quietly "$make_tensors" two.st input_ids:I32:1,2=5,"$next"
quietly "$eval" -i m7.ft -d two.st --json
# Generation computes the log-probability in float.
within "-$(sed -n '/"nll"/,/]/p' log | sed -n '2s/[ ,]//gp')" "$logprob" 1e-5
check $? 'the log-probability of a generated token is minus its negative log-likelihood in ft-eval'

# ---- Against another model ----------------------------------------------------------------------

is 0 'ft-eval compares a model with itself' "$eval" -i m7.ft --against m7.ft -d rows.st --json
test "$(value out kl_mean) $(value out kl_999) $(value out top1_agreement)" = '0.0 0.0 1.0'
check $? 'a model has no KL divergence from itself and full top-1 agreement'
is 0 'ft-eval compares a model with another one' \
    "$eval" -i m7.ft --against m8.ft -d rows.st --json --chunk 16
numbers out >apart
awk -v mean="$(value apart kl_mean)" -v most="$(value apart kl_999)" \
    -v same="$(value apart top1_agreement)" \
    'BEGIN { exit !(mean > 0.1 && most > mean && same < 0.5) }'
check $? 'models with different random weights have a large KL divergence'
test "$(value apart perplexity)" = "$(value whole perplexity)"
check $? '--against does not change the perplexity of the model'
quietly "$eval" -i m7.ft --against m8.ft -d rows.st --json
numbers log >again
same apart again 'a comparison gives the same numbers with prefill chunks of another size'

is 0 'ft-eval --kv int8 evaluates with an int8 KV cache' \
    "$eval" -i m7.ft --against m7.ft -d rows.st --json \
    --kv int8
awk -v mean="$(value out kl_mean)" 'BEGIN { exit !(mean > 0 && mean < 0.05) }'
check $? 'an int8 KV cache causes a small but nonzero KL divergence'

# ---- Long rows ----------------------------------------------------------------------------------

is 0 'ft-eval --ctx splits rows that are longer than the context' \
    "$eval" -i m7.ft -d rows.st --ctx 35 --json
test "$(value out rows) $(value out predictions)" = '5 101'
check $? 'each part of a split row starts with an empty context'

# ---- Errors -------------------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE OPTION...: ft-eval fails with STATUS, and its message contains TEXT.
refused () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "ft-eval refuses $sentence with status $status" "$eval" "$@"
    says err "$text" "the message of ft-eval for $sentence says: $text"
}

refused 2 'no artifact given' 'a command line without an artifact' -d rows.st
refused 2 'no data given' 'a command line without data' -i m7.ft
refused 2 'unexpected argument "more"' 'a second operand' -i m7.ft -d rows.st more
refused 2 '--chunk: "0" is not a positive number' 'prefill chunks of 0 tokens' \
    -i m7.ft -d rows.st --chunk 0
refused 1 'no.ft: No such file' 'an artifact that does not exist' -i no.ft -d rows.st
refused 1 'no.st: No such file' 'a data file that does not exist' -i m7.ft -d no.st
refused 1 'no.ft: No such file' 'an --against artifact that does not exist' \
    -i m7.ft --against no.ft -d rows.st
refused 1 'a context of 4194305 tokens, but the model has 4194304' \
    'a context longer than the positions of the model' \
    -i m7.ft -d rows.st --ctx 4194305
quietly "$make_tensors" high.st input_ids:I32:2,3=1,2,3,4,300,6
refused 1 'high.st: input_ids[1][1] is 300, expected 0 to 299' 'an id outside the vocabulary' \
    -i m7.ft -d high.st
quietly "$make_tensors" ones.st input_ids:I32:2,1=1,2
refused 1 'ones.st: no row has two tokens' 'data without any token to predict' -i m7.ft -d ones.st
cp m7.ft bad.ft
quietly "$make_decoder" - poison bad.ft
quietly "$make_tensors" bad.st input_ids:I32:2,4=5,6,7,8,9,98,10,11
refused 1 'row 1: the logits of prediction 1 are not finite' 'a model with NaN in its logits' \
    -i bad.ft -d bad.st

# ---- A classifier -------------------------------------------------------------------------------

sample=$FT_SRCDIR/samples/source-language-bert
test -f "$sample/model.safetensors" || sample=$FT_MODELS/source-language-bert
if test -f "$sample/model.safetensors"; then
    quietly "$convert" -i "$sample" -o c.ft
    is 0 'ft-eval evaluates a classifier by the labels of the data' "$eval" -i c.ft --against c.ft \
        -d "$sample/reference.safetensors" --json
    cp out classes
    quietly "$run" -i c.ft -d "$sample/reference.safetensors" --json --outputs logits
    test -n "$(value classes accuracy)" &&
        within "$(value classes accuracy)" "$(value log accuracy)" 1e-8
    check $? 'ft-eval and ft-run print the same accuracy of a classifier'
    test "$(value classes top1_agreement) $(value classes kl_mean)" = '1.0 0.0'
    check $? 'a classifier fully agrees with itself'
    refused 1 'is of family bert' '--against with a model of another kind' \
        -i m7.ft --against c.ft -d rows.st
    quietly "$make_tensors" plain.st input_ids:I32:1,3=1,2,3
    refused 1 'plain.st: no labels' 'classifier data without labels' -i c.ft -d plain.st
else
    for i in 1 2 3 4 5 6 7; do
        skip "no checkpoint source-language-bert in $FT_SRCDIR/samples or $FT_MODELS"
    done
fi

# ---- A decoder with reference logits of transformers --------------------------------------------

# The logits after two rows of the variant "grouped" in tests/golden/llama-variants.json give the
# -log p of [81, 5] and the difference of two rows with a common prefix.
quietly "$make_checkpoint" llama grouped grouped
quietly "$convert" -i grouped -o grouped.ft
row=96,84,37,19,21,19,63,57,19
quietly "$make_tensors" known.st input_ids:I32:3,10=$row,5,$row,50,81,5,0 \
    attention_mask:I32:3,10=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,0
is 0 'ft-eval evaluates a decoder with reference logits' "$eval" -i grouped.ft -d known.st --json
sed -n '/"nll"/,/]/p' out | tr -d ' ,' | grep '^[0-9]' >sums
awk '{ nll[NR] = $1 }
     function far(a, b) { return (a > b ? a - b : b - a) > 1e-5 }
     END { exit NR != 3 || far(nll[3], 4.523951260) || far(nll[2] - nll[1], 1.796822432) }' sums
check $? 'the rows of a decoder have the negative log-likelihoods of transformers'

# ---- A trained decoder --------------------------------------------------------------------------

# transformers' nll_per_row, float32 sums over rows 0 to 3.  Sums in another order differ by 1e-5,
# relatively; the test allows 0.02 %.
sample=$FT_MODELS/python-llama
if test -f "$sample/reference.safetensors"; then
    quietly "$convert" -i "$sample" -o python.ft --dtype f32
    quietly "$pick_rows" "$sample/reference.safetensors" some.st 0:4
    quietly "$eval" -i python.ft -d some.st --json
    sed -n '/"nll"/,/]/p' log | tr -d ' ,' | grep '^[0-9]' >sums
    printf '%s\n' 14.20184576 2149.85583456 85.47336142 1884.49057205 | paste sums - |
        awk '{ d = $1 - $2; far += (d < 0 ? -d : d) > 2e-4 * $2 } END { exit NR != 4 || far }'
    check $? 'python-llama: every row has the negative log-likelihood that transformers computes'
else
    skip "no checkpoint python-llama in $FT_MODELS"
fi

# ---- Encoder-decoders ---------------------------------------------------------------------------

# sums_near TOLERANCE SUM...: the rows of $dir/out have these NLLs within a relative tolerance.
sums_near () {
    far=$1
    shift
    sed -n '/"nll"/,/]/p' "$dir/out" | tr -d ' ,' | grep '^[0-9]' >sums
    printf '%s\n' "$@" | paste sums - | awk -v rows=$# -v far="$far" '
        { d = $1 - $2; off += (d < 0 ? -d : d) > far * $2 } END { exit NR != rows || off }'
}

# The tokens that transformers finds most likely after the texts of tests/golden, and their -log p.
quietly "$make_checkpoint" translator m2m-untied m2m
quietly "$make_checkpoint" translator marian marian
quietly "$convert" -i m2m -o m2m.ft
quietly "$convert" -i marian -o marian.ft
is 0 'ft-eval evaluates an M2M100 by its labels' "$eval" -i m2m.ft \
    -d m2m/reference.safetensors --json
sums_near 1e-4 2.88485673 2.65645182 2.57207935
check $? 'each row of the M2M100 has the negative log-likelihood of transformers'
test "$(value out predictions) $(value out accuracy)" = '3 1.0'
check $? 'every label except padding counts as a prediction, and the model ranks each label first'
is 0 'ft-eval evaluates a Marian model by its labels' \
    "$eval" -i marian.ft -d marian/reference.safetensors --json
sums_near 1e-4 0.74586405 0.56514665 0.33932710
check $? 'each row of the Marian model has the negative log-likelihood of transformers'

sources=15,8,6,14,11,5,11,2,1,10,6,8,6,5,14,15,8,2
labels=16,40,20,47,25,46,50,35,2,42,20,47,22,46,50,38,19,2
quietly "$make_tensors" pairs.st input_ids:I32:2,9=$sources labels:I32:2,9=$labels
quietly "$make_tensors" same.st input_ids:I32:2,9=$sources labels:I32:2,9=$labels \
    decoder_input_ids:I32:2,9=2,16,40,20,47,25,46,50,35,2,42,20,47,22,46,50,38,19
is 0 'ft-eval derives decoder inputs from labels by shifting them behind the start token' \
    "$eval" -i m2m.ft -d pairs.st --json
numbers out >pairs
quietly "$eval" -i m2m.ft -d same.st --json
numbers log >again
same pairs again 'labels alone give the same numbers as labels with explicit decoder_input_ids'
test "$(value pairs rows) $(value pairs predictions)" = '2 18'
check $? 'all labels of the pairs count as predictions'
for chunk in 1 100; do
    quietly "$eval" -i m2m.ft -d pairs.st --json --chunk $chunk -t 1
    numbers log >again
    same pairs again "ft-eval prints the same numbers for pairs with chunks of $chunk tokens"
done
quietly "$FT_BUILDDIR/ft-calibrate" -q -i m2m.ft -o m2m.w8.ft --scheme w8a8-dynamic
is 0 'ft-eval compares an encoder-decoder with its quantized version' \
    "$eval" -i m2m.w8.ft --against m2m.ft \
    -d pairs.st --json
awk -v mean="$(value out kl_mean)" 'BEGIN { exit !(mean > 0 && mean < 0.01) }'
check $? 'w8a8-dynamic causes a small but nonzero KL divergence in an encoder-decoder'
quietly "$make_tensors" sources.st input_ids:I32:2,9=$sources
refused 1 'the data must contain labels [2, T], the target tokens of each row' \
    'sources without labels' -i m2m.ft -d sources.st
refused 1 '--ctx applies to decoders' '--ctx for an encoder-decoder' -i m2m.ft -d pairs.st --ctx 5
quietly "$make_tensors" empty.st input_ids:I32:2,9=$sources labels:I32:2,2=1,1,-100,1
refused 1 'empty.st: labels are all padding' 'labels that are all padding' -i m2m.ft -d empty.st
quietly "$make_tensors" gap.st input_ids:I32:2,9=$sources labels:I32:2,3=16,-100,20,42,20,47
refused 1 'labels[0][2] is 20, but the decoder input at this position is padding' \
    'labels with padding between tokens' -i m2m.ft -d gap.st
refused 1 'is of family llama' '--against with a decoder for an encoder-decoder' \
    -i m2m.ft --against m7.ft \
    -d pairs.st

# ---- A trained encoder-decoder ------------------------------------------------------------------

# The sums over rows 0 to 3 of transformers' logits in trace.safetensors, in double, and sums for
# other labels of the same texts: improbable ids, -100 and padding.
sample=$FT_MODELS/numbers-m2m
if test -f "$sample/reference.safetensors"; then
    quietly "$convert" -i "$sample" -o numbers.ft --dtype f32
    quietly "$pick_rows" "$sample/reference.safetensors" some.st 0:4
    is 0 'ft-eval evaluates numbers-m2m' "$eval" -i numbers.ft -d some.st --json
    sums_near 1e-4 0.0016521582 0.0012271594 0.00030973331 0.0018348192
    check $? 'each row of numbers-m2m has the negative log-likelihood of transformers'
    decoder=2,16,40,20,47,25,46,50,35,2,2,42,20,47,22,46,50,38,19,17
    labels=16,41,20,-100,25,9,50,1,2,30,42,20,47,22,46,50,38,19,17,22
    quietly "$make_tensors" texts.st input_ids:I32:2,9=$sources \
        decoder_input_ids:I32:2,10=$decoder labels:I32:2,10=$labels
    is 0 'ft-eval evaluates numbers-m2m with decoder_input_ids' \
        "$eval" -i numbers.ft -d texts.st --json
    sums_near 1e-4 38.177579384 0.0010426837
    check $? \
        'labels may differ from the shifted decoder_input_ids, and -100 and padding do not count'
    quietly "$eval" -i numbers.ft -d "$sample/reference.safetensors" --json
    test "$(value log rows) $(value log predictions) $(value log accuracy)" = '64 768 1.0'
    check $? 'numbers-m2m predicts each label of its reference'
else
    skip "no checkpoint numbers-m2m in $FT_MODELS"
fi

echo "1..$count"
