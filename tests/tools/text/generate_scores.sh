# generate_scores.sh - ft-eval --generate compares what ft-run prints with references: exact match,
# BLEU and chrF of encoder-decoders and decoders, and its errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/language_tokenizer.sh"
convert=$FT_BUILDDIR/ft-convert
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
make_decoder=$FT_BUILDDIR/tests/programs/make-decoder
cd "$dir" || exit 99

# gives METRIC VALUE SENTENCE: the last evaluation printed this metric.
gives () {
    matches out "^$1 $2\$" "$3"
}

# perfect SENTENCE: all metrics of the last evaluation are at their best.
perfect () {
    gives exact_match 1.0000 "$1: every text matches"
    gives bleu 100 "$1: BLEU is 100"
    gives chrf 100 "$1: chrF is 100"
}

# refused STATUS TEXT SENTENCE OPTION...: ft-eval fails, and the message contains TEXT.
refused () {
    status=$1 text=$2 refused_sentence=$3
    shift 3
    is "$status" "$refused_sentence: ft-eval fails with status $status" "$eval" "$@"
    says err "$text" "$refused_sentence: the message says: $text"
}

# ---- Translators --------------------------------------------------------------------------------

quietly "$make_checkpoint" translator m2m-untied m2m
quietly "$make_checkpoint" translator marian marian
write_language_tokenizer m2m
quietly "$convert" -i m2m -o m2m.ft
quietly "$convert" -i marian -o marian.ft
printf 'w5 w6 w7\nw10\nw20 w21 w22 w23\n' >sources.txt

# translate MODEL OPTION...: the translations of sources.txt, one a line.
translate () {
    model=$1
    shift
    "$run" -i "$model.ft" --text sources.txt "$@" 2>err
}

# greedy MODEL OPTION...: the same by greedy search, one source at a time.
greedy () {
    model=$1
    shift
    while read -r line; do "$run" -i "$model.ft" "$@" "$line" 2>err; done <sources.txt
}

greedy m2m --target-lang fr --max-new-tokens 8 | paste sources.txt - >french.txt
is 0 'an M2M100 translates greedily' \
    "$eval" -i m2m.ft --text french.txt --pairs --generate --target-lang fr --max-new-tokens 8
perfect 'the greedy translations of ft-run as references'
matches out '^3 rows, 14 tokens, 3 predictions' 'the sources with their special tokens are counted'
is 0 'translations may run one by one' "$eval" -i m2m.ft --text french.txt --pairs --generate \
    --target-lang fr --max-new-tokens 8 --batch 1 --chunk 1 -t 1
perfect 'sources one by one'
sed 's/\t/\t  /; s/$/ /' french.txt >spaces.txt
is 0 'references may have white space around them' "$eval" -i m2m.ft --text spaces.txt --pairs \
    --generate --target-lang fr --max-new-tokens 8
perfect 'references with white space around them'
is 0 'another target language gives other texts' "$eval" -i m2m.ft --text french.txt --pairs \
    --generate --target-lang de --max-new-tokens 8
gives exact_match 0.0000 'no text in another language matches'

for beams in 1 4; do
    translate m2m --source-lang de --target-lang zh --max-new-tokens 8 --beams $beams |
        paste sources.txt - >beams.txt
    is 0 "a beam search with $beams beams is evaluated" "$eval" -i m2m.ft --text beams.txt --pairs \
        --generate --source-lang de --target-lang zh --max-new-tokens 8 --beams $beams
    perfect "the translations of ft-run with $beams beams as references"
done
greedy marian --max-new-tokens 7 | paste sources.txt - >marian.txt
is 0 'a Marian model translates' \
    "$eval" -i marian.ft --text marian.txt --pairs --generate --max-new-tokens 7
perfect 'the translations of a Marian model as references'

# ---- Known scores -------------------------------------------------------------------------------

# Of n words, one in front of one text is wrong: n - 1 of n words, n - 4 of n - 3 bigrams, and so on,
# as one of three texts starts with it.
words=$(cut -f2 french.txt | wc -w)
sed '1s/\t[^ ]*/\tw99/' french.txt >wrong.txt
wanted=$(awk -v n="$words" 'BEGIN {
    product = 1
    for (k = 1; k <= 4; k++) { total = n - 3 * (k - 1); product *= (total - 1) / total }
    printf "%.6g", 100 * product ^ 0.25 }')
is 0 'a wrong word is counted' "$eval" -i m2m.ft --text wrong.txt --pairs --generate \
    --target-lang fr --max-new-tokens 8
gives exact_match 0.6667 'two of three texts match'
gives bleu "$wanted" 'each order of n-grams lacks one: BLEU is the geometric mean'
awk '$1 == "chrf" { found = 1; fine = $2 > 50 && $2 < 100 } END { exit !(found && fine) }' out
check $? 'chrF is below 100'

# Special tokens are no text; here all words are.
cp -r m2m silent
special=$(i=4; while test "$i" -le 92; do added "$i" "w$i" ,; i=$((i + 1)); done)
sed -i "s/{\"id\": 93/$special&/" silent/tokenizer.json
quietly "$convert" -i silent -o silent.ft
is 0 'empty texts are evaluated' "$eval" -i silent.ft --text french.txt --pairs --generate \
    --target-lang fr --max-new-tokens 8
