# usage.sh - command-line errors of all tools: the message names the error, and the status is 2.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
bin=$FT_BUILDDIR
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# wrong TEXT SENTENCE TOOL OPTION...: the tool's message contains TEXT and points to --help.
wrong () {
    text=$1 sentence=$2 tool=$3
    shift 3
    is 2 "$tool refuses $sentence with status 2" "$bin/$tool" "$@"
    says err "$text" "$tool's message for $sentence says: $text"
    says err "; try $tool --help" "$tool's message for $sentence points to --help"
}

# ---- Options given twice ------------------------------------------------------------------------

for tool in ft-run ft-calibrate ft-eval ft-inspect ft-bench; do
    wrong '--input is given twice: "a.ft" and "b.ft"' 'a second -i' $tool -i a.ft --input=b.ft
done
wrong '--output is given twice: "a.ft" and "b.ft"' 'a second -o' ft-convert -i a -o a.ft -o b.ft
wrong '--output is given twice: "a" and "b"' 'a second -o' ft-run -i a.ft -d d -oa -fo b
wrong '--data is given twice: "a" and "b"' 'a second -d' ft-calibrate -i a.ft -d a -d b -n
wrong '--data is given twice: "a" and "b"' 'a second -d' ft-eval -i a.ft -d a -d b
wrong '--against is given twice: "a" and "b"' 'a second --against' ft-eval -i a.ft -d a \
    --against a --against b
is 1 'ft-convert accepts several -i options' "$bin/ft-convert" -i a.safetensors -i b.safetensors -n
says err 'a.safetensors' 'ft-convert opens the first of several input files first'
is 1 'ft-run accepts several --image options' "$bin/ft-run" -i a.ft --image a.png --image b.png
says err 'a.ft: No such file' 'ft-run opens the artifact before the images'
is 1 'ft-calibrate accepts several --merge options' \
    "$bin/ft-calibrate" -i a.ft --merge a --merge b -n
says err 'a.ft: No such file' 'ft-calibrate opens the artifact before the counters'
wrong 'no sample data given' 'combined short options without data' ft-calibrate -fqni a.ft

# ---- Numbers that are too large -----------------------------------------------------------------

wrong '--chunk: 99999999999 is too large: 16777216 is the most' \
    'a chunk size of 99999999999 tokens' \
    ft-eval -i a.ft -d d --chunk 99999999999
wrong '--chunk: "many" is not a positive number' 'a chunk size that is not a number' \
    ft-eval -i a.ft -d d \
    --chunk many
wrong '--max-new-tokens: 16777217 is too large' 'too many new tokens' ft-run -i a.ft -d d \
    --max-new-tokens 16777217
for tool in ft-calibrate ft-eval; do
    wrong '--threads: 1025 is too large: 1024 is the most' '1025 threads' \
        $tool -i a.ft -d d -t 1025
    wrong '--threads: "0" is not a positive number' '0 threads' $tool -i a.ft -d d -t 0
done
wrong '--samples: "99999999999999999999" contains a number that is too large' \
    'a number of samples beyond 64 bits' \
    ft-calibrate -i a.ft -d d -n --samples 99999999999999999999
wrong '--samples: "5:99999999999999999999" contains a number that is too large' \
    'a range of samples beyond 64 bits' ft-calibrate -i a.ft -d d -n --samples 5:99999999999999999999
wrong '--samples: "5:5" is neither a count nor FIRST:END' 'an empty range of samples' \
    ft-calibrate -i a.ft -d d -n --samples 5:5
wrong '--memory: 99999999999999999 is too large' 'a memory size beyond 64 bits' \
    ft-calibrate -i a.ft -d d \
    -n --memory 99999999999999999
wrong '--tokens: "1048577" is not a number from 1 to 1048576' \
    'a token count above 1048576' ft-inspect --plan --tokens 5,1048577 a.ft

for tool in ft-run ft-calibrate ft-eval ft-bench; do
    for number in 0 -1 many 1.5 ''; do
        wrong "--threads: \"$number\" is not a positive number" "\"$number\" threads" \
            $tool -i a.ft -t "$number"
    done
    wrong '--threads: 9999 is too large: 1024 is the most' '9999 threads' $tool -i a.ft -t 9999
done

# ---- Missing and unknown options ----------------------------------------------------------------

