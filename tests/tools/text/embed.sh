# embed.sh - embeddings through all tools: Dense layers, prompts, --dim, and decoders that embed.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
inspect=$FT_BUILDDIR/ft-inspect
run=$FT_BUILDDIR/ft-run
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
cd "$dir" || exit 99

# modules FOLDER TYPE...: modules.json; module N is of that type, in the folder N_TYPE.
modules () {
    folder=$1 list='{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}' i=1
    shift
    for type; do
        list="$list, {\"idx\": $i, \"name\": \"$i\", \"path\": \"${i}_$type\",
              \"type\": \"sentence_transformers.models.$type\"}"
        i=$((i + 1))
    done
    echo "[$list]" >"$folder/modules.json"
}

# near A B MOST SENTENCE: two files of numbers are nowhere further apart than MOST.
near () {
    paste -d ' ' "$1" "$2" | awk -v most="$3" '{ n = NF / 2; far += NF == 0 || NF % 2
        for (i = 1; i <= n; i++) { d = $i - $(i + n); far += (d < 0 ? -d : d) > most } }
        END { exit NR == 0 || far }'
    check $? "$4"
}

# units FILE SENTENCE: each line of numbers has norm 1.
units () {
    awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; far += s < 0.9999 || s > 1.0001 }
         END { exit NR == 0 || far }' "$1"
    check $? "$2"
}

# ---- Dense layers and prompts -------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" plain 0
modules plain Pooling Dense Normalize
mkdir plain/2_Dense
echo '{"in_features": 8, "out_features": 5, "bias": true,
       "activation_function": "torch.nn.modules.activation.Tanh"}' >plain/2_Dense/config.json
quietly "$make_tensors" plain/2_Dense/model.safetensors linear.bias:F32:5=0.1,-0.2,0.3,0,0.05 \
    linear.weight:F32:5,8=0.3,-0.2,0.5,0.1,-0.4,0.2,0.6,-0.1,0.2,0.4,-0.3,0.7,0.1,-0.6,0.2,0.5,-0.1,0.3,0.2,-0.5,0.4,0.1,-0.2,0.6,0.7,-0.3,0.1,0.2,-0.1,0.5,-0.4,0.3,0.2,0.1,-0.6,0.4,0.3,-0.2,0.1,0.5
cp -r plain prompted
echo '{"prompts": {"query": "k l ", "document": "c "}, "default_prompt_name": "query"}' \
    >prompted/config_sentence_transformers.json
for model in plain prompted; do
    is 0 "ft-convert converts a $model encoder with a Dense" "$convert" -i $model -o $model.ft --dtype f32
done
is 0 'ft-inspect describes an encoder with a Dense' "$inspect" plain.ft
says out 'embedding by mean, dense to 5 + tanh, normalized' 'ft-inspect shows the Dense'
printf 'a b c\nd\ne f g h\n' >texts
sed 's/^/k l /' texts >query
sed 's/^/c /' texts >document
is 0 'ft-run embeds with the default prompt' "$run" -i prompted.ft --text texts
cp out default.out
units default.out 'embeddings behind a Dense and a Normalize have norm 1'
quietly "$run" -i plain.ft --text query && cp log expected.out
same default.out expected.out 'the default prompt stands before each text'
is 0 'ft-run embeds with a named prompt' "$run" -i prompted.ft --text texts --prompt-name document
cp out named.out
quietly "$run" -i plain.ft --text document && cp log expected.out
same named.out expected.out 'the named prompt stands before each text'
is 2 'a prompt that does not exist is a usage error' "$run" -i prompted.ft --prompt-name passage a
says err 'prompted.ft: has no prompt "passage"; its prompts are query, document' 'the message lists the prompts'
is 2 'a prompt of a model without prompts is a usage error' "$run" -i plain.ft --prompt-name query a
says err 'plain.ft: has no prompts, so "query" is not one' 'the message says that there are no prompts'
quietly "$make_tensors" ids.safetensors input_ids:I32:1,3=2,5,3
is 2 '--prompt-name with token ids is a usage error' "$run" -i prompted.ft --prompt-name query -d ids.safetensors
is 1 'a pair of texts cannot have a prompt' "$run" -i prompted.ft --pairs "$(printf 'a\tb')"
says err 'found a pair of texts, but the model puts a prompt before a text' 'the message names the prompt'

# ---- Calibration and evaluation -----------------------------------------------------------------

for model in prompted:texts plain:query; do
    is 0 "ft-calibrate quantizes the ${model%:*} encoder" "$calibrate" -q -i "${model%:*}.ft" -o "${model%:*}.int8.ft" \
        --text "${model#*:}"
    "$inspect" --amax "${model%:*}.int8.ft" >"${model%:*}.amax"
done
same prompted.amax plain.amax 'ft-calibrate observes texts behind their default prompt'
"$run" -i prompted.int8.ft --text texts >int8.out
near int8.out default.out 0.05 'the int8 embeddings with a Dense are near those in float'
"$run" -i prompted.int8.ft --text texts --fake >fake.out
same int8.out fake.out 'fake quantization gives the bits of int8 embeddings'
cat >pairs.jsonl <<'END'
{"sentence1": "a b c", "sentence2": "d e", "score": 3}
{"sentence1": "f", "sentence2": "g h i j", "score": 1}
{"sentence1": "a", "sentence2": "a b", "score": 5}
{"sentence1": "i j", "sentence2": "c", "score": 2}
{"sentence1": "e f", "sentence2": "e g", "score": 4}
END
sed 's/"sentence\([12]\)": "/"sentence\1": "k l /g' pairs.jsonl >query.jsonl
is 0 'ft-eval evaluates pairs with the default prompt' "$eval" -i prompted.ft --text pairs.jsonl
grep spearman out >default.score
is 0 'ft-eval evaluates pairs without a prompt' "$eval" -i plain.ft --text query.jsonl
grep spearman out >expected.score
same default.score expected.score 'ft-eval compares the embeddings that ft-run prints'

