# pipeline.sh - convert, calibrate and run a trained model: its accuracy, and identical bytes for
# any number of threads, order of samples, shards and instruction set.
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

# Other tests run at the same time: waiting threads yield the processor to them.
unset FT_CPU
wanted=1

# refused SENTENCE TEXT COMMAND...: the command exits with status 1 and prints only one line, which
# contains TEXT; it does not write its output new.ft.
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

# misused SENTENCE TEXT COMMAND...: the same for a wrong command line, with status 2.
misused () {
    wanted=2
    refused "$@"
    wanted=1
}

# json FILE SENTENCE: Python parses the file as JSON.
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

is 0 'ft-convert converts a checkpoint' "$convert" -q -i "$sample" -o model.ft
is 0 'ft-convert converts the checkpoint again under another umask' \
    sh -c 'umask 077; "$0" "$@"' "$convert" -q -i "$sample" -o again.ft
same model.ft again.ft 'two conversions of a checkpoint write the same bytes'
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

# All samples are observed once; each method then chooses ranges from the same counters.
data=$sample/calibration.safetensors
is 0 'ft-calibrate --save-counters observes the samples' \
    "$calibrate" -q -i model.ft -d "$data" --save-counters all.counts
for method in percentile max mse entropy auto; do
    is 0 "ft-calibrate -m $method calibrates from merged counters" \
        "$calibrate" -q -i model.ft -m $method --merge all.counts -o $method.ft
    case $method in
    entropy) accurate 0.5 $method.ft "the artifact calibrated with $method runs" ;;
    *) accurate 0.850 $method.ft "the artifact calibrated with $method is accurate" ;;
    esac
done
is 0 'ft-calibrate --residual int8 calibrates from merged counters' \
    "$calibrate" -q -i model.ft --residual int8 --merge all.counts -o residual.ft
accurate 0.5 residual.ft 'the artifact with an int8 residual stream runs'
is 0 'ft-inspect --verify finds no fault in an int8 artifact' "$inspect" --verify percentile.ft
is 0 'ft-inspect --verify finds no fault in an artifact with an int8 residual stream' \
    "$inspect" --verify residual.ft
is 1 'the methods percentile and max give different artifacts' \
    "$inspect" --diff percentile.ft max.ft

# ---- The same bytes -----------------------------------------------------------------------------

"$pick" "$data" few.safetensors 0:14 && "$pick" few.safetensors rotated.safetensors 14:5 0:5 || exit 99
calibrate_few () { "$calibrate" -q -i layer.ft "$@" 2>>warnings; }
is 0 'ft-calibrate calibrates with one thread' calibrate_few -d few.safetensors -o one.ft -t 1
test ! -s warnings
check $? 'ft-calibrate prints no warning if the int8 model is close to the float model'
calibrate_few -d few.safetensors -m auto -o auto.few.ft
same one.ft auto.few.ft 'ft-calibrate uses the method auto by default'
calibrate_few -d few.safetensors --percentile 99.9 -o asked.ft
calibrate_few -d few.safetensors -m percentile --percentile 99.9 -o named.ft
same asked.ft named.ft '--percentile implies --method percentile'
is 0 'ft-calibrate writes an artifact with ranges that are far too small if asked to' \
    "$calibrate" -q -i layer.ft --target none \
    -d few.safetensors --percentile 50 -o bad.ft --report bad.json
test "$(grep -c '^warning' err)" -eq 1 && test ! -s out
check $? 'ft-calibrate -q prints one warning if the int8 model is far from the float model'
says err 'far from the float model: logits has a mean cosine of' \
    'the warning gives the mean cosine of the logits'
says err 'try -m auto; more samples than 14; --scheme w8a8-block' 'the warning suggests what to try'
grep -q '"warning": "warning: the quantized model is far' bad.json
check $? 'the JSON report contains the warning'
grep -A3 '"name": "layer.0.attn.probs"' bad.json | grep -q '"quantized": false'
check $? 'the JSON report marks attention probabilities as not quantized'
calibrate_few -d few.safetensors -o two.ft -t 2
same one.ft two.ft 'calibration with two threads writes the same bytes as with one'
calibrate_few -d few.safetensors -o again.ft -f -t 2
same two.ft again.ft 'repeated calibration with two threads writes the same bytes'
calibrate_few -d rotated.safetensors -o rotated.ft
same_model one.ft rotated.ft 'samples in another order give the same model'
umask 077
calibrate_few -d few.safetensors --eval rotated.safetensors -o umask.ft
umask 022
same_model one.ft umask.ft 'the model depends neither on the umask nor on --eval'

# shards NAME LIMIT...: observes the samples between consecutive limits separately.
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
    same_model one.ft $name.ft "the $name shards merge to the same model"
