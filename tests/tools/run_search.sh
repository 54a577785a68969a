# run_search.sh - ft-run translates with beam search and greedy search, data and texts; its errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
make_decoder=$FT_BUILDDIR/tests/programs/make-decoder
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
pick_rows=$FT_BUILDDIR/tests/programs/pick-rows
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" translator m2m-untied model
quietly "$FT_BUILDDIR/ft-convert" -i model -o m.ft
reference=model/reference.safetensors

# values FILE NAME: the bytes of a tensor, found by its offsets in the header.
values () {
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    offsets=$(head -c $((8 + header)) "$1" | tail -c "$header" |
        grep -o "\"$2\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/')
    tail -c +$((9 + header + ${offsets% *})) "$1" | head -c $((${offsets#* } - ${offsets% *}))
}

# ---- Reference translations of transformers -----------------------------------------------------

# found_by BEAMS: the translations that transformers finds, each after the start token.
found_by () {
    awk -v beams="$1" '$1 == "m2m-untied" && $3 == beams && $4 == 0 && $5 == 1 {
        line = 2
        for (i = 7; i <= NF; i++) line = line " " $i
        print line
    }' "$FT_SRCDIR/tests/golden/translations.txt"
}

# ids FILE: the ids of texts of 20 tokens.
ids () {
    values "$1" output_ids | od -An -v -t d4 -w84 | awk '{ $1 = $1; print }'
}

is 0 'ft-run translates three sources with beam search' "$run" -i m.ft -d "$reference" --beams 4 \
    --max-new-tokens 20 -o beam4.st
says out '3 sources, 27 tokens, 60 new tokens; ' 'ft-run prints a summary of the translation'
found_by 4 >expected
ids beam4.st >found
same expected found 'beam search finds the translations that transformers finds'
is 0 'ft-run translates three sources with greedy search' \
    "$run" -i m.ft -d "$reference" --max-new-tokens 20 -o greedy.st
found_by 1 >expected
ids greedy.st >found
same expected found 'greedy search finds the translations that transformers finds'

# ---- The same texts, alone or in batches --------------------------------------------------------

# In this model some texts end early, because its end token is one that is often generated.
cp -r model ends
sed 's/"eos_token_id": 2/"eos_token_id": 8/' model/config.json >ends/config.json
quietly "$FT_BUILDDIR/ft-convert" -i ends -o m.ft -f
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o three.st
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o few.st --batch 2
same three.st few.st 'beam search gives the same texts with a batch of 2'
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o few.st -f \
    --chunk 20 --threads 1
same three.st few.st 'beam search gives the same texts with small chunks and one thread'
head -c 300 three.st | grep -q '"output_ids":{"dtype":"I32","shape":\[9,29\]'
check $? '--n-best 3 writes three texts per source, padded to the requested length'
quietly "$pick_rows" "$reference" one.st 0:1
quietly "$run" -i m.ft -d one.st --beams 6 --n-best 3 --max-new-tokens 28 -o alone.st
quietly "$pick_rows" three.st expected.st 0:3
same expected.st alone.st 'a source gives the same texts alone as in a batch'

# ---- Options ------------------------------------------------------------------------------------

# differs SENTENCE OPTION...: the option changes the contents of three.st.
differs () {
    sentence=$1
    shift
    quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o other.st \
        -f "$@"
    cmp -s three.st other.st
    test $? -ne 0
    check $? "$sentence"
}
differs '--length-penalty 0.6 changes the scores of beam search' --length-penalty 0.6
differs '--length-penalty 0 changes the scores of beam search' --length-penalty 0
differs '--early-stopping true changes the texts of beam search' --early-stopping true
differs '--beam-groups and --diversity-penalty change the texts of beam search' \
    --beam-groups 3 --diversity-penalty 2
differs '--min-new-tokens changes the texts of beam search' --min-new-tokens 20
differs '--no-repeat-ngram-size changes the texts of beam search' --no-repeat-ngram-size 1
is 0 'ft-run accepts --forced-bos with beam search' \
    "$run" -i m.ft -d one.st --beams 2 --forced-bos 40 --json
sed -n '/"ids"/{n;p;}' out | grep -q ' 40,'
check $? 'the forced token is the first token of a text from beam search'
is 0 'ft-run accepts --forced-bos with greedy search' \
    "$run" -i m.ft -d one.st --forced-bos 40 -o forced.st --max-new-tokens 3
values forced.st output_ids | od -An -t d4 -N 8 | grep -q ' 2 *40$'
check $? 'the forced token follows the start token in greedy search'

# ---- Text ---------------------------------------------------------------------------------------

# Words and ids correspond: word 40 is "w40".  Each text ends with the end token.
quietly "$make_tensors" two.st input_ids:I32:2,4=9,90,62,8,57,8,1 \
    attention_mask:I32:2,4=1,1,1,1,1,1,0
is 0 'ft-run translates operands' "$run" -i m.ft --beams 4 'w9 w90 w62' w57
cp out found
quietly "$run" -i m.ft --beams 4 -d two.st -o two.out
values two.out output_ids | od -An -v -t d4 -w160 | awk '{
    for (i = 2; i <= NF && $i != 8; i++) printf "%sw%d", (i > 2 ? " " : ""), $i
    print ""
}' >expected
same expected found 'texts give the translation of the token ids that they encode to'
says err '2 sources, 6 tokens, ' 'ft-run prints the speed of a translation on standard error'
printf '%s\n' 'w9 w90 w62' w57 >lines
is 0 'ft-run translates the lines of a file' "$run" -i m.ft --beams 4 --text lines
same expected out 'the lines of a file have the same translations as operands'
is 0 'ft-run --n-best 2 prints the best translations of each line' \
    "$run" -i m.ft --beams 4 --n-best 2 --text lines
test "$(grep -c "^[12]	-[0-9.]*	w[w0-9 ]*\$" out)" -eq 4
check $? 'each translation has the number of its source and its score'
is 0 'ft-run --json translates the lines of a file' "$run" -i m.ft --beams 4 --json --text lines
says out "\"text\": \"$(sed -n 2p expected)\"" \
    'the JSON contains translated texts if the model has a tokenizer'

# ---- Errors -------------------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE OPTION...: ft-run fails with STATUS, and its message contains TEXT.
refused () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "ft-run refuses $sentence with status $status" "$run" "$@"
    says err "$text" "the message of ft-run for $sentence says: $text"
}
refused 1 'beams is 65, expected 1 to 64' 'too many beams' -i m.ft -d one.st --beams 65
refused 1 'n_best is 3, expected 1 to 2' 'more best texts than beams' -i m.ft -d one.st --beams 2 \
    --n-best 3
refused 1 'beam_groups is 3, which does not divide 4 beams' \
    'a number of beam groups that does not divide the beams' -i m.ft \
    -d one.st --beams 4 --beam-groups 3
refused 1 'forced_bos is 97, expected -1 to 96' \
    'a forced token outside the vocabulary with beam search' -i m.ft -d one.st \
    --beams 4 --forced-bos 97
refused 1 'prompt 0: token 1 is 97, expected 0 to 96' \
    'a forced token outside the vocabulary with greedy search' -i m.ft -d one.st \
    --forced-bos 97
refused 1 'prompt 0: temperature does not apply to beam search' 'sampling with beam search' \
    -i m.ft -d one.st --beams 4 \
    --temperature 1
refused 1 '--logprobs: does not apply to beam search' '--logprobs with beam search' -i m.ft \
    -d one.st --beams 4 --logprobs
refused 2 '--n-best requires --beams' '--n-best without --beams' -i m.ft -d one.st --n-best 2
refused 2 '--early-stopping: "maybe" is neither false, true nor never' \
    'an unknown value of --early-stopping' -i m.ft \
    -d one.st --beams 2 --early-stopping maybe
refused 2 '--length-penalty: "long" is not a number' 'a length penalty that is not a number' \
    -i m.ft \
    -d one.st --beams 2 --length-penalty long
refused 2 '--beams: does not apply with --outputs or --keep' '--beams with --outputs' -i m.ft \
    -d one.st --beams 2 --outputs logits
quietly "$make_decoder" checkpoint 7 98
quietly "$FT_BUILDDIR/ft-convert" -i checkpoint -o llama.ft
refused 1 'llama.ft: models of family llama do not support beam search' \
    'beam search with a decoder-only model' \
    -i llama.ft -d one.st --beams 2

echo "1..$count"
