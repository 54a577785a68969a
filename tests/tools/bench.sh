# bench.sh - ft-bench on the CPU: its figures are consistent; the speed itself is not tested.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bench=$FT_BUILDDIR/ft-bench
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run at the same time: waiting threads yield the processor to them.
unset FT_CPU
cd "$dir" || exit 99

# refused STATUS TEXT COMMAND...: the command exits with STATUS and prints only one line with TEXT.
refused () {
    status=$1 text=$2
    shift 2
    "$@" >out 2>err
    test $? -eq "$status" && test ! -s out && test "$(wc -l <err)" -eq 1 && grep -qF -e "$text" err
    found=$?
    check $found "ft-bench exits with status $status and says: $text"
    test $found -eq 0 || sed 's/^/# /' out err
}

# holds SENTENCE PROGRAM FILE: FILE has lines after its header, and PROGRAM calls bad() for none of
# them.  It is an awk program; commas separate fields.
holds () {
    awk -F, "function bad() { wrong = 1; print \"# \" \$0 }
             # Figures are rounded to a multiple of unit.
             function near(a, b, unit) { return (a > b ? a - b : b - a) <= 0.01 * b + unit }
             NR > 1 { lines++; $2 } END { exit wrong || lines == 0 }" "$3" >found
    check $? "$1"
    cat found
}

# ---- Command line -------------------------------------------------------------------------------

is 0 'ft-bench --help exits with 0' "$bench" --help
is 0 'ft-bench --version exits with 0' "$bench" --version
refused 2 'give either -i FILE or --shape NAME' "$bench"
refused 2 'give either -i FILE or --shape NAME' "$bench" -i model.ft --shape minilm
refused 2 ' is none of bert-base, bert-large, minilm, vit-base, llama-2-7b, llama-3-8b, llama-1b, llama-3.2-1b, ft-decoding' \
    "$bench" --shape tiny
refused 2 '"int4" is none of float, f16, bf16, int8, int8-residual' "$bench" --shape minilm --scheme int4
refused 2 '--group: "48" is neither 32, 64, 128 nor 0' "$bench" --shape minilm --group 48
refused 2 '--group requires --shape' "$bench" --shape minilm --group 64
refused 2 '--group requires --shape' "$bench" -i model.ft --group 64
refused 2 '--kv: "int4" is neither auto, f16 nor int8' "$bench" --shape minilm --kv int4
refused 2 '--scheme requires --shape' "$bench" -i model.ft --scheme int8
refused 2 '--batch: "" is not a number' "$bench" --shape minilm -b 1,
refused 2 '--length: "x" is not a number' "$bench" --shape minilm -l 8,x,9
refused 2 '--runs: "0" is not a positive number' "$bench" --shape minilm -r 0
refused 2 '--threads: 1025 is too large: 1024 is the most' "$bench" --shape minilm -t 1025
refused 2 '--fill: "1.5" is not a number above 0' "$bench" --shape minilm --fill 1.5
refused 2 '--fill: "nan" is not a number above 0' "$bench" --shape minilm --fill nan
for rates in 1,2,3 1,2,3,4,5 1,0,3,4 1,nan,3,4 1,2,3,1e10 1,2,3,x; do
    refused 2 "--roofline: \"$rates\" is not four numbers above 0 and up to 1e9" \
        "$bench" --shape minilm --roofline $rates
done
refused 2 '--decode: "0" is not a number from 1 to 1048576' "$bench" --shape ft-decoding --decode 0
refused 2 '--beams: "0" is not a number from 1 to 64' "$bench" --shape ft-decoding --beams 0
refused 2 '--beams: "65" is not a number from 1 to 64' "$bench" --shape ft-decoding --beams 4,65
refused 2 '--beams: "many" is not a number' "$bench" --shape ft-decoding --beams many
refused 1 '--beams: bert-base is not an encoder-decoder' "$bench" --shape bert-base --beams 4
refused 1 '--beams: llama-1b is not an encoder-decoder' "$bench" --shape llama-1b --beams 1 --decode 8
refused 1 '--top-p: ft-decoding is timed with beam search, which does not sample' \
    "$bench" --shape ft-decoding --top-p 0.5
