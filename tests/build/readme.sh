# readme.sh - the README's commands work when they are run in order in one folder.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
pick_rows=$FT_BUILDDIR/tests/programs/pick-rows
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

# type_in SECTION: runs each command as it is, except that an ID becomes a number.  The stand-in for
# a Llama has fewer columns than a quantization group, so group-wise schemes need --group-pad.
type_in () {
    commands "$1" | grep '^ft-' |
        sed 's/--forced-bos ID/--forced-bos 5/; /w4a16\|-block/s/$/ --group-pad/' >lines
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

for section in 'Step by step' 'Text generation' 'Group-wise weights' Translation Images; do
    commands "$section"
done | grep -o -e ' -o [^ ]*' | sort | uniq -d >found
test ! -s found
check $? 'no two commands of the README write the same file'
sed 's/^/# /' found

# ---- Inputs that the commands name --------------------------------------------------------------

ln -s "$sample" CHECKPOINT
quietly "$pick_rows" "$sample/calibration.safetensors" samples.safetensors 0:8
quietly "$pick_rows" "$sample/reference.safetensors" inputs.safetensors 0:8
quietly "$FT_BUILDDIR/tests/programs/make-decoder" LLAMA 7
printf 'an apple\ndef add(a, b):\n' >prompts.txt
quietly "$make_tensors" prompts.safetensors input_ids:I32:2,4=5,6,7,8,9,10,11,12
ids=$(awk 'BEGIN { for (i = 0; i < 128; i++) printf "%s%d", i ? "," : "", i * 37 % 251 }')
quietly "$make_tensors" rows.safetensors "input_ids:I32:4,32=$ids"

type_in 'Step by step'
type_in 'Text generation'
type_in 'Group-wise weights'

quietly "$make_checkpoint" translator M2M100
quietly "$make_tensors" sources.safetensors input_ids:I32:2,4=40,41,42,2,50,51,52,2
quietly "$make_tensors" pairs.safetensors input_ids:I32:2,4=40,41,42,2,50,51,52,2 \
    labels:I32:2,3=60,61,2,70,71,2
type_in Translation

quietly "$make_checkpoint" vit VIT
ln -s VIT/reference.safetensors pixels.safetensors
cp "$FT_SRCDIR"/tests/golden/images/gray.jpg .
if grep -q 'define HAVE_LIBJPEG' "$FT_BUILDDIR/config.h"; then
    type_in Images
else
    skip 'this build has no libjpeg'
fi

echo "1..$count"
