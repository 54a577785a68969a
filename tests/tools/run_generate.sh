# run_generate.sh - ft-run continues texts: batches, prefill chunks, stop conditions, streams and
# errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
make_decoder=$FT_BUILDDIR/tests/programs/make-decoder
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
pick_rows=$FT_BUILDDIR/tests/programs/pick-rows
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
quietly "$make_decoder" checkpoint 7 98
quietly "$FT_BUILDDIR/ft-convert" -i checkpoint -o m.ft

# Four prompts of 5, 1, 9 and 3 tokens, in rows of 9 that are padded with the end token, 257.
ids=5,6,7,8,9,257,257,257,257,200,257,257,257,257,257,257,257,257
ids=$ids,1,2,3,4,5,6,7,8,9,70,71,72,257,257,257,257,257,257
quietly "$make_tensors" prompts.st "input_ids:I32:4,9=$ids"
sampled='--temperature 0.9 --top-k 40 --top-p 0.95 --seed 3 --repetition-penalty 1.1'

# ---- The same tokens, alone or in batches -------------------------------------------------------

is 0 'ft-run continues four prompts with greedy search' \
    "$run" -i m.ft -d prompts.st --max-new-tokens 20 \
    --ignore-end --logprobs -o greedy.st
says out '4 sequences, 18 prompt tokens, 80 new tokens; prefill ' \
    'ft-run prints a summary of the generation'
is 0 'ft-run continues four prompts with sampling' \
    "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs \
    -o sampled.st $sampled
cmp -s greedy.st sampled.st
test $? -ne 0
check $? 'sampling gives other tokens than greedy search'
for chunk in 1 7 512; do
    quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled \
        --chunk $chunk
    same sampled.st again.st "prefill chunks of $chunk tokens do not change the sampled tokens"
done
quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled --batch 3
same sampled.st again.st 'prompts that wait for a free slot get the same tokens'
for row in 0 1 2 3; do
    quietly "$pick_rows" prompts.st one.st $row:$((row + 1))
    quietly "$pick_rows" sampled.st expected.st $row:$((row + 1))
    quietly "$run" -i m.ft -d one.st --max-new-tokens 20 --logprobs -o alone.st -f $sampled --chunk 2
    same expected.st alone.st "prompt $row gets the same tokens alone as in a batch"
done
quietly "$make_tensors" lengths.st "input_ids:I32:4,9=$ids" lengths:I64:4=5,1,9,3
quietly "$run" -i m.ft -d lengths.st --max-new-tokens 20 --logprobs -o again.st -f $sampled
same sampled.st again.st 'prompts with lengths get the same tokens as prompts with padding'
quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled --seed 4
cmp -s sampled.st again.st
test $? -ne 0
check $? 'another seed gives other tokens'

for kind in auto:F32 f16:F16 int8:I8; do
    is 0 "ft-run generates with a KV cache of type ${kind%:*}" \
        "$run" -i m.ft -d prompts.st --max-new-tokens 2 --ignore-end -v \
        --kv "${kind%:*}"
    grep -q "store.*\.keys \[${kind#*:}\]" err
    check $? "the KV cache of type ${kind%:*} stores keys as ${kind#*:}"
done

# ---- Outputs of single forward passes -----------------------------------------------------------

is 0 'ft-run --outputs logits runs a decoder without generation' \
    "$run" -i m.ft -d prompts.st --outputs logits -o l.st
head -c 300 l.st | grep -q '"shape":\[4,300\]'
check $? '--outputs logits writes the logits of the last tokens'
is 0 'ft-run --every-logits runs a decoder without generation' \
    "$run" -i m.ft -d prompts.st --outputs logits --every-logits -o l.st -f
head -c 300 l.st | grep -q '"shape":\[4,9,300\]'
check $? '--every-logits writes the logits of all tokens in the shape of the data'

# ---- Stop conditions ----------------------------------------------------------------------------

# json FILE KEY: the values of the key, one per line.
json () {
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1"
}

quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end
cp log greedy.json
test "$(json greedy.json finish_reason | sort -u)" = length && test "$(json greedy.json new_tokens)" = 80
check $? 'generation stops after --max-new-tokens with the reason length'
stop=$(sed -n '/"ids"/,/]/p' greedy.json | sed -n '4s/[ ,]//gp') # the third token of the first text
is 0 'ft-run accepts --stop-id' \
    "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end \
    --stop-id "$stop"
json out finish_reason | head -n 1 | grep -qx stop_id
check $? 'a text that ends with a stop id has the finish reason stop_id'
test "$(sed -n '/"ids"/,/]/p' out | sed '/]/q' | grep -c '[0-9]')" -le 3
check $? 'the stop id is the last token of the text'
is 0 'ft-run accepts --min-new-tokens with --stop-id' \
    "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end \
    --stop-id "$stop" --min-new-tokens 8
test "$(sed -n '/"ids"/,/]/p' out | sed '/]/q' | grep -c '[0-9]')" -ge 8
check $? '--min-new-tokens keeps a stop id from ending the text too early'
is 0 'ft-run --ctx 12 continues prompts until the context is full' \
    "$run" -i m.ft -d prompts.st --ctx 12 --json --ignore-end
test "$(json out new_tokens)" -eq 30 # 4 x 12 - 18
check $? 'all texts end when the context is full'

# ---- Text ---------------------------------------------------------------------------------------

is 0 'ft-run continues a text' "$run" -i m.ft --max-new-tokens 24 --ignore-end 'an apple'
cp out stream
iconv -f UTF-8 -t UTF-8 stream >/dev/null 2>&1
check $? 'ft-run streams complete UTF-8 characters'
says err '1 sequence, 7 prompt tokens, 24 new tokens; prefill ' \
    'ft-run prints the speed on standard error'
is 0 'ft-run --text - continues a line of standard input' sh -c 'echo "an apple" | "$0" "$@"' \
    "$run" -i m.ft --max-new-tokens 24 --ignore-end --text -
same stream out 'a line of standard input has the same continuation as an operand'
printf 'an apple' >whole.txt
quietly "$run" -i m.ft --max-new-tokens 24 --ignore-end --text whole.txt --whole
sed '$d' log >log.text # the line about speed
same stream log.text 'ft-run --whole continues a whole file like an operand'
is 0 'ft-run continues several texts' "$run" -i m.ft --max-new-tokens 24 --ignore-end pear \
    'an apple' fig
sed '1,/^==> 2 <==$/d; /^$/,$d' out >second
head -n "$(wc -l <second)" stream >expected
same expected second 'continuations are printed in the order of the texts under their numbers'

text=$(cat stream)
# A printable ASCII character of that text.
stop=$(grep -ao '[A-Za-z*(){}<>=+;:,.&%$#@!0-9]' stream | sed -n 2p)
is 0 'ft-run accepts several stop strings' "$run" -i m.ft --max-new-tokens 24 --ignore-end \
    --stop 'not there' --stop "$stop" 'an apple'
printf '%s\n' "${text%%"$stop"*}" >expected
test -n "$stop"
same expected out 'the text ends before the stop string'
is 0 'ft-run --json accepts a stop string' "$run" -i m.ft --max-new-tokens 24 --ignore-end \
    --json --stop "$stop" 'an apple'
json out finish_reason | grep -qx stop_string
check $? 'a text that ends at a stop string has the finish reason stop_string'

# ---- Chats --------------------------------------------------------------------------------------

is 0 'ft-run --chat answers a message' \
    "$run" -i m.ft --max-new-tokens 8 --ignore-end --json --chat fig
# 55 bytes, in which " a" is one token three times, and 5 tokens that begin and end messages.
test "$(json out prompt_tokens | tail -n 1)" -eq 57
check $? '--chat wraps the message in the chat template of the model'
is 0 'ft-run --chat reads a conversation from standard input' \
    sh -c 'printf "fig\n\npear\n" | "$0" "$@"' \
    "$run" -i m.ft --max-new-tokens 8 --ignore-end --chat
