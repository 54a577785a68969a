# run_generate.sh - ft-run continues texts: batches, chunks, stops, streams, and what goes wrong.
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

# Four prompts of 5, 1, 9 and 3 tokens, in rows of 9 that are padded with the end, 257.
ids=5,6,7,8,9,257,257,257,257,200,257,257,257,257,257,257,257,257
ids=$ids,1,2,3,4,5,6,7,8,9,70,71,72,257,257,257,257,257,257
quietly "$make_tensors" prompts.st "input_ids:I32:4,9=$ids"
sampled='--temperature 0.9 --top-k 40 --top-p 0.95 --seed 3 --repetition-penalty 1.1'

# ---- The same tokens, alone or together ---------------------------------------------------------

is 0 'four prompts are continued' "$run" -i m.ft -d prompts.st --max-new-tokens 20 \
    --ignore-end --logprobs -o greedy.st
says out '4 sequences, 18 prompt tokens, 80 new tokens; prefill ' 'with a summary'
is 0 'and by chance' "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs \
    -o sampled.st $sampled
cmp -s greedy.st sampled.st
test $? -ne 0
check $? 'which gives other tokens'
for chunk in 1 7 512; do
    quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled \
        --chunk $chunk
    same sampled.st again.st "chunks of $chunk tokens change nothing"
done
quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled --batch 3
same sampled.st again.st 'nor does waiting for a seat'
for row in 0 1 2 3; do
    quietly "$pick_rows" prompts.st one.st $row:$((row + 1))
    quietly "$pick_rows" sampled.st expected.st $row:$((row + 1))
    quietly "$run" -i m.ft -d one.st --max-new-tokens 20 --logprobs -o alone.st -f $sampled --chunk 2
    same expected.st alone.st "prompt $row gives the same alone"
done
quietly "$make_tensors" lengths.st "input_ids:I32:4,9=$ids" lengths:I64:4=5,1,9,3
quietly "$run" -i m.ft -d lengths.st --max-new-tokens 20 --logprobs -o again.st -f $sampled
same sampled.st again.st 'lengths say the same as padding'
quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --logprobs -o again.st -f $sampled --seed 4
cmp -s sampled.st again.st
test $? -ne 0
check $? 'another seed gives other tokens'

for kind in auto:F32 f16:F16 int8:I8; do
    is 0 "a cache of ${kind%:*}" "$run" -i m.ft -d prompts.st --max-new-tokens 2 --ignore-end -v \
        --kv "${kind%:*}"
    grep -q "store.*\.keys \[${kind#*:}\]" err
    check $? "has keys of ${kind#*:}"
done

# ---- Single runs --------------------------------------------------------------------------------

is 0 'values of a decoder can be had instead' "$run" -i m.ft -d prompts.st --outputs logits -o l.st
head -c 300 l.st | grep -q '"shape":\[4,300\]'
check $? 'here the logits of the last tokens'
is 0 'or of all' "$run" -i m.ft -d prompts.st --outputs logits --every-logits -o l.st -f
head -c 300 l.st | grep -q '"shape":\[4,9,300\]'
check $? 'in the shape of the data'

# ---- Where texts end ----------------------------------------------------------------------------

# json FILE KEY: the values of a key, one a line.
json () {
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1"
}

quietly "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end
cp log greedy.json
test "$(json greedy.json finish_reason | sort -u)" = length && test "$(json greedy.json new_tokens)" = 80
check $? 'texts end where they are as long as they may be'
stop=$(sed -n '/"ids"/,/]/p' greedy.json | sed -n '4s/[ ,]//gp') # the third token of the first text
is 0 'a stop id ends a text' "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end \
    --stop-id "$stop"
json out finish_reason | head -n 1 | grep -qx stop_id
check $? 'with that reason'
test "$(sed -n '/"ids"/,/]/p' out | sed '/]/q' | grep -c '[0-9]')" -le 3
check $? 'and is its last token'
is 0 'no end comes too early' "$run" -i m.ft -d prompts.st --max-new-tokens 20 --json --ignore-end \
    --stop-id "$stop" --min-new-tokens 8
test "$(sed -n '/"ids"/,/]/p' out | sed '/]/q' | grep -c '[0-9]')" -ge 8
check $? 'where a least number of tokens is asked for'
is 0 'the context ends texts too' "$run" -i m.ft -d prompts.st --ctx 12 --json --ignore-end
test "$(json out new_tokens)" -eq 30 # 4 x 12 - 18
check $? 'all of them at the same length'

# ---- Text ---------------------------------------------------------------------------------------

