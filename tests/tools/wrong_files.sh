# wrong_files.sh - a tool that gets a wrong file type says what the file looks like and what to do.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bin=$FT_BUILDDIR
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# ---- File types ---------------------------------------------------------------------------------

printf 'GGUF\003\000\000\000\043\001\000\000' >model.gguf
printf '\010\010\022\007pytorch\032\0052.1.0' >model.onnx
printf 'PK\003\004\000\000\010\010\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\020\000\000\000archive/data.pkl' >pytorch_model.bin
printf '\200\002\212\012l\374\234F\371 j\250P\031.' >old.pt
printf '\223NUMPY\001\000v\000{"descr": "<f4"' >array.npy
printf '\037\213\010\000\000\000\000\000' >model.gz
printf 'PK\003\004\024\000\000\000\010\000\000\000!\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000a' >model.zip
printf '<!DOCTYPE html><html><head><title>Log in</title>' >page
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 438064459\n' >pointer
printf 'Invalid username or password.' >text
quietly "$bin/tests/programs/make-decoder" checkpoint 7 98
quietly "$bin/ft-convert" -i checkpoint -o model.ft
quietly "$bin/tests/programs/make-tensors" rows.st 'input_ids:I32:1,4=5,6,7,8'

# The name of a file must not matter, so each also gets the name model.safetensors.
looks='model.gguf=GGUF
model.onnx=ONNX
pytorch_model.bin=a PyTorch file of pickled tensors
old.pt=a Python pickle, as of older PyTorch
array.npy=a NumPy array
model.gz=gzip
model.zip=a zip archive
page=an HTML or XML page
pointer=a Git LFS pointer
text=plain text'
mkdir renamed
cp checkpoint/config.json renamed
echo "$looks" >looks
while IFS='=' read -r file kind; do
    is 1 "ft-convert refuses the checkpoint $file" "$bin/ft-convert" -i $file -n
    says err "$file: looks like $kind" "ft-convert says that $file looks like $kind"
    says err ': ft-convert reads safetensors' \
        "ft-convert says that it reads safetensors instead of $file"
    cp $file renamed/model.safetensors
    is 1 "ft-convert refuses $file under the name model.safetensors" "$bin/ft-convert" -i renamed -n
    says err "renamed/model.safetensors: looks like $kind: ft-convert reads safetensors" \
        "ft-convert says that model.safetensors looks like $kind"
    is 1 "ft-run refuses the artifact $file" "$bin/ft-run" -i $file -d rows.st
    says err "$file: looks like $kind: expected an artifact, which ft-convert makes" \
        "ft-run says that the artifact $file looks like $kind"
    is 1 "ft-run refuses the data file $file" "$bin/ft-run" -i model.ft -d $file
    says err "$file: looks like $kind: data are read from safetensors" \
        "ft-run says that the data file $file looks like $kind"
done <looks

# ---- All tools ----------------------------------------------------------------------------------

# each FILE TEXT SENTENCE: every tool that reads an artifact refuses FILE with the message TEXT.
each () {
    wrong=$1 text=$2 sentence=$3
    is 1 "ft-run refuses $sentence" "$bin/ft-run" -i "$wrong" -d rows.st
    says err "$text" "ft-run says what to do with $sentence"
    is 1 "ft-inspect refuses $sentence" "$bin/ft-inspect" "$wrong"
    says err "$text" "ft-inspect says what to do with $sentence"
    is 1 "ft-eval refuses $sentence" "$bin/ft-eval" -i "$wrong" -d rows.st
    says err "$text" "ft-eval says what to do with $sentence"
    is 1 "ft-calibrate refuses $sentence" "$bin/ft-calibrate" -i "$wrong" -d rows.st -n
    says err "$text" "ft-calibrate says what to do with $sentence"
    is 1 "ft-bench refuses $sentence" "$bin/ft-bench" -i "$wrong"
    says err "$text" "ft-bench says what to do with $sentence"
}
each checkpoint/model.safetensors \
    'model.safetensors: looks like safetensors: convert it first with ft-convert -i ' \
    'a safetensors file'
each checkpoint 'checkpoint: is a folder, expected an artifact; if it is a checkpoint, convert it first' \
    'a folder'