cp out talk
"$run" -i m.ft --max-new-tokens 8 --ignore-end --chat fig 2>/dev/null >first
head -c "$(wc -c <first)" talk | cmp -s - first
check $? 'the conversation begins with the answer that a single message gets'

# ---- Errors -------------------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE OPTION...: ft-run fails with STATUS, and its message contains TEXT.
refused () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "ft-run refuses $sentence with status $status" "$run" -i m.ft "$@"
    says err "$text" "the message of ft-run for $sentence says: $text"
}

quietly "$make_tensors" high.st input_ids:I32:2,3=1,2,3,4,300,6
refused 1 'high.st: input_ids[1][1] is 300, expected 0 to 299' 'an id outside the vocabulary' \
    -d high.st --max-new-tokens 2
quietly "$make_tensors" empty.st input_ids:I32:2,3=1,2,3,257
refused 1 'empty.st: input_ids: row 1 is all padding (257)' 'a prompt that is all padding' \
    -d empty.st --max-new-tokens 2
quietly "$make_tensors" none.st input_ids:I32:1,3=1,2,3 lengths:I32:1=0
refused 1 'none.st: lengths[0] is 0, expected 1 to 3' 'a prompt with length 0' -d none.st
refused 1 'prompt 0: has no token' 'an empty text' ''
refused 1 'prompt 2: 9 tokens leave no room in a context of 9' 'a prompt that fills the context' \
    -d prompts.st --ctx 9
refused 1 'm.ft: a context of 4194305 tokens, but the model has 4194304 positions' \
    'a context longer than the positions of the model' -d prompts.st --ctx 4194305
refused 1 '--stop-id 300: expected a token id from 0 to 299' 'a stop id outside the vocabulary' \
    -d prompts.st --stop-id 300
refused 2 '--top-p: "1.5" is not a number from 0 to 1' 'a --top-p above 1' \
    -d prompts.st --top-p 1.5
refused 2 '--temperature: "warm" is not a number' 'a temperature that is not a number' \
    -d prompts.st --temperature warm
refused 2 '--temperature: "nan" is not a number' 'a temperature of nan' \
    -d prompts.st --temperature nan
refused 2 '--seed: "-1" is not an integer' 'a negative seed' -d prompts.st --seed -1
refused 2 '--kv: "int4" is neither auto, f16 nor int8' 'an unknown KV cache type' \
    -d prompts.st --kv int4
refused 2 'a stop string cannot be empty' 'an empty stop string' --stop '' fig
refused 2 '--chat applies to texts' '--chat with token ids' -d prompts.st --chat
refused 2 'give either -d FILE, --text FILE, --image FILE or texts' \
    'a command line without an input'
refused 2 '--truncate: needs --outputs or --keep' '--truncate without --outputs' --truncate fig
refused 2 '--top-k: does not apply with --outputs or --keep' 'sampling options with --outputs' \
    --outputs logits --top-k 3 fig

# 500 texts of 2^22 tokens need 545 GB.
quietly "$make_tensors" many.st input_ids:I32:500,1=5
if test "$(awk '$1 == "MemAvailable:" { print int($2 / 1e6) }' /proc/meminfo)" -gt 500; then
    skip 'this machine has memory for anything'
    skip 'this machine has memory for anything'
else
    refused 1 ' bytes needed, ' 'a KV cache that does not fit into memory' \
        -d many.st --batch 500 --ctx 4194304
fi

# ---- Logits that are not finite -----------------------------------------------------------------

cp m.ft bad.ft
quietly "$make_decoder" - poison bad.ft
quietly "$make_tensors" bad.st input_ids:I32:3,2=5,6,98,7,8,9
is 1 'ft-run fails if the logits of a prompt are not finite' \
    "$run" -i bad.ft -d bad.st --max-new-tokens 4 \
    --ignore-end -o bad.out.st
says err 'prompt 1: the logits of new token 0 are not finite' \
    'ft-run names the prompt whose logits are not finite'
