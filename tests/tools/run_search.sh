# run_search.sh - ft-run translates: by beams and without, data and texts, and what goes wrong.
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

# values FILE NAME: the bytes of a tensor, by its place in the header; files here are small.
values () {
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    offsets=$(head -c $((8 + header)) "$1" | tail -c "$header" |
        grep -o "\"$2\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/')
    tail -c +$((9 + header + ${offsets% *})) "$1" | head -c $((${offsets#* } - ${offsets% *}))
}

# ---- What transformers gives --------------------------------------------------------------------

# found_by BEAMS: what transformers finds, each text behind the start.
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

is 0 'three sources are translated by beams' "$run" -i m.ft -d "$reference" --beams 4 \
    --max-new-tokens 20 -o beam4.st
says out '3 sources, 27 tokens, 60 new tokens; ' 'with a summary'
found_by 4 >expected
ids beam4.st >found
same expected found 'to what transformers finds'
is 0 'and without beams' "$run" -i m.ft -d "$reference" --max-new-tokens 20 -o greedy.st
found_by 1 >expected
ids greedy.st >found
same expected found 'to what transformers chooses'

# ---- The same texts, alone or together ----------------------------------------------------------

# A model whose texts end early, some of them: its end is a token that is often found.
cp -r model ends
sed 's/"eos_token_id": 2/"eos_token_id": 8/' model/config.json >ends/config.json
quietly "$FT_BUILDDIR/ft-convert" -i ends -o m.ft -f
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o three.st
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o few.st --batch 2
same three.st few.st 'few at a time give the same'
quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o few.st -f \
    --chunk 20 --threads 1
same three.st few.st 'and so do short runs, on one thread'
head -c 300 three.st | grep -q '"output_ids":{"dtype":"I32","shape":\[9,29\]'
check $? 'three texts of each source, as long as was asked'
quietly "$pick_rows" "$reference" one.st 0:1
quietly "$run" -i m.ft -d one.st --beams 6 --n-best 3 --max-new-tokens 28 -o alone.st
quietly "$pick_rows" three.st expected.st 0:3
same expected.st alone.st 'a source gives the same alone'

# ---- Options ------------------------------------------------------------------------------------

# differs SENTENCE OPTION...: the option changes what three.st holds.
differs () {
    sentence=$1
    shift
    quietly "$run" -i m.ft -d "$reference" --beams 6 --n-best 3 --max-new-tokens 28 -o other.st \
        -f "$@"
    cmp -s three.st other.st
    test $? -ne 0
    check $? "$sentence"
}
differs 'a length penalty changes scores' --length-penalty 0.6
differs 'and so do sums' --length-penalty 0
differs 'a search that ends at once finds others' --early-stopping true
differs 'groups of beams avoid each other' --beam-groups 3 --diversity-penalty 2
differs 'a least length changes texts' --min-new-tokens 20
differs 'and so does a ban of repeated runs' --no-repeat-ngram-size 1
is 0 'a first token is forced' "$run" -i m.ft -d one.st --beams 2 --forced-bos 40 --json
sed -n '/"ids"/{n;p;}' out | grep -q ' 40,'
check $? 'and stands first'
is 0 'without beams too' "$run" -i m.ft -d one.st --forced-bos 40 -o forced.st --max-new-tokens 3
values forced.st output_ids | od -An -t d4 -N 8 | grep -q ' 2 *40$'
check $? 'behind the start'

# ---- Text ---------------------------------------------------------------------------------------

# Words and ids are the same: word 40 is "w40", and the end stands behind a text.
quietly "$make_tensors" two.st input_ids:I32:2,4=9,90,62,8,57,8,1 \
    attention_mask:I32:2,4=1,1,1,1,1,1,0
is 0 'words are translated' "$run" -i m.ft --beams 4 'w9 w90 w62' w57
cp out found
quietly "$run" -i m.ft --beams 4 -d two.st -o two.out
values two.out output_ids | od -An -v -t d4 -w160 | awk '{
    for (i = 2; i <= NF && $i != 8; i++) printf "%sw%d", (i > 2 ? " " : ""), $i
    print ""
}' >expected
same expected found 'to the words of the ids that their ids become'
says err '2 sources, 6 tokens, ' 'and how fast, on standard error'
printf '%s\n' 'w9 w90 w62' w57 >lines
is 0 'so are lines of a file' "$run" -i m.ft --beams 4 --text lines
same expected out 'to the same'
is 0 'the best of each are told with their scores' "$run" -i m.ft --beams 4 --n-best 2 --text lines
test "$(grep -c "^[12]	-[0-9.]*	w[w0-9 ]*\$" out)" -eq 4
check $? 'and the number of the source'
is 0 'JSON has texts' "$run" -i m.ft --beams 4 --json --text lines
says out "\"text\": \"$(sed -n 2p expected)\"" 'where there are words'

# ---- What goes wrong ----------------------------------------------------------------------------

# refused STATUS TEXT SENTENCE OPTION...: ft-run says so on standard error.
refused () {
    status=$1 text=$2 sentence=$3
    shift 3
    is "$status" "refused: $sentence" "$run" "$@"
    says err "$text" 'and why'
}
refused 1 'beams is 65, expected 1 to 64' 'too many beams' -i m.ft -d one.st --beams 65
refused 1 'n_best is 3, expected 1 to 2' 'more texts than beams' -i m.ft -d one.st --beams 2 \
    --n-best 3
refused 1 'beam_groups is 3, which does not divide 4 beams' 'groups of different sizes' -i m.ft \
    -d one.st --beams 4 --beam-groups 3
refused 1 'forced_bos is 97, expected -1 to 96' 'a first token that is none' -i m.ft -d one.st \
    --beams 4 --forced-bos 97
refused 1 'prompt 0: token 1 is 97, expected 0 to 96' 'without beams too' -i m.ft -d one.st \
    --forced-bos 97
refused 1 'prompt 0: temperature does not apply to beam search' 'chance' -i m.ft -d one.st --beams 4 \
    --temperature 1
refused 1 '--logprobs: does not apply to beam search' 'log-probabilities of each token' -i m.ft \
    -d one.st --beams 4 --logprobs
refused 2 '--n-best requires --beams' 'an option of searches alone' -i m.ft -d one.st --n-best 2
refused 2 '--early-stopping: "maybe" is not true, false or never' 'an unknown word' -i m.ft \
    -d one.st --beams 2 --early-stopping maybe
refused 2 '--length-penalty: "long" is not a number' 'a penalty that is no number' -i m.ft \
    -d one.st --beams 2 --length-penalty long
refused 2 '--beams: does not apply with --outputs or --keep' 'a search without tokens' -i m.ft \
    -d one.st --beams 2 --outputs logits
quietly "$make_decoder" checkpoint 7 98
quietly "$FT_BUILDDIR/ft-convert" -i checkpoint -o llama.ft
refused 1 'llama.ft: models of family llama do not support beam search' 'a decoder without sources' \
    -i llama.ft -d one.st --beams 2

echo "1..$count"