# ---- Matryoshka embeddings ----------------------------------------------------------------------

is 0 'ft-run --dim gives shorter embeddings' "$run" -i prompted.ft --text texts --dim 2
cp out cut.out
awk '{ s = sqrt($1 * $1 + $2 * $2); printf "%.7g %.7g\n", $1 / s, $2 / s }' default.out >expected.out
near cut.out expected.out 1e-6 'they are the first values, with norm 1 again'
quietly "$run" -i prompted.ft --text texts --dim 2 -o cut.safetensors
head -c 200 cut.safetensors | grep -qF '"embedding":{"dtype":"F32","shape":[3,2]'
check $? 'the output file has the shorter embeddings'
modules plain Pooling Dense
quietly "$convert" -i plain -o raw.ft --dtype f32
"$run" -i raw.ft --text query >raw.out
"$run" -i raw.ft --text query --dim 2 >cut.out
cut -d ' ' -f 1,2 raw.out >expected.out
same cut.out expected.out '--dim does not normalize where the model does not'
is 2 'more values than the embedding has are a usage error' "$run" -i raw.ft --dim 6 a
says err '--dim: found 6, expected at most the 5 values of raw.ft' 'the message gives the size of the embedding'

# ---- Decoders -----------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -i decoder -o decoder.ft
is 0 'ft-run --embed embeds with a decoder' "$run" -i decoder.ft --embed --text texts
cp out decoder.out
units decoder.out 'the embeddings of a decoder have norm 1'
while read -r text; do
    "$run" -i decoder.ft --embed "$text"
done <texts >alone.out
same alone.out decoder.out 'a text alone has the embedding that it has in a batch'
"$run" -i decoder.ft --embed --text texts --max-tokens 4 >alone.out
same alone.out decoder.out 'small batches give the same embeddings of a decoder'
is 2 'text generation does not apply with --embed' "$run" -i decoder.ft --embed --temperature 1 a
says err '--temperature applies to text generation, but decoder.ft embeds texts' 'the message names the option'
is 2 '--dim without an embedding is a usage error' "$run" -i decoder.ft --dim 4 a
quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$convert" -i classifier -o classifier.ft
is 1 '--embed with a model that has no embedding fails' "$run" -i classifier.ft --embed a
says err 'is a text encoder without an embedding; convert a checkpoint with modules.json' \
    'the message says what to convert'

quietly "$calibrate" -q -i decoder.ft -o head.ft --scheme w8a8-dynamic --head int8
"$run" -i head.ft --embed --text texts >head.out
near head.out decoder.out 0.1 'a quantized LM head does not stand in the way of --embed'

modules decoder Pooling Normalize
mkdir decoder/1_Pooling
echo '{"word_embedding_dimension": 32, "pooling_mode_lasttoken": true}' >decoder/1_Pooling/config.json
is 0 'ft-convert converts a decoder that embeds' "$convert" -i decoder -o embedder.ft
"$run" -i embedder.ft --text texts >embedder.out
same embedder.out decoder.out 'last token pooling and normalization are what --embed does'
is 2 'a decoder that embeds does not chat' "$run" -i embedder.ft --chat a
is 2 'a decoder that embeds does not generate' "$run" -i embedder.ft --max-new-tokens 3 a
for scheme in w8a8-dynamic:0.1 w8a16:0.02 w4a16:0.4; do
    name=${scheme%:*} options=
    test $name = w8a8-dynamic || options=--group-pad
    is 0 "ft-calibrate quantizes a decoder that embeds with $name" "$calibrate" -q -i embedder.ft \
        -o $name.ft --scheme $name $options
    "$run" -i $name.ft --text texts >$name.out
    near $name.out decoder.out "${scheme#*:}" "its embeddings in $name are near those in float"
    quietly "$calibrate" -q -i decoder.ft -o generator.ft -f --scheme $name $options
    "$run" -i generator.ft --embed --text texts >generator.out
    same generator.out $name.out "--embed with a generator in $name gives the same embeddings"
done
is 1 'a decoder that embeds has no head to quantize' "$calibrate" -i embedder.ft -o headless.ft \
    --scheme w8a8-dynamic --head int8
says err 'a quantized head is for text generation; this decoder embeds texts' 'the message says why'
cat >decoder-pairs.jsonl <<'END'
{"sentence1": "a b", "sentence2": "a c", "score": 3}
{"sentence1": "d", "sentence2": "e f g", "score": 1}
END
is 0 'ft-eval evaluates a decoder that embeds on pairs' "$eval" -i embedder.ft --text decoder-pairs.jsonl
matches out '^spearman ' 'ft-eval prints the rank correlation of its cosines'
is 1 'ft-eval does not compare a decoder that embeds with one that generates' \
    "$eval" -i embedder.ft --against decoder.ft --text texts
says err 'decoder.ft: generates text, but embedder.ft embeds texts' 'the message says what each does'

echo "1..$count"
