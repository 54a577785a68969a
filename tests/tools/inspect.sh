# inspect.sh - other people's zip programs read artifacts, and ft-inspect shows what is in them.
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
check $? 'time zone, locale, umask and file name leave the bytes alone'

# ---- Other programs -----------------------------------------------------------------------------

if command -v unzip >/dev/null; then
    is 0 'unzip -t finds no fault' unzip -t a.ft
    is 0 'and takes a file out' unzip -p a.ft tokenizer.json
    says out '{"model": {}}' 'with its bytes'
else
    skip 'no unzip'; skip 'no unzip'; skip 'no unzip'
fi

if have_python; then
    is 0 "Python's zipfile finds no fault, no compression and no date" python3 - a.ft <<'END'
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
    is 0 'the manifest tells place and digest of every tensor and file' python3 - a.ft <<'END'
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

is 0 'ft-inspect lists an artifact' "$inspect" a.ft
says out 'a.ft: bert, int8, written by ft-sample' 'what it is'
says out '[37, 70]' 'its tensors'
says out 'tokenizer.json, 13 bytes' 'and its files'
is 0 'the artifact may be named with -i' "$inspect" -i a.ft
is 0 '--json prints the manifest' "$inspect" --json a.ft
says out '"layout": "col4_4r2_8c"' 'with all it knows'

is 0 'ft-inspect lists matrices in blocks' "$inspect" c.ft
says out 'c.ft: bert, blocks, written' 'their state'
says out 'U4     [37, 70]  panel32  32,zeros ' 'their bits, groups and zeros'
says out 'U8     [3, 5]    panel32  row,int8 ' 'and what multiplies inputs as codes'
says out 's/...: scales of 2 tensors' 'counts scales'
says out 'z/...: zero points of 1 tensors' 'and zeros'

# The sample has an entry of every kind, but is no model: it has no plan.
is 1 '--verify finds that an artifact without a model cannot be planned' "$inspect" --verify a.ft
says out 'ok      w/embed.word' '--verify says of each entry that it is intact'
says out 'FAILED  a.ft: config: "activation" is absent or unknown' '--verify says why there is no plan'
says out 'checked by sha256, 0 failed; the model cannot be planned' '--verify says both in all'
quietly "$FT_BUILDDIR/tests/programs/make-decoder" model 1
quietly "$FT_BUILDDIR/ft-convert" -i model -o model.ft
is 0 '--verify finds nothing in an intact model' "$inspect" --verify model.ft
says out 'checked by sha256, 0 failed; the model can be planned' '--verify says so'
is 0 '--verify=crc finds nothing in it, too' "$inspect" --verify=crc model.ft
says out 'checked by crc' '--verify=crc says that it is less'

# Alter one byte in the middle of the large tensor.
offset=$("$inspect" a.ft | awk '$1 == "large.weight" { print $NF }')
cp a.ft bad.ft
printf X | dd of=bad.ft bs=1 seek=$((offset + 1000)) conv=notrunc 2>/dev/null
is 0 'the list does not read weights' "$inspect" bad.ft
is 1 '--verify finds one altered byte' "$inspect" --verify bad.ft
says out 'FAILED  bad.ft: w/large.weight: altered: CRC-32' 'and names the tensor'
says out '1 failed;' 'and only that'
is 1 '--verify --json finds it, too' "$inspect" --verify --json bad.ft
says out '"ok": false' 'and says so'
head -c 5000 a.ft >short.ft
is 1 'a truncated artifact is refused' "$inspect" short.ft
says err 'ft-inspect: short.ft: truncated' 'as that'

# ---- Diff ---------------------------------------------------------------------------------------

