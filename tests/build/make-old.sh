#!/bin/sh
# make-old.sh - tiny artifacts of this version with their outputs, for tests/build/old.sh to check.
#
#     tests/build/make-old.sh BUILD FOLDER            tests/build/make-old.sh build tests/data/old/0.1.0
#
# Writes NAME.ft for each family and kind of scheme, FAMILY.samples for each family, and NAME.out,
# ft-run's output for these samples.  tests/programs/make-checkpoint makes the models.
# SPDX-License-Identifier: Apache-2.0
set -eu

FT_SRCDIR=$(cd "$(dirname "$0")/../.." && pwd)
export FT_SRCDIR
build=$(cd "${1:?BUILD}" && pwd)
mkdir -p "${2:?FOLDER}"
folder=$(cd "$2" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# model FAMILY [VARIANT]: makes a checkpoint and its samples.
model () {
    "$build/tests/programs/make-checkpoint" "$@" "$1"
    "$build/ft-convert" -q -i "$1" -o "$1.float.ft"
    if test -f "$1/reference.safetensors"; then
        cp "$1/reference.safetensors" "$folder/$1.samples"
    else
        "$build/tests/programs/make-tensors" "$folder/$1.samples" \
            input_ids:I32:3,6=2,5,9,1,14,3,2,8,8,4,0,0,2,17,6,0,0,0 \
            attention_mask:I32:3,6=1,1,1,1,1,1,1,1,1,1,0,0,1,1,1,0,0,0
    fi
}

# keep FAMILY NAME: keeps an artifact and its outputs.
keep () {
    cp "$1.$2.ft" "$folder/$1.$2.ft"
    "$build/ft-run" -i "$1.$2.ft" -d "$folder/$1.samples" -o "$folder/$1.$2.out" -f
}

# calibrate FAMILY NAME OPTION...
calibrate () {
    family=$1 name=$2
    shift 2
    "$build/ft-calibrate" -q -i "$family.float.ft" -o "$family.$name.ft" "$@"
    keep "$family" "$name"
}

for family in roberta distilbert; do
    model $family
    keep $family float
done
model bert classifier
keep bert float
calibrate bert w8a8 -d "$folder/bert.samples"
calibrate bert w8a8-residual -d "$folder/bert.samples" --residual int8
model llama
keep llama float
calibrate llama w8a8-dynamic --scheme w8a8-dynamic
calibrate llama w8a16 --scheme w8a16 --group-pad
calibrate llama w4a16 --scheme w4a16 --asym --group-pad
calibrate llama w8a8-block --scheme w8a8-block --group-pad
model translator
keep translator float
calibrate translator w8a8 -d "$folder/translator.samples"
model vit
keep vit float
calibrate vit w8a8 -d "$folder/vit.samples"
du -sh "$folder"
