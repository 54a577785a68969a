# pipeline.sh - convert, calibrate and run a trained model: its accuracy, and the same bytes
# whatever the threads, the order of samples, the shards and the instruction set.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
run=$FT_BUILDDIR/ft-run
inspect=$FT_BUILDDIR/ft-inspect
pick=$FT_BUILDDIR/tests/programs/pick-rows
make=$FT_BUILDDIR/tests/programs/make-tensors
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"

# Other tests run beside this one: threads that wait shall leave their processor to them.
unset FT_CPU
wanted=1

# refused SENTENCE TEXT COMMAND...: the command ends with 1 and says why in one line with TEXT in it;
# it leaves new.ft, which it was to write, unwritten.
refused () {
    sentence=$1 text=$2
    shift 2
    "$@" >out 2>err
    found=$?
    test $found -eq $wanted && test "$(wc -l <err)" -eq 1 &&
        grep -qF -e "$text" err && test ! -s out && test ! -e new.ft
    found=$?
    check $found "$sentence"
    test $found -eq 0 || sed 's/^/# /' out err
}

# misused SENTENCE TEXT COMMAND...: the same of what the command line alone says, with status 2.
misused () {
    wanted=2
    refused "$@"
    wanted=1
}

# json FILE SENTENCE: another program reads it as JSON.
json () {
    if ! have_python; then
        skip "$no_python"
        return
    fi
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" 2>err
    found=$?
    check $found "$2"
    test $found -eq 0 || sed 's/^/# /' err
}

cd "$dir" || exit 99
if test ! -f "$sample/model.safetensors"; then
    echo '1..0 # SKIP no samples/source-language-bert'
    exit 0
fi

# ---- Convert ------------------------------------------------------------------------------------

is 0 'a checkpoint is converted' "$convert" -q -i "$sample" -o model.ft
is 0 'and again under another umask' \
    sh -c 'umask 077; "$0" "$@"' "$convert" -q -i "$sample" -o again.ft
same model.ft again.ft 'the same checkpoint gives the same bytes'
accurate 0.8625 model.ft 'the float model is as accurate as the checkpoint'

# Its first layer alone is enough for what the rest does not depend on: bytes, messages, counters.
# checkpoint FOLDER EDIT: the trained model with that edit of its configuration.
checkpoint () {
    mkdir "$1"
    ln -s "$sample/model.safetensors" "$sample/tokenizer.json" "$1"
    sed "s/\"num_hidden_layers\": *4/\"num_hidden_layers\": 1/; $2" "$sample/config.json" >"$1/config.json"
}
checkpoint layer ''
quietly "$convert" -q -i layer -o layer.ft
quietly "$convert" -q -i layer -o f32.ft --dtype f32

# ---- Every method -------------------------------------------------------------------------------

# All samples are observed once; each method then chooses from the same counters.
data=$sample/calibration.safetensors
is 0 'samples are observed' "$calibrate" -q -i model.ft -d "$data" --save-counters all.counts
for method in percentile max mse entropy auto; do
    is 0 "$method: calibrates" \
        "$calibrate" -q -i model.ft -m $method --merge all.counts -o $method.ft
    case $method in
    entropy) accurate 0.5 $method.ft "$method: runs" ;;
    *) accurate 0.850 $method.ft "$method: is accurate" ;;
    esac
done
is 0 'int8 residual streams: calibrates' \
    "$calibrate" -q -i model.ft --residual int8 --merge all.counts -o residual.ft
accurate 0.5 residual.ft 'int8 residual streams: runs'
is 0 'the artifacts are intact' "$inspect" --verify percentile.ft
is 0 'also those with int8 residual streams' "$inspect" --verify residual.ft
is 1 'methods differ in amax' "$inspect" --diff percentile.ft max.ft

# ---- The same bytes -----------------------------------------------------------------------------

