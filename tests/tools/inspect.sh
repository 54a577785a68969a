# inspect.sh - common zip programs read artifacts, and ft-inspect shows their contents.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
inspect=$FT_BUILDDIR/ft-inspect
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
for sample in 'a.ft int8 1' 'same.ft int8 1' 'b.ft int8 2' 'float.ft float 1' 'c.ft blocks 1' \
    'd.ft blocks 2'; do
    "$FT_BUILDDIR/tests/programs/make-sample" $sample || exit 99
done
(umask 077; TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$FT_BUILDDIR/tests/programs/make-sample" elsewhere.ft int8 1)
cmp -s a.ft same.ft && cmp -s a.ft elsewhere.ft
check $? 'artifact bytes do not depend on time zone, locale, umask and file name'

# ---- Other programs -----------------------------------------------------------------------------

if command -v unzip >/dev/null; then
    is 0 'unzip -t finds no fault in an artifact' unzip -t a.ft
    is 0 'unzip extracts a file of an artifact' unzip -p a.ft tokenizer.json
    says out '{"model": {}}' 'the extracted file has its original contents'
else
    skip 'no unzip'; skip 'no unzip'; skip 'no unzip'
fi

if have_python; then
    is 0 "Python's zipfile finds no fault, no compression and no date in an artifact" \
        python3 - a.ft <<'END'
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
infos = z.infolist()
assert infos[-1].filename == "manifest.json"
for i in infos:
    assert i.compress_type == zipfile.ZIP_STORED
    assert i.date_time == (1980, 1, 1, 0, 0, 0)
    assert i.external_attr == 0o100644 << 16
END
    is 0 'the manifest has the offset and digest of every tensor and file' python3 - a.ft <<'END'
import hashlib, json, sys, zipfile
raw = open(sys.argv[1], "rb").read()
z = zipfile.ZipFile(sys.argv[1])
m = json.loads(z.read("manifest.json"))
assert (m["format"], m["version"], m["state"], m["family"]) == ("ft", 1, "int8", "bert")
for t in m["tensors"]:
    data = raw[t["offset"]:t["offset"] + t["bytes"]]
    assert data == z.read(t["entry"])
    assert hashlib.sha256(data).hexdigest() == t["sha256"]
    assert t["offset"] % (4096 if t["bytes"] >= 65536 else 64) == 0
for f in m["files"]:
    data = z.read(f["name"])
    assert len(data) == f["bytes"] and hashlib.sha256(data).hexdigest() == f["sha256"]
named = [t["entry"] for t in m["tensors"]] + [f["name"] for f in m["files"]] + ["manifest.json"]
assert sorted(named) == sorted(z.namelist())
END
else
    skip "$no_python"; skip "$no_python"
fi

# ---- List and verify ----------------------------------------------------------------------------

is 0 'ft-inspect lists an int8 artifact' "$inspect" a.ft
says out 'a.ft: bert, int8, written by ft-sample' \
    'ft-inspect shows family, state and producer of an artifact'
says out '[37, 70]' 'ft-inspect shows the shapes of tensors'
says out 'tokenizer.json, 13 bytes' 'ft-inspect shows the other files of an artifact'
is 0 'ft-inspect accepts the artifact with -i' "$inspect" -i a.ft
is 0 'ft-inspect --json prints the manifest' "$inspect" --json a.ft
says out '"layout": "col4_4r2_8c"' 'the JSON contains the layout of tensors'

is 0 'ft-inspect lists a group-wise artifact' "$inspect" c.ft
says out 'c.ft: bert, blocks, written' 'ft-inspect shows the state of a group-wise artifact'
says out 'U4     [37, 70]  panel32  32,zeros ' \
    'ft-inspect shows bits, group size and zero points of a matrix'
says out 'U8     [3, 5]    panel32  row,int8 ' 'ft-inspect marks matrices that use int8 activations'
says out 's/...: scales of 2 tensors' 'ft-inspect shows the number of scale tensors'
says out 'z/...: zero points of 1 tensors' 'ft-inspect shows the number of zero-point tensors'

# The sample has an entry of every kind but is not a complete model, so it has no plan.
is 1 'ft-inspect --verify fails for an artifact without a complete model' "$inspect" --verify a.ft
says out 'ok      w/embed.word' 'ft-inspect --verify lists intact entries as ok'
says out 'FAILED  a.ft: config: activation: found nothing, expected a name that this version knows' \
    'ft-inspect --verify says why the model cannot be planned'
says out 'checked by sha256, 0 failed; the model cannot be planned' \
    'ft-inspect --verify sums up checksums and plan'
quietly "$FT_BUILDDIR/tests/programs/make-decoder" model 1
quietly "$FT_BUILDDIR/ft-convert" -i model -o model.ft
is 0 'ft-inspect --verify finds no fault in an intact model' "$inspect" --verify model.ft
says out 'checked by sha256, 0 failed; the model can be planned' \
    'ft-inspect --verify says that the model can be planned'
is 0 'ft-inspect --verify=crc finds no fault in an intact model' "$inspect" --verify=crc model.ft
says out 'checked by crc' 'ft-inspect --verify=crc says that it only checks CRCs'

# Change one byte in the middle of the large tensor.
offset=$("$inspect" a.ft | awk '$1 == "large.weight" { print $NF }')
cp a.ft bad.ft
printf X | dd of=bad.ft bs=1 seek=$((offset + 1000)) conv=notrunc 2>/dev/null
is 0 'ft-inspect lists an artifact without reading its weights' "$inspect" bad.ft
is 1 'ft-inspect --verify fails if one byte of a tensor has changed' "$inspect" --verify bad.ft
says out 'FAILED  bad.ft: w/large.weight: altered: CRC-32' \
    'ft-inspect --verify names the changed tensor'
says out '1 failed;' 'ft-inspect --verify reports no other failure than the changed tensor'
is 1 'ft-inspect --verify --json fails if one byte of a tensor has changed' \
    "$inspect" --verify --json bad.ft
says out '"ok": false' 'the JSON marks the changed tensor'
head -c 5000 a.ft >short.ft
is 1 'ft-inspect refuses a truncated artifact' "$inspect" short.ft
says err 'ft-inspect: short.ft: truncated' 'ft-inspect says that the artifact is truncated'

# ---- Diff ---------------------------------------------------------------------------------------

is 0 'ft-inspect --diff of equal artifacts exits with 0' "$inspect" --diff a.ft same.ft
says out 'no difference' 'ft-inspect --diff says that equal artifacts have no difference'
is 1 'ft-inspect --diff of different artifacts exits with 1' "$inspect" --diff a.ft b.ft
says out 'tensor embed.word: sha256: ' 'ft-inspect --diff names tensors with different contents'
says out 'file s/head.weight: sha256: ' 'ft-inspect --diff names scales with different contents'
is 1 'ft-inspect --diff of a float and an int8 artifact exits with 1' \
    "$inspect" --diff float.ft a.ft
says out 'model: state: float | int8' 'ft-inspect --diff shows different states'
says out 'tensor layer.0.ffn.up.weight: dtype: F32 | I8' \
    'ft-inspect --diff shows different dtypes of a tensor'
says out 'tensor head.weight: presence: only in a.ft' \
    'ft-inspect --diff shows tensors that only one artifact has'
says out 'amax layer.0.input: amax: only in a.ft' \
    'ft-inspect --diff shows ranges that only one artifact has'
is 1 'ft-inspect --diff of a float and a group-wise artifact exits with 1' \
    "$inspect" --diff float.ft c.ft
says out 'tensor layer.0.ffn.up.weight: group: none | 32' \
    'ft-inspect --diff shows different group sizes'
says out 'tensor layer.0.ffn.up.weight: zeros: none | stored' \
    'ft-inspect --diff shows zero points that only one artifact has'
is 1 'ft-inspect --diff of different group-wise artifacts exits with 1' "$inspect" --diff c.ft d.ft
says out 'tensor layer.0.ffn.up.weight: sha256: ' \
    'ft-inspect --diff names group-wise tensors with different contents'
is 1 'ft-inspect --diff --json exits with 1 for different artifacts' \
    "$inspect" --diff --json float.ft a.ft
says out '"field": "dtype"' 'the JSON lists the differing fields'

# ---- Ranges -------------------------------------------------------------------------------------

is 0 'ft-inspect --amax lists the ranges of an artifact' "$inspect" --amax a.ft
says out '3.14159274' 'ft-inspect --amax prints ranges with full precision'
is 0 'ft-inspect --amax --json lists the ranges of an artifact' "$inspect" --amax --json a.ft
is 1 'ft-inspect --amax refuses a float artifact' "$inspect" --amax float.ft
says err 'float.ft: has no calibrated ranges' \
    'ft-inspect --amax says that a float artifact has no calibrated ranges'
is 1 'ft-inspect --amax refuses a group-wise artifact' "$inspect" --amax c.ft
is 0 "ft-inspect --amax-list describes each float of a layer's amaxList" \
    "$inspect" --amax-list 0 a.ft
matches out '^ *0  *3  layer input: amax' \
    'ft-inspect --amax-list describes the first float'
matches out '^ *97  *0  feed-forward down weight amax, channel 1' \
    'ft-inspect --amax-list describes the last float'
is 0 'ft-inspect accepts underscores for hyphens in long options' \
    "$inspect" --amax_list=0 --json a.ft
says out '"meaning": "v after bias: 127 / amax"' \
    'ft-inspect --amax-list --json describes the same floats'
is 1 'ft-inspect --amax-list refuses a layer without an amaxList' "$inspect" --amax-list 7 a.ft
says err 'no amaxList of layer 7; available: 0' 'ft-inspect --amax-list lists the available layers'

# ---- Usage --------------------------------------------------------------------------------------

is 0 'ft-inspect --help exits with 0' "$inspect" --help
is 0 'ft-inspect --version exits with 0' "$inspect" --version
says out 'ft-inspect 0' 'ft-inspect --version prints name and version'
for wrong in '' 'a.ft b.ft' '--diff a.ft' '--nonsense a.ft' '-x a.ft' '--verify=quick a.ft' \
             '--json=1 a.ft' '--amax-list' '-i' '-i a.ft b.ft' '--verify --amax a.ft' \
             '--device cpu a.ft' '--amax --tokens 1 a.ft' '--plan --tokens 2,1 a.ft' \
             '--plan --tokens 1,,2 a.ft' '--plan --tokens 0 a.ft' '--plan --tokens 8x a.ft'; do
    is 2 "ft-inspect exits with 2 for the arguments '$wrong'" "$inspect" $wrong
done
is 1 'ft-inspect exits with 1 for a file that does not exist' "$inspect" nowhere.ft
says err 'ft-inspect: nowhere.ft: No such file or directory' \
    'ft-inspect names the file that does not exist and the reason'
if test -w /dev/full; then
    "$inspect" a.ft >/dev/full 2>"$dir/err"
    test $? -eq 1
    check $? 'ft-inspect exits with 1 if it cannot write its output'
else
    skip 'no /dev/full'
fi

# The manual page documents exactly the options of --help.
"$inspect" --help | grep -o -e '--[a-z-]*' | sort -u >"$dir/help"
tr -d '\\' <"$FT_SRCDIR/runtime/tools/inspect/ft-inspect.1" | grep -o -e '--[a-z][a-z-]*' | sort -u >"$dir/page"
cmp -s "$dir/help" "$dir/page"
check $? 'the manual page and --help of ft-inspect list the same options'
diff "$dir/help" "$dir/page" | sed 's/^/# /'

echo "1..$count"
