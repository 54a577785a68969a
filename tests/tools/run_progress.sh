# run_progress.sh - the tools show progress on a terminal, and only there.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
if ! script -qec true /dev/null >log 2>&1; then
    echo '1..0 # SKIP no script(1) of util-linux, which makes a terminal'
    exit 0
fi

quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$convert" -i classifier -o classifier.ft
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -i decoder -o decoder.ft
quietly "$FT_BUILDDIR/tests/programs/make-tensors" rows.st input_ids:I32:2000,8=5 labels:I32:2000=0
quietly "$FT_BUILDDIR/tests/programs/make-tensors" prompts.st input_ids:I32:200,8=5

# shown UNIT COMMAND: the command shows progress on a terminal and erases it at the end; it shows
# none elsewhere.
shown () {
    unit=$1 command=$2
    script -qec "$command" /dev/null >typescript 2>&1 </dev/null
    check $? "${command##*/}: the command succeeds on a terminal"
    tr '\r' '\n' <typescript >lines
    grep -q ": [0-9]* of [0-9]* $unit, [0-9.]*/s, [0-9]* s left" lines
    found=$?
    check $found \
        "${command##*/}: the progress line counts $unit and shows the rate and the remaining time"
    test $found -eq 0 || show lines
    grep -q '^ *$' lines
    check $? "${command##*/}: the progress line is erased at the end"
    sh -c "$command" >out 2>err
    check $? "${command##*/}: the command succeeds without a terminal"
    ! grep -q ' left' err
    check $? "${command##*/}: no progress is shown without a terminal"
}

shown rows "$FT_BUILDDIR/ft-eval -i classifier.ft -d rows.st"
shown tokens "$FT_BUILDDIR/ft-eval -i decoder.ft -d prompts.st"
shown sequences "$FT_BUILDDIR/ft-run -i classifier.ft -d rows.st -o outputs.st -f"
shown texts "$FT_BUILDDIR/ft-run -i decoder.ft -d prompts.st -o texts.st -f --max-new-tokens 4 --ignore-end"
for command in "$FT_BUILDDIR/ft-run -i classifier.ft -d rows.st --json" \
    "$FT_BUILDDIR/ft-run -i decoder.ft -d prompts.st --max-new-tokens 4 --ignore-end"; do
    script -qec "$command" /dev/null >typescript 2>&1 </dev/null
    ! grep -q 's left' typescript
    check $? "${command##*/}: results printed on a terminal are not mixed with progress"
done

echo "1..$count"