is 0 'a text is continued' "$run" -i m.ft --max-new-tokens 24 --ignore-end 'an apple'
cp out stream
iconv -f UTF-8 -t UTF-8 stream >/dev/null 2>&1
check $? 'with whole characters'
says err '1 sequence, 7 prompt tokens, 24 new tokens; prefill ' 'and how fast, on standard error'
is 0 'standard input is the same' sh -c 'echo "an apple" | "$0" "$@"' \
    "$run" -i m.ft --max-new-tokens 24 --ignore-end --text -
same stream out 'text'
printf 'an apple' >whole.txt
quietly "$run" -i m.ft --max-new-tokens 24 --ignore-end --text whole.txt --whole
sed '$d' log >log.text # the line about speed
same stream log.text 'and so is a whole file'
is 0 'many texts are told in their order' "$run" -i m.ft --max-new-tokens 24 --ignore-end pear \
    'an apple' fig
sed '1,/^==> 2 <==$/d; /^$/,$d' out >second
head -n "$(wc -l <second)" stream >expected
same expected second 'each under its number'

text=$(cat stream)
# A plain character out of that text.
stop=$(grep -ao '[A-Za-z*(){}<>=+;:,.&%$#@!0-9]' stream | sed -n 2p)
is 0 'a stop string ends a text' "$run" -i m.ft --max-new-tokens 24 --ignore-end \
    --stop 'not there' --stop "$stop" 'an apple'
printf '%s\n' "${text%%"$stop"*}" >expected
test -n "$stop"
same expected out 'and is no part of it'
is 0 'the reason of an end is told to programs' "$run" -i m.ft --max-new-tokens 24 --ignore-end \
    --json --stop "$stop" 'an apple'
json out finish_reason | grep -qx stop_string
check $? 'here a stop string'

# ---- Chats --------------------------------------------------------------------------------------

is 0 'a message is answered' "$run" -i m.ft --max-new-tokens 8 --ignore-end --json --chat fig
# 55 bytes of which " a" is one token, three times, and 5 tokens that begin and end messages.
test "$(json out prompt_tokens | tail -n 1)" -eq 57
check $? 'within the format of its kind'
is 0 'a conversation comes by standard input' sh -c 'printf "fig\n\npear\n" | "$0" "$@"' \
    "$run" -i m.ft --max-new-tokens 8 --ignore-end --chat
cp out talk
"$run" -i m.ft --max-new-tokens 8 --ignore-end --chat fig 2>/dev/null >first
head -c "$(wc -c <first)" talk | cmp -s - first
check $? 'and begins with the same answer'

# ---- What is wrong ------------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE OPTION...: ft-run says so on standard error.
refused () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "refused: $sentence" "$run" -i m.ft "$@"
    says err "$text" "which says why"
}

quietly "$make_tensors" high.st input_ids:I32:2,3=1,2,3,4,300,6
refused 1 'high.st: input_ids[1][1] is 300, expected 0 to 299' 'an id outside the vocabulary' \
    -d high.st --max-new-tokens 2
quietly "$make_tensors" empty.st input_ids:I32:2,3=1,2,3,257
refused 1 'empty.st: input_ids: row 1 is all padding (257)' 'an empty prompt' \
    -d empty.st --max-new-tokens 2
quietly "$make_tensors" none.st input_ids:I32:1,3=1,2,3 lengths:I32:1=0
refused 1 'none.st: lengths[0] is 0, expected 1 to 3' 'a prompt of no tokens' -d none.st
refused 1 'prompt 0: has no token' 'an empty text' ''
refused 1 'prompt 2: 9 tokens leave no room in a context of 9' 'a prompt as long as the context' \
    -d prompts.st --ctx 9
refused 1 'm.ft: a context of 4194305 tokens, but the model has 4194304 positions' \
    'a context that the model has no positions for' -d prompts.st --ctx 4194305
refused 1 '--stop-id 300: expected a token id from 0 to 299' 'a stop id that is no token' \
    -d prompts.st --stop-id 300
refused 2 '--top-p: "1.5" is not a number from 0 to 1' 'a probability above 1' \
    -d prompts.st --top-p 1.5
refused 2 '--temperature: "warm" is not a number' 'a temperature that is no number' \
    -d prompts.st --temperature warm
refused 2 '--temperature: "nan" is not a number' 'one that only looks like a number' \
    -d prompts.st --temperature nan
refused 2 '--seed: "-1" is not an integer' 'a negative seed' -d prompts.st --seed -1
refused 2 '--kv: "int4" is none of auto, f16 and int8' 'an unknown cache' -d prompts.st --kv int4
refused 2 'a stop string cannot be empty' 'an empty stop string' --stop '' fig
refused 2 '--chat applies to texts' 'a chat about token ids' -d prompts.st --chat
refused 2 'give either -d FILE, --text FILE, --image FILE or texts' 'nothing to continue'
refused 2 '--truncate: needs --outputs or --keep' 'an option of single runs' --truncate fig
refused 2 '--top-k: does not apply with --outputs or --keep' 'a choice without tokens' \
    --outputs logits --top-k 3 fig