each no-org/no-model 'no-org/no-model: No such file or directory; if that is a model on the Hugging Face Hub, download it first: hf download no-org/no-model --local-dir no-model, then ft-convert -i no-model -o no-model.ft' \
    'the name of a model on the Hugging Face Hub'
is 1 'ft-convert refuses the name of a model on the Hugging Face Hub' \
    "$bin/ft-convert" -i no-org/no-model -n
says err 'download it first: hf download no-org/no-model --local-dir no-model' \
    'ft-convert says how to download a model from the Hugging Face Hub'
is 1 'ft-convert refuses an artifact' "$bin/ft-convert" -i model.ft -n
says err 'model.ft: looks like an artifact: ft-convert reads safetensors; ft-run, ft-calibrate, ' \
    'ft-convert says that the input is an artifact'
is 1 'ft-calibrate --merge refuses a data file' "$bin/ft-calibrate" -i model.ft --merge rows.st -n
says err 'rows.st: looks like safetensors: expected counters, which ft-calibrate --save-counters' \
    'ft-calibrate --merge says which command writes counters'
is 1 'ft-run -d refuses an artifact' "$bin/ft-run" -i model.ft -d model.ft
says err 'model.ft: looks like an artifact: data are read from safetensors' \
    'ft-run -d says that the file is an artifact'

# ---- Checkpoints that cannot be converted --------------------------------------------------------

