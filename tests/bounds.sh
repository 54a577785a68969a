# bounds.sh - small hostile inputs are refused within a second and 256 MB, and large real ones are not.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
bounded=$FT_BUILDDIR/tests/bounded
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# refused TEXT WHAT COMMAND...: the command fails in time, and says TEXT.
refused () {
    text=$1 what=$2
    shift 2
    is 1 "$what is refused within a second and 256 MB" "$bounded" "$@"
    says err "$text" "the refusal of $what says: $text"
}

# accepted WHAT COMMAND...: the command works, within the same bounds.
accepted () {
    what=$1
    shift
    is 0 "$what takes less than a second and 256 MB" "$bounded" "$@"
}

# zeros MEBIBYTES: that many letters "0", without a line end.
zeros () {
    head -c $(($1 << 20)) /dev/zero | tr '\0' 0
}

quietly "$FT_BUILDDIR/ft-convert" -i "$FT_SRCDIR/samples/source-language-bert" -o bert.ft
quietly "$FT_BUILDDIR/tests/make-decoder" decoder 7
quietly "$FT_BUILDDIR/ft-convert" -i decoder -o decoder.ft

# ---- Texts --------------------------------------------------------------------------------------

refused '/dev/zero: line 1 holds a NUL at byte 0, expected text' 'an endless file of zeros' \
    "$run" -i bert.ft --text /dev/zero
refused '/dev/zero: line 1 holds a NUL at byte 0, expected text' 'the same as one text' \
    "$run" -i bert.ft --text /dev/zero --whole
refused '/dev/urandom: line ' 'an endless file of noise' "$run" -i bert.ft --text /dev/urandom
mkfifo line lines newlines messages || exit 99
tr '\0' a </dev/zero >line 2>tr.err &
refused 'standard input: line 1 is longer than the 16 MiB that a text may have' \
    'a line without end' "$run" -i bert.ft --text - <line
yes 'a text' >lines 2>yes.err &
refused 'the texts up to here are more than the 128 MiB that are read at once' \
    'a list of lines without end' "$run" -i bert.ft --text - <lines
tr '\0' '\n' </dev/zero >newlines 2>tr.err &
refused 'standard input: is larger than the 16 MiB that a text may have' \
    'a whole text without end' "$run" -i bert.ft --text - --whole <newlines
{ echo a line; exec tr '\0' a </dev/zero; } >messages 2>tr.err &
refused 'standard input: line 2 is longer' 'a message without end' \
    "$run" -i decoder.ft --chat --max-new-tokens 1 <messages

printf 'fine\nalso fine \303\244\nnot \377fine\nfine\n' >bad8.txt
refused 'bad8.txt: line 3: byte 4 is 0xff, expected valid UTF-8' 'a line that is not UTF-8' \
    "$run" -i bert.ft --text bad8.txt
refused 'bad8.txt: line 3: byte 4 is 0xff, expected valid UTF-8' 'a file that is not UTF-8' \
    "$run" -i bert.ft --text bad8.txt --whole
refused 'standard input: line 3: byte 4 is 0xff, expected valid UTF-8' 'a message that is not UTF-8' \
    "$run" -i decoder.ft --chat --max-new-tokens 1 <bad8.txt
refused 'text 2: byte 4 is 0xff, expected valid UTF-8' 'an argument that is not UTF-8' \
    "$run" -i bert.ft fine "$(sed -n 3p bad8.txt)"

{ zeros 16; echo; echo also; } >long.txt
accepted 'a line of 16 MiB' "$run" -i bert.ft --text long.txt --truncate
test "$(wc -l <out)" -eq 2
check $? 'the line after one of 16 MiB is read too'
{ zeros 16; echo 0; } >long.txt
refused 'long.txt: line 1 is longer than the 16 MiB' 'a line of 16 MiB and a byte' \
    "$run" -i bert.ft --text long.txt --truncate

echo "1..$count"
