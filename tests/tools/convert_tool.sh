# convert_tool.sh - the command line of ft-convert, tested on a trained checkpoint.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
inspect=$FT_BUILDDIR/ft-inspect
page=$FT_SRCDIR/convert/ft-convert.1
. "$FT_SRCDIR/tests/lib/tap.sh"

# empty FILE SENTENCE: the file in $dir is empty.
empty () {
    test ! -s "$dir/$1"
    check $? "$2"
    sed 's/^/# /' "$dir/$1"
}

cd "$dir" || exit 99

# ---- Command line -------------------------------------------------------------------------------

is 0 'ft-convert --help exits with 0' "$convert" --help
"$convert" --help | grep -o -e '--[a-z-]*' | sort -u >help
sed 's/\\-/-/g' "$page" | grep -o -e '--[a-z-]*' | sort -u >page
cmp -s help page
check $? 'the manual page and --help of ft-convert list the same options'
diff help page | sed 's/^/# /'

is 2 'ft-convert without -i is a usage error' "$convert" -o model.ft
is 2 'ft-convert without -o is a usage error' "$convert" -i here
is 2 'ft-convert with an unknown --dtype is a usage error' \
    "$convert" -i here -o model.ft --dtype int4
says err 'is neither keep, f32, f16 nor bf16' 'ft-convert lists the known dtypes'
is 2 'ft-convert with an operand is a usage error' "$convert" -i here -o model.ft there
is 2 'ft-convert refuses -q together with -v' "$convert" -i here -o model.ft -q -v
is 1 'ft-convert fails if the input folder does not exist' "$convert" -i nowhere -o model.ft
says err 'nowhere' 'ft-convert names the missing input folder'
is 1 'ft-convert fails if the folder of the output does not exist' \
    "$convert" -i nowhere -o no/where/model.ft
says err 'no/where/model.ft' 'ft-convert names the output whose folder does not exist'

# ---- A trained checkpoint -----------------------------------------------------------------------

sample=$FT_SRCDIR/samples/source-language-bert
test -f "$sample/model.safetensors" || sample=$FT_MODELS/source-language-bert
if test ! -f "$sample/model.safetensors"; then
    skip "no checkpoint source-language-bert in $FT_SRCDIR/samples or $FT_MODELS"
    echo "1..$count"
    exit 0
fi

is 0 'ft-convert -n exits with 0' "$convert" -i "$sample" -n
says out 'BertForSequenceClassification: 4 layers, hidden 256' \
    'a dry run shows the architecture of the model'
says out 'bert.encoder.layer.3.output.dense.weight' 'a dry run lists the source of each weight'
says out '73 tensors of 8186904 bytes' 'a dry run shows the number and total size of the tensors'
empty err 'a dry run of a valid checkpoint prints nothing on standard error'
test -z "$(find . -name '*.ft*')"
check $? 'a dry run writes no file'

is 0 'ft-convert converts a checkpoint' "$convert" -i "$sample" -o model.ft
empty out 'a conversion prints nothing on standard output'
says err 'model.ft: 73 tensors of 8.19 MB' 'a conversion prints a summary on standard error'
is 0 'ft-inspect --verify finds no fault in the converted artifact' "$inspect" --verify model.ft
is 0 'ft-inspect lists the converted artifact' "$inspect" model.ft
grep -q 'layer.3.ffn.down.weight  *linear  *F16' out
check $? 'the artifact lists roles and keeps matrices in the dtype of the checkpoint'
grep -q 'layer.3.ffn.down.bias  *vector  *F32' out
check $? 'the artifact stores vectors as F32'

is 1 'ft-convert refuses to replace an existing artifact' "$convert" -i "$sample" -o model.ft
says err 'model.ft: exists already' 'ft-convert says that the output exists already'
is 1 'ft-convert refuses an existing output although the input does not exist' \
    "$convert" -i nowhere -o model.ft
says err 'model.ft: exists already' 'ft-convert checks the output before it opens the input'
cp model.ft before.ft
is 0 'ft-convert -f replaces an existing artifact' \
    sh -c 'umask 077; "$0" "$@"' "$convert" -i "$sample" -o model.ft -f -q
empty err 'ft-convert -q prints nothing on standard error'
cmp -s model.ft before.ft
check $? 'ft-convert writes the same bytes under another umask'

is 0 'ft-convert accepts the path of a single safetensors file' \
    "$convert" -i "$sample/model.safetensors" -o file.ft
cmp -s model.ft file.ft
check $? 'a single safetensors file gives the same bytes as its folder'

is 0 'ft-convert --dtype f32 converts a checkpoint' "$convert" -i "$sample" -o f32.ft --dtype f32
is 0 'ft-convert --dtype=bf16 converts a checkpoint' "$convert" -i "$sample" -o bf16.ft --dtype=bf16
"$inspect" bf16.ft | grep -q 'embed.word  *table  *BF16'
check $? '--dtype bf16 stores matrices as BF16'

# ---- Inputs are not overwritten -----------------------------------------------------------------

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
        is 2 "ft-convert -i $input refuses to write $output with status 2" \
            "$convert" -i $input -o $output -f
        says err "$output: would replace the input precious/" \
            "ft-convert -i $input says that $output would replace an input"
    done
done
cd precious || exit 99
is 2 'ft-convert run inside the checkpoint folder refuses to replace a file of it' \
    "$convert" -i model.safetensors -o README.md -f
cd ..
find precious aside.md -type f | sort | xargs cksum | cmp -s - sums
check $? 'the refused conversions leave all files of the checkpoint unchanged'
is 0 'ft-convert writes the artifact into the checkpoint folder' \
    "$convert" -q -i precious -o precious/model.ft