# 500 texts of 2^22 tokens: 545 GB.
quietly "$make_tensors" many.st input_ids:I32:500,1=5
if test "$(awk '$1 == "MemAvailable:" { print int($2 / 1e6) }' /proc/meminfo)" -gt 500; then
    skip 'this machine has memory for anything'
    skip 'this machine has memory for anything'
else
    refused 1 ' bytes asked, ' 'a cache that does not fit' -d many.st --batch 500 --ctx 4194304
fi

# ---- No number among the logits -----------------------------------------------------------------

cp m.ft bad.ft
quietly "$make_decoder" - poison bad.ft
quietly "$make_tensors" bad.st input_ids:I32:3,2=5,6,98,7,8,9
is 1 'a text whose logits are not finite fails' "$run" -i bad.ft -d bad.st --max-new-tokens 4 \
    --ignore-end -o bad.out.st
says err 'prompt 1: the logits of new token 0 are not finite' 'which is said'
quietly "$run" -i m.ft -d bad.st --max-new-tokens 4 --ignore-end -o good.out.st
for row in 0 2; do
    quietly "$pick_rows" bad.out.st a.st $row:$((row + 1))
    quietly "$pick_rows" good.out.st b.st $row:$((row + 1))
    same b.st a.st "prompt $row is continued all the same"
done

# ---- Options of models that write text, given for one that does not -----------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$FT_BUILDDIR/ft-convert" -i classifier -o classifier.ft
for option in '--max-new-tokens 4' '--min-new-tokens 1' '--temperature 1' '--top-k 2' '--top-p 0.5' \
    '--min-p 0.5' '--repetition-penalty 2' '--presence-penalty 1' '--frequency-penalty 1' \
    '--no-repeat-ngram-size 2' '--seed 1' '--stop x' '--stop-id 1' --ignore-end --chat --logprobs \
    '--ctx 4' '--chunk 4' '--batch 4' '--kv int8' '--beams 2' '--forced-bos 3' --every-logits; do
    is 2 "$option is a wrong command line for an encoder" \
        "$run" -i classifier.ft $option -o classes.st 'a b'
    says err "${option%% *} applies to decoders and encoder-decoders, but classifier.ft is an encoder of texts" \
        'which the message says'
done
test -z "$(find . -name '*classes.st*')"
check $? 'and nothing is left of the output'
is 2 'a decoder has no --forced-bos' "$run" -i m.ft --forced-bos 3 'a b'
says err '--forced-bos applies to encoder-decoders, but m.ft is a decoder' 'which the message says'

# ---- More than the context ----------------------------------------------------------------------

quietly "$make_tensors" long.st input_ids:I32:2,3=5,6,7,8,9,10 lengths:I32:2=3,1
is 0 'more new tokens than the context has' "$run" -i m.ft -d long.st --ctx 8 --max-new-tokens 6 \
    --ignore-end --json
says err '--max-new-tokens 6: a context of 8 tokens leaves 5 after a prompt of 3; generation stops there' \
    'there is a warning'
test "$(grep -c '^    [0-9-]*,\{0,1\}$' out)" = 11
check $? 'and texts end with the context, or with the number that was asked for'
is 0 'as many as it has' "$run" -i m.ft -d long.st --ctx 8 --max-new-tokens 5 --ignore-end --json
test ! -s err
check $? 'there is no warning'

# ---- Prompts of a file without -o ---------------------------------------------------------------

is 0 'prompts of a file are continued on standard output' "$run" -i m.ft -d long.st \
    --max-new-tokens 3 --ignore-end
test "$(grep -c '^==> [12] <==$' out)" = 2
check $? 'under their numbers'
says err '2 sequences, 4 prompt tokens, 6 new tokens' 'and how fast, on standard error'
quietly "$make_tensors" one.st input_ids:I32:1,3=5,6,7
is 0 'one prompt is continued as it comes' "$run" -i m.ft -d one.st --max-new-tokens 3 --ignore-end
test -s out && ! grep -q '==>' out
check $? 'without a number'
mkdir -p wordless && cp checkpoint/config.json checkpoint/generation_config.json \
    checkpoint/model.safetensors wordless
quietly "$FT_BUILDDIR/ft-convert" -i wordless -o wordless.ft
is 0 'where there is no tokenizer' "$run" -i wordless.ft -d long.st --max-new-tokens 3 --ignore-end
test "$(grep -c '^[0-9]* [0-9]* [0-9]*$' out)" = 2
check $? 'the ids of new tokens are told'

echo "1..$count"
