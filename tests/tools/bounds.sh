# bounds.sh - ft-run refuses small hostile inputs within 1 s of CPU time and 256 MB, and accepts large
# valid ones.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/bounded.sh"
cd "$dir" || exit 99

# zeros MEBIBYTES: that many MiB of the letter "0", without a line end.
zeros () {
    head -c $(($1 << 20)) /dev/zero | tr '\0' 0
}

quietly "$FT_BUILDDIR/ft-convert" -i "$FT_SRCDIR/samples/source-language-bert" -o bert.ft
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$FT_BUILDDIR/ft-convert" -i decoder -o decoder.ft

# ---- Texts --------------------------------------------------------------------------------------

refused '/dev/zero: line 1: NUL at byte 0, expected text' 'an endless file of zeros' \
    "$run" -i bert.ft --text /dev/zero
refused '/dev/zero: line 1: NUL at byte 0, expected text' \
    'an endless file of zeros that is read as one text' \
    "$run" -i bert.ft --text /dev/zero --whole
refused '/dev/urandom: line ' 'an endless file of random bytes' \
    "$run" -i bert.ft --text /dev/urandom
mkfifo line lines newlines messages || exit 99
tr '\0' a </dev/zero >line 2>tr.err &
refused 'standard input: line 1 exceeds the limit of 16 MiB per text' \
    'a line that never ends' "$run" -i bert.ft --text - <line
yes 'a text' >lines 2>yes.err &
refused 'the texts up to this line exceed the limit of 128 MiB' \
    'an endless list of lines' "$run" -i bert.ft --text - <lines
tr '\0' '\n' </dev/zero >newlines 2>tr.err &
refused 'standard input: exceeds the limit of 16 MiB per text' \
    'a single text that never ends' "$run" -i bert.ft --text - --whole <newlines
{ echo a line; exec tr '\0' a </dev/zero; } >messages 2>tr.err &
refused 'standard input: line 2 exceeds the limit of 16 MiB per text' \
    'a chat message that never ends' \
    "$run" -i decoder.ft --chat --max-new-tokens 1 <messages

printf 'fine\nalso fine \303\244\nnot \377fine\nfine\n' >bad8.txt
refused 'bad8.txt: line 3: byte 4 is 0xff, expected valid UTF-8' 'a line that is not valid UTF-8' \
    "$run" -i bert.ft --text bad8.txt
refused 'bad8.txt: line 3: byte 4 is 0xff, expected valid UTF-8' \
    'a file read as one text that is not valid UTF-8' \
    "$run" -i bert.ft --text bad8.txt --whole
refused 'standard input: line 3: byte 4 is 0xff, expected valid UTF-8' \
    'a chat message that is not valid UTF-8' \
    "$run" -i decoder.ft --chat --max-new-tokens 1 <bad8.txt
refused 'text 2: byte 4 is 0xff, expected valid UTF-8' 'an argument that is not valid UTF-8' \
    "$run" -i bert.ft fine "$(sed -n 3p bad8.txt)"

{ zeros 16; echo; echo also; } >long.txt
accepted 'a line of 16 MiB' "$run" -i bert.ft --text long.txt --truncate
test "$(wc -l <out)" -eq 2
check $? 'ft-run also reads the line after a line of 16 MiB'
{ zeros 16; echo 0; } >long.txt
refused 'long.txt: line 1 exceeds the limit of 16 MiB per text' \
    'a line one byte longer than 16 MiB' \
    "$run" -i bert.ft --text long.txt --truncate

# ---- Tokenizers that expand small texts ---------------------------------------------------------

# tokenizer NAME OLD NEW: NAME.ft is the decoder with NEW in place of OLD, a sed pattern, in
# tokenizer.json.
tokenizer () {
    rm -rf edited
    cp -r decoder edited
    sed "s/$2/$3/" decoder/tokenizer.json >edited/tokenizer.json
    quietly "$FT_BUILDDIR/ft-convert" -f -i edited -o "$1.ft"
}

# repeated TIMES TEXT: the text that many times, separated by commas.
repeated () {
    yes "$2" 2>yes.err | head -n "$1" | paste -sd,
}

words='"pre_tokenizer": {[^}]*}'
sixteen=xxxxxxxxxxxxxxxx
sixty_four=$sixteen$sixteen$sixteen$sixteen
replace="{\"type\": \"Replace\", \"pattern\": {\"String\": \"x\"}, \"content\": \"$sixty_four\"}"
prepend="{\"type\": \"Prepend\", \"prepend\": \"$sixty_four\"}"
bytes='{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}'
any='{"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false}'

# sequence KEY STEPS: a sequence of steps.
sequence () {
    echo "{\"type\": \"Sequence\", \"$1\": [$2]}"
}

# prefix CHARACTER: a step that prepends the character to each piece.
prefix () {
    echo "{\"type\": \"Metaspace\", \"replacement\": \"$1\", \"prepend_scheme\": \"always\", \"split\": false}"
}

tokenizer replaces '"normalizer": null' \
    "\"normalizer\": $(sequence normalizers "$(repeated 5 "$replace")")"
refused 'tokenizer.json: normalizer: adds more than 1072 bytes to a text of 3' \
    'a normalizer that expands 3 bytes to 3.2 GB' "$run" -i replaces.ft --outputs logits xxx
head -c 1000000 /dev/zero | tr '\0' x >x.txt
refused 'to a text of 1000000' 'a normalizer that expands 1 MB of text too much' \
    "$run" -i replaces.ft --outputs logits --text x.txt --truncate
refused 'normalizer: adds more than' 'a normalizer that expands a prompt too much' \
    "$run" -i replaces.ft --max-new-tokens 1 xxx