"$pick" "$data" few.safetensors 0:14 && "$pick" few.safetensors turned.safetensors 14:5 0:5 || exit 99
calibrate_few () { "$calibrate" -q -i layer.ft "$@" 2>>warnings; }
is 0 'one thread calibrates' calibrate_few -d few.safetensors -o one.ft -t 1
test ! -s warnings
check $? 'what is near its float model is calibrated without a warning'
calibrate_few -d few.safetensors -m auto -o auto.few.ft
same one.ft auto.few.ft 'auto is the default method'
calibrate_few -d few.safetensors --percentile 99.9 -o asked.ft
calibrate_few -d few.safetensors -m percentile --percentile 99.9 -o named.ft
same asked.ft named.ft 'a percentile alone asks for the method of that name'
is 0 'ranges that are far too small are taken where they are asked for' "$calibrate" -q -i layer.ft \
    -d few.safetensors --percentile 50 -o bad.ft --report bad.json
test "$(grep -c '^warning' err)" -eq 1 && test ! -s out
check $? 'but there is one warning, with -q too'
says err 'far from the float model: logits has a mean cosine of' 'which says what is far'
says err 'try -m auto; more samples than 14; --scheme w8a8-block' 'what to try'
grep -q '"warning": "warning: the quantized model is far' bad.json
check $? 'and is in the report, too'
grep -A3 '"name": "layer.0.attn.probs"' bad.json | grep -q '"quantized": false'
check $? 'where probabilities of attention are called not read'
calibrate_few -d few.safetensors -o two.ft -t 2
same one.ft two.ft 'two threads give the same bytes'
calibrate_few -d few.safetensors -o again.ft -f -t 2
same two.ft again.ft 'and give them every time'
calibrate_few -d turned.safetensors -o turned.ft
same one.ft turned.ft 'samples in another order give the same bytes'
umask 077
calibrate_few -d few.safetensors --eval turned.safetensors -o umask.ft
umask 022
same one.ft umask.ft 'neither umask nor what is evaluated changes them'

# shards NAME LIMIT...: observe from limit to limit, each for itself.
shards () {
    name=$1 first=$2
    shift 2
    for end in "$@"; do
        calibrate_few -d few.safetensors --samples $first:$end --save-counters $name-$first.counts
        first=$end
    done
}
shards whole 0 14
shards half 0 7 14
shards seventh 0 2 4 6 8 10 12 14
for name in whole half seventh; do
    calibrate_few --merge $name-*.counts -o $name.ft
    same one.ft $name.ft "shards, $name: merge to the same bytes"
done
is 0 'counters of all shards can be written again' \
    "$calibrate" -q -i layer.ft --merge half-7.counts half-0.counts --save-counters merged.counts
same whole-0.counts merged.counts 'as if one had observed all'

"$pick" few.safetensors head.safetensors 0:5 && "$pick" few.safetensors tail.safetensors 5:14 ||
    exit 99
calibrate_few -d head.safetensors --save-counters head.counts
calibrate_few -d tail.safetensors --save-counters tail.counts
calibrate_few --merge tail.counts --merge head.counts -o files.ft
same one.ft files.ft 'shards in files of their own merge to the same bytes'

refused 'samples are not counted twice' \
    'half-0.counts: samples 0 to 6 overlap samples 0 to 13' \
    "$calibrate" -i layer.ft --merge whole-0.counts half-0.counts -o new.ft
refused 'counters of another model are refused' 'whole-0.counts: counted on another model' \
    "$calibrate" -i f32.ft --merge whole-0.counts -o new.ft
checkpoint eps 's/"layer_norm_eps": *[^,]*/"layer_norm_eps": 0.5/'
quietly "$convert" -q -i eps -o eps.ft
refused 'also of one that differs only in its configuration' \
    'whole-0.counts: counted on another model' \
    "$calibrate" -i eps.ft --merge whole-0.counts -o new.ft
head -c 1000 whole-0.counts >cut.counts
refused 'damaged counters are refused' 'cut.counts: ' \
    "$calibrate" -i layer.ft --merge cut.counts -o new.ft
refused 'an int8 artifact is not calibrated again' 'one.ft: ' \
    "$calibrate" -i one.ft -d few.safetensors -o new.ft

