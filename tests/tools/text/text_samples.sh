# text_samples.sh - ft-eval and ft-calibrate read texts: metrics of each head, the same bytes as from
# token ids, and their errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
make_classifier=$FT_BUILDDIR/tests/programs/make-classifier
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
cd "$dir" || exit 99

# model NAME LABELS [MEMBERS]: a float artifact NAME.ft.
model () {
    quietly "$make_classifier" "$1" "$2" "${3:-{\}}"
    quietly "$convert" -i "$1" -o "$1.ft" --dtype f32
}

# gives METRIC VALUE SENTENCE: the last evaluation printed this metric.
gives () {
    matches out "^$1 $2\$" "$3"
}

# ---- Classes ------------------------------------------------------------------------------------

model classes 3 '{"id2label": {"0": "bad", "1": "fair", "2": "good"}}'
printf 'b c d e\nf g h i\n' >lines.txt
"$run" -i classes.ft --text lines.txt --jsonl | sed 's/.*"label": "\([^"]*\)".*/\1/' >labels
first=$(sed -n 1p labels) second=$(sed -n 2p labels)
other=bad
test "$second" != bad || other=good
printf '{"text": "b c d e", "label": "%s"}\n{"text": "f g h i", "label": "%s"}\n' \
    "$first" "$other" >classes.jsonl
is 0 'a classifier is evaluated on JSON Lines' "$eval" -i classes.ft --text classes.jsonl
gives accuracy 0.5000 'labels may be names: one of two is right'
matches out '^macro_f1 0\.[0-9]*$' 'a classifier has a macro F1'
is 0 'two models are compared on lines of text' \
    "$eval" -i classes.ft --against classes.ft --text lines.txt
gives top1_agreement 1.0000 'lines without labels need a baseline alone'
is 1 'lines of text without a baseline fail' "$eval" -i classes.ft --text - <lines.txt
says err '-: no labels; add labels or use --against' 'the message says what is missing'
echo '{"text": "b", "label": "superb"}' >unknown.jsonl
is 1 'an unknown label fails' "$eval" -i classes.ft --text unknown.jsonl
says err 'unknown.jsonl: line 1: found the label "superb"' 'the message names file, line and label'

# ---- Entities -----------------------------------------------------------------------------------

# The model labels each word as an entity of its own.
model tokens 3 '{"architectures": ["BertForTokenClassification"],
    "id2label": {"0": "O", "1": "B-X", "2": "I-X"}}'
cat >entities.jsonl <<'END'
{"text": "b c d e", "entities": [{"start": 0, "end": 1, "label": "X"}, {"start": 2, "end": 3, "label": "X"}, {"start": 4, "end": 7, "label": "X"}]}
END
is 0 'ft-run finds entities' "$run" -i tokens.ft --jsonl 'b c d e'
says out '"label": "X", "score"' 'an entity has a label and a score'
is 0 'entities are evaluated' "$eval" -i tokens.ft --text entities.jsonl
gives precision 0.5000 'two of four predicted entities are right'
gives recall 0.6667 'two of three entities are found'
gives f1 0.5714 'F1 is their harmonic mean'
gives accuracy 0.7500 'three of four words have the right label'
is 1 'texts without entities fail' "$eval" -i tokens.ft --text classes.jsonl
says err 'found no list "entities"' 'the message says what is missing'
is 1 'tensors are no samples for entities' "$eval" -i tokens.ft -d nothing.safetensors
says err 'use --text FILE' 'the message names the option'

# ---- Answers ------------------------------------------------------------------------------------

model answers 2 '{"architectures": ["BertForQuestionAnswering"]}'
printf 'f\tb c d e\n' >pair.txt
"$run" -i answers.ft --text pair.txt --pairs --jsonl >out
answer=$(sed -n 's/.*"answer": "\([^"]*\)".*/\1/p' out)
start=$(sed -n 's/.*"start": \([0-9]*\).*/\1/p' out)
printf '{"question": "f", "context": "b c d e", "answers": ["%s"], "answer_start": [%s]}\n' \
    "$answer" "$start" >answers.jsonl
printf '{"question": "f", "context": "b c d e", "answers": [], "answer_start": []}\n' >>answers.jsonl
is 0 'answers are evaluated' "$eval" -i answers.ft --text answers.jsonl
gives exact_match 0.5000 'the answer of one question is right, the other has none'
gives f1 0.5000 'F1 counts words'
gives span_exact_match 0.5000 'the right answer stands at the right tokens'
gives span_f1 0.5000 'F1 of tokens'
is 1 'texts without context fail' "$eval" -i answers.ft --text lines.txt
says err 'expected pairs of question and context' 'the message says what a question needs'