done
is 0 'ft-calibrate writes merged counters to a file' \
    "$calibrate" -q -i layer.ft --merge half-7.counts half-0.counts --save-counters merged.counts
same whole-0.counts merged.counts 'merged counters have the same bytes as counters of all samples'

"$pick" few.safetensors head.safetensors 0:5 && "$pick" few.safetensors tail.safetensors 5:14 ||
    exit 99
calibrate_few -d head.safetensors --save-counters head.counts
calibrate_few -d tail.safetensors --save-counters tail.counts
calibrate_few --merge tail.counts --merge head.counts -o files.ft
same_model one.ft files.ft 'shards of separate sample files merge to the same model'

refused 'ft-calibrate refuses to count samples twice' \
    'half-0.counts: samples 0 to 6 overlap samples 0 to 13' \
    "$calibrate" -i layer.ft --merge whole-0.counts half-0.counts -o new.ft
refused 'ft-calibrate refuses counters of another model' \
    'whole-0.counts: counted on another model' \
    "$calibrate" -i f32.ft --merge whole-0.counts -o new.ft
checkpoint eps 's/"layer_norm_eps": *[^,]*/"layer_norm_eps": 0.5/'
quietly "$convert" -q -i eps -o eps.ft
refused 'ft-calibrate refuses counters of a model that differs only in its configuration' \
    'whole-0.counts: counted on another model' \
    "$calibrate" -i eps.ft --merge whole-0.counts -o new.ft
head -c 1000 whole-0.counts >cut.counts
refused 'ft-calibrate refuses damaged counters' 'cut.counts: ' \
    "$calibrate" -i layer.ft --merge cut.counts -o new.ft
refused 'ft-calibrate refuses to calibrate an int8 artifact again' 'one.ft: ' \
    "$calibrate" -i one.ft -d few.safetensors -o new.ft

# ---- The same results ---------------------------------------------------------------------------

for model in model percentile residual; do
    "$run" -i $model.ft -d few.safetensors -o $model.out >out
    for set in amx avx512vnni avxvnni avx2 i8mm dotprod neon generic; do
        if FT_CPU=$set "$run" -i $model.ft -d few.safetensors -o $set.out -f >out 2>err; then
            same $model.out $set.out "$model: ft-run gives the same results with FT_CPU=$set"
        else
            grep -q 'not supported by this processor' err || sed 's/^/# /' err
            skip "$(cut -d ' ' -f 2- err)"
        fi
    done
    "$run" -i $model.ft -d few.safetensors -o unfused.out --no-fuse -f >out
    same $model.out unfused.out "$model: ft-run gives the same results with --no-fuse"
    "$run" -i $model.ft -d few.safetensors -o threads.out -t 1 -f >out
    same $model.out threads.out "$model: ft-run gives the same results with one thread"
done
inside='--keep embed.norm --keep layer.1.attn.q --keep layer.2.attn.context --keep layer.3.ffn.act'
for model in percentile residual; do
    "$run" -i $model.ft -d few.safetensors -o int8.out $inside -f >out
    "$run" -i $model.ft -d few.safetensors -o fake.out $inside --fake -f >out
    same int8.out fake.out "$model: ft-run --fake gives the same results and quantized values"
    "$run" -i $model.ft -d few.safetensors -o all.out --outputs last_hidden_state -f >out
    "$run" -i $model.ft -d few.safetensors -o single.out --outputs last_hidden_state -f \
        --max-tokens 1 >out
    same all.out single.out "$model: a sequence gives the same results alone as in a batch"
done
# Each GEMM shape is listed with its kernel, with token counts only if the kernel depends on them.
FT_CPU=generic "$inspect" --plan percentile.ft >out
sed -n 's/^ *gemm  *//p' out >found
cat >wanted <<'EOF'
T x 256 x 256  I8, 12 times: generic, panels
T x 256 x 256  F16, 4 times: generic, panels
T x 1024 x 256  I8 + gelu_approx, 4 times: generic, panels
T x 256 x 1024  F16, 4 times: generic, panels
EOF
diff wanted found >difference
check $? 'ft-inspect --plan lists the kernel of each int8 GEMM'
sed 's/^/# /' difference
FT_CPU=generic "$run" -v -i percentile.ft -d few.safetensors 2>err >out
sed -n 's/^ *gemm  *//p' err | cmp -s - wanted
check $? 'ft-run -v lists the kernel of each int8 GEMM'
if FT_CPU=avx2 "$inspect" --plan --tokens 1,8,9,4097 percentile.ft >out 2>err; then
    grep -qF 'I8, 12 times: avx2, stream (1, 8 tokens); avx2, panels (9, 4097 tokens)' out
    check $? \
        'ft-inspect --plan --tokens shows different kernels for small and large numbers of tokens'