# ---- The same results ---------------------------------------------------------------------------

for model in model percentile residual; do
    "$run" -i $model.ft -d few.safetensors -o $model.out >out
    for set in avx512vnni avxvnni avx2 generic; do
        if FT_CPU=$set "$run" -i $model.ft -d few.safetensors -o $set.out -f >out 2>err; then
            same $model.out $set.out "$model: $set gives the same results"
        else
            grep -q 'not supported by this processor' err || sed 's/^/# /' err
            skip "$(cut -d ' ' -f 2- err)"
        fi
    done
    "$run" -i $model.ft -d few.safetensors -o unfused.out --no-fuse -f >out
    same $model.out unfused.out "$model: operations give the same results alone as fused"
    "$run" -i $model.ft -d few.safetensors -o threads.out -t 1 -f >out
    same $model.out threads.out "$model: one thread gives the same results"
done
inside='--keep embed.norm --keep layer.1.attn.q --keep layer.2.attn.context --keep layer.3.ffn.act'
for model in percentile residual; do
    "$run" -i $model.ft -d few.safetensors -o int8.out $inside -f >out
    "$run" -i $model.ft -d few.safetensors -o fake.out $inside --fake -f >out
    same int8.out fake.out "$model: codes held in float give the same results, and codes"
    "$run" -i $model.ft -d few.safetensors -o all.out --outputs last_hidden_state -f >out
    "$run" -i $model.ft -d few.safetensors -o single.out --outputs last_hidden_state -f \
        --max-tokens 1 >out
    same all.out single.out "$model: sequences give the same results alone as in batches"
done
# Which way products are computed is said for each shape, and by run sizes only where it matters.
FT_CPU=generic "$inspect" --plan percentile.ft >out
sed -n 's/^ *gemm  *//p' out >found
cat >wanted <<'EOF'
T x 256 x 256  I8, 12 times: generic, panels
T x 256 x 256  F16, 4 times: generic, panels
T x 1024 x 256  I8 + gelu_codes, 4 times: generic, panels
T x 256 x 1024  F16, 4 times: generic, panels
EOF
diff wanted found >difference
check $? 'the plan says how the int8 products are computed'
sed 's/^/# /' difference
FT_CPU=generic "$run" -v -i percentile.ft -d few.safetensors 2>err >out
sed -n 's/^ *gemm  *//p' err | cmp -s - wanted
check $? 'so does ft-run -v'
if FT_CPU=avx2 "$inspect" --plan --tokens 1,8,9,4097 percentile.ft >out 2>err; then
    grep -qF 'I8, 12 times: avx2, stream (1, 8 tokens); avx2, panels (9, 4097 tokens)' out
    check $? 'with a few tokens in another way than with many'
else
    skip "$(cut -d ' ' -f 2- err)"
fi
"$inspect" --plan model.ft >out
grep -q '^ *output' out && ! grep -q '^ *product' out
check $? 'a float model has no int8 products'
# More values than anybody wants, some of them twice: the plan's, and what fused operations hide.
set --
for name in $("$inspect" --plan percentile.ft | awk '$1 ~ /^[0-9]/ { print $3 }'); do
    set -- "$@" --keep "${name%.float}"
    case $name in
    *.[qkv] | *.context | *.act | *.float) set -- "$@" --keep "${name%.float}.float" ;;
    esac
done
is 0 'any number of values can be kept' \
    "$run" -i percentile.ft -d few.safetensors --no-fuse --outputs logits,logits "$@" -o kept.out
