# inspect_samples.sh - ft-inspect --diff -d: a wrong scale is named first.
#
# FT_TRIALS=100 tries as many wrong scales for each trained model; the default is 10.  From 100 on, python-llama
# is calibrated with default options, too, which takes a minute.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
inspect=$FT_BUILDDIR/ft-inspect
calibrate=$FT_BUILDDIR/ft-calibrate
convert=$FT_BUILDDIR/ft-convert
cd "$dir" || exit 99

# ---- A generated model --------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" model 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" samples.safetensors \
    input_ids:I32:3,4=5,6,7,8,9,10,11,12,13,14,15,16
quietly "$convert" -q -i model -o m.ft
quietly "$calibrate" -q -i m.ft -o q.ft -d samples.safetensors
quietly "$calibrate" -q -i m.ft -o blocks.ft --scheme w4a16 --group-pad

quietly "$calibrate" -q -i m.ft -o folded.ft -d samples.safetensors --smooth 0.5
is 0 'ft-inspect lists an artifact with folded factors' "$inspect" folded.ft
matches out '^layer\.0\.attn\.context\.folded  *folded  *F32 ' 'the folded factors of a value are a tensor'
matches out '^w/\.\.\.\.folded: factors of [1-9][0-9]* values, folded into weights$' \
    'the list says of how many values factors are folded'
is 0 'ft-inspect lists an artifact without them' "$inspect" q.ft
! grep -q folded out
check $? 'the list says nothing of factors that do not exist'

is 1 'a float and an int8 artifact differ' "$inspect" --diff m.ft q.ft -d samples.safetensors
says out '3 samples, ' 'the number of samples is printed'
matches out '^layer\.0\.ffn\.act  *[0-9.]*$' 'each value of both plans has an SQNR'
matches out '^worst: [a-z0-9.]*, [0-9.]* dB$' 'the worst value is named'
is 1 'the order of the artifacts does not matter to the scales' \
    "$inspect" --diff q.ft m.ft -d samples.safetensors
says out 'scales that lose most beyond their format' 'the scales are judged in the other order, too'
matches out '^embed\.norm  *[0-9.]*$' 'values with a float form are aligned with the quantized one'
# A rotation mixes the columns of most values.
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" tokens.safetensors input_ids:I32:2,4=5,6,7,8,9,10,11,12
quietly "$convert" -q -i decoder -o plain.ft
quietly "$convert" -q -i decoder -o rotated.ft --rotate
quietly "$calibrate" -q -i rotated.ft -o rotated.int8.ft -d tokens.safetensors
is 0 'ft-inspect lists a rotated artifact' "$inspect" rotated.int8.ft
matches out '^2 layers, hidden 32, .*, rotated$' 'the list says that the model is rotated'
matches out '^  conversion: .* rotate yes' 'the list says that ft-convert rotated it'
is 1 'a rotated int8 artifact is compared with its float artifact' \
    "$inspect" --diff rotated.ft rotated.int8.ft -d tokens.safetensors
matches out '^layer\.0\.attn\.sum  *[0-9.]*$' 'values of the residual stream are compared'
is 1 'values of a rotated and another artifact are not compared' \
    "$inspect" --diff plain.ft rotated.int8.ft -d tokens.safetensors
says err 'rotated.int8.ft is rotated and plain.ft is not, so their values cannot be compared' \
    'the error says why, and which is rotated'
is 1 'nor in the other order' "$inspect" --diff rotated.ft plain.ft -d tokens.safetensors
says err 'rotated.ft is rotated and plain.ft is not' 'the error names them by what they are'
is 1 'without samples their contents are compared' "$inspect" --diff plain.ft rotated.ft
says out 'tensor embed.word: sha256:' 'contents that differ are listed'

is 0 'an artifact computes what it computes' "$inspect" --diff q.ft q.ft -d samples.safetensors
says out 'scales can be judged if one of the artifacts is float' 'two int8 artifacts have no float values to judge by'
says out 'no value is below 20 dB' 'equal artifacts do not diverge'
is 1 'a group-wise artifact is compared' "$inspect" --diff m.ft blocks.ft -d samples.safetensors --samples 2
says out '2 samples, ' '--samples limits the samples'
says out '.weight' 'group-wise matrices are judged'
is 1 'ft-inspect --json prints the comparison' "$inspect" --diff --json m.ft q.ft -d samples.safetensors
says out '"first_diverged": ' 'the JSON has the first value that diverges'
if have_python; then
    cp out comparison.json
    is 0 'the comparison is JSON' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); \
        assert r["samples"] == 3 and r["values"] and r["suspects"][0]["lost_db"] >= 0' comparison.json
