# disk_full.sh - a tool whose standard output is full exits with status 1 and reports the error.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bin=$FT_BUILDDIR
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
if ! test -c /dev/full; then
    echo '1..0 # SKIP no /dev/full'
    exit 0
fi

quietly "$bin/tests/programs/make-classifier" classifier 3
quietly "$bin/tests/programs/make-classifier" embedding 0
quietly "$bin/tests/programs/make-decoder" decoder 7
for name in classifier embedding decoder; do
    quietly "$bin/ft-convert" -i $name -o $name.ft
done
quietly "$bin/tests/programs/make-tensors" rows.st input_ids:I32:4,4=2,5,6,3,2,7,8,3,2,9,10,3,2,11,12,3 \
    labels:I32:4=0
quietly "$bin/ft-calibrate" -q -i classifier.ft -o int8.ft -d rows.st

# full TOOL OPTION...: the command succeeds, but fails if its standard output is full.
full () {
    tool=$1
    shift
    "$bin/$tool" "$@" >out 2>err </dev/null
    test $? -le 1 && test -s out
    check $? "$tool $*: the command prints results to standard output"
    "$bin/$tool" "$@" >/dev/full 2>err </dev/null
    found=$?
    test $found -eq 1
    check $? "$tool $*: the command exits with status 1 if standard output is full"
    test $found -eq 1 || echo "# status $found"
    says err 'standard output: ' "$tool $*: the message names standard output"
}

for tool in ft-convert ft-calibrate ft-run ft-inspect ft-eval ft-bench; do
    full $tool --help
    full $tool --version
done
full ft-convert -n -i classifier
full ft-convert -n -i classifier --json
full ft-convert -n -i rows.st --json
full ft-calibrate -i classifier.ft -d rows.st --dry-run
full ft-calibrate -i classifier.ft -d rows.st --dry-run --json
full ft-run -i classifier.ft 'a b' 'c d'
full ft-run -i classifier.ft --json 'a b' 'c d'
full ft-run -i classifier.ft -d rows.st
full ft-run -i embedding.ft 'a b'
full ft-run -i embedding.ft --json 'a b'
full ft-run -i decoder.ft --max-new-tokens 4 --ignore-end 'a b'
full ft-run -i decoder.ft --max-new-tokens 4 --ignore-end 'a b' 'c d'
full ft-run -i decoder.ft --max-new-tokens 4 --ignore-end --json 'a b'
full ft-run -i decoder.ft -d rows.st --max-new-tokens 4 --ignore-end
full ft-run -i decoder.ft -d rows.st --outputs logits
full ft-eval -i classifier.ft -d rows.st
full ft-eval -i decoder.ft -d rows.st --json
full ft-inspect classifier.ft
full ft-inspect --json classifier.ft
full ft-inspect --verify classifier.ft
full ft-inspect --verify --json classifier.ft
full ft-inspect --diff classifier.ft int8.ft
full ft-inspect --diff --json classifier.ft int8.ft
full ft-inspect --amax int8.ft
full ft-inspect --amax --json int8.ft
full ft-inspect --plan int8.ft
for format in '' --json --csv; do
    full ft-bench --roofline 1,1,1,1 -i classifier.ft $format -r 1 -t 1 --ops -b 1 -l 8
done
if test -f "$FT_MODELS/numbers-m2m/config.json"; then
    quietly "$bin/ft-convert" -i "$FT_MODELS/numbers-m2m" -o m2m.ft
    quietly "$bin/tests/programs/make-tensors" sources.st input_ids:I32:1,4=15,8,6,2
    for format in '' --json; do
        full ft-run -i m2m.ft -d sources.st --beams 2 $format
        full ft-eval -i decoder.ft -d rows.st $format --against decoder.ft
    done
else
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        skip "no numbers-m2m in $FT_MODELS"
    done
fi

# More output than a buffer holds: the write that fails is not the last one.
quietly "$bin/tests/programs/make-tensors" many.st input_ids:I32:500,4=5
full ft-run -i classifier.ft -d many.st --json

# A chat stops at the failed write instead of waiting for more messages.
printf 'a\nb\nc\n' >messages
"$bin/ft-run" -i decoder.ft --chat --max-new-tokens 2 --ignore-end <messages >/dev/full 2>err
test $? -eq 1
check $? 'ft-run --chat exits with status 1 if standard output is full'
says err 'standard output: ' 'ft-run --chat names standard output in its message'

echo "1..$count"
