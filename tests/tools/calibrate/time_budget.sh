#!/bin/sh
# time_budget.sh - from the times of ft-bench to a plan: ft-calibrate --times with --budget ms=X and --target.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
bench=$FT_BUILDDIR/ft-bench
known='--roofline 1,1,1,1'
quietly "$FT_BUILDDIR/ft-convert" -i "$sample" -o bert.ft
quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" bert other
quietly "$FT_BUILDDIR/ft-convert" -i other -o other.ft

# plan OPTION...: quantizes on 16 samples; others verify.
plan () {
    "$calibrate" -i bert.ft -d "$sample/calibration.safetensors" --samples 16 -f "$@"
}

# number KEY FILE: the value of the first member of that name in a report.
number () {
    sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" "$2" | head -n 1
}

# at_most A B SENTENCE: A and B are numbers, and A is at most B.
at_most () {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }'
    check $? "$3"
}

# pass SCHEME: milliseconds of its pass.
pass () {
    sed -n "/\"passes\"/,\$p" times.json | grep -A 6 "\"scheme\": \"$1\"" |
        sed -n 's/^ *"us": \([^,]*\),$/\1/p' | head -n 1 | awk '{ printf "%.6f\n", $1 / 1000 }'
}

# ---- Times --------------------------------------------------------------------------------------

is 0 'ft-bench writes the times of a float artifact' "$bench" $known -q -i bert.ft -b 2 -l 32 -r 15 -t 1 --ops --json
cp out times.json
int8=$(pass int8) float=$(pass float) blocks=$(pass w4a16)
at_most 0.0001 "$int8" 'the times have an int8 pass'
middle=$(awk -v a="$int8" -v b="$float" 'BEGIN { print a + (b - a) / 3 }')

# ---- Int8 ---------------------------------------------------------------------------------------

is 0 'ft-calibrate spends a budget of milliseconds' \
    plan --budget "ms=$middle" --times times.json -t 1 -o middle.ft --report middle.json
matches out 'mixed precision: of 20 activations .* an estimated .* ms of a budget of .*, kl .* on [0-9]* samples' \
    'one line says what was chosen, its estimated time and its loss'
at_most "$(number estimated_ms middle.json)" "$middle" 'the plan stays within the budget'
at_most "$(number loss middle.json)" "$(number initial_loss middle.json)" \
    'the plan loses no more than static scales that are faster'
is 0 'ft-calibrate spends a larger budget' \
    plan --budget ms=1000 --times times.json -t 1 -o most.ft --report most.json
at_most "$(number loss most.json)" "$(number loss middle.json)" 'a larger budget loses no more'
is 0 'ft-inspect accepts the artifact' "$inspect" --verify middle.ft
is 0 'the self-test of the artifact passes' "$inspect" --selftest middle.ft
is 0 'ft-inspect prints the provenance' "$inspect" middle.ft
says out "times: name times.json, bytes $(wc -c <times.json | tr -d ' '), sha256 $(sha256sum times.json | cut -c -64)" \
    'the provenance has the digest of the times'
says out 'budget_ms ' 'the provenance has the budget'
is 0 'three threads choose from the same times' \
    plan --budget "ms=$middle" --times times.json -t 3 -o three.ft
same middle.ft three.ft 'equal times give equal bytes for any number of threads'
is 0 'ft-calibrate writes a page' plan --budget "ms=$middle" --times times.json -t 1 -o page.ft --report page.html
grep -q 'a pass takes an estimated .* ms of a budget of' page.html
check $? 'the page has the estimated time and the budget'
is 0 'ft-calibrate spends a budget on w8a8-dynamic' \
    plan --scheme w8a8-dynamic --budget ms=1000 --times times.json -t 1 -o dynamic.ft --report dynamic.json
at_most 1 "$(number float dynamic.json)" 'a budget of time makes matrices of w8a8-dynamic float'

# The speed of a busy machine varies, so that the time is only compared with three times the estimate.
is 0 'ft-bench times the plan' "$bench" $known -q -i middle.ft -b 2 -l 32 -r 30 -t 1 --json
at_most "$(number min_ms out)" "$(awk -v x="$middle" 'BEGIN { print 3 * x }')" 'the plan runs in about its budget'

is 0 'measured times replace the fixed costs of a target' \
    plan --target kl=0.0000005 --best-effort --times times.json -t 1 -o target.ft --report target.json
says out 'ms with the measured times' 'the estimated time of the plan is printed'
at_most 0.0001 "$(number estimated_ms target.json)" 'the report has the estimated time'

