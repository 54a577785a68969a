# wrong_files.sh - who gives a tool another file than it reads is told what it looks like, and what to do.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bin=$FT_BUILDDIR
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# ---- Files of all kinds -------------------------------------------------------------------------

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

# The name that a file has must not matter, so all are called model.safetensors once, and model.ft.
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
    is 1 "$file is no checkpoint" "$bin/ft-convert" -i $file -n
    says err "$file: looks like $kind" 'ft-convert says what it looks like'
    says err ': ft-convert reads safetensors' 'and what it reads'
    cp $file renamed/model.safetensors
    is 1 "nor is it one as model.safetensors" "$bin/ft-convert" -i renamed -n
    says err "renamed/model.safetensors: looks like $kind: ft-convert reads safetensors" 'as it says'
    is 1 "$file is no artifact" "$bin/ft-run" -i $file -d rows.st
    says err "$file: looks like $kind: expected an artifact, which ft-convert makes" \
        'ft-run says what it looks like'
    is 1 "$file holds no data" "$bin/ft-run" -i model.ft -d $file
    says err "$file: looks like $kind: data are read from safetensors" 'as ft-run says'
done <looks

# ---- All tools ----------------------------------------------------------------------------------

# each FILE TEXT SENTENCE: every tool that takes an artifact, with one that is none.
each () {
    wrong=$1 text=$2 sentence=$3
    is 1 "ft-run refuses $sentence" "$bin/ft-run" -i "$wrong" -d rows.st
    says err "$text" 'and says what to do'
    is 1 "ft-inspect refuses $sentence" "$bin/ft-inspect" "$wrong"
    says err "$text" 'and says what to do'
    is 1 "ft-eval refuses $sentence" "$bin/ft-eval" -i "$wrong" -d rows.st
    says err "$text" 'and says what to do'
    is 1 "ft-calibrate refuses $sentence" "$bin/ft-calibrate" -i "$wrong" -d rows.st -n
    says err "$text" 'and says what to do'
    is 1 "ft-bench refuses $sentence" "$bin/ft-bench" -i "$wrong"
    says err "$text" 'and says what to do'
}
each checkpoint/model.safetensors \
    'model.safetensors: looks like safetensors: convert it first with ft-convert -i ' 'safetensors'
each checkpoint 'checkpoint: is a folder, expected an artifact; if it is a checkpoint, convert it first' \
    'a folder'
each no-org/no-model 'no-org/no-model: No such file or directory; if that is a model on the Hugging Face Hub, download it first: hf download no-org/no-model --local-dir no-model, then ft-convert -i no-model -o no-model.ft' \
    'the name of a model on a hub'
is 1 'ft-convert refuses the name of a model on a hub' "$bin/ft-convert" -i no-org/no-model -n
says err 'download it first: hf download no-org/no-model --local-dir no-model' \
    'and says how to download it'
is 1 'ft-convert refuses an artifact' "$bin/ft-convert" -i model.ft -n
says err 'model.ft: looks like an artifact: ft-convert reads safetensors; ft-run, ft-calibrate, ' \
    'and says that it is converted'
is 1 'ft-calibrate refuses data for counters' "$bin/ft-calibrate" -i model.ft --merge rows.st -n
says err 'rows.st: looks like safetensors: expected counters, which ft-calibrate --save-counters' \
    'and says where counters come from'
is 1 'ft-run refuses an artifact for data' "$bin/ft-run" -i model.ft -d model.ft
says err 'model.ft: looks like an artifact: data are read from safetensors' 'and says so'

# ---- Checkpoints that cannot be converted --------------------------------------------------------

