# mistaken.sh - who gives a tool another file than it reads is told what it looks like, and what to do.
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
quietly "$bin/tests/make-decoder" checkpoint 7 98
quietly "$bin/ft-convert" -i checkpoint -o model.ft
quietly "$bin/tests/make-tensors" rows.st 'input_ids:I32:1,4=5,6,7,8'

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

# all COMMAND...: of the tools that take an artifact, each with one that is none.
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
each no-org/no-model 'no-org/no-model: No such file or directory; if that is a model of a hub, nothing is downloaded here: hf download no-org/no-model --local-dir no-model, then ft-convert -i no-model -o no-model.ft' \
    'the name of a model on a hub'
is 1 'ft-convert refuses the name of a model on a hub' "$bin/ft-convert" -i no-org/no-model -n
says err 'nothing is downloaded here: hf download no-org/no-model --local-dir no-model' \
    'and says how to download it'
is 1 'ft-convert refuses an artifact' "$bin/ft-convert" -i model.ft -n
says err 'model.ft: looks like an artifact: ft-convert reads safetensors; ft-run, ft-calibrate, ' \
    'and says that it is converted'
is 1 'ft-calibrate refuses data for counters' "$bin/ft-calibrate" -i model.ft --merge rows.st -n
says err 'rows.st: looks like safetensors: expected counters, which ft-calibrate --save-counters' \
    'and says where counters come from'
is 1 'ft-run refuses an artifact for data' "$bin/ft-run" -i model.ft -d model.ft
says err 'model.ft: looks like an artifact: data are read from safetensors' 'and says so'

echo "1..$count"