# ---- Decoders ------------------------------------------------------------------------------------

# Two layers of 32 columns, which are one group, and 48, which no group divides; 36 samples of six tokens.
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft
ids=$(awk 'BEGIN { for (i = 0; i < 216; i++) printf "%s%d", i > 0 ? "," : "", 2 + (i * i + 3 * i) % 11 }')
quietly "$FT_BUILDDIR/tests/programs/make-tensors" samples.st "input_ids:I32:36,6=$ids"

# decode OPTION...: calibrates the decoder with scales per token.
decode () {
    "$calibrate" -i decoder.ft -d samples.st --samples 34 --scheme w8a8-dynamic -t 1 -f -o decoder.q.ft --json "$@"
}
is 0 'ft-bench times decode steps in all schemes' \
    "$bench" $known -q -i decoder.ft -b 1 --decode 8 -r 3 -t 1 --ops --json
cp out steps.json
says steps.json '"pass": "decode"' 'the times say that a pass is a decode step'
is 0 'a budget of time goes with the times of decode steps' decode --budget ms=1000 --times steps.json
says out '"budget_ms": 1000' 'the report has the budget'
says out '"smooth": null' 'no factors are folded into matrices whose times are known'
is 0 'without times' decode
says out '"scalable_inputs"' 'factors are searched for the same decoder'

# ---- Weights ------------------------------------------------------------------------------------

enough=$(awk -v a="$blocks" -v b="$float" 'BEGIN { print (a > b ? a : b) * 1.5 }')
is 0 'ft-calibrate spends a budget of milliseconds on w4a16' \
    plan --scheme w4a16 --budget "ms=$enough" --times times.json -t 1 -o weights.ft --report weights.json
matches out 'weight precision: of 24 matrices ' 'it says how many matrices have which precision'
says out '; an estimated ' 'it says what a pass takes'
at_most "$(number estimated_ms weights.json)" "$enough" 'the plan of the weights stays within the budget'
at_most "$(number loss weights.json)" "$(number uniform_loss weights.json)" 'it loses no more than 4 bits for all'

# ---- Refusals -----------------------------------------------------------------------------------

is 1 'a budget that the fastest plan exceeds is refused' plan --budget ms=0.0001 --times times.json -o no.ft
says err 'bert.ft: --budget ms=0.0001 is too small: the fastest plan takes ' 'the error names the least possible'
is 1 'the same holds for weights' plan --scheme w4a16 --budget ms=0.0001 --times times.json -o no.ft
says err 'is too small: the fastest plan takes ' 'this error names the least possible, too'
is 1 'a missing file of times is refused' plan --budget ms=1 --times missing.json -o no.ft
says err 'missing.json: cannot open' 'the error names the file'
is 1 'an artifact is no file of times' plan --budget ms=1 --times bert.ft -o no.ft
says err 'bert.ft: ' 'the error names the artifact'
is 0 'ft-bench writes the times of another model' "$bench" $known -q -i other.ft -b 1 -l 8 -r 1 -t 1 --ops --json
cp out other.json
is 1 'times of another model are refused' plan --budget ms=1 --times other.json -o no.ft
says err 'measure this model with ft-bench --ops --json' 'the error says what to measure'
is 0 'ft-bench writes the times of two shapes' "$bench" $known -q -i bert.ft -b 1,2 -l 8 -r 1 -t 1 --ops --json
cp out two.json
is 1 'times of two shapes are refused' plan --budget ms=1 --times two.json -o no.ft
says err 'choose the shape of a pass with -b N and -l N' 'the error says how to choose one'
is 1 'times of another group size are refused' plan --budget ms=1 --group 64 --scheme w4a16 --times times.json -o no.ft
says err 'found groups of 32, expected 64 as in --group: measure them with ft-bench --group 64' \
    'the error says how to measure it'
is 2 'a budget of time needs times' plan --budget ms=1 -o no.ft
says err 'use --times FILE' 'the message says what is missing'
is 2 'times need a budget or a target' plan --times times.json -o no.ft
says err '--times is for --budget ms=X, and for --target' 'the message says what they are for'
is 2 'a budget of time and a target exclude each other' plan --budget ms=1 --target kl=0.1 --times times.json -o no.ft
is 2 'a budget of time is refused for w8a16' plan --scheme w8a16 --budget ms=1 --times times.json -o no.ft
test ! -e no.ft
check $? 'no artifact is left by an error'

echo "1..$count"
