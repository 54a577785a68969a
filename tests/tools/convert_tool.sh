# convert_tool.sh - the command line of ft-convert, on a real checkpoint.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
inspect=$FT_BUILDDIR/ft-inspect
page=$FT_SRCDIR/convert/ft-convert.1
. "$FT_SRCDIR/tests/lib/tap.sh"

# empty FILE SENTENCE
empty () {
    test ! -s "$dir/$1"
    check $? "$2"
    sed 's/^/# /' "$dir/$1"
}

cd "$dir" || exit 99

# ---- Command line -------------------------------------------------------------------------------

is 0 '--help ends with 0' "$convert" --help
"$convert" --help | grep -o -e '--[a-z-]*' | sort -u >help
sed 's/\\-/-/g' "$page" | grep -o -e '--[a-z-]*' | sort -u >page
cmp -s help page
check $? 'the manual page and --help have the same options'
diff help page | sed 's/^/# /'

is 2 'no input is a usage error' "$convert" -o model.ft
is 2 'no output is one' "$convert" -i here
is 2 'an unknown dtype is one' "$convert" -i here -o model.ft --dtype int4
says err 'expected keep, f32, f16 or bf16' 'which says what is known'
is 2 'a stray argument is one' "$convert" -i here -o model.ft there
is 2 'quiet and verbose exclude each other' "$convert" -i here -o model.ft -q -v
is 1 'a folder that is not there is a failure' "$convert" -i nowhere -o model.ft
says err 'nowhere' 'which names it'
is 1 'an output in no folder is a failure' "$convert" -i nowhere -o no/where/model.ft
says err 'no/where/model.ft' 'which names that'

# ---- A real checkpoint --------------------------------------------------------------------------

sample=$FT_SRCDIR/samples/source-language-bert
test -f "$sample/model.safetensors" || sample=$FT_MODELS/source-language-bert
if test ! -f "$sample/model.safetensors"; then
    skip "no checkpoint source-language-bert in $FT_SRCDIR/samples or $FT_MODELS"
    echo "1..$count"
    exit 0
fi

is 0 'a dry run ends with 0' "$convert" -i "$sample" -n
says out 'BertForSequenceClassification: 4 layers, hidden 256' 'it tells the model'
says out 'bert.encoder.layer.3.output.dense.weight' 'the source of each weight'
says out '73 tensors of 8186904 bytes' 'and the size of all'
empty err 'it has nothing to complain'
test -z "$(find . -name '*.ft*')"
check $? 'and writes nothing'

is 0 'a conversion ends with 0' "$convert" -i "$sample" -o model.ft
empty out 'and prints nothing on standard output'
says err 'model.ft: 73 tensors of 8.19 MB' 'but a summary on standard error'
is 0 'the artifact is intact' "$inspect" --verify model.ft
is 0 'the artifact can be listed' "$inspect" model.ft
grep -q 'layer.3.ffn.down.weight  *linear  *F16' out
check $? 'with roles, and matrices as they were'
grep -q 'layer.3.ffn.down.bias  *vector  *F32' out
check $? 'and vectors as F32'

is 1 'an existing artifact is not replaced' "$convert" -i "$sample" -o model.ft
says err 'model.ft: exists already' 'which is said'
is 1 'not even looked at are inputs then' "$convert" -i nowhere -o model.ft
says err 'model.ft: exists already' 'for the output comes first'
cp model.ft before.ft
is 0 'unless it is forced' sh -c 'umask 077; "$0" "$@"' "$convert" -i "$sample" -o model.ft -f -q
empty err 'quietly, if so asked'
cmp -s model.ft before.ft
check $? 'with the same bytes, under another umask'

is 0 'one file may be named' "$convert" -i "$sample/model.safetensors" -o file.ft
cmp -s model.ft file.ft
check $? 'and gives the same bytes'

is 0 'matrices may be stored as F32' "$convert" -i "$sample" -o f32.ft --dtype f32
is 0 'or as BF16' "$convert" -i "$sample" -o bf16.ft --dtype=bf16
"$inspect" bf16.ft | grep -q 'embed.word  *table  *BF16'
check $? 'which they are then'

# ---- What is read stays -------------------------------------------------------------------------

