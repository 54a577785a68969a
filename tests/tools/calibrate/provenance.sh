# provenance.sh - what an artifact says of its origin: the checkpoint's files, options, samples and accuracy.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99
if ! have_python; then
    echo "1..0 # SKIP $no_python"
    exit 0
fi

# holds SENTENCE EXPRESSION: a Python expression of p, the provenance of $artifact, is true.
holds () {
    "$inspect" --json "$artifact" >manifest.json 2>err
    python3 -c "import hashlib, json, sys
p = json.load(open('manifest.json'))['provenance']
sha = lambda name: hashlib.sha256(open(name, 'rb').read()).hexdigest()
assert ($2), p" 2>>err
    check $? "$1"
    test ! -s err || show err
}

quietly "$FT_BUILDDIR/tests/programs/make-classifier" bert 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" samples.safetensors \
    input_ids:I32:4,5=2,5,6,7,3,2,8,9,10,3,2,5,11,12,3,2,5,6,14,3
quietly "$convert" -q -i bert -o model.ft

# ---- Conversion ---------------------------------------------------------------------------------

artifact=model.ft
holds 'ft-convert records the SHA-256 and the size of the weights and of the files beside them' \
    "{s['name'] for s in p['source']} >= {'model.safetensors', 'config.json', 'tokenizer.json'} and all(
        s['sha256'] == sha('bert/' + s['name']) and s['bytes'] == len(open('bert/' + s['name'], 'rb').read())
        for s in p['source'])"
holds 'ft-convert records its version and its options' \
    "p['conversion']['tool'] == 'ft-convert' and p['conversion']['dtype'] == 'keep' and p['conversion']['tokenizer']"
quietly "$convert" -q -i bert -o half.ft --dtype f16 --no-tokenizer
artifact=half.ft
holds 'ft-convert records other options' "p['conversion']['dtype'] == 'F16' and not p['conversion']['tokenizer']"
mkdir elsewhere
cp -r bert elsewhere/bert
quietly "$convert" -q -i elsewhere/bert -o elsewhere/model.ft
same model.ft elsewhere/model.ft 'the artifact does not depend on the folder of the checkpoint'
taskset -c 0 "$convert" -q -i bert -o one.ft 2>/dev/null || "$convert" -q -i bert -o one.ft
same model.ft one.ft 'the artifact does not depend on the number of processors'

# ---- Calibration --------------------------------------------------------------------------------

quietly "$calibrate" -q -i model.ft -o int8.ft -d samples.safetensors --samples 3
artifact=int8.ft
holds 'ft-calibrate keeps what the float artifact says' \
    "p['source'][0]['sha256'] == sha('bert/model.safetensors') and p['conversion']['tool'] == 'ft-convert'"
holds 'ft-calibrate records its options with the base names of files' \
    "p['calibration'] == {'tool': 'ft-calibrate', 'version': p['conversion']['version'], 'input': 'model.ft',
                          'data': 'samples.safetensors', 'method': 'auto'}"
holds 'ft-calibrate records the SHA-256 of the samples and which of them were observed' \
    "len(p['samples']) == 1 and len(p['samples'][0]['sha256']) == 64 and p['samples'][0]['first'] == 0 and
     p['samples'][0]['end'] == 3"
holds 'ft-calibrate records the end-to-end figures' \
    "p['evaluation']['output'] == 'logits' and p['evaluation']['held_out'] and p['evaluation']['cosine'] > 0.9"
(cd elsewhere && "$calibrate" -q -i ../model.ft -o int8.ft -d "$dir/samples.safetensors" --samples 3 -t 3)
same int8.ft elsewhere/int8.ft 'the artifact depends neither on folders nor on the number of threads'
quietly "$calibrate" -q -i model.ft -o given.ft --amax int8.ft
artifact=given.ft
holds 'ft-calibrate --amax records the file with the ranges' \
    "p['ranges'] == {'name': 'int8.ft', 'bytes': len(open('int8.ft', 'rb').read()), 'sha256': sha('int8.ft')} and
     p['calibration']['amax'] == 'int8.ft' and 'samples' not in p"
quietly "$calibrate" -q -i model.ft -o w4.ft -d samples.safetensors --scheme w4a16 --group-pad --round gptq
artifact=w4.ft
holds 'a group-wise artifact, which is evaluated after it is written, has its figures, too' \
    "p['evaluation']['samples'] == 4 and p['samples'][0]['end'] == 4"
is 0 'ft-inspect --verify finds no fault in an artifact that is a copy of an evaluated draft' \
    "$inspect" --verify w4.ft
quietly "$calibrate" -q -i model.ft -o plain.ft --scheme w4a16 --group-pad
artifact=plain.ft
holds 'without samples there are neither samples nor figures' "'samples' not in p and 'evaluation' not in p"
quietly "$calibrate" -q -i model.ft -o drafted.ft --scheme w4a16 --group-pad -d samples.safetensors
same_model plain.ft drafted.ft 'evaluation does not change a group-wise model'

# ---- Inspection ---------------------------------------------------------------------------------

is 0 'ft-inspect lists an artifact with provenance' "$inspect" int8.ft
says out '  source: name model.safetensors, bytes ' 'ft-inspect shows the files of the checkpoint'
says out '  evaluation: output logits, samples 1, held_out yes, ' 'ft-inspect shows the figures'
for old in "$FT_SRCDIR"/tests/data/old/*/*bert*.ft; do
    is 0 "ft-inspect lists ${old##*/} of an earlier version, which has no provenance" "$inspect" "$old"
done
test -z "$(find . -name '.*ft-tmp*')"
check $? 'the tools leave no temporary file behind'

echo "1..$count"