# ---- Embeddings ---------------------------------------------------------------------------------

model sentences 0
printf 'b c\nd e\nf g\nh i\nj k\nl b\n' >sentences.txt
"$run" -i sentences.ft --text sentences.txt >vectors
paste -d' ' - - <vectors | awk '{
    n = NF / 2; p = a = b = 0
    for (i = 1; i <= n; i++) { p += $i * $(i + n); a += $i * $i; b += $(i + n) * $(i + n) }
    printf "%.6f\n", p / sqrt(a * b)
}' >cosines
paste -d' ' - - <sentences.txt | paste -d'|' - cosines | awk -F'|' '{
    split($1, w, " ")
    printf "{\"sentence1\": \"%s %s\", \"sentence2\": \"%s %s\", \"score\": %s}\n", w[1], w[2], w[3], w[4], $2
}' >similar.jsonl
sed 's/"score": \(-*\)/"score": -\1/; s/--//' similar.jsonl >opposite.jsonl
is 0 'pairs of sentences are evaluated' "$eval" -i sentences.ft --text similar.jsonl
gives spearman 1.0000 'scores in the order of the cosines correlate'
is 0 'pairs of sentences are evaluated' "$eval" -i sentences.ft --text opposite.jsonl
gives spearman -1.0000 'scores in the opposite order correlate negatively'
is 1 'sentences without scores fail' "$eval" -i sentences.ft --text sentences.txt
says err 'expected pairs of sentences' 'the message says what is missing'

# ---- Perplexity ---------------------------------------------------------------------------------

# The tokens of this decoder are bytes.  Its rows have 12, 7 and 3 tokens.
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -i decoder -o decoder.ft
printf 'the quick fx\njumps o\nver\n' >decoder.txt
ids=$(for line in 'the quick fx' 'jumps o     ' 'ver         '; do
    printf %s "$line" | od -An -v -tu1 | tr -s ' \n' ',,'
done | tr -d '\n' | sed 's/^,//; s/,,*/,/g; s/,$//')
quietly "$make_tensors" decoder.st "input_ids:I32:3,12=$ids" lengths:I32:3=12,7,3
is 0 'a decoder is evaluated on lines of text' "$eval" -i decoder.ft --text decoder.txt --json
grep -v '"seconds"' out >lines.json
says lines.json '"predictions": 19' 'a decoder predicts each token of a line but the first'
matches lines.json '^ *"perplexity": [0-9]' 'a decoder has a perplexity on lines of text'
quietly "$eval" -i decoder.ft -d decoder.st --json
grep -v '"seconds"' log >ids.json
same lines.json ids.json 'lines of text have the perplexity that their token ids have, to the digit'

# ---- Calibration --------------------------------------------------------------------------------

quietly "$make_tensors" ids.safetensors input_ids:I32:2,6=2,6,7,8,9,3,2,10,11,12,13,3
quietly "$calibrate" -q -i classes.ft -d ids.safetensors -o ids.ft
is 0 'ft-calibrate reads texts' "$calibrate" -q -i classes.ft --text lines.txt -o texts.ft
same_model ids.ft texts.ft 'texts give the model that their token ids give'
is 0 'held-out samples are texts, too' \
    "$calibrate" -i classes.ft --text lines.txt --eval lines.txt -n
says out '2 held-out samples' 'the report counts the held-out texts'
for m in tokens answers sentences; do
    samples=lines.txt options=
    test $m != answers || samples=pair.txt options=--pairs
    is 0 "a model of $m is calibrated on texts" \
        "$calibrate" -q -i $m.ft --text $samples $options -o $m.int8.ft
done
is 2 '-d and --text exclude each other' \
    "$calibrate" -i classes.ft -d ids.safetensors --text lines.txt -n
says err 'give either -d FILE, --text FILE or --image FILE' 'the message names the options'
is 2 '--pairs needs texts' "$calibrate" -i classes.ft -d ids.safetensors --pairs -n
says err '--pairs requires --text' 'the message names the missing option'
is 1 'a classifier has no languages' \
    "$eval" -i classes.ft --text classes.jsonl --target-lang fr
says err 'leave --source-lang and --target-lang out' 'the message names both options'

echo "1..$count"