mkdir precious
cp "$sample"/*.json "$sample/model.safetensors" precious
ln -s model.safetensors precious/soft.ft
ln precious/model.safetensors precious/hard.ft
mkdir precious/onnx
echo a model >precious/onnx/model.onnx
echo '{}' >precious/tokenizer_config.json
echo a description >precious/README.md
ln -s precious/README.md aside.md
find precious aside.md -type f | sort | xargs cksum >sums
for output in precious/model.safetensors precious/../precious/config.json precious/tokenizer.json \
    precious/soft.ft precious/hard.ft precious/tokenizer_config.json precious/README.md \
    precious/onnx/model.onnx aside.md; do
    for input in precious precious/model.safetensors; do
        is 2 "$output is not replaced" "$convert" -i $input -o $output -f
        says err "$output: would replace the input precious/" 'for it is a file of the checkpoint'
    done
done
cd precious || exit 99
is 2 'nor is one from within the folder' "$convert" -i model.safetensors -o README.md -f
cd ..
find precious aside.md -type f | sort | xargs cksum | cmp -s - sums
check $? 'all is as it was'
is 0 'the artifact may lie beside the checkpoint' "$convert" -q -i precious -o precious/model.ft
is 0 'and be replaced there' "$convert" -q -i precious -o precious/model.ft -f

# ---- Reports ------------------------------------------------------------------------------------

is 0 '--json prints a report' "$convert" -i "$sample" -o json.ft --json -q
if have_python; then
    cp out report.json
    is 0 'with every tensor of the artifact' python3 - report.json json.ft <<'END'
import json, sys, zipfile
r = json.load(open(sys.argv[1]))
m = json.loads(zipfile.ZipFile(sys.argv[2]).read("manifest.json"))
assert r["ok"] and r["output"] == "json.ft" and r["family"] == m["family"]
assert r["config"] == m["config"]
assert [t["name"] for t in r["tensors"]] == [t["name"] for t in m["tensors"]]
for ours, theirs in zip(r["tensors"], m["tensors"]):
    for key in "role", "dtype", "shape", "bytes":
        assert ours[key] == theirs[key], (ours, theirs)
assert r["bytes"] == sum(t["bytes"] for t in r["tensors"])
assert r["unused"] == [] and r["notes"] == []
END
else
    skip "$no_python"
fi
is 1 'failures are reported too' "$convert" -i nowhere -n --json
says out '"ok": false' 'as such'
says out '"status": "FT_EIO"' 'with a status'
says err 'nowhere' 'and for people'

# ---- Another configuration ----------------------------------------------------------------------

mkdir other
cp "$sample/config.json" other
ln -s "$sample/model.safetensors" other
sed 's/"use_cache"/"mystery": 3, "use_cache"/' "$sample/config.json" >other/config.json
is 1 'an unknown key is refused' "$convert" -i other -n
says err 'mystery is 3, which may change the result; pass --ignore-key mystery' 'with advice'
is 0 'which helps' "$convert" -i other -n --ignore_key mystery
says err 'note: no tokenizer.json' 'a missing tokenizer is noted'

sed 's/"num_hidden_layers": 4/"num_hidden_layers": 3/' "$sample/config.json" >other/config.json
is 0 'a layer may be left out' "$convert" -i other -n
says err 'unused: bert.encoder.layer.3.attention.output.LayerNorm.bias' 'but is listed as unused'
says err 'unused: and 11 more (-v lists them)' 'in short'
is 0 'or in full' "$convert" -i other -n -v
test "$(grep -c unused err)" -eq 16
check $? 'name by name'

sed 's/"num_hidden_layers": 4/"num_hidden_layers": 9/' "$sample/config.json" >other/config.json
is 1 'missing layers are refused' "$convert" -i other -o other.ft
says err 'and 60 more like these' 'the first twenty tensors by name, the others counted'
test ! -e other.ft
check $? 'and no artifact stands there'

# ---- Other families -----------------------------------------------------------------------------

make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$make_checkpoint" llama biases shards
cp decoder/tokenizer.json decoder/generation_config.json shards
is 0 'a llama of two shards converts' "$convert" -i shards -o llama.ft
empty out 'without a word on standard output'
! grep -q -e note -e unused err
check $? 'and nothing is left over or missing'
is 0 'ft-inspect lists it' "$inspect" llama.ft
says out 'llama.ft: llama, float, written by ft-convert' 'as a llama'
says out '2 layers, hidden 64, 4 heads of 16 (2 of keys and values), ffn 100' 'with its sizes'
says out 'rotary with theta 10000' 'and its positions'
says out 'generation_config.json' 'and what belongs to generation'
is 0 'as halves too' "$convert" -i shards -o half.ft --dtype f16
is 0 'which are listed' "$inspect" half.ft
test "$(grep -c '  F16  ' out)" -eq 16
check $? 'all matrices, also the table and the head'

quietly "$make_checkpoint" vit images
is 0 'a ViT becomes an artifact' "$convert" -i images -o images.ft -q
is 0 'which can be inspected' "$inspect" images.ft
says out '2 layers, hidden 32, 2 heads, ffn 40, images of 3 x 12 x 12 in patches of 4 x 4, 10 positions, 5 labels' \
    'and says what it is'
mkdir unknown
sed 's/"model_type": "vit"/"model_type": "swin"/' images/config.json >unknown/config.json
cp images/model.safetensors unknown
is 1 'a model of an unknown type is refused' "$convert" -i unknown -n
says err 'model_type "swin" is not supported; supported are bert, roberta, distilbert, llama, mistral, qwen2, qwen3, m2m_100, marian, vit, deit' \
    'with what is known'

quietly "$make_checkpoint" translator words
is 0 'an M2M100 becomes an artifact' "$convert" -i words -o words.ft -q
is 0 'which can be inspected' "$inspect" words.ft
says out '2 + 2 layers, hidden 64, 4 heads, ffn 100, vocabulary 97, 40 positions, sinusoids closed, scaled words, start 2, pad 1, tied head' \
    'and says what it is'
says out 'vocab.json' 'with its words'

for family in bert roberta distilbert; do
    quietly "$make_checkpoint" $family $family
    is 0 "a $family becomes an artifact" "$convert" -i $family -o $family.ft -q
    is 0 'which is intact' "$inspect" --verify $family.ft
done

echo "1..$count"
