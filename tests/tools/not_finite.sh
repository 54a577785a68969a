# not_finite.sh - a model with NaN or infinity in its outputs: every tool names the row and prints
# no results.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
make_classifier=$FT_BUILDDIR/tests/programs/make-classifier
poison=$FT_BUILDDIR/tests/programs/poison
make_decoder=$FT_BUILDDIR/tests/programs/make-decoder
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# refused SENTENCE TEXT COMMAND...: exit status 1, one line with TEXT on standard error, nothing on
# standard output, and no new.st or new.ft.
refused () {
    sentence=$1 text=$2
    shift 2
    is 1 "$sentence: the command exits with status 1" "$@"
    says err "$text" "$sentence: the message names the row"
    test "$(wc -l <err)" -eq 1 && test ! -s out && test ! -e new.st && test ! -e new.ft
    check $? "$sentence: the command prints and writes nothing else"
}

# ---- Encoders ------------------------------------------------------------------------------------

# The embedding of token 16, the word "l", holds NaN; only row 2 contains that token.
rows='input_ids:I32:4,4=2,5,6,3,2,7,8,3,2,9,16,3,2,11,12,3'
quietly "$make_tensors" rows.st "$rows" labels:I32:4=0
for kind in 'classes 3 {}' 'multi 3 {"problem_type":"multi_label_classification"}' \
    'score 1 {"problem_type":"regression"}' 'embedding 0 {}'; do
    set -- $kind
    name=$1
    quietly "$make_classifier" $name $2 "$3"
    quietly "$convert" -i $name -o $name.ft --dtype f32
    cp $name.ft $name.well.ft
    quietly "$poison" $name.ft embed.word $((16 * 8))
    output=logits
    test $name != embedding || output=embedding
    message="$name.ft: $output: row 2 holds nan, expected finite numbers"
    quietly "$make_tensors" rows.st "$rows"
    is 0 "$name: ft-run evaluates the rows with intact weights" "$run" -i $name.well.ft -d rows.st
    refused "$name: a row of a data file gives NaN" \
        "$message" "$run" -i $name.ft -d rows.st --outputs $output
    refused "$name: a row gives NaN while ft-run writes a file" \
        "$message" "$run" -i $name.ft -d rows.st --outputs $output -o new.st
    refused "$name: a row gives NaN while ft-run prints JSON" \
        "$message" "$run" -i $name.ft -d rows.st --outputs $output --json
    refused "$name: a row gives NaN with one row per batch" \
        "$message" "$run" -i $name.ft -d rows.st \
        --outputs $output --max-tokens 4
    refused "$name: a text gives NaN" \
        "$message" "$run" -i $name.ft --outputs $output 'a b' 'c d' 'e l' 'g h'
    refused "$name: a text gives NaN while ft-run prints JSON" \
        "$message" "$run" -i $name.ft --json --outputs $output \
        'a b' 'c d' 'e l' 'g h'
    is 0 "$name: ft-run evaluates texts without the bad token" "$run" -i $name.ft 'a b' 'c d' 'g h'
done
refused 'hidden states of a row are NaN' 'classes.ft: last_hidden_state: row 2 holds nan' \
    "$run" -i classes.ft -d rows.st --outputs last_hidden_state -o new.st

quietly "$make_tensors" labelled.st "$rows" labels:I32:4=0
quietly "$make_tensors" numbers.st "$rows" labels:F32:4=0.5
refused 'ft-eval: the logits of a classifier are NaN' \
    'classes.ft: logits: row 2 holds nan' "$eval" -i classes.ft -d labelled.st
refused 'ft-eval: the value of a regression model is NaN' \
    'score.ft: logits: row 2 holds nan' "$eval" -i score.ft -d numbers.st
refused 'ft-eval: the logits of the --against model are NaN' 'classes.ft: logits: row 2 holds nan' \
    "$eval" -i classes.well.ft --against classes.ft -d rows.st
quietly "$make_tensors" well.st input_ids:I32:2,4=2,5,6,3,2,7,8,3
refused 'ft-calibrate --eval: the logits are NaN after calibration of w8a8' \
    'classes.ft: logits: row 2 holds nan' \
    "$calibrate" -q -i classes.ft -o new.ft -d well.st --eval rows.st
refused 'ft-calibrate --eval: the logits are NaN after group-wise quantization' \
    'classes.ft: logits: row 2 holds nan' \
    "$calibrate" -q -i classes.ft -o new.ft --eval rows.st --scheme w8a16 --group-pad

# ---- Infinity ------------------------------------------------------------------------------------

cp classes.well.ft large.ft
quietly "$poison" large.ft classifier.weight 3 inf
refused 'a weight is infinite' 'large.ft: logits: row 0 holds inf, expected finite numbers' \
    "$run" -i large.ft 'a b' 'c d'

# ---- Decoders ------------------------------------------------------------------------------------

quietly "$make_decoder" decoder 7
quietly "$convert" -i decoder -o decoder.ft --dtype f32
quietly "$poison" decoder.ft embed.word $((98 * 32))
quietly "$make_tensors" prompts.st input_ids:I32:3,3=5,6,7,8,98,9,10,11,12
message='prompt 1: the logits of new token 0 are not finite'
for seed in '' '--temperature 1 --seed 1'; do
    is 1 "ft-run exits with status 1 if the logits of a prompt are NaN${seed:+, with sampling}" \
        "$run" -i decoder.ft -d prompts.st --max-new-tokens 3 --json $seed
    says err "$message" 'the message names the prompt and the new token with NaN logits'
    test "$(grep -c '"finish_reason": "failed"' out) $(grep -c '"finish_reason": "length"' out)" = '1 2'
    check $? 'ft-run still prints the continuations of the other prompts'
done
refused 'the logits of a decoder are NaN' 'decoder.ft: logits: row 1 holds nan' \
    "$run" -i decoder.ft -d prompts.st --outputs logits -o new.st
refused 'ft-eval: the logits of a decoder are NaN' \
    'row 1: the logits of prediction 1 are not finite' \
    "$eval" -i decoder.ft -d prompts.st

# ---- Encoder-decoders ----------------------------------------------------------------------------

# Their LM head is tied to the embeddings, so every text gets NaN logits.
if test -f "$FT_MODELS/numbers-m2m/config.json"; then
    quietly "$convert" -i "$FT_MODELS/numbers-m2m" -o m2m.ft
    quietly "$poison" m2m.ft embed.word $((18 * 128))
    quietly "$make_tensors" sources.st input_ids:I32:3,4=15,8,6,2,18,8,6,2,11,5,14,2
    for beams in '' '--beams 2'; do
        is 1 "translation exits with status 1 if the logits are NaN${beams:+, with beam search}" \
            "$run" -i m2m.ft -d sources.st --json $beams -o new.st
        says err 'prompt 0: ' 'the message of a failed translation names the source'
        says err 'not finite' 'the message of a failed translation says that logits are not finite'
        test -s out && test -e new.st && rm new.st
        check $? 'ft-run still prints and writes the results of the other sources'
    done
else
    for i in 1 2 3 4 5 6 7 8; do
        skip "no numbers-m2m in $FT_MODELS"
    done
fi

echo "1..$count"
