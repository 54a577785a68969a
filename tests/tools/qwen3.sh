# qwen3.sh - Qwen3 through all tools: three heads of 24 with a hidden size of 40, norms of query and key
# heads, quantized with every scheme of decoders.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

for variant in qwen3 qwen3-old-keys qwen3-window; do
    quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" llama $variant $variant
    is 0 "ft-convert converts $variant" "$FT_BUILDDIR/ft-convert" -i $variant -o $variant.ft
    cp $variant/reference.safetensors $variant.rows
    is 0 "ft-run runs $variant in float" "$run" -i $variant.ft -d $variant.rows -o float.out -f
    # Divergence of the next token's distribution: 8 bits give up to 0.002 with these weights, 4 bits 0.15.
    for scheme in w8a8-dynamic:0.02 w8a16:0.02 w4a16:0.5 w8a8-block:0.02; do
        name=${scheme%:*} options=
        case $name in
        w4a16) options='--asym --group-pad' ;;
        w8a16 | w8a8-block) options='--group-pad' ;;
        esac
        is 0 "ft-calibrate quantizes $variant with $name" "$FT_BUILDDIR/ft-calibrate" -q -i $variant.ft \
            -o $name.ft -f --scheme $name $options
        is 0 "ft-eval compares $variant in $name with float" "$FT_BUILDDIR/ft-eval" -i $name.ft \
            --against $variant.ft -d $variant.rows --json
        sed -n 's/.*"kl_mean": *\([-+.0-9e]*\).*/\1/p' out |
            awk -v most="${scheme#*:}" '{ n++; bad += !($1 >= 0 && $1 < most) } END { exit n != 1 || bad }'
        check $? "the predictions of $variant in $name are close to those in float"
        quietly "$run" -i $name.ft -d $variant.rows --max-new-tokens 12 --ignore-end -o long.st -f
        quietly "$run" -i $name.ft -d $variant.rows --max-new-tokens 12 --ignore-end -o short.st -f \
            --chunk 2 --batch 1
        same long.st short.st "$variant in $name generates the same tokens in prefill chunks and in one batch"
    done
    quietly "$FT_BUILDDIR/ft-calibrate" -q -i $variant.ft -o int8.ft -f --scheme w8a8-dynamic
    quietly "$run" -i int8.ft -d $variant.rows -o int8.out -f
    quietly "$run" -i int8.ft -d $variant.rows -o fake.out -f --fake
    same int8.out fake.out "fake quantization of $variant gives the bits of int8"
    is 0 "ft-run generates with $variant and an int8 KV cache" "$run" -i int8.ft -d $variant.rows --max-new-tokens 4 \
        --ignore-end --kv int8 -o cached.st -f
done
is 0 'ft-inspect describes a Qwen3 artifact' "$FT_BUILDDIR/ft-inspect" qwen3.ft
says out '3 heads of 24 (1 key/value heads)' 'ft-inspect shows the head size of a Qwen3 artifact'
says out 'norms of query and key heads' 'ft-inspect shows the norms of queries and keys'
is 0 'ft-inspect --plan shows the plan of a Qwen3 artifact' "$FT_BUILDDIR/ft-inspect" --plan qwen3.ft
says out 'head_norm        layer.0.attn.q_norm' 'the plan of a Qwen3 artifact has the norm of query heads'

echo "1..$count"