is 0 '--diff of equal artifacts ends with 0' "$inspect" --diff a.ft same.ft
says out 'no difference' 'and says so'
is 1 '--diff of different ones ends with 1' "$inspect" --diff a.ft b.ft
says out 'tensor embed.word: sha256: ' 'and names the tensors'
says out 'file s/head.weight: sha256: ' 'and the scales'
is 1 'a float and an int8 artifact differ' "$inspect" --diff float.ft a.ft
says out 'model: state: float | int8' 'in state'
says out 'tensor layer.0.ffn.up.weight: dtype: F32 | I8' 'in dtypes'
says out 'tensor head.weight: presence: only in a.ft' 'in tensors'
says out 'amax layer.0.input: amax: only in a.ft' 'and in amax'
is 1 'a float artifact and one in blocks differ' "$inspect" --diff float.ft c.ft
says out 'tensor layer.0.ffn.up.weight: group: none | 32' 'in groups'
says out 'tensor layer.0.ffn.up.weight: zeros: none | stored' 'in zeros'
is 1 'different codes in blocks' "$inspect" --diff c.ft d.ft
says out 'tensor layer.0.ffn.up.weight: sha256: ' 'are named'
is 1 '--diff --json lists the differences' "$inspect" --diff --json float.ft a.ft
says out '"field": "dtype"' 'one by one'

# ---- Ranges -------------------------------------------------------------------------------------

is 0 '--amax lists the ranges' "$inspect" --amax a.ft
says out '3.14159274' 'with all their digits'
is 0 '--amax --json, too' "$inspect" --amax --json a.ft
is 1 'a float artifact has none' "$inspect" --amax float.ft
says err 'float.ft: has no calibrated ranges' 'and that is said'
is 1 'nor has one whose codes are all in blocks' "$inspect" --amax c.ft
is 0 '--amax-list lists what each float of a layer means' "$inspect" --amax-list 0 a.ft
says out '     0               3  layer input: amax' 'from the first'
says out '    97               0  feed-forward down weight amax, channel 1' 'to the last'
is 0 'underscores do for hyphens' "$inspect" --amax_list=0 --json a.ft
says out '"meaning": "v after bias: 127 / amax"' 'and JSON has the same'
is 1 'a layer without list is an error' "$inspect" --amax-list 7 a.ft
says err 'no amaxList of layer 7; available: 0' 'that tells which there are'

# ---- Usage --------------------------------------------------------------------------------------

is 0 '--help ends with 0' "$inspect" --help
is 0 '--version ends with 0' "$inspect" --version
says out 'ft-inspect 0' 'with name and number'
for wrong in '' 'a.ft b.ft' '--diff a.ft' '--nonsense a.ft' '-x a.ft' '--verify=quick a.ft' \
             '--json=1 a.ft' '--amax-list' '-i' '-i a.ft b.ft' '--verify --amax a.ft' \
             '--device cpu a.ft' '--amax --tokens 1 a.ft' '--plan --tokens 2,1 a.ft' \
             '--plan --tokens 1,,2 a.ft' '--plan --tokens 0 a.ft' '--plan --tokens 8x a.ft'; do
    is 2 "usage: ft-inspect $wrong" "$inspect" $wrong
done
is 1 'a file that is not there is an error' "$inspect" nowhere.ft
says err 'ft-inspect: nowhere.ft: No such file or directory' 'with name and reason'
if test -w /dev/full; then
    "$inspect" a.ft >/dev/full 2>"$dir/err"
    test $? -eq 1
    check $? 'output that nobody takes is an error'
else
    skip 'no /dev/full'
fi

# Each option of --help is in the manual page, and the other way round.
"$inspect" --help | grep -o -e '--[a-z-]*' | sort -u >"$dir/help"
tr -d '\\' <"$FT_SRCDIR/runtime/tools/inspect/ft-inspect.1" | grep -o -e '--[a-z][a-z-]*' | sort -u >"$dir/page"
cmp -s "$dir/help" "$dir/page"
check $? 'the manual page and --help have the same options'
diff "$dir/help" "$dir/page" | sed 's/^/# /'

echo "1..$count"
