# languages.sh - translators take languages by their names, in ft-tokenize and in ft-run.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
run=$FT_BUILDDIR/ft-run
tokenize=$FT_BUILDDIR/ft-tokenize

quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" translator m2m-untied "$dir/model"
cd "$dir" || exit 99

. "$FT_SRCDIR/tests/lib/language_tokenizer.sh"
write_language_tokenizer model
quietly "$FT_BUILDDIR/ft-convert" -i model -o m.ft

# ---- The tokens of a source ---------------------------------------------------------------------

# encodes WANTED SENTENCE OPTION...: ft-tokenize prints these ids of the text "w5 w6".
encodes () {
    echo "$1" >wanted
    sentence=$2
    shift 2
    echo 'w5 w6' >in
    is 0 "$sentence: the command exits with 0" "$tokenize" "$@" in
    same wanted out "$sentence"
}

encodes '[94, 5, 6, 2]' 'a text is in the language of the settings' -i m.ft
encodes '[93, 5, 6, 2]' '--source-lang sets the language of a text' -i m.ft --source-lang de
encodes '[96, 5, 6, 2]' 'a language may be given by its token' -i m.ft --source-lang __zh__
encodes '[95, 5, 6, 2]' 'a checkpoint has the languages of its artifact' -i model --source-lang fr
encodes '[94, 5, 6, 2]' 'a target language does not change the source' -i m.ft --target-lang fr

is 1 'an unknown language fails' "$tokenize" -i m.ft --source-lang xx in
says err 'de, en, fr, zh' 'the message lists the languages of the model'
is 1 'a tokenizer.json alone has no languages' "$tokenize" -i model/tokenizer.json --source-lang de in
says err 'this model has no languages' 'the message says that there are none'
mkdir empty
is 1 'a folder without a tokenizer fails' "$tokenize" -i empty in
says err 'found no tokenizer' 'the message says that there is no tokenizer'

# ---- Translation --------------------------------------------------------------------------------

for beams in '' '--beams 2'; do
    method=${beams:+ with beam search}
    for language in de:93 fr:95; do
        name=${language%:*} id=${language#*:}
        is 0 "--forced-bos $id translates$method" \
            "$run" -i m.ft $beams --forced-bos "$id" --max-new-tokens 6 'w5 w6 w7'
        cp out wanted
        is 0 "--target-lang $name translates$method" \
            "$run" -i m.ft $beams --target-lang "$name" --max-new-tokens 6 'w5 w6 w7'
        same wanted out "--target-lang $name is the first token of the translation$method"
    done
    is 1 "a translation without a target language fails$method" "$run" -i m.ft $beams 'w5 w6'
    says err 'translates into de, en, fr, zh' "the message lists the target languages$method"
done

is 2 '--forced-bos excludes --target-lang' "$run" -i m.ft --forced-bos 3 --target-lang de w5
says err 'give either --target-lang or --forced-bos' 'the message names both options'
quietly "$run" -i m.ft -d model/reference.safetensors --target-lang de --max-new-tokens 3 -o de.st
quietly "$run" -i m.ft -d model/reference.safetensors --forced-bos 93 --max-new-tokens 3 -o 93.st
same 93.st de.st 'token ids of a file are translated into the target language'

echo "1..$count"
