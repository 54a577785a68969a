# shards.sh - calibration in shards: the bytes of the artifact do not depend on the number of shards,
# on their order or on kills; what cannot be merged is refused.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
calibrate=$FT_BUILDDIR/ft-calibrate
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# ids ROWS WORDS: token ids of ROWS samples of 5 tokens, separated by commas.
ids () {
    awk -v rows="$1" -v words="$2" 'BEGIN {
        for (i = 0; i < rows * 5; i++)
            printf "%s%d", i ? "," : "", 5 + (i * 7 + i * i % 11) % (words - 6)
    }'
}

quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/tests/programs/make-classifier" encoder 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" decoder.st "input_ids:I32:50,5=$(ids 50 250)"
quietly "$FT_BUILDDIR/tests/programs/make-tensors" encoder.st "input_ids:I32:50,5=$(ids 50 18)"
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft
quietly "$FT_BUILDDIR/ft-convert" -q -i encoder -o encoder.ft

# run_shards STAGE N OPTION...: runs the N shards with the options; the files are STAGE.I.
run_shards () {
    stage=$1 shards=$2
    shift 2
    for shard in $(seq "$shards"); do
        "$calibrate" -q -i $model.ft -d $model.st --shard "$shard/$shards" --save-stats "$stage.$shard" "$@" \
            2>>err || echo "shard $shard/$shards failed" >>err
    done
}

# backwards STAGE N: the files in another order than they were made.
backwards () {
    seq "$2" -1 1 | sed "s/^/$1./"
}

# in_shards N STAGES OPTION...: makes $model.N.ft in N shards.
in_shards () {
    shards=$1 stages=$2
    shift 2
    rm -f a.* b.* $model.$shards.ft
    : >err
    run_shards a "$shards" "$@"
    files=$(backwards a "$shards")
    if test "$stages" = 2; then
        run_shards b "$shards" "$@" --merge $files
        files="$files $(backwards b "$shards")"
    fi
    "$calibrate" -q -i $model.ft -o $model.$shards.ft -d $model.st "$@" --merge $files >out 2>>err
}

# equal MODEL STAGES OPTION...: any number of shards gives the artifact of one process.
equal () {
    model=$1 stages=$2
    shift 2
    is 0 "one process calibrates the $model with '$*'" \
        "$calibrate" -q -f -i $model.ft -o one.ft -d $model.st "$@"
    for number in 1 2 3 7 64; do
        in_shards $number "$stages" "$@"
        show err
        same one.ft $model.$number.ft "$number shards calibrate the $model with '$*' to the same bytes"
    done
}

# ---- Equal bytes --------------------------------------------------------------------------------

equal encoder 1 --best-effort
equal encoder 1 -m percentile --target none
equal encoder 2 --smooth search --samples 5:45
equal encoder 1 --scheme w4a16 --group-pad --clip imatrix --samples 45
equal decoder 1 --scheme w4a16 --group-pad --scale awq --clip imatrix
equal decoder 1 --scheme w4a16 --group-pad --round gptq --asym
equal decoder 2 --target none
equal decoder 1 --scheme w8a8-dynamic --smooth 0.5

# Several threads, and memory for one input at a time.
model=decoder
in_shards 2 1 --scheme w4a16 --group-pad --round gptq --asym --samples 50
"$calibrate" -q -f -i decoder.ft -o one.ft -d decoder.st --scheme w4a16 --group-pad --round gptq --asym --samples 50 2>err
rm -f a.*
run_shards a 2 --scheme w4a16 --group-pad --round gptq --asym --samples 50 --memory 1 -t 2
is 0 'shards with little memory are merged' "$calibrate" -q -i decoder.ft -o few.ft -d decoder.st \
    --scheme w4a16 --group-pad --round gptq --asym --samples 50 --merge a.2 a.1
same one.ft few.ft 'memory and threads of a shard do not change a byte'

# One set of files serves several methods: the sums do not depend on them.
rm -f a.*
run_shards a 2 --scheme w4a16 --group-pad --round gptq
"$calibrate" -q -f -i decoder.ft -o one.ft -d decoder.st --scheme w4a16 --group-pad --group 64 --clip imatrix 2>err
is 0 'files of shards serve other options of the same sums' "$calibrate" -q -f -i decoder.ft -o few.ft \
    -d decoder.st --scheme w4a16 --group-pad --group 64 --clip imatrix --merge a.1 a.2
same one.ft few.ft 'and give the bytes of these options'

# ---- Killed and resumed -------------------------------------------------------------------------

gptq='--scheme w4a16 --group-pad --round gptq'
merge () { "$calibrate" -q -f -i decoder.ft -o no.ft -d decoder.st $gptq --merge "$@"; }
shard () { "$calibrate" -i decoder.ft -d decoder.st $gptq --shard "$@"; }
before=$(cksum <a.1)
is 0 'a finished shard is skipped with --resume' shard 1/2 --save-stats a.1 --resume
says err 'a.1: exists already, so nothing is to do' 'a note says so'
test "$(cksum <a.1)" = "$before"
check $? 'the file of a skipped shard stays as it is'
is 1 'without --resume an existing file is an error' shard 1/2 --save-stats a.1
is 1 'with --resume the file of another shard is an error' shard 2/2 --save-stats a.1 --resume
says err 'a.1: exists already, and is shard 1/2 of stage "inputs", expected 2/2 of "inputs"' \
    'the message says which shards they are'