for tool in ft-convert ft-calibrate ft-run ft-eval ft-inspect ft-bench; do
    is 2 "$tool without options exits with status 2" "$bin/$tool"
    says err "; try $tool --help" "$tool without options points to --help"
    wrong 'option --nonsense is not understood' 'an unknown long option' $tool --nonsense
    wrong 'unknown option -Z' 'an unknown short option' $tool -Z
    wrong 'option -i needs an argument' 'a short option without its argument' $tool -i
    wrong 'option --input needs an argument' 'a long option without its argument' $tool --input
    wrong '--input: the file name is empty' 'an empty input file name' $tool -i ''
    is 0 "$tool --help exits with 0" "$bin/$tool" --help
    is 0 "$tool --version exits with 0" "$bin/$tool" --version
done
wrong '--output: the file name is empty' 'an empty output file name' ft-convert -i a -o ''
wrong 'unexpected argument "b"' 'an operand' ft-convert -i a -n b
wrong 'unexpected argument "b"' 'an operand' ft-bench -i a b
wrong 'unexpected argument "b"' 'an operand' ft-eval -i a -d a b
wrong 'one file is expected' 'a second operand' ft-inspect a b
wrong 'operands are counters files' 'an operand' ft-calibrate -i a -d a -n b

for name in gpu GPU cuda0 cuda: cuda:x cuda:-1 cuda:99999 'cpu ' ''; do
    text="--device: device $name: unknown, expected \"cpu\" or \"cuda:N\""
    wrong "$text" "device \"$name\"" ft-run -i a.ft -d d --device "$name"
    wrong "$text" "device \"$name\"" ft-calibrate -i a.ft -d d -n --device "$name"
    wrong "$text" "device \"$name\"" ft-eval -i a.ft -d d --device "$name"
    wrong "$text" "device \"$name\"" ft-bench -i a.ft --device "$name"
    wrong "$text" "device \"$name\"" ft-inspect --plan a.ft --device "$name"
done

# ---- Unknown values -----------------------------------------------------------------------------

wrong '--scheme: unknown scheme "int4", expected one of w8a8, w8a8-dynamic, w4a16, w8a16, w8a8-block, float' \
    'an unknown scheme' ft-calibrate -i a.ft -o b.ft --scheme int4
wrong '--tensor: unknown scheme "int4", expected one of w8a8, w8a8-dynamic, w4a16' \
    'a --tensor rule with an unknown scheme' ft-calibrate -i a.ft -o b.ft -d d --tensor ffn=int4
wrong '--method: unknown method "kl", expected one of auto, percentile, max, mse, entropy' \
    'an unknown method' ft-calibrate -i a.ft -o b.ft -d d -m kl

wrong '--percentile is for --method percentile, not for max' '--percentile with another method' \
    ft-calibrate -i a.ft -o b.ft -d d --percentile 99.9 -m max

# ---- Outputs that are also inputs or other outputs ----------------------------------------------

echo >d
for option in -o --save-counters; do
    wrong 'c: given for two different outputs' "the same file for $option and --report" \
        ft-calibrate -i a.ft -d d $option c --report ./c
done
for input in a.ft d; do
    wrong "./$input: would replace the input $input" \
        "a report that would replace its input $input" \
        ft-calibrate -i a.ft -d d -o b.ft --report ./$input -f
done
test "$(ls)" = "$(printf 'd\nerr\nlog\nout')" || test "$(ls)" = "$(printf 'd\nerr\nout')"
check $? 'refused command lines write no files'

cp d a.ft
for output in a.ft d ./d; do
    wrong "$output: would replace the input" "an output that would replace its input $output" \
        ft-run -i a.ft -d d -o $output -f
    wrong "$output: would replace the input" "an output that would replace its input $output" \
        ft-calibrate -i a.ft -d d -o $output -f
done
ln -s d soft
ln d hard
for output in soft hard; do
    wrong "$output: would replace the input d" "an output $output that is a link to the text file" \
        ft-run -i a.ft --text d -o $output -f
    wrong "$output: would replace the input d" "an output $output that is a link to the image" \
        ft-run -i a.ft --image d -o $output -f
    wrong "$output: would replace the input d" \
        "an output $output that is a link to a file of the checkpoint" \
        ft-convert -i d -o $output -f
done
cmp -s d a.ft
check $? 'refused command lines leave all inputs unchanged'

echo "1..$count"