refused 1 'scheme int8-residual is for encoders' "$bench" --shape ft-decoding --scheme int8-residual
for option in --length=8 --fill=0.5 --decode=8; do
    refused 1 '--length, --fill and --decode apply to text models, but vit-base is a vision model' \
        "$bench" --shape vit-base "$option"
done
refused 1 '--request-rate: bert-base is not a decoder' "$bench" --shape bert-base --request-rate 1
refused 1 '--request-rate: ft-decoding is not a decoder' "$bench" --shape ft-decoding --request-rate 1
for rate in 0 nan 1e9 2,x 2,; do
    refused 2 "--request-rate: \"${rate#2,}\" is not a number above 0 and up to 10000" \
        "$bench" --shape llama-1b --request-rate $rate
done
refused 2 '--duration requires --request-rate' "$bench" --shape llama-1b --duration 5
refused 2 '--request-rate excludes --ops, --gemm and --tune' "$bench" --shape llama-1b --request-rate 1 --ops
for pairs in 8 8/ /8 8/0 0/8 8/4, 8/4/2 8/1e3 8/-4 8/1048577; do
    refused 2 "--throughput: \"$pairs\" is not a list of up to 32 IN/OUT, numbers of tokens from 1 to 1048576" \
        "$bench" --shape llama-1b --throughput $pairs
done
for option in --length=8 --decode=8 --request-rate=1 --ops --gemm --tune; do
    refused 2 '--throughput excludes --length, --decode, --request-rate, --ops, --gemm and --tune' \
        "$bench" --shape llama-1b --throughput 8/4 $option
done
for option in --requests=1 --cache-tokens=64 --chunk=8; do
    refused 2 '--requests, --cache-tokens and --chunk require --throughput' \
        "$bench" --shape llama-1b $option
done
refused 1 '--throughput: bert-base is not a decoder' "$bench" --shape bert-base --throughput 8/4
refused 1 '--beams: vit-base is not an encoder-decoder' "$bench" --shape vit-base --beams 4
refused 1 'scheme int8-residual is for encoders of text' \
    "$bench" --shape vit-base --scheme int8-residual
refused 2 '--ops, --gemm and --tune exclude each other' "$bench" --shape minilm --ops --gemm
refused 2 '--ops, --gemm and --tune exclude each other' "$bench" --shape minilm --tune --ops
refused 1 '--tune: device cpu has one kernel for each operation' "$bench" --shape minilm --tune --csv
refused 2 '--json and --csv exclude each other' "$bench" --shape minilm --json --csv
refused 2 '-q and -v exclude each other' "$bench" --shape minilm -q -v
refused 2 'unexpected argument "model.ft"' "$bench" --shape minilm model.ft
refused 1 'nowhere.ft: No such file' "$bench" -i nowhere.ft
refused 2 'device tpu: unknown' "$bench" --shape minilm --device tpu

# ---- Encoders and vision models -----------------------------------------------------------------

# The rates of the device are measured for the first case and for floats; other cases take known ones.
known='--roofline 1.5,0.25,20,10'

is 0 'ft-bench --csv times two batch sizes with two lengths' \
    "$bench" --shape minilm -b 2,5 -l 8,20 -r 4 -t 2 --fill 0.6 --csv
cp out cases.csv
cut -d, -f1-6 cases.csv >found
cat >wanted <<'EOF'
model,scheme,device,sequences,length,tokens
minilm,int8,cpu,2,8,10
minilm,int8,cpu,5,8,24
minilm,int8,cpu,2,20,24
minilm,int8,cpu,5,20,60
EOF
diff wanted found >difference
check $? 'the CSV has a line for each case, and --fill sets the mean number of non-padding tokens'
sed 's/^/# /' difference
holds 'the minimum is at most the median, which is at most the 95th percentile' \
    'if (!($8 > 0 && $8 <= $7 && $7 <= $9)) bad()' cases.csv