is 1 'with --resume a file of other samples is an error' shard 1/2 --save-stats a.1 --resume --samples 20
quietly "$FT_BUILDDIR/tests/programs/make-tensors" many.st "input_ids:I32:4000,5=$(ids 4000 250)"
"$calibrate" -q -i decoder.ft -d many.st $gptq --shard 1/2 --save-stats killed -t 1 2>err &
killed=$!
while test -z "$(find . -name '.killed*')" && kill -0 $killed 2>/dev/null; do :; done
kill -KILL $killed
wait $killed 2>/dev/null
test ! -e killed && test -n "$(find . -name '.killed*')"
check $? 'a shard that is killed leaves no file of its name'
is 0 'and the same command with --resume runs it' \
    "$calibrate" -q -i decoder.ft -d many.st $gptq --shard 1/2 --save-stats killed --resume
is 0 'and then skips it' "$calibrate" -q -i decoder.ft -d many.st $gptq --shard 1/2 --save-stats killed --resume
test "$(find . -name '.killed*' | wc -l)" -eq 0
check $? 'the rerun removes what the killed shard left'

# ---- What is refused ----------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE COMMAND...: the command fails with STATUS and a message with TEXT.
refused () {
    status=$1 text=$2 refusal=$3
    shift 3
    is "$status" "$refusal is refused" "$@"
    says err "$text" "the message says: $text"
}

head -c 3000 a.1 >cut
{ head -c 3000 a.1; printf x; tail -c +3002 a.1; } >altered
refused 1 'altered or cut off' 'a file that is cut off' merge cut a.2
refused 1 'altered or cut off' 'a file with an altered byte' merge altered a.2
refused 1 'of the 2 shards of stage "inputs" 1 are missing: run ft-calibrate with --shard 2/2' \
    'a missing shard' merge a.1
refused 1 'a.1: shard 1/2 overlaps a.1' 'a shard that is given twice' merge a.1 a.1 a.2
"$calibrate" -q -i decoder.ft -d many.st $gptq --shard 2/2 --save-stats other 2>err
refused 1 'computed on other samples' 'a shard of other data' merge a.1 other
shard 1/3 --save-stats third -q 2>err
refused 1 'one of 3 shards, but a.1 is one of 2' 'a file of another split' merge a.1 third
refused 1 'samples 0 to 49, expected 0 to 19: give the same --samples everywhere' 'a file of other --samples' \
    merge a.1 a.2 --samples 20
refused 1 'looks like safetensors: expected statistics, which ft-calibrate --save-stats writes' \
    'a file of another type' merge a.1 decoder.st
rm -f c.*
model=decoder
run_shards c 2 --scheme w4a16 --group-pad --clip imatrix
refused 1 'has no second moments, which --scale awq and --round gptq need' \
    'a file with less than GPTQ needs' merge c.1 c.2
refused 1 'no file of stage "smoothing"' 'a missing stage' \
    "$calibrate" -i decoder.ft -o no.ft -d decoder.st --merge a.1 a.2
refused 1 'computed on other models' 'the files of another model' \
    "$calibrate" -i encoder.ft -o no.ft -d encoder.st $gptq --merge a.1 a.2
refused 1 'nothing depends on samples, so there is nothing to shard' 'a shard without sums' \
    "$calibrate" -i decoder.ft -d decoder.st --scheme w4a16 --group-pad --shard 1/2 --save-stats no
refused 1 'the merged files have all stages' 'a shard behind the last stage' shard 1/2 --save-stats no --merge a.1 a.2
refused 1 '--round gptaq runs the samples anew after every matrix' 'a shard of GPTAQ' \
    "$calibrate" -i decoder.ft -d decoder.st --scheme w4a16 --group-pad --round gptaq --shard 1/2 --save-stats no
refused 1 '--budget and --target of w4a16 compare plans' 'a shard of a budget' \
    "$calibrate" -i decoder.ft -d decoder.st --scheme w4a16 --group-pad --budget bits=6 --shard 1/2 --save-stats no
refused 1 'shards either count ranges of int8 matrices or add up statistics' 'a shard of ranges and statistics' \
    "$calibrate" -i decoder.ft -d decoder.st $gptq --tensor 'attn=w8a8' --shard 1/2 --save-stats no
refused 2 '--shard: "0/2" is not I/N' 'shard 0' shard 0/2 --save-stats no
refused 2 '--shard: "3/2" is not I/N' 'shard 3 of 2' shard 3/2 --save-stats no
refused 2 '--shard: "1" is not I/N' 'a shard without a number of shards' shard 1 --save-stats no
refused 2 '--shard needs --save-stats FILE' 'a shard without a file' shard 1/2
refused 2 '--save-stats needs --shard I/N' 'a file without a shard' \
    "$calibrate" -i decoder.ft -d decoder.st --save-stats no
refused 2 '--resume is for --shard' '--resume without a shard' \
    "$calibrate" -i decoder.ft -d decoder.st -o no.ft --resume
refused 2 'it excludes -o' 'a shard with an artifact' shard 1/2 --save-stats no -o no.ft
refused 2 '--merge of statistics needs the samples of the shards, too' 'merging without samples' \
    "$calibrate" -i decoder.ft -o no.ft --scheme w4a16 --group-pad --merge a.1 a.2
test ! -e no && test ! -e no.ft
check $? 'no refused command leaves a file'

echo "1..$count"