test "$(grep -ao '"dtype"' kept.out | wc -l)" -eq $(($# / 2 + 1))
check $? "all $(($# / 2 + 1)) are written"
# The first run has as many tokens as sequences, namely one.
"$make" short.safetensors input_ids:I32:3,8=5,7,9 attention_mask:I32:3,8=1,0,0,0,0,0,0,0,1
"$run" -i percentile.ft -d short.safetensors \
    --outputs last_hidden_state --keep embed.norm -o all.out -f >out
is 0 'a sequence of one token runs alone' "$run" -i percentile.ft -d short.safetensors \
    --outputs last_hidden_state --keep embed.norm --max-tokens 1 -o single.out -f
same all.out single.out 'and gives the same results as in a batch'
refused 'an unknown instruction set is refused' 'FT_CPU=mmx: unknown instruction set' \
    env FT_CPU=mmx "$run" -i model.ft -d few.safetensors

# ---- Texts --------------------------------------------------------------------------------------

main='int main(int argc, char **argv) { printf("%d", argc); return 0; }'
greet='def greet(name): return f"hello {name}"'
move='for f in *.txt; do mv "$f" "${f%.txt}.md"; done'
printf '%s\n' "$main" "$greet" "$move" >texts
is 0 'a file of texts is classified' "$run" -i percentile.ft --text texts
cp out expected
test "$(wc -l <out)" -eq 3 && grep -q '^c  .*int main' out && grep -q '^python  .*def greet' out
check $? 'one line for each, with label and text'
"$run" -i percentile.ft --text - <texts >out
same expected out 'standard input is read as a file is'
"$run" -i percentile.ft "$main" "$greet" "$move" >out
same expected out 'and so are operands'
mkdir red
ln -s "$sample/model.safetensors" "$sample/tokenizer.json" red
sed 's/"0": "c"/"0": "\\u001b[31mc"/' "$sample/config.json" >red/config.json
"$convert" -q -i red -o red.ft
"$run" -i red.ft "$main" >out
grep -qF '?[31mc ' out
check $? 'a label does not command the terminal'
"$run" -i percentile.ft --text texts --json >texts.json
json texts.json 'results of texts can be had as JSON'
"$run" -i percentile.ft -d few.safetensors --json >data.json
json data.json 'those of data, too'
"$calibrate" -i layer.ft --merge whole-0.counts -n --json --report report.json >stdout.json 2>err
json stdout.json 'and the report of a calibration'
same report.json stdout.json 'which is the same as in a file'
"$calibrate" -q -i layer.ft --merge whole-0.counts --save-counters rewritten.counts \
    --report counted.json --json >stdout.json 2>err
same report.json counted.json 'and when only counters are written beside it'
same report.json stdout.json 'in both places'
for range in 10 4:14; do
    "$calibrate" -i layer.ft -d few.safetensors --samples $range -n -m max >out 2>err
    grep -q 'against float, 4 held-out samples' out
    check $? "--samples $range: the report is of samples that were not observed"
done
awk 'BEGIN { for (i = 0; i < 600; i++) printf "a "; print "" }' >long
refused 'a text that is too long is refused' 'text 1: 602 tokens, but the model has' \
    "$run" -i percentile.ft --text long
is 0 'unless it may be cut' "$run" -i percentile.ft --text long --truncate

# ---- What is wrong is told ----------------------------------------------------------------------

"$make" ids.bad other:I32:2,8=5
"$make" vocabulary.bad input_ids:I32:2,8=999999
"$make" negative.bad input_ids:I64:2,8=-1
"$make" none.bad input_ids:I32:0,8=5
"$make" padding.bad input_ids:I32:2,8=5 attention_mask:I32:2,8=0
"$make" float.bad input_ids:F32:2,8=5
"$make" nan.bad input_ids:F32:2,8=nan
"$make" long.bad input_ids:I32:1,4000=5
"$make" shape.bad input_ids:I32:2,8=5 attention_mask:I32:2,7=1
"$make" flat.bad input_ids:I32:16=5
"$make" mask.bad input_ids:I32:2,8=5 attention_mask:I32:2,8=2
"$make" labels.bad input_ids:I32:2,8=5 labels:I32:2=77
head -c 5000 "$data" >cut.bad

# bad FILE TENSOR SENTENCE: both tools refuse these samples, and name file and tensor.
bad () {
    refused "ft-run: $3 is refused" "$1: $2" "$run" -i model.ft -d $1 -o new.ft
    refused "ft-calibrate: $3 is refused" "$1: $2" "$calibrate" -i model.ft -d $1 -o new.ft
}
bad nowhere.bad 'No such file' 'a missing file'
bad cut.bad '' 'a truncated file'
bad ids.bad 'no tensor "input_ids"' 'a file without input_ids'
bad vocabulary.bad 'input_ids[0][0] is 999999' 'an id outside the vocabulary'
bad negative.bad 'input_ids[0][0] is -1' 'a negative id'
bad none.bad 'input_ids: shape [0, 8]: there are no samples' 'a file of no samples'
bad padding.bad 'attention_mask: row 0 is all padding' 'a sample of padding alone'
bad float.bad 'input_ids: dtype F32' 'a file of floats'
bad nan.bad 'input_ids: dtype F32' 'a file of NaN'
bad long.bad 'input_ids: 4000 positions, but the model has' 'a sequence that is too long'
bad shape.bad 'attention_mask: shape [2, 7], expected [2, 8]' 'a mask of another shape'
bad flat.bad 'input_ids: shape [16]' 'a vector of ids'
bad mask.bad 'attention_mask[0][0] is 2' 'a mask of other numbers than 0 and 1'
bad labels.bad 'labels[0] is 77' 'a label that the model does not have'
refused 'samples that are not there are refused' 'few.safetensors: has 14 samples' \
    "$calibrate" -i model.ft -d few.safetensors --samples 10:20 -o new.ft
refused 'a missing artifact is refused' 'nowhere.ft: No such file' \
    "$run" -i nowhere.ft -d few.safetensors
refused 'and an unknown output' 'nonsense' \
    "$run" -i model.ft -d few.safetensors --outputs logits,nonsense -o new.ft

echo precious >kept
cp kept kept.copy
for option in '-o' '--save-counters' '-n --report'; do
    refused "ft-calibrate $option: a file that exists is refused" 'kept: exists already; --force' \
        "$calibrate" -i model.ft -d few.safetensors $option kept
    same kept kept.copy 'and left as it was'
done
refused 'ft-run -o: a file that exists is refused' 'kept: exists already; --force' \
    "$run" -i model.ft -d few.safetensors -o kept
same kept kept.copy 'and left as it was'
for tool in "$run" "$calibrate"; do
    refused "${tool##*/}: the output comes first, before inputs are looked at" 'kept: exists' \
        "$tool" -i nowhere.ft -d nowhere.bad -o kept
done
cp model.ft float.ft
cp few.safetensors data
cp whole-0.counts counts
ln -s float.ft soft
ln data hard
cksum float.ft data counts >sums
for output in float.ft soft data hard; do
    misused "ft-run -o: the input $output is not replaced" "$output: would replace the input" \
        "$run" -i float.ft -d data -o $output -f
    for option in -o --save-counters "-n --report"; do
        misused "ft-calibrate $option: nor is $output" "$output: would replace the input" \
            "$calibrate" -i float.ft -d data $option $output -f
    done
done
misused 'nor are counters that are merged' 'counts: would replace the input counts' \
    "$calibrate" -i float.ft --merge counts --save-counters ./counts -f
misused 'nor samples that are evaluated' 'hard: would replace the input data' \
    "$calibrate" -i float.ft --merge counts --eval data -o hard -f
misused 'no file is written twice' './new.ft: given for two different outputs' \
    "$calibrate" -i float.ft -d data -o new.ft --save-counters ./new.ft
cksum float.ft data counts | cmp -s - sums
check $? 'all inputs are as they were'
is 1 'a failure leaves it as it was, too' "$calibrate" -q -i model.ft -d float.bad -o kept -f
same kept kept.copy 'although it might be replaced'
is 1 'a report that cannot be written is a failure' \
    sh -c 'trap "" XFSZ; ulimit -f 2; "$0" "$@"' \
    "$calibrate" -q -i layer.ft --merge whole-0.counts -n --report half.json
grep -q 'half.json: cannot write: ' err && test ! -e half.json
check $? 'which says why and leaves no half report'
test -z "$(find . -name '*.tmp*' -o -name '.*.ft*')"
check $? 'no half-written file is left'

echo "1..$count"