holds 'ft-bench computes sequences and tokens per second from the median' \
    'if (!near($11, 1000 * $4 / $7, 0.1) || !near($12, 1000 * $6 / $7, 1)) bad()' cases.csv
# 6 layers with 4 GEMMs of 384 x 384 and 2 of 384 x 1536 per token, and 2 dot products of 384 for
# each pair of tokens in a sequence.
holds 'ft-bench computes operations per second from the dimensions of the model' \
    '# Sequences are about as long as their mean.
     work = 6 * 2 * ($6 * (4 * 384 * 384 + 2 * 384 * 1536) + 2 * 384 * $6 * $6 / $4) * 1e-9
     if (!near($13, work / $7, 0.001)) bad()' cases.csv
holds 'roofline_fraction is the roofline time divided by the median' \
    'if (!($14 > 0) || !near($15, $14 / $7, 0.001)) bad()' cases.csv
holds 'the queueing time is empty for the CPU' 'if ($10 != "") bad()' cases.csv

is 0 'ft-bench accepts --fill 0.3' "$bench" $known --shape minilm -b 9 -l 10 -r 1 -t 1 --fill 0.3 --csv
holds '--fill 0.3 gives the requested mean number of non-padding tokens' 'if ($6 != 27) bad()' out

is 0 'ft-bench --shape accepts more tokens than the shape has positions' \
    "$bench" --shape minilm --scheme float -b 1 -l 520 -r 1 -t 2
grep -q '^minilm, float, ' out && grep -q 'TFLOPS in float GEMMs' out &&
    ! grep -q 'int8' out && grep -q '^ *1  *520  *520 ' out
check $? 'ft-bench prints a table by default'
sed 's/^/# /' out

is 0 'ft-bench times a ViT' "$bench" $known --shape vit-base -b 2 -r 1 -t 2 --csv
holds 'an image has a token for each patch and a class token' \
    'if ($1 != "vit-base" || $4 != 2 || $5 != 197 || $6 != 394) bad()' out

# ---- Operations and GEMMs -----------------------------------------------------------------------

is 0 'ft-bench --ops times each operation' \
    "$bench" $known --shape minilm --scheme int8-residual -b 3 -l 9 -r 3 -t 1 \
    --ops --csv -v
grep -c '^ *[0-9]' err >planned
awk 'NR > 1' out | wc -l | tr -d ' ' >found
test "$(cat planned)" -gt 0 && cmp -s planned found
check $? '--ops lists as many operations as the plan has'
diff planned found | sed 's/^/# /'
holds '--ops lists the operations in the order of the plan' 'if ($6 != NR - 2) bad()' out
grep -q '^ *gemm  *T x 384 x 384  .* 18 times: [a-z0-9]*, [a-z]*$' err
check $? 'ft-bench -v lists the kernel of each GEMM'
awk -F, 'NR > 1 { sum += $8 } END { exit !(sum > 0.99 && sum < 1.01) }' out
check $? 'the fractions of the operations add up to 1'
grep -q ',attention,layer.5.attn.context$' out
check $? '--ops prints the name of each output'

# bytes_of_q OUT: the bytes that a GEMM of 384 x 384 moves, according to --ops --json.
bytes_of_q () {
    python3 -c 'import json, sys
op, = [op for op in json.load(open(sys.argv[1]))["ops"] if op["name"] == "layer.0.attn.q"]
print(round(op["ms"] * op["gb_per_s"] * 1e6))' "$1"
}

is 0 'ft-bench --scheme w4a16 uses groups of 32 by default' \
    "$bench" $known --shape minilm --scheme w4a16 -b 1 -l 8 -r 1 -t 2 --ops --json
grep -q '"scheme": "w4a16"' out
check $? 'the JSON names the scheme w4a16'
cp out blocks.json
is 0 'ft-bench --group 128 uses groups of 128' \
    "$bench" $known --shape minilm --scheme w4a16 --group 128 -b 1 -l 8 -r 1 -t 2 --ops --json
