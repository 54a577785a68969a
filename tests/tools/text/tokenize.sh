# tokenize.sh - ft-tokenize prints ids, offsets, type ids and tokens, and decodes ids.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
tokenize=$FT_BUILDDIR/ft-tokenize
cd "$dir" || exit 99

# prints WANTED SENTENCE OPTION...: ft-tokenize prints this for the file `in`.
prints () {
    wanted=$1 sentence=$2
    shift 2
    is 0 "$sentence: the command exits with 0" "$tokenize" -i tokenizer.json "$@" in
    printf '%s\n' "$wanted" >wanted
    same wanted out "$sentence"
}

# refuses STATUS TEXT SENTENCE OPTION...: ft-tokenize fails with this message.
refuses () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "$sentence: exit status $status" "$tokenize" "$@"
    says err "$text" "$sentence"
}

# ---- A tokenizer --------------------------------------------------------------------------------

cat >tokenizer.json <<'END'
{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
  {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
   "normalized": false, "special": true},
  {"id": 2, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false,
   "normalized": false, "special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
           "max_input_chars_per_word": 100,
           "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "one": 3, "two": 4, "##s": 5, "e": 6}}}
END

printf 'One twos\n\303\251 x\n' >in
prints '[1, 3, 4, 5, 2]
[1, 6, 0, 2]' 'ids are one list a line'
prints '[3, 4, 5]
[6, 0]' 'special tokens can be left out' --no-special-tokens
prints '{"ids": [1, 3, 4, 5, 2], "offsets": [[0, 0], [0, 3], [4, 7], [7, 8], [0, 0]]}
{"ids": [1, 6, 0, 2], "offsets": [[0, 0], [0, 1], [2, 3], [0, 0]]}' \
    'offsets count characters, not bytes' --offsets
prints '{"ids": [1, 3, 4, 5, 2], "tokens": ["[CLS]", "one", "two", "##s", "[SEP]"]}
{"ids": [1, 6, 0, 2], "tokens": ["[CLS]", "e", "[UNK]", "[SEP]"]}' 'tokens are spelled' --tokens
prints '[1, 3, 4, 2]
[1, 6, 0, 2]' 'texts are truncated before the last special token' --max-length 4

printf 'one\ttwos e\n' >in
prints '{"ids": [1, 3, 2, 4, 5, 6, 2], "type_ids": [0, 0, 0, 1, 1, 1, 1]}' \
    'the texts of a pair have different type ids' --pairs --type-ids
prints '[1, 3, 2, 4, 2]' 'the longer text of a pair is truncated first' --pairs --max-length 5

printf '{"a": "one", "b": "two"}\n{"b": "e", "a": "two"}\n' >in
prints '[1, 3, 2]
[1, 4, 2]' 'a member of JSON Lines is the text' --fields a
prints '[1, 4, 2, 3, 2]
[1, 6, 2, 4, 2]' 'two members of JSON Lines are a pair' --fields b,a

printf '[1, 3, 4, 5, 2]\n3 4\n' >in
prints 'one twos
one two' 'ids are decoded from lists and from plain numbers' --decode
prints '[CLS] one twos [SEP]
one two' 'special tokens are decoded on request' --decode --keep-special

mkdir checkpoint && cp tokenizer.json checkpoint
printf 'one\n' >in
is 0 'a folder with a tokenizer.json is a tokenizer' "$tokenize" -i checkpoint in
says out '[1, 3, 2]' 'the tokenizer of a folder encodes'
"$tokenize" -i tokenizer.json <in >out
says out '[1, 3, 2]' 'texts come from standard input without a file'

# ---- Errors -------------------------------------------------------------------------------------

refuses 2 'use -i FILE' 'a command without a tokenizer is refused' in
refuses 2 'options for texts do not apply' 'offsets of decoded ids are refused' \
    -i tokenizer.json --decode --offsets in
refuses 1 'nowhere: No such file or directory' 'a missing tokenizer is refused' -i nowhere in
refuses 1 'line 1: has no tab' 'a line without a pair is refused' -i tokenizer.json --pairs in
refuses 1 'expected at least the 2 special tokens' 'a length without room for text is refused' \
    -i tokenizer.json --max-length 1 in
printf '1 x\n' >in
refuses 1 'line 1: found "x", expected a token id' 'what is no id is refused' \
    -i tokenizer.json --decode in
printf '\377\n' >in
refuses 1 'line 1: byte 0 is 0xff, expected valid UTF-8' 'invalid UTF-8 is refused' \
    -i tokenizer.json in

echo "1..$count"
