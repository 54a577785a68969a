# old.sh - artifacts written by earlier versions still open and give the same outputs.
#
# Those of llama.w8a8-block are recorded again since int8 activations of groups have zero points
# (docs/accuracy.md, "Zero points of activations"): the artifact is the old one. So are those of
# vit.w8a8, since int8 softmax is a chain of squares (kernels/softmax.h): one value differed.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"

for artifact in "$FT_SRCDIR"/tests/data/old/*/*.ft; do
    name=$(basename "$artifact" .ft)
    version=$(basename "$(dirname "$artifact")")
    is 0 "ft-run opens and runs $name of version $version" \
        "$FT_BUILDDIR/ft-run" -i "$artifact" -d "${artifact%/*}/${name%%.*}.samples" \
        -o "$dir/$name.out" --verify sha256
    is 0 "$name of version $version gives the outputs recorded with that version" \
        "$FT_BUILDDIR/tests/programs/near-tensors" "$dir/$name.out" "${artifact%.ft}.out" 1e-4
done
echo "1..$count"