if have_python; then
    # Scales take two bytes.
    test $(($(bytes_of_q blocks.json) - $(bytes_of_q out))) -eq $((384 * 384 * 2 / 32 - 384 * 384 * 2 / 128))
    check $? 'GEMMs with larger groups read fewer scales'
else
    skip "$no_python"
fi

is 0 'ft-bench --gemm times the GEMMs of a plan' "$bench" $known --shape minilm -b 3 -l 9 -r 3 -t 1 --gemm --json
if have_python; then
    python3 - out >found 2>&1 <<'EOF'
import json, sys
root = json.load(open(sys.argv[1]))
own = [p for p in root["gemms"] if p["selected"] == "yes"]
assert [(p["m"], p["n"], p["k"], p["kernel"], p["activation"], p["count"]) for p in own] == [
    (27, 384, 384, "I8.I8->I8", "none", 18), (27, 384, 384, "I8.I8->F16", "none", 6),
    (27, 1536, 384, "I8.I8->I8", "gelu_approx", 6), (27, 384, 1536, "I8.I8->F16", "none", 6)], own
others = [p for p in root["gemms"] if p["selected"] == "no"]
assert [p["kernel"] for p in others] == 4 * ["F32.F16->F32"], others
for p, other in zip(own, others):
    assert (p["m"], p["n"], p["k"], p["out_dtype"]) == (other["m"], other["n"], other["k"], other["out_dtype"])
    assert p["relative_time"] == 1 and abs(other["relative_time"] - other["ms"] / p["ms"]) < 1e-3 * other["relative_time"]
for p in root["gemms"]:
    work = 2e-9 * p["m"] * p["n"] * p["k"]
    assert abs(p["tops"] * p["ms"] - work) < 1e-3 * work
    assert abs(p["peak_fraction"] - p["tops"] / root["roofline"]["int8_tops"]) < 1e-3
assert root["roofline"] == {"int8_tops": 1.5, "float_tflops": 0.25, "copy_gb_per_s": 20, "read_gb_per_s": 10}
assert root["model"]["name"] == "minilm" and root["device"]["name"] == "cpu" and "cases" not in root
EOF
    check $? '--gemm --json lists each GEMM shape once, with consistent figures'
    sed 's/^/# /' found
else
    skip "$no_python"
fi
is 0 'ft-bench --gemm times group-wise GEMMs' \
    "$bench" $known --shape minilm --scheme w4a16 -b 3 -l 9 -r 3 -t 1 --gemm
grep -q 'F32\.U4/32->F32$' out && grep -q 'F32\.F16->F32$' out
check $? '--gemm lists group-wise GEMMs next to float GEMMs'
is 0 'ft-bench --gemm times group-wise GEMMs with int8 activations' \
    "$bench" $known --shape minilm --scheme w8a8-block -b 1 -l 9 -r 3 -t 1 --gemm
grep -q 'F32\.U8/32 int8->F32$' out
check $? '--gemm names the kernel of group-wise GEMMs with int8 activations'

# ---- Load ---------------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 3
quietly "$FT_BUILDDIR/ft-convert" -q -i decoder -o decoder.ft
is 0 'ft-bench --request-rate puts an engine under load' "$bench" $known -i decoder.ft --request-rate 80,20.5 \
    --duration 1 -b 4 -l 6 --decode 4 --fill 0.75 -t 1 --csv
cp out load.csv
cut -d, -f1-7 load.csv >found
cat >wanted <<'EOF'
model,scheme,device,request_rate,sequences,length,new_tokens
decoder.ft,float,cpu,80.00,4,6,4
decoder.ft,float,cpu,20.50,4,6,4
EOF
diff wanted found >difference
check $? 'the CSV has a line for each rate'
sed 's/^/# /' difference
holds 'as many requests arrive as a Poisson process makes likely' \
    'if ($8 < $4 - 4 * sqrt($4) || $8 > $4 + 4 * sqrt($4)) bad()' load.csv
