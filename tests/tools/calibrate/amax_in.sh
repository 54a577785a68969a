# amax_in.sh - ft-calibrate --amax on a trained model: the artifact of a calibration is made again from
# its ranges, whatever their format.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run at the same time: waiting threads yield the processor to them.
unset FT_CPU

# remade FILE SENTENCE: it differs from first.ft in what the manifest says of the calibration alone.
remade () {
    "$inspect" --diff first.ft "$1" >"$dir/out" 2>"$dir/err"
    grep -v '^model: recipe: ' "$dir/out" | grep -v '^no difference$' >"$dir/other"
    test ! -s "$dir/other" -a ! -s "$dir/err"
    check $? "$2"
    show "$dir/other" "$dir/err"
}

# wrong TEXT SENTENCE OPTION...: ft-calibrate refuses the options with status 2.
wrong () {
    text=$1 sentence=$2
    shift 2
    is 2 "ft-calibrate refuses $sentence" "$calibrate" -i model.ft -o no.ft "$@"
    says err "$text" "the message for $sentence says: $text"
}

cd "$dir" || exit 99
if test ! -f "$sample/model.safetensors"; then
    echo '1..0 # SKIP no samples/source-language-bert'
    exit 0
fi
if ! have_python; then
    echo "1..0 # SKIP $no_python"
    exit 0
fi
quietly "$FT_BUILDDIR/ft-convert" -q -i "$sample" -o model.ft
quietly "$calibrate" -q -i model.ft -o first.ft -d "$sample/calibration.safetensors" --samples 32 \
    --target none --smooth none --no-selftest

# The entries of the artifact, as a user takes them out of it.
python3 - <<'EOF' || exit 99
import zipfile
artifact = zipfile.ZipFile("first.ft")
open("amax.tsv", "wb").write(artifact.read("amax.tsv"))
lists = [n for n in artifact.namelist() if n.startswith("amax_list/")]
open("lists", "wb").write(b"".join(artifact.read(f"amax_list/{i}") for i in range(len(lists))))
EOF

# ---- The same artifact again --------------------------------------------------------------------

is 0 'ft-calibrate --amax needs no samples' "$calibrate" -i model.ft -o tsv.ft --amax amax.tsv
test ! -s err
check $? 'ft-calibrate --amax prints no note about a complete amax.tsv'
remade tsv.ft 'amax.tsv of an artifact makes the same artifact, but for the recipe in the manifest'
"$calibrate" -q -i model.ft -o other.ft --amax first.ft
same_model tsv.ft other.ft 'an artifact given as --amax makes the model that its amax.tsv makes'
"$calibrate" -q -i model.ft -o lists.ft --amax lists -t 3
python3 - <<'EOF' >err 2>&1
import zipfile
a, b = zipfile.ZipFile("first.ft"), zipfile.ZipFile("lists.ft")
assert a.namelist() == b.namelist()
for name in set(a.namelist()) - {"manifest.json", "amax.tsv"}:
    assert a.read(name) == b.read(name), name
def amax(z):
    return [line.split("\t")[:2] for line in z.read("amax.tsv").decode().splitlines()]
assert amax(a) == amax(b)
EOF
check $? "FasterTransformer's lists make the same weights, scales, ranges and lists"
show err
is 0 'ft-calibrate --amax evaluates on the samples of -d' \
    "$calibrate" -i model.ft -o new.ft --amax lists -d "$sample/reference.safetensors"
says out 'logits of the quantized model against float, 480 held-out samples' \
    'samples given with --amax are held-out samples, all of which are evaluated'
same_model new.ft lists.ft 'evaluation does not change the model'
is 0 'ft-calibrate -n --amax evaluates without an output' \
    "$calibrate" -i model.ft -n --amax lists --eval "$sample/reference.safetensors"

# ---- Edited files -------------------------------------------------------------------------------

sed '/^layer\.1\.attn\.k/d' amax.tsv >missing.tsv
is 1 'ft-calibrate refuses an amax.tsv without a point' \
    "$calibrate" -i model.ft -o no.ft --amax missing.tsv
says err 'missing.tsv: has no range for 1 calibration point: layer.1.attn.k' \
    'ft-calibrate names the missing point'
{ cat amax.tsv && printf 'layer.9.ffn.act\t1\tmax\t0\t30\n'; } >more.tsv
is 0 'ft-calibrate ignores a range of an unknown point' \
    "$calibrate" -q -i model.ft -o more.ft --amax more.tsv
says err 'warning: more.tsv: 1 range is of nothing that is a calibration point of the model: layer.9' \
    'ft-calibrate -q warns of the unknown point'
same_model more.ft tsv.ft 'the unknown point is not in the artifact'
head -c 38140 lists >short
is 1 'ft-calibrate refuses a list of another size' "$calibrate" -i model.ft -o no.ft --amax short
says err "or FasterTransformer's amaxList (38144 bytes for this model)" \
    'ft-calibrate gives the size that lists of the model have'
{ head -c 4 /dev/zero && tail -c +5 lists; } >broken
is 1 'ft-calibrate refuses a list whose numbers do not fit' \
    "$calibrate" -i model.ft -o no.ft --amax broken
says err 'broken: layer 0, position 1: ' 'ft-calibrate gives the position in the list'

is 0 'ft-calibrate --amax makes an artifact with scales per token and int8 attention' \
    "$calibrate" -q -i model.ft -o dynamic.ft --amax amax.tsv --scheme w8a8-dynamic
"$calibrate" -q -i model.ft -o observed.ft -d "$sample/calibration.safetensors" --samples 32 \
    --scheme w8a8-dynamic
"$inspect" --diff dynamic.ft observed.ft 2>&1 | grep -vE '^(file selftest/|model: recipe: )' >other
test ! -s other
check $? 'ranges of a file make the same model as samples where scales are per token'
show other
"$calibrate" -q -i model.ft -o token.ft --amax observed.ft
remade_as=$("$inspect" --diff dynamic.ft token.ft 2>&1 | grep -c '^amax')
test "$remade_as" -eq 0
check $? 'the method per-token of a file is kept, and so the scale per token'

# ---- Options ------------------------------------------------------------------------------------

wrong '--amax gives the ranges, so --method' '--amax with a method' --amax amax.tsv -m max
wrong 'no counters to save or merge' '--amax with --merge' --amax amax.tsv --merge x
wrong '--samples and --amax exclude each other' '--amax with --samples' --amax amax.tsv -d x \
    --samples 3
wrong '--amax is for w8a8 and w8a8-dynamic, not for w8a16' '--amax for a scheme without ranges' --amax amax.tsv --scheme w8a16
is 2 'ft-calibrate does not replace the file of --amax' \
    "$calibrate" -i model.ft -o amax.tsv -f --amax amax.tsv
test ! -e no.ft && test -z "$(find . -name '.*ft-tmp*')"
check $? 'refused calibrations leave no file behind'

echo "1..$count"
