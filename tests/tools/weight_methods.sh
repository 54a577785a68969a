# weight_methods.sh - codes that sample data choose: what imatrix, AWQ and GPTQ gain, the same bytes by any
# number of threads and passes, and what does not go together.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
pick_rows=$FT_BUILDDIR/tests/programs/pick-rows
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

# learn ARTIFACT OPTION...: an artifact of model.ft, by samples.st or fewer.
learn () {
    artifact=$1
    shift
    is 0 "$*: quantizes" "$calibrate" -f -i model.ft -o "$artifact" -d samples.st --eval few.st \
        --scheme w4a16 "$@"
}

# judge KEY ARTIFACT OPTION...: what ft-eval finds, as $found.
judge () {
    key=$1
    shift
    "$eval" -i "$@" --json >"$dir/out" 2>"$dir/err" || sed 's/^/# /' "$dir/err"
    found=$(number "$key")
    echo "# $key $found"
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
wrong 'are for group-wise schemes' -d samples.st --round gptq
wrong 'are for group-wise schemes' -d samples.st --scheme w8a8-dynamic --scale awq
wrong 'cannot be combined with --merge' -d samples.st --tensor ffn=w4a16 --round gptq --merge some.counts
wrong '"max" is neither none, mse nor imatrix' -d samples.st --scheme w4a16 --clip max
wrong '"smooth" is neither none nor awq' -d samples.st --scheme w4a16 --scale smooth
wrong '"best" is neither nearest nor gptq' -d samples.st --scheme w4a16 --round best
wrong '"0" is not a number of MiB' -d samples.st --scheme w4a16 --round gptq --memory 0
wrong '"1G" is not a number of MiB' -d samples.st --scheme w4a16 --round gptq --memory 1G
wrong '--memory is for' --scheme w4a16 --memory 100

# ---- A random decoder ---------------------------------------------------------------------------

# Its rows of 32 inputs are one group of weights.  Of three such models nearest codes were 0.32 to 0.38
# from the floats (KL), those of one method 0.22 to 0.32, and those of all 0.14 to 0.20.
ids=$(awk 'BEGIN { for (i = 0; i < 1024; i++) printf "%s%d", i ? "," : "", i * 37 % 251 + i * i % 11 }')
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -q -i decoder -o model.ft
quietly "$FT_BUILDDIR/tests/programs/make-tensors" rows.st "input_ids:I32:16,64=$ids"
quietly "$pick_rows" rows.st samples.st 0:12
quietly "$pick_rows" rows.st few.st 12:16
random='--group 32 --group-pad'

# distance ARTIFACT: how far its predictions for few.st are from those of model.ft, as $found.
distance () {
    judge kl_mean "$1" --against model.ft -d few.st
}

quietly "$calibrate" -q -i model.ft -o nearest.ft --scheme w4a16 $random
distance nearest.ft
nearest=$found
for method in '--clip imatrix' '--scale awq' '--round gptq'; do
    learn one.ft $random $method
    says out " ${method#* } " 'and it is reported'
    distance one.ft
    below "$found" "$(product 0.9 "$nearest")" 'and is nearer to the floats than nearest codes'
done
learn one.ft $random --asym --clip imatrix --scale awq --round gptq --json
says out '"method": "awq, imatrix, gptq"' 'and all of them are reported'
says out '"relative_output_error":' 'with what they cost in results'
says out '"samples": 12' 'and how many samples there were'
distance one.ft
below "$found" "$(product 0.6 "$nearest")" 'all together are nearer still'
learn one.ft $random --clip imatrix --round gptq --samples 4
learn two.ft $random --clip imatrix --round gptq --samples 4 --memory 8 -t 1
same one.ft two.ft 'many passes by one thread give the same bytes'

# ---- A trained decoder --------------------------------------------------------------------------

if test ! -f "$llama/config.json"; then
    skip "no checkpoint python-llama in $FT_MODELS"
    echo "1..$count"
    exit 0
fi
quietly "$convert" -q -f -i "$llama" -o model.ft
quietly "$pick_rows" "$llama/calibration.safetensors" samples.st 0:32
quietly "$pick_rows" "$llama/calibration.safetensors" few.st 255:256

# perplexity ARTIFACT: on the reference text, as $found.
perplexity () {
    judge perplexity "$1" -d "$llama/reference.safetensors"
}

quietly "$calibrate" -q -f -i model.ft -o nearest.ft --scheme w4a16
perplexity nearest.ft
nearest=$found

# Perplexity scatters by half a per cent between codes that are equally good: the float model has
# 15.6004, nearest codes 17.03.  Of so few samples AWQ and GPTQ alone gain less than that.
learn one.ft --clip imatrix
perplexity one.ft
below "$found" "$(product 0.99 "$nearest")" 'imatrix is better than nearest codes'
learn one.ft --scale awq
perplexity one.ft
below "$found" "$(product 1.01 "$nearest")" 'AWQ is no worse than nearest codes'
learn one.ft --round gptq
perplexity one.ft
below "$found" "$(product 1.01 "$nearest")" 'nor is GPTQ'
learn one.ft --asym --clip imatrix --scale awq --round gptq --json
says out '"foldable_inputs": 24' 'with the inputs that AWQ may divide'
perplexity one.ft
below "$found" "$(product 0.965 "$nearest")" 'all together are better still'

echo "1..$count"