holds 'the median times of tokens are at most their 99th percentiles' \
    'if (!($11 > 0 && $11 <= $12 && $13 > 0 && $13 <= $14)) bad()' load.csv
holds 'tokens per second count the mean length of the answers' \
    'if (!($10 > 0 && $10 <= $8 * 4 && $10 * (1 + $9) >= $8 * 2)) bad()' load.csv

# ---- Throughput ---------------------------------------------------------------------------------

is 0 'ft-bench --throughput answers requests that are there from the start' \
    "$bench" $known -i decoder.ft --throughput 6/4,3/70 --requests 12 -b 5 -t 1 --csv
cp out batch.csv
cut -d, -f1-8 batch.csv >found
cat >wanted <<'EOF'
model,scheme,device,length,new_tokens,requests,sequences,cache_tokens
decoder.ft,float,cpu,6,4,12,5,320
decoder.ft,float,cpu,3,70,12,5,640
EOF
diff wanted found >difference
check $? 'the CSV has a line for each pair of lengths, with a KV cache for the sequences that run together'
sed 's/^/# /' difference
holds 'throughput counts all new tokens, from the first request to the last token' \
    '# Seconds have three digits.
     if (!($10 > 0) || $6 * $5 / $10 > $9 + 0.0006 || $6 * $5 / $10 < $9 - 0.0006) bad()' batch.csv
holds 'the median times are at most their 99th percentiles, and the first token precedes the last' \
    'if (!($11 <= $12 && $13 <= $14 && $15 <= $16 && $11 <= $13 && $14 <= 1000 * $9 + 0.6)) bad()' batch.csv
is 0 'ft-bench --cache-tokens limits the KV cache' \
    "$bench" $known -i decoder.ft --throughput 60/10 --cache-tokens 300 --requests 7 -t 1 --csv
holds 'as many sequences run together as have room in the KV cache' \
    'if ($6 != 7 || $7 != 2 || $8 != 256) bad()' out
is 0 'ft-bench --throughput runs 64 requests at a time on the CPU by default' \
    "$bench" $known -i decoder.ft --throughput 5/2 --fill 0.6 -t 1 --json
grep -q '"requests": 64' out && grep -q '"sequences": 64' out
check $? 'there are as many requests as run at the same time by default'
is 1 'ft-bench --throughput refuses requests that do not fit into the KV cache' \
    "$bench" $known -i decoder.ft --throughput 60/10 --cache-tokens 127 -t 1 --csv
says err 'a KV cache of 64 tokens, but a request of 60 + 10 tokens needs 128' \
    'ft-bench names the tokens of the cache and of a request'

# ---- Beam search --------------------------------------------------------------------------------

is 0 'ft-bench times eight cases of an encoder-decoder' \
    "$bench" $known --shape ft-decoding --scheme w8a8-dynamic -b 1,3 -l 5,9 \
    --beams 1,4 --decode 3 --fill 0.6 -r 3 -t 2 --csv
cp out searches.csv
cut -d, -f1-7 searches.csv >found
cat >wanted <<'EOF'
model,scheme,device,sources,source_tokens,beams,new_tokens
ft-decoding,w8a8-dynamic,cpu,1,3,1,3
ft-decoding,w8a8-dynamic,cpu,3,9,1,3
ft-decoding,w8a8-dynamic,cpu,1,5,1,3
ft-decoding,w8a8-dynamic,cpu,3,16,1,3
ft-decoding,w8a8-dynamic,cpu,1,3,4,3
ft-decoding,w8a8-dynamic,cpu,3,9,4,3
ft-decoding,w8a8-dynamic,cpu,1,5,4,3
ft-decoding,w8a8-dynamic,cpu,3,16,4,3
EOF
diff wanted found >difference
check $? 'the CSV has a line for each search with the number of non-padding source tokens'
sed 's/^/# /' difference
holds 'the minimum, median and 95th percentile of searches are in order' \
    'if (!($9 > 0 && $9 <= $8 && $8 <= $10)) bad()' searches.csv