tokenizer prepends '"normalizer": null' \
    "\"normalizer\": $(sequence normalizers "$prepend,$(repeated 4 "$replace")")"
refused 'normalizer: adds more than 1040 bytes to a text of 1' \
    'a normalizer that prepends text before expanding it' "$run" -i prepends.ft --outputs logits a
tokenizer bytes "$words" "\"pre_tokenizer\": $(sequence pretokenizers "$(repeated 12 "$bytes")")"
refused 'tokenizer.json: pre_tokenizer: adds more than 1056 bytes to a text of 2' \
    'a pre-tokenizer that encodes bytes repeatedly' \
    "$run" -i bytes.ft --outputs logits "$(printf '\303\244')"
before=
for blank in ▁ ▂ ▃ ▄; do
    before="$before${before:+,}$any,$(prefix "$blank")"
done
tokenizer prefixes "$words" "\"pre_tokenizer\": $(sequence pretokenizers "$before")"
refused 'pre_tokenizer: adds more than 4096 bytes to a text of 192' \
    'a pre-tokenizer that repeatedly prepends characters to all pieces' \
    "$run" -i prefixes.ft --outputs logits \
    "$sixty_four$sixty_four$sixty_four"

# ---- Many rows -----------------------------------------------------------------------------------

# The ids take 36 MB here, in the file and in memory; outputs would take 100 MB more, or 300 MB as
# JSON.
rows=300000
quietly "$FT_BUILDDIR/tests/programs/make-classifier" classifier 3
quietly "$FT_BUILDDIR/ft-convert" -i classifier -o classifier.ft
quietly "$FT_BUILDDIR/tests/programs/make-tensors" many.st input_ids:I32:$rows,10=5 lengths:I32:$rows=1 \
    labels:I32:$rows=0
is 0 'ft-run keeps no outputs in memory when it only summarizes many rows' \
    "$bounded" -s 10 -m 80 "$run" -i classifier.ft -d many.st
is 0 'ft-run -o streams the outputs of many rows to the file' \
    "$bounded" -s 10 -m 80 "$run" -i classifier.ft -d many.st -o outputs.st
test "$(wc -c <outputs.st)" -gt $((rows * (3 + 8 * 10) * 4))
check $? 'the output file holds the outputs of all rows'
is 0 'ft-run --json streams the results of many rows to standard output' \
    "$bounded" -s 10 -m 80 "$run" -i classifier.ft -d many.st --json
test "$(grep -c '"index"' out)" -eq $rows
check $? 'the JSON holds the results of all rows'

quietly "$FT_BUILDDIR/tests/programs/make-tensors" prompts.st input_ids:I32:2000,4=5,6,7,8
is 0 'ft-run prints the continuations of many prompts within 60 MB' \
    "$bounded" -s 10 -m 60 "$run" -i decoder.ft \
    -d prompts.st --max-new-tokens 8 --ignore-end
test "$(grep -c '^==> ' out)" -eq 2000
check $? 'ft-run prints the continuations of all 2000 prompts'
says err '2000 sequences, ' 'ft-run reports the speed on standard error'

# ---- Regular expressions that backtrack ---------------------------------------------------------

# pattern NAME REGEX: NAME.ft splits text at its matches.
pattern () {
    tokenizer "$1" "$words" \
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"$2\"}, \"behavior\": \"Isolated\", \"invert\": false}"
}

{ head -c 299 /dev/zero | tr '\0' a; echo !; } >line.txt
{ head -c 999999 /dev/zero | tr '\0' a; echo !; } >large.txt
while read -r name regex; do
    pattern "$name" "$regex"
    refused 'tokenizer.json: pre_tokenizer: its patterns take too long in a text of 300 bytes' \
        "the pre-tokenizer pattern $regex with 300 bytes" \
        "$run" -i "$name.ft" --outputs logits --text line.txt
    refused 'its patterns take too long in a text of 1000000 bytes' \
        "the pre-tokenizer pattern $regex with 1 MB" \
        "$run" -i "$name.ft" --outputs logits --text large.txt --truncate
done <<'END'
groups (a+)+$
starts (?=.*.*.*.*y)a
overlap (?:a|aa)+$
END
tokenizer lookahead '"normalizer": null' \
    '"normalizer": {"type": "Replace", "pattern": {"Regex": "(?=.*.*.*.*y)a"}, "content": "b"}'
refused 'tokenizer.json: normalizer: its patterns take too long in a text of 300 bytes' \
    'a normalizer whose pattern backtracks in 300 bytes' \
    "$run" -i lookahead.ft --outputs logits --text line.txt
refused 'tokenizer.json: normalizer: its patterns take too long in a text of 1000000 bytes' \
    'a normalizer whose pattern backtracks in 1 MB' \
    "$run" -i lookahead.ft --outputs logits --text large.txt --truncate
pattern runs '(?=.*+)(?=.*+)(?=.*+)[xy]'
refused 'its patterns take too long in a text of 1000000 bytes' \
    'a pattern that scans to the end of the text at each position' \
    "$run" -i runs.ft --outputs logits --text large.txt --truncate
alternatives='{"type": "Split", "pattern": {"Regex": "(?:a|b)+!"}, "behavior": "Isolated", "invert": false}'
tokenizer patterns "$words" "\"pre_tokenizer\": $(sequence pretokenizers "$(repeated 24 "$alternatives")")"
accepted '1 MB of text that 24 patterns match by backtracking' \
    "$FT_BUILDDIR/ft-tokenize" -i patterns.ft large.txt
pattern short 'a{60000}x'
refused 'its patterns take too long in a text of 1000000 bytes' 'a pattern with long repetitions' \
    "$run" -i short.ft --outputs logits --text large.txt --truncate

echo "1..$count"