quietly "$run" -i m.ft -d bad.st --max-new-tokens 4 --ignore-end -o good.out.st
for row in 0 2; do
    quietly "$pick_rows" bad.out.st a.st $row:$((row + 1))
    quietly "$pick_rows" good.out.st b.st $row:$((row + 1))
    same b.st a.st "prompt $row gets its tokens although another prompt fails"
done

# ---- Generation options for an encoder ----------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$FT_BUILDDIR/ft-convert" -i classifier -o classifier.ft
for option in '--max-new-tokens 4' '--min-new-tokens 1' '--temperature 1' '--top-k 2' '--top-p 0.5' \
    '--min-p 0.5' '--repetition-penalty 2' '--presence-penalty 1' '--frequency-penalty 1' \
    '--no-repeat-ngram-size 2' '--seed 1' '--stop x' '--stop-id 1' --ignore-end --chat --logprobs \
    '--ctx 4' '--chunk 4' '--batch 4' '--kv int8' '--beams 2' '--forced-bos 3' --every-logits; do
    is 2 "ft-run refuses $option for an encoder with status 2" \
        "$run" -i classifier.ft $option -o classes.st 'a b'
    says err "${option%% *} applies to decoders and encoder-decoders, but classifier.ft is a text encoder" \
        "ft-run says that ${option%% *} applies to decoders and encoder-decoders"
done
test -z "$(find . -name '*classes.st*')"
check $? 'refused generation options leave no output file'
is 2 'ft-run refuses --forced-bos for a decoder with status 2' "$run" -i m.ft --forced-bos 3 'a b'
says err '--forced-bos applies to encoder-decoders, but m.ft is a decoder' \
    'ft-run says that --forced-bos applies to encoder-decoders'

# ---- More new tokens than the context holds -----------------------------------------------------

quietly "$make_tensors" long.st input_ids:I32:2,3=5,6,7,8,9,10 lengths:I32:2=3,1
is 0 'ft-run accepts --max-new-tokens beyond the context' \
    "$run" -i m.ft -d long.st --ctx 8 --max-new-tokens 6 \
    --ignore-end --json
says err '--max-new-tokens 6: a context of 8 tokens leaves 5 after a prompt of 3; generation stops there' \
    'ft-run warns that the context is smaller than --max-new-tokens'
test "$(grep -c '^    [0-9-]*,\{0,1\}$' out)" = 11
check $? 'texts end at the end of the context or after --max-new-tokens'
is 0 'ft-run accepts --max-new-tokens that fit into the context' \
    "$run" -i m.ft -d long.st --ctx 8 --max-new-tokens 5 --ignore-end --json
test ! -s err
check $? 'ft-run prints no warning if --max-new-tokens fit into the context'

# ---- Prompts of a data file without -o ----------------------------------------------------------

is 0 'ft-run -d without -o continues prompts on standard output' "$run" -i m.ft -d long.st \
    --max-new-tokens 3 --ignore-end
test "$(grep -c '^==> [12] <==$' out)" = 2
check $? 'ft-run prints the continuations of prompts under their numbers'
says err '2 sequences, 4 prompt tokens, 6 new tokens' 'ft-run -d prints the speed on standard error'
quietly "$make_tensors" one.st input_ids:I32:1,3=5,6,7
is 0 'ft-run -d continues a single prompt as a stream' \
    "$run" -i m.ft -d one.st --max-new-tokens 3 --ignore-end
test -s out && ! grep -q '==>' out
check $? 'ft-run prints no number for a single prompt'
mkdir -p wordless && cp checkpoint/config.json checkpoint/generation_config.json \
    checkpoint/model.safetensors wordless
quietly "$FT_BUILDDIR/ft-convert" -i wordless -o wordless.ft
is 0 'ft-run -d continues prompts without a tokenizer' \
    "$run" -i wordless.ft -d long.st --max-new-tokens 3 --ignore-end
test "$(grep -c '^[0-9]* [0-9]* [0-9]*$' out)" = 2
check $? 'ft-run prints the ids of new tokens if the artifact has no tokenizer'

echo "1..$count"