holds 'the time per decode step is the time beyond the first token, per further token' \
    'off = $12 * ($7 - 1) - ($8 - $11); if (!($11 > 0) || off * off > 1e-6) bad()' searches.csv
holds 'tokens per second count the new tokens of the best texts' \
    'if (!near($13, 1000 * $4 * $7 / $8, 0.1)) bad()' searches.csv

is 0 'ft-bench --decode 1 times searches of one token' \
    "$bench" $known --shape ft-decoding --scheme f16 -b 2 -l 4 --decode 1 -r 1 -t 1 --csv
holds 'a search of one token has no time per decode step and uses 4 beams by default' \
    'if ($12 != "" || $6 != 4 || $7 != 1) bad()' out
is 0 'ft-bench --decode accepts more tokens than the shape has positions' \
    "$bench" $known --shape ft-decoding -b 1 -l 514 --decode 514 --beams 1 -r 1 -t 2 --csv
holds 'ft-bench times sources and texts longer than the positions of the shape' \
    'if ($5 != 514 || $7 != 514) bad()' out

is 0 'ft-bench --ops times the operations of a decode step' \
    "$bench" $known --shape ft-decoding --scheme float -b 3 -l 9 --beams 2 \
    --decode 4 -r 2 -t 1 --ops --json
if have_python; then
    python3 - out >found 2>&1 <<'EOF'
import json, sys
root = json.load(open(sys.argv[1]))
ops = root["ops"]
names = [op["name"] for op in ops]
assert names[0] == "decoder.embed" and not any(name.startswith("encoder") for name in names), names
assert all((op["sequences"], op["length"]) == (6, 4) for op in ops), ops[0]
def work(kind, name):
    op, = [op for op in ops if (op["kind"], op["name"]) == (kind, name)]
    return op["ms"] * op["tops"] * 1e9, op["ms"] * op["gb_per_s"] * 1e6
def near(a, b):
    return abs(a - b) <= 1e-3 * b
# Each beam has a row of logits.  The keys and values of a source's 9 tokens are read once for both
# of its beams.  All values are floats of 4 bytes.
assert near(work("linear", "head")[0], 2 * 6 * 512 * 30000), work("linear", "head")
cross = work("attend_kv", "decoder.layer.0.cross.context")
assert near(cross[0], 4 * 6 * 9 * 512) and near(cross[1], 4 * 512 * (2 * 6 + 3 * 9 * 2)), cross
own = work("attend_kv", "decoder.layer.0.attn.context")
assert near(own[0], 4 * 6 * 4 * 512) and near(own[1], 4 * 512 * (2 * 6 + 6 * 4 * 2)), own
assert near(work("beam_search", "head")[1], 4 * 6 * 30000), work("beam_search", "head")
# Operations that this step does not run cost nothing.
assert work("sample", "token") == (0, 0) and work("record_tokens", "decoder_input_ids") == (0, 0)
kinds = {kind["kind"]: kind["count"] for kind in root["op_kinds"]}
assert kinds["attend_kv"] == 12 and kinds["beam_search"] == 1 and sum(kinds.values()) == len(ops), kinds
EOF
    check $? '--ops lists the decoder operations for all beams, including the beam search'
    sed 's/^/# /' found
else
    skip "$no_python"
fi

is 0 'ft-bench --gemm times the GEMMs of a decode step' \
    "$bench" $known --shape ft-decoding -b 3 -l 9 --beams 2 --decode 2 -r 1 -t 1 \
    --gemm --csv
awk -F, '$16 == "yes" { print $6 "," $7 "," $8 "," $9 }' out | LC_ALL=C sort >found
printf '6,%s\n' 2048,512,6 30000,512,1 512,2048,6 512,512,12 512,512,24 >wanted
diff wanted found >difference
check $? '--gemm lists the decoder GEMMs, each shape and output dtype once'
sed 's/^/# /' difference

