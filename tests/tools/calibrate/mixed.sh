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

is 0 'three threads choose a plan, too' choose --target kl=0.001 -o three.ft -t 3
cmp one.ft three.ft
check $? 'they write the bytes of one thread'

is 1 'a target that no plan reaches is an error' choose --target kl=1e-12 -o missed.ft
says err 'samples that were not used, but --target is kl 1e-12; --best-effort accepts that' \
    'the message has the target and the way out'
test ! -e missed.ft
check $? 'a missed target leaves no artifact'
is 0 'with --best-effort it is accepted' choose --target kl=1e-12 --best-effort -o missed.ft
is 1 'a target needs samples that were not observed' "$calibrate" -i bert.ft -o all.ft \
    -d "$sample/calibration.safetensors" --target kl=0.01
says err 'give --eval, or observe fewer with --samples' 'the message says how to have them'
is 0 'a target of accuracy is reached' choose --target accuracy=2pt -o accuracy.ft
says out 'target accuracy -2.00 pt' 'it says how much accuracy may be lost'
is 1 'a perplexity is refused for a classifier' choose --target ppl=1% -o kind.ft
says err 'compared by kl or accuracy' 'the message says what the model can be judged by'
is 1 'a target of another kind than the outputs is refused' choose --target cosine=0.99 -o kind.ft
says err 'the outputs of this model are compared by kl' 'the message says how outputs are compared'
is 1 'a target is refused for an int8 residual stream' choose --target kl=0.1 --residual int8 -o res.ft
says err '--target is for w8a8, w8a8-dynamic and --scheme w4a16 with samples' 'the message says what it is for'
is 1 'a target is refused for weight-only schemes' choose --target kl=0.1 --scheme w8a16 -o res.ft
is 2 'a target that is no number is refused' choose --target kl=few -o bad.ft
says err 'neither none, cosine=X with X between 0 and 1, kl=X, ppl=X% nor accuracy=Xpt' 'the message lists the forms of a target'

is 2 'a perplexity without per cent is refused' choose --target ppl=0.5 -o bad.ft
is 2 'an accuracy without points is refused' choose --target accuracy=1% -o bad.ft

# Two layers of 32 columns, which are one group, and 48, which no group divides.
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft
quietly "$FT_BUILDDIR/tests/programs/make-tensors" samples.st \
    input_ids:I32:4,6=5,9,2,7,4,8,11,3,6,2,9,10,4,4,8,5,2,9,3,12,6,7,5,2

# decode OPTION...: calibrates the decoder with scales per token.
decode () {
    "$calibrate" -i decoder.ft -d samples.st --samples 3 --scheme w8a8-dynamic -t 1 -f -o decoder.q.ft --json "$@"
}
is 0 'a decoder in w8a8-dynamic has a target, too' decode
says out '"target": 0.002,' 'its default is KL 0.002'
says out '"scheme": "w8a8-block"' 'where scales per token miss it, matrices become w8a8-block'
says out '"float": 0,' 'and none becomes float'
is 0 'the artifact passes its self-test' "$FT_BUILDDIR/ft-inspect" --selftest decoder.q.ft
is 0 'ft-run generates with the artifact' "$FT_BUILDDIR/ft-run" -i decoder.q.ft --max-new-tokens 4 a
is 0 'with a target that is given' decode --target kl=1e-9 --best-effort
says out '"float": 7,' 'matrices become float, and those of one input stay int8'
is 0 'without a target' decode --target none
says out '"mixed_precision": null' 'nothing is measured'
! grep -q 'w8a8-block' out
check $? 'and all scales are per token'

echo "1..$count"
