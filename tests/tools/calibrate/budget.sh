#!/bin/sh
# budget.sh - ft-calibrate --budget and --target with w4a16: matrices get 8 bits or stay float by what their 4 bits
# cost at the output.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
quietly "$FT_BUILDDIR/ft-convert" -i "$sample" -o bert.ft

# plan OPTION...: quantizes on 16 samples; others verify.
plan () {
    "$calibrate" -i bert.ft -d "$sample/calibration.safetensors" --samples 16 --scheme w4a16 -f "$@"
}

# number KEY FILE: the value of the first member of that name in a report.
number () {
    sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" "$2" | head -n 1
}

# at_most A B SENTENCE: A is a number and at most B.
at_most () {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'
    check $? "$3"
}

is 0 'ft-calibrate spends a budget' plan --budget bits=5 -t 1 -o five.ft --report five.json
says out 'weight precision: of 24 matrices ' 'it says how many matrices have which precision'
says out 'bits a weight:' 'it says how many bits a weight takes'
says out 'with 4 bits for all (4.500 bits a weight) on 16 samples' 'it says what 4 bits for all lose'
says out 'on 64 held-out samples' 'it says what the artifact loses on other samples'
bits=$(number bits_per_weight five.json)
at_most "$bits" 5 'the plan stays within the budget'
at_most 4.9 "$bits" 'the plan spends the budget'
at_most "$(number loss five.json)" "$(number uniform_loss five.json)" 'the plan loses less than 4 bits for all'
test "$(grep -c '"bytes":' five.json)" -eq 24
check $? 'the report has the sensitivity of every matrix'
grep -q '"chosen": true' five.json
check $? 'the report has the chosen plan among those that were measured'
is 0 'ft-inspect accepts the artifact' "$inspect" --verify five.ft
is 0 'the self-test of the artifact passes' "$inspect" --selftest five.ft
is 0 'ft-run runs the artifact' "$FT_BUILDDIR/ft-run" -i five.ft 'int main(void)'
is 0 'three threads spend the same budget' plan --budget bits=5 -t 3 -o three.ft
cmp five.ft three.ft
check $? 'the artifact has the same bytes for any number of threads'
is 0 'ft-calibrate writes a page' plan --budget bits=5 -t 1 -o five.ft --report five.html
grep -q 'What four bits of each matrix cost' five.html
check $? 'the page shows what each matrix costs'
is 0 'ft-inspect shows the manifest' "$inspect" --json five.ft
says out '"bits_per_weight": ' 'the recipe records the bits of a weight'
says out '"scheme": "w8a16"' 'the recipe records matrices with 8 bits as rules'
says out '"budget_bits": 5' 'the provenance records the budget'
set --
for name in $(sed -n 's/^ *"tensor": "^\(.*\)\$",$/\1/p' out | sed 's/\\\\/\\/g'); do
    set -- "$@" --tensor "^$name\$=w8a16"
done
is 0 'the recorded rules replace the budget' plan "$@" -t 1 -o again.ft
for file in five again; do
    "$inspect" $file.ft | awk '/linear/ { print $1, $3, $4, $5 }' >$file.matrices
done
test -s five.matrices && cmp five.matrices again.matrices
check $? 'they give every matrix the same precision'

is 0 'rules stay above the plan' \
    plan --budget bits=6 --tensor 'attn\.q=w8a16' --exclude '^layer\.0\.attn\.k' -t 1 -o rules.ft --report rules.json
is 0 'ft-inspect lists its matrices' "$inspect" rules.ft
test "$(grep -c 'attn\.q\.weight .* U8 ' out)" -eq 4
check $? 'the matrices of a rule keep 8 bits'
test "$(grep -c 'layer\.0\.attn\.k\.weight .* F16 ' out)" -eq 1
check $? 'an excluded matrix stays float'
is 0 'a budget goes with data-driven rounding' \
    plan --budget bits=5 --asym --clip imatrix --round gptq -t 1 -o gptq.ft --report gptq.json