else
    skip "$no_python"
fi
is 1 'ft-inspect --html writes a page' \
    "$inspect" --diff m.ft q.ft -d samples.safetensors --html page.html
grep -q '^<h1>q.ft compared with m.ft</h1>' page.html
check $? 'the page names both artifacts'
grep -q '<th scope="row">layer.0.ffn.act</th>' page.html
check $? 'the page has the values'
cp page.html kept
is 1 'an existing page is not replaced' \
    "$inspect" --diff m.ft q.ft -d samples.safetensors --html page.html
says err 'page.html' 'the error names the page'
same page.html kept 'the existing page is unchanged'
is 1 'ft-inspect -f replaces it' "$inspect" --diff m.ft q.ft -d samples.safetensors --html page.html -f
same page.html kept 'the same comparison gives the same page'
is 1 'a page does not replace an artifact' \
    "$inspect" --diff m.ft q.ft -d samples.safetensors --html q.ft -f
says err 'q.ft' 'the error names the artifact'
is 2 '--html without -d is a usage error' "$inspect" --diff m.ft q.ft --html other.html
is 2 '--force without --html is a usage error' "$inspect" --diff m.ft q.ft -f
is 2 '-d without --diff is a usage error' "$inspect" m.ft -d samples.safetensors
is 2 '--samples without -d is a usage error' "$inspect" --diff --samples 3 m.ft q.ft
is 1 'missing samples are an error' "$inspect" --diff m.ft q.ft -d none.safetensors
says err 'none.safetensors' 'the error names the file'

# ---- Wrong scales of trained models -------------------------------------------------------------

# suspects ARTIFACT: the names of all suspects, the first one first.
suspects () {
    "$inspect" --diff --json "$model.ft" "$1" --samples "$samples" \
        -d "$FT_MODELS/$model/reference.safetensors" |
        sed -n '/"values"/q; s/.*"name": *"\([^"]*\)".*/\1/p; s/.*"lost_db": *\([-0-9.]*\).*/\1/p'
}

# trials NAME ARTIFACT MOST: no scale of the artifact as calibrated loses MOST dB, and a wrong one is
# named first.
trials () {
    suspects "$2" | sed -n 2p >lost
    awk -v most="$3" '{ exit !($1 < most) }' lost
    check $? "$1: no scale of an artifact as calibrated loses $3 dB"
    seed=0 hits=0
    while test $seed -lt "$trials"; do
        seed=$((seed + 1))
        "$FT_BUILDDIR/tests/programs/tamper-scale" "$2" wrong.ft $seed >wrong || break
        first=$(suspects wrong.ft | head -n 1)
        if test "$first" = "$(sed 's/ .*//' wrong)"; then
            hits=$((hits + 1))
        else
            echo "# seed $seed: $(cat wrong); named first: $first"
        fi
    done
    test $hits -eq "$trials"
    check $? "$1: a wrong scale is named first in $hits of $trials trials"
}

trials=${FT_TRIALS:-10}
while read -r model samples most options; do
    test -n "$model" || continue
    if ! test -f "$FT_MODELS/$model/config.json"; then
        skip "no $model in FT_MODELS"; skip "no $model in FT_MODELS"
        continue
    fi
    test -f "$model.ft" || quietly "$convert" -q -i "$FT_MODELS/$model" -o "$model.ft"
    # shellcheck disable=SC2086 # several options
    quietly "$calibrate" -q -f -i "$model.ft" -o quantized.ft --no-selftest $options \
        -d "$FT_MODELS/$model/calibration.safetensors"
    trials "$model ${options:-by default}" quantized.ft "$most"
done <<END
source-language-bert 4 5 --samples 64 --smooth search
numbers-m2m 8 5 --samples 64 --smooth none
python-llama 1 5 --samples 128 --smooth 0.5 --target none --eval samples.safetensors
python-llama 1 1 --samples 4 --scheme w4a16 --scale awq --eval samples.safetensors
$(test "$trials" -lt 100 || echo python-llama 2 5)
END
echo "1..$count"
