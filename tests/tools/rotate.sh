# rotate.sh - ft-convert --rotate: a rotated decoder computes what it computed before, through all tools.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
run=$FT_BUILDDIR/ft-run
eval=$FT_BUILDDIR/ft-eval
cd "$dir" || exit 99

# diverges ARTIFACT BASELINE ROWS MOST SENTENCE: their mean KL divergence is at most MOST.
diverges () {
    quietly "$eval" -i "$1" --against "$2" -d "$3" --json
    sed -n 's/.*"kl_mean": *\([-+.0-9e]*\).*/\1/p' log |
        awk -v most="$4" '{ n++; bad += !($1 >= 0 && $1 <= most) } END { exit n != 1 || bad }'
    check $? "$5"
}

# ---- Every kin of Llama -------------------------------------------------------------------------

for variant in qwen3 tied biases mistral-window; do
    quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" llama $variant $variant
    quietly "$convert" -q -i $variant -o $variant.ft
    is 0 "ft-convert rotates $variant" "$convert" -q -i $variant -o rotated.ft -f --rotate
    cp $variant/reference.safetensors rows
    diverges rotated.ft $variant.ft rows 1e-5 "$variant predicts the same tokens when it is rotated"
    quietly "$convert" -q -i $variant -o again.ft -f --rotate
    same rotated.ft again.ft "rotating $variant again gives the same bytes"
    for scheme in w8a8-dynamic 'w4a16 --group-pad --asym' 'w8a8-block --group-pad'; do
        is 0 "ft-calibrate quantizes $variant with $scheme when it is rotated" \
            "$calibrate" -q -i rotated.ft -o q.ft -f --scheme $scheme
        is 0 "ft-inspect plans $variant with $scheme when it is rotated" \
            "$FT_BUILDDIR/ft-inspect" --verify q.ft
    done
done
is 0 'ft-calibrate calibrates a rotated decoder on samples and evaluates it' \
    "$calibrate" -i rotated.ft -o q.ft -f -d rows --eval rows --target none
says out 'rotated_hidden_state' 'the evaluation names the output that it compares'
quietly "$FT_BUILDDIR/ft-inspect" --json q.ft
grep -A 2 '"requires"' log | grep -q '"rotated"'
check $? 'the int8 artifact requires a reader that knows rotations, too'
is 1 'ft-run --embed refuses a rotated decoder' "$run" -i rotated.ft -d rows --embed -o e.out
says err 'rotated.ft: is rotated, and so would be its embeddings' 'the error says why'
is 1 'ft-run does not give last_hidden_state of a rotated decoder' \
    "$run" -i rotated.ft -d rows --outputs last_hidden_state -o h.out
is 0 'ft-run gives rotated_hidden_state' \
    "$run" -i rotated.ft -d rows --outputs rotated_hidden_state -o h.out

# ---- The command line ---------------------------------------------------------------------------

is 0 'a dry run rotates, too' "$convert" -i tied -n --rotate
says err 'note: --rotate: the tied head gets a weight of its own' 'a note says that a tied head is split'
matches out '^head\.weight  *model\.embed_tokens\.weight  *F16 from BF16' \
    'the table has the head, where it comes from and its dtype'
quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
is 1 'ft-convert --rotate refuses an encoder' "$convert" -i classifier -o c.ft --rotate
says err 'the layer norms of bert subtract the mean' 'the error says why encoders cannot be rotated'
test ! -e c.ft
check $? 'a model that cannot be rotated leaves no artifact'

# ---- A trained checkpoint -----------------------------------------------------------------------

sample=$FT_MODELS/python-llama
if test ! -f "$sample/config.json"; then
    skip "no checkpoint python-llama in FT_MODELS"
    echo "1..$count"
    exit 0
fi
quietly "$FT_BUILDDIR/tests/programs/pick-rows" "$sample/reference.safetensors" rows 0:4
quietly "$convert" -q -i "$sample" -o exact.ft --dtype f32
quietly "$convert" -q -i "$sample" -o rotated32.ft --dtype f32 --rotate
quietly "$convert" -q -i "$sample" -o rotated.ft -f --rotate
diverges rotated32.ft exact.ft rows 1e-10 'python-llama computes the same when it is rotated in F32'
diverges rotated.ft exact.ft rows 1e-5 'rotated in F16, which BF16 becomes, it predicts the same tokens'

echo "1..$count"