at_most "$(number bits_per_weight gptq.json)" 5 'zero points count'
is 0 'a budget goes with AWQ and GPTAQ' plan --budget bits=6 --scale awq --round gptaq -t 1 -o all.ft
is 0 'ft-run runs that artifact' "$FT_BUILDDIR/ft-run" -i all.ft 'int main(void)'
is 0 'a budget above that of all floats keeps one matrix quantized' \
    plan --budget bits=32 -t 1 -o most.ft --report most.json
at_most "$(number bits_per_weight most.json)" 15.99 'that plan is smaller than the float model'

is 1 'a budget that 4 bits exceed is refused' plan --budget bits=4 -o less.ft
says err 'the smallest possible is 4.5000 bits a weight, with all scales' 'the message names the smallest possible'
is 1 'zero points raise the smallest budget' plan --budget bits=4.5 --asym -o less.ft
says err 'the smallest possible is 4.7500 bits' 'the message names it'
test ! -e less.ft
check $? 'a budget that is too small leaves no artifact'
is 2 'a budget is refused for other schemes' plan --scheme w8a16 --budget bits=9 -o no.ft
says err '--budget bits=X is for --scheme w4a16, not for w8a16' 'the message says what it is for'
is 2 'a budget without samples is refused' "$calibrate" -i bert.ft -o no.ft --scheme w4a16 --budget bits=5
says err '--budget needs sample data' 'the message says what is missing'
is 2 'a budget and a target exclude each other' plan --budget bits=5 --target kl=0.1 -o no.ft
says err 'give one of them' 'the message says so'
is 2 'a budget of milliseconds without times is refused' plan --budget ms=3 -o no.ft
says err 'use --times FILE, which ft-bench --ops --json writes' 'the message says where times come from'
is 2 'a budget that is no number is refused' plan --budget bits=few -o no.ft
says err 'is neither bits=X' 'the message has the form of a budget'
is 1 'a budget is refused beside int8 matrices' plan --budget bits=5 --tensor 'ffn=w8a8-dynamic' -o no.ft
says err 'is for group-wise matrices' 'the message names the kind of matrices'
is 1 'a budget that rules leave nothing to spend on is refused' plan --budget bits=9 --tensor '.=w8a16' -o no.ft
says err 'rules decide about every matrix' 'the message says why'

is 0 'ft-calibrate reaches a target with few bits' \
    plan --samples 128 --target kl=0.0000015 -t 1 -o target.ft --report target.json
at_most "$(number verified_loss target.json)" 0.0000015 'samples that were not used verify the target'
at_most "$(number bits_per_weight target.json)" 8.5 'the target takes at most 8 bits and scales'
at_most 4.51 "$(number bits_per_weight target.json)" 'and more than 4 bits'
is 0 'a loose target takes 4 bits' plan --target kl=1 -t 1 -o loose.ft --report loose.json
at_most "$(number bits_per_weight loose.json)" 4.5 'all matrices have them'
is 1 'a target that no plan reaches is an error' plan --target kl=1e-15 -t 1 -o missed.ft
says err 'samples that were not used, but --target is kl 1e-15; --best-effort accepts that' \
    'the message has the target and the way out'
test ! -e missed.ft
check $? 'a missed target leaves no artifact'
is 0 'with --best-effort it is accepted' plan --target kl=1e-15 --best-effort -q -t 1 -o missed.ft
says err 'and misses --target kl 1e-15' 'a warning says so'
is 1 'a target needs samples that were not observed' "$calibrate" -i bert.ft -o no.ft --scheme w4a16 \
    -d "$sample/calibration.safetensors" --target kl=0.01
says err 'give --eval, or observe fewer with --samples' 'the message says how to have them'
is 1 'a target of another kind than the outputs is refused' plan --target cosine=0.99 -o no.ft
says err 'the outputs of this model are compared by kl' 'the message says how outputs are compared'

echo "1..$count"
