# pairs.sh - ft-eval and ft-calibrate read pairs of source and target for encoder-decoders: the same
# results as from their token ids.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/language_tokenizer.sh"
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
cd "$dir" || exit 99

quietly "$make_checkpoint" translator m2m-untied m2m
quietly "$make_checkpoint" translator marian marian
write_language_tokenizer m2m
quietly "$convert" -i m2m -o m2m.ft
quietly "$convert" -i marian -o marian.ft

printf 'w5 w6 w7\tw8 w9\nw10\tw11 w12 w13\n' >pairs.txt
cat >pairs.jsonl <<'END'
{"source": "w5 w6 w7", "target": "w8 w9"}
{"source": "w10", "target": "w11 w12 w13"}
END
sed 's/source/from/; s/target/into/' pairs.jsonl >named.json
cut -f1 pairs.txt >sources.txt

# The language, the text and </s>; Marian has no languages, its </s> is 0, and its padding 96.
quietly "$make_tensors" m2m.st input_ids:I32:2,5=94,5,6,7,2,94,10,2,1,1 \
    labels:I32:2,5=95,8,9,2,-100,95,11,12,13,2
quietly "$make_tensors" german.st input_ids:I32:2,5=93,5,6,7,2,93,10,2,1,1 \
    labels:I32:2,5=96,8,9,2,1,96,11,12,13,2
quietly "$make_tensors" marian.st input_ids:I32:2,4=5,6,7,0,10,0,96,96 \
    labels:I32:2,4=8,9,0,-100,11,12,13,0

# ---- Evaluation ---------------------------------------------------------------------------------

# scores MODEL OPTION...: an evaluation without its duration.
scores () {
    model=$1
    shift
    "$eval" -i "$model.ft" --json "$@" 2>err | grep -v '"seconds"'
}

# evaluates MODEL SENTENCE OPTION...: pairs of texts have the scores of the ids in MODEL.st.
evaluates () {
    ids=$1 pairs_sentence=$2
    shift 2
    is 0 "$pairs_sentence: the command exits with 0" "$eval" --json "$@"
    grep -v '"seconds"' out >found
    scores "${model_of_ids:-$ids}" -d "$ids.st" >wanted
    same wanted found "$pairs_sentence"
}

evaluates m2m 'lines of source and target give an M2M100 the scores of their token ids' \
    -i m2m.ft --text pairs.txt --pairs --target-lang fr
says out '"predictions": 9' 'labels are the target language, the tokens and </s>'
evaluates m2m 'JSON Lines with source and target give the scores of their token ids' \
    -i m2m.ft --text pairs.jsonl --target-lang fr
evaluates m2m '--fields names the members that hold source and target' \
    -i m2m.ft --text named.json --fields from,into --target-lang fr
evaluates marian 'pairs give a Marian model the scores of their token ids' \
    -i marian.ft --text pairs.txt --pairs
model_of_ids=m2m
evaluates german 'source and target have the languages of --source-lang and --target-lang' \
    -i m2m.ft --text pairs.txt --pairs --source-lang de --target-lang zh
model_of_ids=
quietly "$make_tensors" short.st input_ids:I32:2,3=5,6,0,10,0,96 labels:I32:2,3=8,9,0,11,12,0
model_of_ids=marian
evaluates short '--max-length truncates source and target and keeps </s>' \
    -i marian.ft --text pairs.txt --pairs --max-length 3
model_of_ids=

quietly "$calibrate" -q -i m2m.ft -o w8.ft --scheme w8a8-dynamic
scores w8 --against m2m.ft -d m2m.st >wanted
scores w8 --against m2m.ft --text pairs.txt --pairs --target-lang fr >found
same wanted found 'pairs compare two artifacts as their token ids do'
says found '"kl_mean"' 'the comparison of two artifacts has a KL divergence'

# ---- Calibration --------------------------------------------------------------------------------

quietly "$calibrate" -q -i m2m.ft -d m2m.st -o ids.ft
is 0 'ft-calibrate reads pairs for an M2M100' \
    "$calibrate" -q -i m2m.ft --text pairs.txt --pairs --target-lang fr -o texts.ft
same_model ids.ft texts.ft 'pairs give the M2M100 that their token ids give'
quietly "$calibrate" -q -i marian.ft -d marian.st -o ids.ft -f
is 0 'ft-calibrate reads pairs for a Marian model' \
    "$calibrate" -q -i marian.ft --text pairs.jsonl -o texts.ft -f
same_model ids.ft texts.ft \
    'pairs give the Marian model that their token ids give'
is 0 'held-out samples are pairs, too' "$calibrate" -i marian.ft --text pairs.txt --pairs \
    --eval pairs.txt -n
says out '2 held-out samples' 'the report counts the held-out pairs'

# ---- Errors -------------------------------------------------------------------------------------

# refused TEXT SENTENCE COMMAND...: it fails, and the message contains TEXT.
refused () {
    text=$1 refused_sentence=$2
    shift 2
    is 1 "$refused_sentence: the command fails" "$@"
    says err "$text" "$refused_sentence: the message says: $text"
}

for tool in "$eval" "$calibrate -n"; do
    name=$(basename "${tool%% *}")
    refused 'sources.txt: line 1: found one text, expected a pair of source and target' \
        "$name needs targets" $tool -i marian.ft --text sources.txt
    refused 'sources.txt: line 1: has no tab' "$name needs a tab between source and target" \
        $tool -i marian.ft --text sources.txt --pairs
    refused 'translates into de, en, fr, zh' "$name needs the target language" \
        $tool -i m2m.ft --text pairs.txt --pairs
    refused 'the model has none of that name' "$name knows the languages of the model" \
        $tool -i m2m.ft --text pairs.txt --pairs --target-lang xx
    refused 'this model has no languages' "$name accepts no language for a model without any" \
        $tool -i marian.ft --text pairs.txt --pairs --target-lang fr
    refused 'line 1: other: found nothing' "$name names a field that is missing" \
        $tool -i marian.ft --text pairs.jsonl --fields source,other
    is 2 "$name takes languages for texts only" $tool -i m2m.ft -d m2m.st --target-lang fr
    says err '--target-lang requires --text' "the message of $name names the missing option"
done

echo "1..$count"
