# tokenizer_ids.sh - ft-convert compares the ids of a tokenizer with the vocab_size of its model.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
run=$FT_BUILDDIR/ft-run
convert=$FT_BUILDDIR/ft-convert
cd "$dir" || exit 99

# A model with 20 embeddings and a tokenizer of 17 tokens, and one with 300 and 260.
quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7

# added FROM TO: the added tokens <xFROM> to <xTO>.
added () {
    id=$1
    while test "$id" -le "$2"; do
        test "$id" -eq "$1" || printf ', '
        printf '{"id": %d, "content": "<x%d>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}' \
            "$id" "$id"
        id=$((id + 1))
    done
}

# words FROM TO: more entries of a vocabulary, the words zFROM to zTO.
words () {
    id=$1
    while test "$id" -le "$2"; do
        printf ', "z%d": %d' "$id" "$id"
        id=$((id + 1))
    done
}

# edited NAME FROM PATTERN TEXT: a copy of the checkpoint with TEXT for PATTERN in its tokenizer.json.
edited () {
    cp -r "$2" "$1"
    sed "s|$3|$4|" "$2/tokenizer.json" >"$1/tokenizer.json"
    cmp -s "$1/tokenizer.json" "$2/tokenizer.json" && echo "Bail out! $3 is not in $2" && exit 99
    rm -f "$1.ft"
}

# ---- Tokens of the model ------------------------------------------------------------------------

edited equal classifier ': 16}' ": 16$(words 17 19)}"
is 0 'a tokenizer with as many tokens as the model has embeddings is converted' \
    "$convert" -i equal -o equal.ft
edited large classifier ': 16}' ": 16$(words 17 21)}"
is 1 'a tokenizer whose vocabulary is larger than that of the model is refused' \
    "$convert" -i large -o large.ft
says err 'tokenizer.json: model.vocab: "z21" has id 21, but the vocab_size of the model is 20' \
    'the message names the token, its id and the vocabulary size'
says err '--no-tokenizer leaves the tokenizer out' 'the message names the option without a tokenizer'
is 0 '--no-tokenizer converts the model of a larger tokenizer' \
    "$convert" -i large -o large.ft --no-tokenizer

edited around classifier '"sep": \["\[SEP\]", 3\]' '"sep": ["[SEP]", 20]'
is 1 'a tokenizer that adds an id without embedding to each text is refused' \
    "$convert" -i around -o around.ft
says err 'post_processor: adds "" with id 20 to each text, but the vocab_size of the model is 20' \
    'the message names the id that is added to each text'

# ---- Added tokens -------------------------------------------------------------------------------

edited some classifier '"added_tokens": \[\]' "\"added_tokens\": [$(added 17 21)]"
is 0 'added tokens without embedding do not prevent conversion' "$convert" -i some -o some.ft
says err 'tokenizer.json: added_tokens: "<x20>" (20), "<x21>" (21): the vocab_size of the model is 20' \
    'a note names the added tokens without embedding'
is 0 'an added token with an embedding is encoded' "$run" -i some.ft 'a <x19> b'
is 1 'a text with an added token without embedding fails' "$run" -i some.ft 'a b' 'a <x20> b'
says err 'its token 2, "<x20>", has id 20, but the vocab_size of the model is 20: leave it out' \
    'the message names the token without embedding'
printf 'a b\na <x21> b\n' >in
is 1 'ft-tokenize refuses what the model of an artifact cannot embed' \
    "$FT_BUILDDIR/ft-tokenize" -i some.ft in
says err '"<x21>", has id 21' 'ft-tokenize names the token without embedding'
is 0 'a truncated text may contain a token without embedding behind the cut' \
    "$FT_BUILDDIR/ft-tokenize" -i some.ft --max-length 3 in

edited many decoder '"<.im_end.>"[^}]*}' "&, $(added 260 312)"
is 0 'many added tokens without embedding do not prevent conversion' "$convert" -i many -o many.ft
says err '"<x307>" (307) and 5 more' 'the note names eight added tokens and counts the others'
is 1 'a prompt with an added token without embedding fails' \
    "$run" -i many.ft --max-new-tokens 1 'a <x300>'
says err '"<x300>", has id 300, but the vocab_size of the model is 300' \
    'the message names the token of the prompt'

echo "1..$count"
