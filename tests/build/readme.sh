# readme.sh - the README's commands work when they are run in order in one folder.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/language_tokenizer.sh"
make_classifier=$FT_BUILDDIR/tests/programs/make-classifier
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
sample=$FT_SRCDIR/samples/source-language-bert
unset FT_CPU

# commands SECTION: the commands of its first shell block, one per line, without comments.
commands () {
    sed -n "/^## $1\$/,/^## /p" "$FT_SRCDIR/README.md" | awk '
        /^```/ { if (shown) exit; shown = /sh$/; next }
        shown { sub(/  *# .*/, "")
                if (sub(/\\$/, "")) { printf "%s", $0; next }
                print }'
}

# type_in SECTION: runs each command as it is.  The stand-in for a Llama has fewer columns than a
# quantization group, so group-wise schemes need --group-pad.
type_in () {
    commands "$1" | grep '^ft-' |
        sed '/w4a16\|-block/s/$/ --group-pad/' >lines
    test -s lines
    check $? "the README has commands in section \"$1\""
    while read -r command <&3; do
        (PATH=$FT_BUILDDIR:$PATH && eval "$command") >out 2>err </dev/null
        found=$?
        check $found "the README's command works as written: $command"
        test $found -eq 0 || sed 's/^/# /' out err
    done 3<lines
}

cd "$dir" || exit 99

for section in 'Step by step' Encoders 'Text generation' 'Group-wise weights' Translation Images; do
    commands "$section"
done | grep -o -e ' -o [^ ]*' | sort | uniq -d >found
test ! -s found
check $? 'no two commands of the README write the same file'
sed 's/^/# /' found

# ---- Inputs that the commands name --------------------------------------------------------------

ln -s "$sample" CHECKPOINT
ln -s "$sample" CLASSIFIER
head -n 8 "$sample/calibration.txt" >samples.txt
head -n 8 "$sample/evaluation.jsonl" >labeled.jsonl
printf 'a b c\nd e\n' >texts.txt
type_in 'Step by step'

quietly "$make_classifier" NER 3 '{"architectures": ["BertForTokenClassification"]}'
quietly "$make_classifier" QA 2 '{"architectures": ["BertForQuestionAnswering"]}'
quietly "$make_classifier" MASKED 1 '{"architectures": ["BertForMaskedLM"]}'
quietly "$make_classifier" RERANKER 1
quietly "$make_classifier" EMBEDDER 0
echo '{"question": "a b", "context": "c d e f"}' >questions.jsonl
printf 'a b\tc d\na\tb\n' >query-passage.tsv
type_in Encoders

quietly "$FT_BUILDDIR/tests/programs/make-decoder" LLAMA 7
printf 'an apple\ndef add(a, b):\n' >prompts.txt
awk 'BEGIN { for (i = 1; i <= 40; i++) print "Line", i, "of a text has", i * 37 % 101, "words." }' >prose.txt
type_in 'Text generation'
type_in 'Group-wise weights'

quietly "$make_checkpoint" translator m2m-untied M2M100
write_language_tokenizer M2M100
printf 'a b\tb a\nc\ta c\n' >pairs.tsv
type_in Translation

quietly "$make_checkpoint" vit VIT
ln -s VIT/reference.safetensors pixels.safetensors
mkdir -p photos test/LABEL_1
for folder in . photos test/LABEL_1; do
    cp "$FT_SRCDIR"/tests/golden/images/gray.jpg $folder
done
if grep -q 'define HAVE_LIBJPEG' "$FT_BUILDDIR/config.h"; then
    type_in Images
else
    skip 'this build has no libjpeg'
fi

echo "1..$count"
