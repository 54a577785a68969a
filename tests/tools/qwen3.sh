# qwen3.sh - Qwen3 through all tools: three heads of 24 columns beside 40 hidden ones, normed queries and
# keys, quantized by every scheme of decoders.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

for variant in qwen3 qwen3-old-keys qwen3-window; do
    quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" llama $variant $variant
    is 0 "$variant is converted" "$FT_BUILDDIR/ft-convert" -i $variant -o $variant.ft
    cp $variant/reference.safetensors $variant.rows
    is 0 "$variant is run in float" "$run" -i $variant.ft -d $variant.rows -o float.out -f
    # Divergence of the next token's distribution: 8 bits give up to 0.002 with these weights, 4 bits 0.15.
    for scheme in w8a8-dynamic:0.02 w8a16:0.02 w4a16:0.5 w8a8-block:0.02; do
        name=${scheme%:*} options=
        case $name in
        w4a16) options='--asym --group-pad' ;;
        w8a16 | w8a8-block) options='--group-pad' ;;
        esac
        is 0 "$variant is quantized by $name" "$FT_BUILDDIR/ft-calibrate" -q -i $variant.ft \
            -o $name.ft -f --scheme $name $options
        is 0 "$variant by $name is compared with float" "$FT_BUILDDIR/ft-eval" -i $name.ft \
            --against $variant.ft -d $variant.rows --json
        sed -n 's/.*"kl_mean": *\([-+.0-9e]*\).*/\1/p' out |
            awk -v most="${scheme#*:}" '{ n++; bad += !($1 >= 0 && $1 < most) } END { exit n != 1 || bad }'
        check $? "$variant by $name predicts nearly what float does"
        quietly "$run" -i $name.ft -d $variant.rows --max-new-tokens 12 --ignore-end -o long.st -f
        quietly "$run" -i $name.ft -d $variant.rows --max-new-tokens 12 --ignore-end -o short.st -f \
            --chunk 2 --batch 1
        same long.st short.st "$variant by $name continues texts in chunks as it does in one run"
    done
    quietly "$FT_BUILDDIR/ft-calibrate" -q -i $variant.ft -o int8.ft -f --scheme w8a8-dynamic
    quietly "$run" -i int8.ft -d $variant.rows -o int8.out -f
    quietly "$run" -i int8.ft -d $variant.rows -o fake.out -f --fake
    same int8.out fake.out "$variant fake-quantized gives the bits of int8"
    is 0 "$variant runs with an int8 cache" "$run" -i int8.ft -d $variant.rows --max-new-tokens 4 \
        --ignore-end --kv int8 -o cached.st -f
done
is 0 'an artifact of Qwen3 is described' "$FT_BUILDDIR/ft-inspect" qwen3.ft
says out '3 heads of 24 (1 of keys and values)' 'with the size of its heads'
says out 'normed queries and keys' 'and with their norms'
is 0 'and its plan is shown' "$FT_BUILDDIR/ft-inspect" --plan qwen3.ft
says out 'head_norm   layer.0.attn.q_norm' 'with the norms of queries'

echo "1..$count"
