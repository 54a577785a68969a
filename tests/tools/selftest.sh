# selftest.sh - ft-inspect --selftest: artifacts of all families compute what ft-calibrate stored, with any
# instruction set.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
make=$FT_BUILDDIR/tests/programs
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# tested NAME OUTPUT OPTION...: calibrates NAME.ft, and the artifact passes on this machine.
tested () {
    name=$1 output=$2
    shift 2
    quietly "$calibrate" -q -i $name.ft -o $name.q.ft -f -d $name.samples "$@"
    for set in '' generic; do
        is 0 "ft-inspect --selftest passes $name with $* ${set:+on the instruction set $set}" \
            env ${set:+FT_CPU=$set} "$inspect" --selftest $name.q.ft
        says out "measured: $output, bit for bit" "$name has the same $output, bit for bit"
    done
}

for model in llama translator vit; do
    quietly "$make/make-checkpoint" $model $model
    quietly "$convert" -q -i $model -o $model.ft
    cp $model/reference.safetensors $model.samples
done
quietly "$make/make-classifier" classifier 3
quietly "$convert" -q -i classifier -o classifier.ft
quietly "$make/make-tensors" classifier.samples \
    input_ids:I32:4,5=2,5,6,7,3,2,8,9,10,3,2,5,11,12,3,2,5,6,14,3 labels:I64:4=0,1,2,1

tested classifier 'logits of 4 samples' --scheme w8a8
tested classifier 'logits of 4 samples' --scheme w4a16 --group-pad
tested llama 'logits of 3 samples' --scheme w8a8
tested llama 'logits of 3 samples' --scheme w8a8-dynamic
tested llama 'logits of 3 samples' --scheme w4a16 --group-pad --round gptq
tested translator 'logits of 3 samples' --scheme w8a8
tested vit 'logits of 3 samples' --scheme w8a8
tested vit 'logits of 3 samples' --scheme w8a8-block --group-pad

is 0 'ft-inspect --selftest --json prints the result as JSON' \
    "$inspect" --selftest --json classifier.q.ft
says out '"same_bits": true' 'the JSON result says that the bits are equal'
quietly "$calibrate" -q -i classifier.ft -o plain.ft -d classifier.samples --no-selftest
is 1 'ft-inspect --selftest refuses an artifact of ft-calibrate --no-selftest' \
    "$inspect" --selftest plain.ft
says err 'plain.ft: has no self-test; ft-calibrate stores one if it has samples' \
    'ft-inspect says that the artifact has no self-test'
is 1 'ft-inspect --selftest refuses a float artifact' "$inspect" --selftest classifier.ft
quietly "$calibrate" -q -i classifier.ft -o given.ft --amax plain.ft
is 1 'an artifact without samples has no self-test' "$inspect" --selftest given.ft
quietly "$calibrate" -q -i classifier.ft -o other.ft -d classifier.samples -t 3
quietly "$calibrate" -q -i classifier.ft -o int8.ft -d classifier.samples -t 1
same other.ft int8.ft 'a self-test does not depend on the number of threads'
same_model int8.ft plain.ft 'a self-test does not change the model'

# An entry whose outputs are changed.
if have_python; then
    python3 - <<'EOF' || exit 99
import zipfile
data = bytearray(zipfile.ZipFile("int8.ft").read("selftest/samples.safetensors"))
at = 8 + int.from_bytes(data[:8], "little")
import json
header = json.loads(data[8:at])
for name in "expected", "digest":
    data[at + header[name]["data_offsets"][0] + 2] ^= 0x40
open("broken", "wb").write(data)
EOF
    quietly "$make/forge-artifact" int8.ft forged.ft put selftest/samples.safetensors broken
    is 1 'ft-inspect --selftest has status 1 if an output differs' "$inspect" --selftest forged.ft
    says out 'this machine does not compute what the builder measured: logits of 4 samples differ by' \
        'ft-inspect says which output differs, and by how much'
    is 1 'ft-inspect --selftest --json has status 1 if an output differs' \
        "$inspect" --selftest --json forged.ft
    says out '"passed": false' 'the JSON result says that the self-test failed'
else
    for i in 1 2 3 4; do skip "$no_python"; done
fi

is 2 'ft-inspect refuses --selftest with --plan' "$inspect" --selftest --plan int8.ft
is 2 'ft-inspect refuses --device without --plan or --selftest' "$inspect" --device cpu int8.ft
says err '--device requires --plan or --selftest' 'ft-inspect says what --device requires'

echo "1..$count"