# ---- Artifacts ----------------------------------------------------------------------------------

"$FT_BUILDDIR/ft-convert" -q -i "$sample" -o 'a, "b".ft' >out 2>&1
is 0 'ft-bench -i times an artifact' "$bench" $known -i 'a, "b".ft' -b 1 -l 8 -r 1 -t 1 --csv
grep -q '^"a, ""b"".ft",float,cpu,1,8,8,' out
check $? 'the CSV quotes the name of an artifact'
quietly "$FT_BUILDDIR/ft-calibrate" -q -i 'a, "b".ft' -o blocks.ft --scheme w4a16
is 0 'ft-bench -i times a group-wise artifact' "$bench" $known -i blocks.ft -b 1 -l 8 -r 1 -t 1 --csv
grep -q '^blocks.ft,groupwise,cpu,1,8,8,' out
check $? 'the CSV names the state of a group-wise artifact'
is 0 'ft-bench -i --ops --json times a float artifact in all schemes' \
    "$bench" $known -i 'a, "b".ft' -b 2 -l 8 -r 2 -t 1 --ops --json
if python3 -c 'import json' 2>/dev/null; then
    python3 - out >found 2>&1 <<'EOF'
import json, sys
root = json.load(open(sys.argv[1]))
times = root["scheme_times"]
schemes = ["float", "int8", "w8a8-dynamic", "w8a8-block", "w8a16", "w4a16"]
assert times["format"] == 1 and times["group"] == 32 and root["threads"] == 1
assert [one["scheme"] for one in times["passes"]] == schemes
assert all((one["pass"], one["sequences"], one["length"]) == ("forward", 2, 8) for one in times["passes"])
assert all(one["us"] > 0 and one["count"] == 2 for one in times["passes"])
linears = {scheme: [(op["name"], op["rows"], op["cols"]) for op in times["ops"]
                    if op["scheme"] == scheme and op["kind"] == "linear"] for scheme in schemes}
assert len(linears["float"]) >= 4 * 6 and all(linears[scheme] == linears["float"] for scheme in schemes)
assert all(op["us"] >= 0 and not op["name"].endswith(".float") for op in times["ops"])
assert len(root["cases"]) == 1 and "scheme_times" not in root["cases"][0]
EOF
    check $? 'each scheme has a pass and the same linears, by the names and shapes of their weights'
    sed 's/^/# /' found
else
    skip 'Python is missing'
fi
is 0 'ft-bench --group chooses the group size of these schemes' \
    "$bench" $known -i 'a, "b".ft' -b 1 -l 8 -r 1 -t 1 --ops --json --group 64
says out '"group": 64' 'the times name the group size'
is 0 'ft-bench times a group-wise artifact in its own scheme only' \
    "$bench" $known -i blocks.ft -b 1 -l 8 -r 1 -t 1 --ops --json
! grep -q scheme_times out
check $? 'no times of other schemes are printed for an artifact that is quantized'
is 1 'ft-bench -i refuses sequences longer than the positions of the model' \
    "$bench" $known -i 'a, "b".ft' -b 1 -l 4000 -r 1
grep -q 'ft-bench: input_ids: sequences of 4000 positions, but the model has' err
check $? 'ft-bench names the number of positions of the sequences'

quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" translator translator
quietly "$FT_BUILDDIR/ft-convert" -i translator -o m.ft
is 0 'ft-bench -i times the artifact of an encoder-decoder' "$bench" $known -i m.ft -b 2 -r 2 -t 2 --csv
holds 'ft-bench -i searches 32 tokens for 32 source tokens with 4 beams by default' \
    'if ($5 != 64 || $6 != 4 || $7 != 32) bad()' out
is 1 'ft-bench -i refuses more new tokens than the model has positions' \
    "$bench" $known -i m.ft -b 1 --decode 4000 -r 1 -q
grep -q 'ft-bench: m.ft: a context of 4001 tokens, but the model has 40 positions' err
check $? 'ft-bench names the context and the number of positions'

echo "1..$count"