# checkpoint NAME: a folder NAME with the files of a good one.
checkpoint () {
    mkdir "$1"
    cp checkpoint/* "$1"
}

# configured NAME MEMBERS: the same, with more in config.json.
configured () {
    checkpoint "$1"
    sed "1s/{/{$2,/" checkpoint/config.json >"$1/config.json"
}

quantized='are not supported; convert the float checkpoint that they were made from, then quantize it'
while IFS='=' read -r name members said; do
    configured $name "\"quantization_config\": {$members}"
    is 1 "a checkpoint of $said is refused" "$bin/ft-convert" -i $name -n
    says err "config.json: weights quantized by $said $quantized with ft-calibrate --scheme " \
        'by name, with what to do'
    test "$(wc -l <err)" -eq 1
    check $? 'and in one line'
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

# Types of other programs that no reader of safetensors knows must not hide the reason.
checkpoint eighths
sed '1s/{/{"quantization_config": {"quant_method": "fp8"},/' checkpoint/config.json \
    >eighths/config.json
printf '\100\000\000\000\000\000\000\000{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}   ' \
    >eighths/model.safetensors
is 1 'weights of a type that is unknown are refused' "$bin/ft-convert" -i eighths -n
says err "config.json: weights quantized by FP8 $quantized" 'by what config.json says'

checkpoint settings
echo '{"bits": 4}' >settings/quantize_config.json
is 1 'settings of AutoGPTQ beside weights are refused' "$bin/ft-convert" -i settings -n
says err "quantize_config.json: weights quantized by GPTQ $quantized" 'by name'
for end in qweight=GPTQ weight.absmax=bitsandbytes weight_packed=compressed-tensors \
    weight_scale_inv=FP8; do
    checkpoint "tensors.$end"
    quietly "$bin/tests/programs/make-tensors" "tensors.$end/model.safetensors" \
        "model.layers.0.self_attn.q_proj.${end%=*}:I32:1,4=5,6,7,8"
    is 1 "tensors called ${end%=*} are refused" "$bin/ft-convert" -i "tensors.$end" -n
    says err "q_proj.${end%=*}: weights quantized by ${end#*=}" 'by the name of the program'
done

mkdir adapter
echo '{"peft_type": "LORA", "base_model_name_or_path": "org/base"}' >adapter/adapter_config.json
quietly "$bin/tests/programs/make-tensors" adapter/adapter_model.safetensors \
    'base_model.model.layers.0.q_proj.lora_A.weight:I32:1,4=5,6,7,8'
for input in adapter adapter/adapter_model.safetensors; do
    is 1 "$input is refused" "$bin/ft-convert" -i $input -n
    says err 'adapter_config.json: an adapter (LoRA) of org/base, not a model; merge them' 'by name'
    says err 'merge_and_unload() of peft' 'with what to do'
done
rm adapter/adapter_config.json
is 1 'weights of an adapter alone are refused' "$bin/ft-convert" \
    -i adapter/adapter_model.safetensors -n
says err 'lora_A.weight: an adapter (LoRA)' 'by their names'

mkdir pickles shards cache cache/snapshots
cp checkpoint/config.json pickles
cp checkpoint/config.json shards
cp pytorch_model.bin pickles
cp pytorch_model.bin shards/pytorch_model-00001-of-00002.bin
for name in pickles shards; do
    is 1 "$name without safetensors are refused" "$bin/ft-convert" -i $name -n
    says err 'holds pickled weights, and reading those can run code; convert them in Python with ' \
        'with what to do'
done
for file in model.gguf model.onnx; do
    mkdir "only.$file"
    cp $file "only.$file"
    is 1 "a folder of $file alone is refused" "$bin/ft-convert" -i "only.$file" -n
    says err "only.$file/$file: looks like " 'by that file'
done
is 1 'the cache of a hub is refused' "$bin/ft-convert" -i cache -n
says err 'cache: no model.safetensors and no model.safetensors.index.json; name one of the folders in its snapshots/' \
    'with where to look'

for file in config.json tokenizer.json model.safetensors.index.json; do
    checkpoint "cloned.$file"
    cp pointer "cloned.$file/$file"
    test $file != model.safetensors.index.json || rm "cloned.$file/model.safetensors"
    is 1 "a clone in which $file is a pointer is refused" "$bin/ft-convert" -i "cloned.$file" -n
    says err "$file: looks like a Git LFS pointer: expected JSON; only the pointer was cloned: git lfs pull" \
        'with what to do'
done

for type in t5 gpt2 mixtral; do
    checkpoint $type
    sed "s/\"model_type\": *\"[a-z0-9_]*\"/\"model_type\": \"$type\"/" checkpoint/config.json \
        >$type/config.json
    is 1 "a model of type $type is refused" "$bin/ft-convert" -i $type -n
    says err "config.json: model_type \"$type\" is not supported; supported are bert, " \
        'by name, with what is supported'
done
checkpoint architecture
sed 's/LlamaForCausalLM/LlamaForTokenClassification/' checkpoint/config.json \
    >architecture/config.json
is 1 'an architecture that is none of the family is refused' "$bin/ft-convert" -i architecture -n
says err 'architectures ["LlamaForTokenClassification"] is not supported' 'by name'

echo "1..$count"