else
    skip "$(cut -d ' ' -f 2- err)"
fi
"$inspect" --plan model.ft >out
grep -q '^ *output' out && ! grep -q '^ *gemm ' out
check $? 'ft-inspect --plan lists no int8 GEMMs for a float model'
# Every value of the plan, some twice, and the float values that only an unfused plan stores.
set --
for name in $("$inspect" --plan percentile.ft | awk '$1 ~ /^[0-9]/ { print $3 }'); do
    set -- "$@" --keep "${name%.float}"
    case $name in
    *.[qkv] | *.context | *.act | *.float) set -- "$@" --keep "${name%.float}.float" ;;
    esac
done
is 0 'ft-run accepts any number of --keep options' \
    "$run" -i percentile.ft -d few.safetensors --no-fuse --outputs logits,logits "$@" -o kept.out
test "$(grep -ao '"dtype"' kept.out | wc -l)" -eq $(($# / 2 + 1))
check $? "ft-run --keep writes all $(($# / 2 + 1)) values"
# With --max-tokens 1 the first batch holds a single token.
"$make" short.safetensors input_ids:I32:3,8=5,7,9 attention_mask:I32:3,8=1,0,0,0,0,0,0,0,1
"$run" -i percentile.ft -d short.safetensors \
    --outputs last_hidden_state --keep embed.norm -o all.out -f >out
is 0 'ft-run evaluates a sequence of one token in a batch of its own' \
    "$run" -i percentile.ft -d short.safetensors \
    --outputs last_hidden_state --keep embed.norm --max-tokens 1 -o single.out -f
same all.out single.out 'a sequence of one token gives the same results alone as in a batch'
refused 'ft-run refuses an unknown instruction set in FT_CPU' \
    'FT_CPU=mmx: unknown instruction set' \
    env FT_CPU=mmx "$run" -i model.ft -d few.safetensors

# ---- Texts --------------------------------------------------------------------------------------

main='int main(int argc, char **argv) { printf("%d", argc); return 0; }'
greet='def greet(name): return f"hello {name}"'
move='for f in *.txt; do mv "$f" "${f%.txt}.md"; done'
printf '%s\n' "$main" "$greet" "$move" >texts
is 0 'ft-run --text classifies the lines of a file' "$run" -i percentile.ft --text texts
cp out expected
test "$(wc -l <out)" -eq 3 && grep -q '^c  .*int main' out && grep -q '^python  .*def greet' out
check $? 'ft-run prints one line with label and text for each input line'
"$run" -i percentile.ft --text - <texts >out
same expected out 'ft-run --text - reads standard input like a file'
"$run" -i percentile.ft "$main" "$greet" "$move" >out
same expected out 'ft-run classifies operands like lines of a file'
mkdir red
ln -s "$sample/model.safetensors" "$sample/tokenizer.json" red
sed 's/"0": "c"/"0": "\\u001b[31mc"/' "$sample/config.json" >red/config.json
"$convert" -q -i red -o red.ft
"$run" -i red.ft "$main" >out
grep -qF '?[31mc ' out
check $? 'ft-run replaces control characters of a label'
"$run" -i percentile.ft --text texts --json >texts.json
json texts.json 'ft-run --text --json prints valid JSON'
"$run" -i percentile.ft -d few.safetensors --json >data.json
json data.json 'ft-run -d --json prints valid JSON'
"$calibrate" -i layer.ft --merge whole-0.counts -n --json --report report.json >stdout.json 2>err
json stdout.json 'ft-calibrate -n --json prints valid JSON'
same report.json stdout.json '--json and --report give the same report of a dry run'
"$calibrate" -q -i layer.ft --merge whole-0.counts --save-counters rewritten.counts \
    --report counted.json --json >stdout.json 2>err
same report.json counted.json 'ft-calibrate --save-counters writes the same report as a dry run'
same report.json stdout.json 'ft-calibrate --save-counters --json prints the same report'
for range in 10 4:14; do
    "$calibrate" -i layer.ft -d few.safetensors --samples $range -n -m max >out 2>err
    grep -q 'against float, 4 held-out samples' out
    check $? "--samples $range: ft-calibrate evaluates the samples that it did not observe"
done
awk 'BEGIN { for (i = 0; i < 600; i++) printf "a "; print "" }' >long
refused "ft-run refuses a text longer than the model's positions" \
    'line 1: 602 tokens, but the model has' \
    "$run" -i percentile.ft --text long
is 0 "ft-run --truncate accepts a text longer than the model's positions" \
    "$run" -i percentile.ft --text long --truncate

# ---- Errors -------------------------------------------------------------------------------------

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

# bad FILE TEXT SENTENCE: ft-run and ft-calibrate refuse these samples and name file and tensor.
bad () {
    refused "ft-run refuses $3 and names the file" "$1: $2" "$run" -i model.ft -d $1 -o new.ft
    refused "ft-calibrate refuses $3 and names the file" \
        "$1: $2" "$calibrate" -i model.ft -d $1 -o new.ft
}
bad nowhere.bad 'No such file' 'a data file that does not exist'
bad cut.bad '' 'a truncated file'
bad ids.bad 'no tensor "input_ids"' 'a data file without input_ids'
bad vocabulary.bad 'input_ids[0][0] is 999999' 'an id outside the vocabulary'
bad negative.bad 'input_ids[0][0] is -1' 'a negative id'
bad none.bad 'input_ids: shape [0, 8]: there are no samples' 'a data file without samples'
bad padding.bad 'attention_mask: row 0 is all padding' 'a sample that is all padding'
bad float.bad 'input_ids: dtype F32' 'input_ids of dtype F32'
bad nan.bad 'input_ids: dtype F32' 'input_ids of NaN'
bad long.bad 'input_ids: 4000 positions, but the model has' \
    "a sequence longer than the model's positions"
bad shape.bad 'attention_mask: shape [2, 7], expected [2, 8]' 'an attention mask of another shape'
bad flat.bad 'input_ids: shape [16]' 'one-dimensional input_ids'
bad mask.bad 'attention_mask[0][0] is 2' 'an attention mask with values other than 0 and 1'
bad labels.bad 'labels[0] is 77' 'a label that the model does not have'
refused 'ft-calibrate refuses a range of samples beyond the end of the data' \
    'few.safetensors: has 14 samples' \
    "$calibrate" -i model.ft -d few.safetensors --samples 10:20 -o new.ft
refused 'ft-run refuses an artifact that does not exist' 'nowhere.ft: No such file' \
    "$run" -i nowhere.ft -d few.safetensors
refused 'ft-run refuses an unknown output name' 'nonsense' \
    "$run" -i model.ft -d few.safetensors --outputs logits,nonsense -o new.ft

echo precious >kept
cp kept kept.copy
for option in '-o' '--save-counters' '-n --report'; do
    refused "ft-calibrate $option refuses to replace an existing file" \
        'kept: exists already; --force' \
        "$calibrate" -i model.ft -d few.safetensors $option kept
    same kept kept.copy "ft-calibrate $option leaves the existing file unchanged"
done
refused 'ft-run -o refuses to replace an existing file' 'kept: exists already; --force' \
    "$run" -i model.ft -d few.safetensors -o kept
same kept kept.copy 'ft-run -o leaves the existing file unchanged'
for tool in "$run" "$calibrate"; do
    refused "${tool##*/} checks its output before it opens its inputs" 'kept: exists' \
        "$tool" -i nowhere.ft -d nowhere.bad -o kept
done
cp model.ft float.ft
cp few.safetensors data
cp whole-0.counts counts
ln -s float.ft soft
ln data hard
cksum float.ft data counts >sums
for output in float.ft soft data hard; do
    misused "ft-run -o $output -f refuses to replace an input" "$output: would replace the input" \
        "$run" -i float.ft -d data -o $output -f
    for option in -o --save-counters "-n --report"; do
        misused "ft-calibrate $option $output -f refuses to replace an input" \
            "$output: would replace the input" \
            "$calibrate" -i float.ft -d data $option $output -f
    done
done
misused 'ft-calibrate refuses to replace the counters that it merges' \
    'counts: would replace the input counts' \
    "$calibrate" -i float.ft --merge counts --save-counters ./counts -f
misused 'ft-calibrate refuses to replace the data that it evaluates' \
    'hard: would replace the input data' \
    "$calibrate" -i float.ft --merge counts --eval data -o hard -f
misused 'ft-calibrate refuses to write two outputs to one file' \
    './new.ft: given for two different outputs' \
    "$calibrate" -i float.ft -d data -o new.ft --save-counters ./new.ft
cksum float.ft data counts | cmp -s - sums
check $? 'the refused command lines leave all inputs unchanged'
is 1 'ft-calibrate -f fails on bad samples' "$calibrate" -q -i model.ft -d float.bad -o kept -f
same kept kept.copy 'a failed calibration with -f leaves the existing output unchanged'
is 1 'ft-calibrate fails if it cannot write the report' \
    sh -c 'trap "" XFSZ; ulimit -f 2; "$0" "$@"' \
    "$calibrate" -q -i layer.ft --merge whole-0.counts -n --report half.json
grep -q 'half.json: cannot write: ' err && test ! -e half.json
check $? 'ft-calibrate says that it cannot write the report and leaves no partial report'
test -z "$(find . -name '*.tmp*' -o -name '.*.ft*')"
check $? 'failed commands leave no temporary files'

echo "1..$count"