is 0 'ft-convert -f replaces the artifact in the checkpoint folder' \
    "$convert" -q -i precious -o precious/model.ft -f

# ---- Reports ------------------------------------------------------------------------------------

is 0 'ft-convert --json prints a report' "$convert" -i "$sample" -o json.ft --json -q
if have_python; then
    cp out report.json
    is 0 'the JSON report lists every tensor of the artifact' python3 - report.json json.ft <<'END'
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
is 1 'ft-convert --json exits with 1 if the conversion fails' "$convert" -i nowhere -n --json
says out '"ok": false' 'the JSON report marks a failed conversion'
says out '"status": "FT_EIO"' 'the JSON report of a failure contains the status code'
says err 'nowhere' 'ft-convert --json also prints the error on standard error'

# ---- Edited configurations ----------------------------------------------------------------------

mkdir other
cp "$sample/config.json" other
ln -s "$sample/model.safetensors" other
sed 's/"use_cache"/"mystery": 3, "use_cache"/' "$sample/config.json" >other/config.json
is 1 'ft-convert refuses an unknown configuration key' "$convert" -i other -n
says err 'mystery is 3, which may change the result; pass --ignore-key mystery' \
    'ft-convert suggests --ignore-key for an unknown key'
is 0 'ft-convert --ignore_key accepts the unknown key' "$convert" -i other -n --ignore_key mystery
says err 'note: no tokenizer.json' 'ft-convert notes that tokenizer.json is missing'

sed 's/"num_hidden_layers": 4/"num_hidden_layers": 3/' "$sample/config.json" >other/config.json
is 0 'ft-convert accepts a configuration with fewer layers than the weights' "$convert" -i other -n
says err 'unused: bert.encoder.layer.3.attention.output.LayerNorm.bias' \
    'ft-convert lists the weights of the extra layer as unused'
says err 'unused: and 11 more (-v lists them)' \
    'ft-convert abbreviates a long list of unused weights'
is 0 'ft-convert -n -v accepts the same checkpoint' "$convert" -i other -n -v
test "$(grep -c unused err)" -eq 16
check $? 'ft-convert -v lists all unused weights'

sed 's/"num_hidden_layers": 4/"num_hidden_layers": 9/' "$sample/config.json" >other/config.json
is 1 'ft-convert refuses a checkpoint with missing layers' "$convert" -i other -o other.ft
says err 'and 60 more like these' 'ft-convert names the first missing tensors and counts the others'
test ! -e other.ft
check $? 'a refused conversion leaves no artifact'

# ---- Other families -----------------------------------------------------------------------------

make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$make_checkpoint" llama biases shards
cp decoder/generation_config.json shards
echo '{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
"pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1}}}' >shards/tokenizer.json
is 0 'ft-convert converts a Llama in two shards' "$convert" -i shards -o llama.ft
empty out 'the conversion of a Llama prints nothing on standard output'
! grep -q -e note -e unused err
check $? 'the conversion of a Llama reports no unused weights and no notes'
is 0 'ft-inspect lists the Llama artifact' "$inspect" llama.ft
says out 'llama.ft: llama, float, written by ft-convert' 'ft-inspect shows the family llama'
says out '2 layers, hidden 64, 4 heads of 16 (2 key/value heads), ffn 100' \
    'ft-inspect shows the dimensions of the Llama'
says out 'rope theta 10000' 'ft-inspect shows the rotary position embeddings of the Llama'
says out 'generation_config.json' 'ft-inspect lists generation_config.json'
is 0 'ft-convert --dtype f16 converts a Llama' "$convert" -i shards -o half.ft --dtype f16
is 0 'ft-inspect lists the F16 artifact' "$inspect" half.ft
test "$(grep -c '  F16  ' out)" -eq 16
check $? '--dtype f16 stores all matrices as F16, including the embeddings and the LM head'

quietly "$make_checkpoint" vit images
is 0 'ft-convert converts a ViT' "$convert" -i images -o images.ft -q
is 0 'ft-inspect lists the ViT artifact' "$inspect" images.ft
says out '2 layers, hidden 32, 2 heads, ffn 40, images of 3 x 12 x 12 in patches of 4 x 4, 10 positions, 5 labels' \
    'ft-inspect shows the dimensions of the ViT'
mkdir unknown
sed 's/"model_type": "vit"/"model_type": "swin"/' images/config.json >unknown/config.json
cp images/model.safetensors unknown
is 1 'ft-convert refuses an unknown model_type' "$convert" -i unknown -n
says err 'model_type "swin" is not supported; supported are bert, roberta, distilbert, llama, mistral, qwen2, qwen3, m2m_100, marian, vit, deit' \
    'ft-convert lists the supported model types'

quietly "$make_checkpoint" translator words
is 0 'ft-convert converts an M2M100' "$convert" -i words -o words.ft -q
is 0 'ft-inspect lists the M2M100 artifact' "$inspect" words.ft
says out '2 + 2 layers, hidden 64, 4 heads, ffn 100, vocabulary 97, 40 positions, sinusoids closed, scaled embeddings, start 2, pad 1, tied head' \
    'ft-inspect shows the dimensions of the M2M100'
says out 'vocab.json' 'ft-inspect lists vocab.json of the M2M100'

for family in bert roberta distilbert; do
    quietly "$make_checkpoint" $family $family
    is 0 "ft-convert converts a model of family $family" "$convert" -i $family -o $family.ft -q
    is 0 "ft-inspect --verify finds no fault in an artifact of family $family" \
        "$inspect" --verify $family.ft
done

echo "1..$count"