# checkpoint NAME: a folder NAME with the files of a valid checkpoint.
checkpoint () {
    mkdir "$1"
    cp checkpoint/* "$1"
}

# configured NAME MEMBERS: the same with additional members in config.json.
configured () {
    checkpoint "$1"
    sed "1s/{/{$2,/" checkpoint/config.json >"$1/config.json"
}

quantized='are not supported; convert the float checkpoint that they were made from, then quantize it'
while IFS='=' read -r name members said; do
    configured $name "\"quantization_config\": {$members}"
    is 1 "ft-convert refuses a checkpoint quantized by $said ($name)" "$bin/ft-convert" -i $name -n
    says err "config.json: weights quantized by $said $quantized with ft-calibrate --scheme " \
        "ft-convert names $said as the quantizer and says what to do ($name)"
    test "$(wc -l <err)" -eq 1
    check $? "ft-convert refuses the checkpoint with one line of text ($name)"
done <<'END'
gptq="quant_method": "gptq", "bits": 4, "group_size": 128=GPTQ
awq="quant_method": "awq", "bits": 4=AWQ
bnb4="quant_method": "bitsandbytes", "load_in_4bit": true=bitsandbytes
bnb8="load_in_8bit": true=bitsandbytes
packed="quant_method": "compressed-tensors", "format": "pack-quantized"=compressed-tensors
fp8="quant_method": "fp8", "weight_block_size": [128, 128]=FP8
fbgemm="quant_method": "fbgemm_fp8"=FP8 (FBGEMM)
mxfp4="quant_method": "mxfp4"=MXFP4
other="quant_method": "aqlm"=aqlm
END

# Tensor types that the safetensors reader does not know must not hide the reason.
checkpoint unknown_dtype
sed '1s/{/{"quantization_config": {"quant_method": "fp8"},/' checkpoint/config.json \
    >unknown_dtype/config.json
printf '\100\000\000\000\000\000\000\000{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}   ' \
    >unknown_dtype/model.safetensors
is 1 'ft-convert refuses a quantized checkpoint with an unknown tensor dtype' \
    "$bin/ft-convert" -i unknown_dtype -n
says err "config.json: weights quantized by FP8 $quantized" \
    'ft-convert names the quantizer in config.json instead of the unknown dtype'

checkpoint settings
echo '{"bits": 4}' >settings/quantize_config.json
is 1 'ft-convert refuses a checkpoint with quantize_config.json of AutoGPTQ' \
    "$bin/ft-convert" -i settings -n
says err "quantize_config.json: weights quantized by GPTQ $quantized" \
    'ft-convert names GPTQ for a checkpoint with quantize_config.json'
for end in qweight=GPTQ weight.absmax=bitsandbytes weight_packed=compressed-tensors \
    weight_scale_inv=FP8; do
    checkpoint "tensors.$end"
    quietly "$bin/tests/programs/make-tensors" "tensors.$end/model.safetensors" \
        "model.layers.0.self_attn.q_proj.${end%=*}:I32:1,4=5,6,7,8"
    is 1 "ft-convert refuses tensors named ${end%=*}" "$bin/ft-convert" -i "tensors.$end" -n
    says err "q_proj.${end%=*}: weights quantized by ${end#*=}" \
        "ft-convert names ${end#*=} as the quantizer of tensors named ${end%=*}"
done

mkdir adapter
echo '{"peft_type": "LORA", "base_model_name_or_path": "org/base"}' >adapter/adapter_config.json
quietly "$bin/tests/programs/make-tensors" adapter/adapter_model.safetensors \
    'base_model.model.layers.0.q_proj.lora_A.weight:I32:1,4=5,6,7,8'
for input in adapter adapter/adapter_model.safetensors; do
    is 1 "ft-convert refuses $input" "$bin/ft-convert" -i $input -n
    says err 'adapter_config.json: an adapter (LoRA) of org/base, not a model; merge them' \
        "ft-convert says that $input is a LoRA adapter of org/base"
    says err 'merge_and_unload() of peft' "ft-convert says how to merge the adapter $input"
done
rm adapter/adapter_config.json
is 1 'ft-convert refuses adapter weights without adapter_config.json' "$bin/ft-convert" \
    -i adapter/adapter_model.safetensors -n
says err 'lora_A.weight: an adapter (LoRA)' \
    'ft-convert recognizes adapter weights by their tensor names'

mkdir pickles shards cache cache/snapshots
cp checkpoint/config.json pickles
cp checkpoint/config.json shards
cp pytorch_model.bin pickles
cp pytorch_model.bin shards/pytorch_model-00001-of-00002.bin
for name in pickles shards; do
    is 1 "ft-convert refuses a checkpoint without safetensors ($name)" "$bin/ft-convert" -i $name -n
    says err 'holds pickled weights, and reading those can run code; convert them in Python with ' \
        "ft-convert says how to convert pickled weights ($name)"
done
for file in model.gguf model.onnx; do
    mkdir "only.$file"
    cp $file "only.$file"
    is 1 "ft-convert refuses a folder that only contains $file" "$bin/ft-convert" -i "only.$file" -n
    says err "only.$file/$file: looks like " "ft-convert names $file, the only file of the folder"
done
is 1 'ft-convert refuses a folder of the Hugging Face Hub cache' "$bin/ft-convert" -i cache -n
says err 'cache: no model.safetensors and no model.safetensors.index.json; name one of the folders in its snapshots/' \
    'ft-convert points to the snapshots/ folder of the Hugging Face Hub cache'

for file in config.json tokenizer.json model.safetensors.index.json; do
    checkpoint "cloned.$file"
    cp pointer "cloned.$file/$file"
    test $file != model.safetensors.index.json || rm "cloned.$file/model.safetensors"
    is 1 "ft-convert refuses a clone in which $file is a Git LFS pointer" \
        "$bin/ft-convert" -i "cloned.$file" -n
    says err "$file: looks like a Git LFS pointer: expected JSON; only the pointer was cloned: git lfs pull" \
        "ft-convert says how to get $file, which is a Git LFS pointer"
done

for type in t5 gpt2 mixtral; do
    checkpoint $type
    sed "s/\"model_type\": *\"[a-z0-9_]*\"/\"model_type\": \"$type\"/" checkpoint/config.json \
        >$type/config.json
    is 1 "ft-convert refuses the model_type $type" "$bin/ft-convert" -i $type -n
    says err "config.json: model_type \"$type\" is not supported; supported are bert, " \
        "ft-convert lists the supported model types instead of $type"
done
checkpoint architecture
sed 's/LlamaForCausalLM/LlamaForTokenClassification/' checkpoint/config.json \
    >architecture/config.json
is 1 'ft-convert refuses an unsupported architecture of a supported model_type' \
    "$bin/ft-convert" -i architecture -n
says err 'architectures ["LlamaForTokenClassification"] is not supported' \
    'ft-convert names the unsupported architecture'

echo "1..$count"
