# learn.sh - codes that sample data choose: what imatrix, AWQ and GPTQ gain on trained models, the same
# bytes by any number of threads and passes, and what does not go together.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
pick_rows=$FT_BUILDDIR/tests/pick-rows
llama=$FT_MODELS/python-llama
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run beside this one: threads that wait shall leave their processor to them.
unset FT_CPU

# wrong TEXT OPTION...: the command line is refused with TEXT in one line.
wrong () {
    text=$1
    shift
    is 2 "usage: $*" "$calibrate" -i model.ft -o no.ft "$@"
    says err "$text" '... and why is said'
}

# number KEY: of the object in $dir/out.
number () {
    sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" "$dir/out"
}

# learn ARTIFACT OPTION...: an artifact of python-llama, by 32 of its samples or fewer.
learn () {
    artifact=$1
    shift
    is 0 "$*: quantizes" "$calibrate" -f -i model.ft -o "$artifact" -d samples.st --eval few.st "$@"
}

# judge ARTIFACT: its $perplexity on the reference text.
judge () {
    "$eval" -i "$1" -d "$llama/reference.safetensors" --json >"$dir/out" 2>"$dir/err" ||
        sed 's/^/# /' "$dir/err"
    perplexity=$(number perplexity)
    echo "# perplexity $perplexity"
}

# below A B SENTENCE: A is a number and at most B.
below () {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a > 0 && a <= b) }'
    check $? "$3"
}

# product A B: their product.
product () {
    awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'
}

cd "$dir" || exit 99

# ---- What does not go together ------------------------------------------------------------------

wrong 'need sample data: use -d FILE' --scheme w4a16 --clip imatrix
wrong 'need sample data: use -d FILE' --scheme w4a16 --scale awq
wrong 'need sample data: use -d FILE' --scheme w4a16 --round gptq
wrong 'are for schemes of blocks' -d samples.st --round gptq
wrong 'are for schemes of blocks' -d samples.st --scheme w8a8-dynamic --scale awq
wrong 'do not go with --merge' -d samples.st --tensor ffn=w4a16 --round gptq --merge some.counts
wrong '"max" is neither none, mse nor imatrix' -d samples.st --scheme w4a16 --clip max
wrong '"smooth" is neither none nor awq' -d samples.st --scheme w4a16 --scale smooth
wrong '"best" is neither nearest nor gptq' -d samples.st --scheme w4a16 --round best
wrong '"0" is not a number of MiB' -d samples.st --scheme w4a16 --round gptq --memory 0
wrong '"1G" is not a number of MiB' -d samples.st --scheme w4a16 --round gptq --memory 1G
wrong '--memory is for' --scheme w4a16 --memory 100

# ---- A decoder ----------------------------------------------------------------------------------

if test ! -f "$llama/config.json"; then
    skip "no checkpoint python-llama in $FT_MODELS"
    echo "1..$count"
    exit 0
fi
quietly "$convert" -q -i "$llama" -o model.ft
quietly "$pick_rows" "$llama/calibration.safetensors" samples.st 0:32
quietly "$pick_rows" "$llama/calibration.safetensors" few.st 255:256

quietly "$calibrate" -q -i model.ft -o nearest.ft --scheme w4a16
judge nearest.ft
nearest=$perplexity

# Perplexity scatters by half a per cent between codes that are equally good: the float model has 15.6004,
# nearest codes 17.03.  Of so few samples AWQ and GPTQ alone gain less than that.
learn one.ft --scheme w4a16 --clip imatrix
says out ' imatrix ' 'and it is reported'
judge one.ft
below "$perplexity" "$(product 0.99 "$nearest")" 'imatrix is better than nearest codes'
learn one.ft --scheme w4a16 --scale awq
judge one.ft
below "$perplexity" "$(product 1.01 "$nearest")" 'AWQ is no worse than nearest codes'
learn one.ft --scheme w4a16 --round gptq
judge one.ft
below "$perplexity" "$(product 1.01 "$nearest")" 'nor is GPTQ'
learn one.ft --scheme w4a16 --asym --clip imatrix --scale awq --round gptq --json
says out '"method": "awq, imatrix, gptq"' 'and they are reported'
says out '"divisible": 24' 'with the inputs that AWQ may divide'
says out '"output_error":' 'with what they cost in results'
says out '"samples": 32' 'and how many samples there were'
judge one.ft
below "$perplexity" "$(product 0.965 "$nearest")" 'all together are better still'
learn one.ft --scheme w4a16 --clip imatrix --round gptq --samples 4
learn two.ft --scheme w4a16 --clip imatrix --round gptq --samples 4 --memory 8 -t 1
same one.ft two.ft 'many passes by one thread give the same bytes'

echo "1..$count"
