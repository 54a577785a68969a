#!/bin/sh
# mixed.sh - ft-calibrate --target: the int8 model reaches it on samples that were not used, or says why not.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
calibrate=$FT_BUILDDIR/ft-calibrate
quietly "$FT_BUILDDIR/ft-convert" -i "$sample" -o bert.ft

# choose OPTION...: calibrates with ranges that are far too small.
choose () {
    "$calibrate" -i bert.ft -d "$sample/calibration.safetensors" --samples 16 --percentile 97 -t 1 -f "$@"
}

is 0 'ft-calibrate reaches a target' choose --target kl=0.001 -o one.ft --report one.json
says out 'mixed precision: of ' 'it says how many activations do not have static scales'
says out 'more operations' 'it says what they cost'
says out 'target kl 0.001' 'it says what the target was'
grep -q '"verified_samples": 64' one.json
check $? 'the report has the number of samples that verified the plan'
is 0 'ft-inspect accepts the artifact' "$FT_BUILDDIR/ft-inspect" --verify one.ft
is 0 'ft-run runs the artifact' "$FT_BUILDDIR/ft-run" -i one.ft 'int main(void)'
is 0 'without a target the scales stay static' choose --target none -o static.ft
is 0 'ft-inspect plans that artifact' "$FT_BUILDDIR/ft-inspect" --plan static.ft
grep -q 'scaled by row' out
test $? -eq 1
check $? 'no activation of that artifact has scales per token'
is 0 'ft-inspect plans the artifact with a target' "$FT_BUILDDIR/ft-inspect" --plan one.ft
says out 'scaled by row' 'an activation of the artifact with a target has scales per token'

is 1 'a target that no plan reaches is an error' choose --target kl=1e-12 -o missed.ft
says err 'samples that were not used, but --target is kl 1e-12; --best-effort accepts that' \
    'the message has the target and the way out'
test ! -e missed.ft
check $? 'a missed target leaves no artifact'
is 0 'with --best-effort it is accepted' choose --target kl=1e-12 --best-effort -o missed.ft
is 1 'a target needs samples that were not observed' "$calibrate" -i bert.ft -o all.ft \
    -d "$sample/calibration.safetensors" --target kl=0.01
says err 'give --eval, or observe fewer with --samples' 'the message says how to have them'
is 1 'a target of another kind than the outputs is refused' choose --target cosine=0.99 -o kind.ft
says err 'the outputs of this model are compared by kl' 'the message says how outputs are compared'
is 1 'a target is refused for an int8 residual stream' choose --target kl=0.1 --residual int8 -o res.ft
says err '--target is for w8a8 with samples and a float residual stream' 'the message says what it is for'
is 1 'a target is refused for weight-only schemes' choose --target kl=0.1 --scheme w8a16 -o res.ft
is 2 'a target that is no number is refused' choose --target kl=few -o bad.ft
says err 'neither none, cosine=X with X between 0 and 1, nor kl=X' 'the message lists the forms of a target'

echo "1..$count"