gives exact_match 0.0000 'an empty text does not match a reference'
gives bleu 0 'BLEU of empty texts is 0'
gives chrf 0 'chrF of empty texts is 0'
cut -f1 french.txt | sed 's/$/\t/' >empty.txt
is 0 'references may be empty' "$eval" -i silent.ft --text empty.txt --pairs --generate \
    --target-lang fr --max-new-tokens 8
gives exact_match 1.0000 'an empty text matches an empty reference'

# ---- Decoders -----------------------------------------------------------------------------------

quietly "$make_decoder" decoder 7
quietly "$convert" -i decoder -o decoder.ft
printf 'a cat\nb dog\n' >prompts.txt
"$run" -i decoder.ft --text prompts.txt --json --max-new-tokens 6 2>err |
    sed -n 's/^ *"text": \(".*"\),$/\1/p' >texts
sed 's/.*/{"prompt": "&", "completion": /' prompts.txt | paste -d' ' - texts | sed 's/$/}/' >own.jsonl
sed 's/"prompt"/"ask"/; s/"completion"/"tell"/' own.jsonl >named.jsonl
is 0 'a decoder completes the prompts of JSON Lines' \
    "$eval" -i decoder.ft --text own.jsonl --generate --max-new-tokens 6
gives exact_match 1.0000 'the texts of ft-run match as references'
gives chrf 100 'chrF of the texts of ft-run is 100'
is 0 '--fields names prompts and references' "$eval" -i decoder.ft --text named.jsonl \
    --fields ask,tell --generate --max-new-tokens 6
gives exact_match 1.0000 'the fields are those of --fields'
is 0 'samples may come from standard input' \
    sh -c "'$eval' -i decoder.ft --against decoder.ft --text - --fields prompt,completion \
        --generate --max-new-tokens 6 <own.jsonl"
gives exact_match_baseline 1.0000 'standard input serves both models'
printf 'a\nx\n' | paste prompts.txt - >pairs.txt
is 0 'a decoder completes lines up to the tab' \
    "$eval" -i decoder.ft --text pairs.txt --pairs --generate --max-new-tokens 3
gives exact_match 0.0000 'the second texts are the references'

# ---- Two models ---------------------------------------------------------------------------------

is 0 'two models are compared' "$eval" -i silent.ft --against m2m.ft --text wrong.txt --pairs \
    --generate --target-lang fr --max-new-tokens 8
gives exact_match 0.0000 'the first figures are those of the model'
gives exact_match_baseline 0.6667 'the baseline has its own exact match'
gives bleu_baseline "$wanted" 'the baseline has its own BLEU'
matches out '^chrf_baseline [0-9.]*$' 'the baseline has its own chrF'
gives agreement 0.0000 'no text of both models is the same'
is 0 'a model is compared with itself, as JSON' "$eval" -i m2m.ft --against m2m.ft --json \
    --text wrong.txt --pairs --generate --target-lang fr --max-new-tokens 8
says out '"agreement": 1.0' 'a model agrees with itself'
says out '"predictions": 3' 'JSON has the number of texts'
for metric in exact_match bleu chrf exact_match_baseline bleu_baseline chrf_baseline; do
    matches out "^ \"$metric\": [0-9.]*,\$" "JSON has $metric"
done

# ---- Errors -------------------------------------------------------------------------------------

quietly "$make_checkpoint" bert classifier bert
quietly "$convert" -i bert -o bert.ft
refused 1 'bert.ft: generates no text: --generate is for decoders and encoder-decoders' \
    'a model that does not generate' -i bert.ft --text pairs.txt --pairs --generate
refused 1 'prompts.txt: line 1: found one text, expected a pair' 'lines without references' \
    -i decoder.ft --text prompts.txt --generate
refused 1 'prompts.txt: line 1: has no tab' 'lines without a tab' \
    -i decoder.ft --text prompts.txt --pairs --generate
refused 1 'own.jsonl: line 1: answer: found nothing, expected a string' 'a field that is missing' \
    -i decoder.ft --text own.jsonl --fields prompt,answer --generate
refused 1 'own.jsonl: line 1: found one text, expected a pair' 'one field' \
    -i decoder.ft --text own.jsonl --fields prompt --generate
refused 1 'translates into de, en, fr, zh' 'no target language' \
    -i m2m.ft --text french.txt --pairs --generate
refused 1 'do not support beam search' 'beams of a decoder' \
    -i decoder.ft --text own.jsonl --generate --beams 2
rm m2m/tokenizer.json m2m/tokenizer_config.json m2m/vocab.json
quietly "$convert" -i m2m -o mute.ft
refused 1 'mute.ft: has no tokenizer.json' 'a model without a tokenizer' \
    -i mute.ft --text french.txt --pairs --generate
printf '\tc\n' >nothing.txt
refused 1 'nothing.txt: line 1: found no token, expected at least one' 'a prompt without a token' \
    -i decoder.ft --text nothing.txt --pairs --generate
quietly "$make_decoder" poisoned 7 98
quietly "$convert" -i poisoned -o poisoned.ft
quietly "$make_decoder" - poison poisoned.ft
refused 1 'prompt 1: the logits of new token 0 are not finite' 'NaN in the logits of a text' \
    -i poisoned.ft --text pairs.txt --pairs --generate --max-new-tokens 2
refused 2 '--generate compares texts: use --text FILE' '--generate without texts' \
    -i m2m.ft -d m2m.st --generate
for option in '--beams 2' '--max-new-tokens 3' '--batch 2'; do
    refused 2 "${option% *} requires --generate" "${option% *} without --generate" \
        -i m2m.ft --text french.txt --pairs $option
done

echo "1..$count"
