# image_bounds.sh - ft-run refuses small hostile image files within 1 s of CPU time and 256 MB, and
# reads large valid ones.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"
. "$FT_SRCDIR/tests/lib/bounded.sh"

sample=$FT_MODELS/digits-vit
if ! test -d "$sample"; then
    echo "1..0 # SKIP no checkpoint digits-vit in $FT_MODELS"
    exit
fi
if ! grep -q 'define HAVE_LIBPNG' "$FT_BUILDDIR/config.h" ||
    ! grep -q 'define HAVE_LIBJPEG' "$FT_BUILDDIR/config.h"; then
    echo "1..0 # SKIP this build reads no PNG or no JPEG images"
    exit
fi
cd "$dir" || exit 99
mkdir model
cp "$sample/config.json" "$sample/model.safetensors" model
echo '{"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}' \
    >model/preprocessor_config.json
quietly "$FT_BUILDDIR/ft-convert" -i model -o vit.ft

# bytes NUMBER...: one byte for each number.
bytes () {
    for number; do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\$(printf %03o "$number")"
    done
}

# number16 N, number32 N: N in two or four bytes, big-endian.
number16 () {
    bytes $(($1 >> 8)) $(($1 & 255))
}
number32 () {
    number16 $(($1 >> 16))
    number16 $(($1 & 65535))
}

# nothing COUNT: that many zero bytes.
nothing () {
    head -c "$1" /dev/zero
}

# repeat TIMES FILE: the file's contents that many times.
repeat () {
    yes "$2" 2>yes.err | head -n "$1" | xargs cat
}

# ---- Files that are not images ------------------------------------------------------------------

refused '/dev/zero: is neither a PNG nor a JPEG image' 'an endless file of zeros' \
    "$run" -i vit.ft --image /dev/zero
mkfifo png jpeg || exit 99

# ---- PNG ----------------------------------------------------------------------------------------

# chunk TYPE <DATA: a chunk of a PNG.  gzip provides the checksum, in little-endian order.
chunk () {
    { printf %s "$1"; cat; } >chunk.data
    number32 $(($(wc -c <chunk.data) - 4))
    cat chunk.data
    # shellcheck disable=SC2046 # four numbers
    set -- $(gzip -nc chunk.data | tail -c 8 | od -An -tu1 -N4)
    bytes "$4" "$3" "$2" "$1"
}

# compressed BYTES: that many zeros compressed by zlib; their checksum is the count, and 1.
compressed () {
    bytes 120 218
    nothing "$1" | gzip -nc9 | tail -c +11 | head -c -8
    number16 $(($1 % 65521))
    number16 1
}

# header WIDTH HEIGHT DEPTH COLOR INTERLACED: a PNG up to its first data chunk.
header () {
    bytes 137 80 78 71 13 10 26 10
    { number32 "$1"; number32 "$2"; bytes "$3" "$4" 0 0 "$5"; } | chunk IHDR
}

# with FILE CHUNKS: a small image with these chunks after the header.
with () {
    { header 1 1 8 2 0; cat "$2"; bytes 120 1 1 4 0 251 255 0 9 9 9 0 58 0 28 | chunk IDAT
        : | chunk IEND; } >"$1"
}

{ printf 'k\0\0'; compressed 7900000; } >text
for type in zTXt iCCP; do
    chunk $type <text >one
    repeat 800 one >chunks
    with $type.png chunks
    accepted "a PNG with 800 $type chunks of 8 MB each, compressed to 8 KB," \
        "$run" -i vit.ft --image $type.png
done
{ printf 'k\0\1\0\0\0'; compressed 7900000; } | chunk iTXt >one
repeat 800 one >chunks
with iTXt.png chunks
accepted 'a PNG with 800 iTXt chunks of 8 MB each, compressed to 8 KB,' \
    "$run" -i vit.ft --image iTXt.png
for type in tEXt sPLT abCd IDAT; do
    { test $type = IDAT || printf 'k\0\10abcdef'; } | chunk $type >one
    repeat 1000 one >thousand
    repeat 200 thousand >chunks
    with $type.png chunks
    accepted "a PNG with 200000 $type chunks" "$run" -i vit.ft --image $type.png
done

# sized NAME WIDTH HEIGHT DEPTH COLOR INTERLACED [BYTES]: a PNG with that many zero bytes of data.
sized () {
    name=$1
    shift
    { header "$1" "$2" "$3" "$4" "$5"; compressed "${6:-10}" | chunk IDAT; : | chunk IEND; } >"$name"
}

sized tall.png 1 8388608 1 0 0
refused 'tall.png: 1 x 8388608 pixels, at most 65536 per side are supported' \
    'a PNG with 8 million rows' \
    "$run" -i vit.ft --image tall.png
sized wide.png 65537 1 1 0 1
refused 'wide.png: 65537 x 1 pixels' 'a PNG with one row of 65537 pixels' \
    "$run" -i vit.ft --image wide.png
sized gray.png 32768 2049 1 0 0
refused 'gray.png: 32768 x 2049 pixels, at most 67108864 are supported' \
    'a PNG with more pixels than the limit' \
    "$run" -i vit.ft --image gray.png
sized deep.png 8192 8192 16 6 0
refused 'deep.png: decoding needs 512 MiB, the limit is 224' \
    'a PNG with 16-bit samples that needs 512 MiB' \
    "$run" -i vit.ft --image deep.png
sized rows.png 1 65536 8 2 1 262144
accepted 'an interlaced PNG with 65536 rows' "$run" -i vit.ft --image rows.png
sized photo.png 6000 4000 8 2 0 72004000
accepted 'a PNG with 24 million pixels' "$run" -i vit.ft --image photo.png
{ header 1 1 8 2 0; number32 2147483647; printf tEXt; exec cat /dev/zero; } >png 2>cat.err &
refused 'png: is larger than 128 MiB, the limit for images' 'a PNG that never ends' \
    "$run" -i vit.ft --image png

# ---- JPEG ---------------------------------------------------------------------------------------

# segment MARKER <DATA
segment () {
    cat >segment.data
    bytes 255 "$1"
    number16 $(($(wc -c <segment.data) + 2))
    cat segment.data
}

# begun WIDTH HEIGHT COMPONENTS: a progressive JPEG up to its first scan.  In a scan of the first
# coefficient a zero bit leaves one block unchanged; in others 15 zero bits leave 16384 unchanged.
begun () {
    bytes 255 216
    { bytes 0; nothing 64 | tr '\0' '\1'; } | segment 219
    { bytes 8; number16 "$2"; number16 "$1"; bytes "$3"
        for component in 1 2 3; do
            test $component -gt "$3" || bytes $component 17 0
        done; } | segment 194
    { bytes 0 1; nothing 16; } | segment 196
    { bytes 16 1; nothing 15; bytes 224; } | segment 196
}

# scan FIRST LAST BYTES: a scan of these coefficients that changes nothing.
scan () {
    bytes 1 1 0 "$1" "$2" 0 | segment 218
    nothing "$3"
}

# scans NAME WIDTH HEIGHT COUNT: a gray JPEG with that many scans.
scans () {
    blocks=$((($2 + 7) / 8 * (($3 + 7) / 8)))
    scan 1 63 $((((blocks + 16383) / 16384 * 15 + 7) / 8)) >one
    { begun "$2" "$3" 1; scan 0 0 $(((blocks + 7) / 8)); repeat $(($4 - 1)) one
        bytes 255 217; } >"$1"
}

scans many.jpg 64 64 100000
refused 'many.jpg: has more than 200 scans, the limit for this size' \
    'a JPEG with 100000 scans' "$run" -i vit.ft --image many.jpg
scans large.jpg 6400 6400 200
refused 'large.jpg: has more than 13 scans, the limit for this size' \
    'a large JPEG with 200 scans' "$run" -i vit.ft --image large.jpg
scans few.jpg 6400 6400 13
accepted 'a JPEG with 41 million pixels in 13 scans' "$run" -i vit.ft --image few.jpg
scans small.jpg 640 640 200
accepted 'a small JPEG with 200 scans' "$run" -i vit.ft --image small.jpg
{ begun 6000 6000 3; scan 0 0 10; } >coefficients.jpg
refused 'coefficients.jpg: decoding needs 308 MiB, the limit is 224' \
    'a JPEG whose coefficients need 308 MiB' "$run" -i vit.ft --image coefficients.jpg
{ begun 65535 65535 1; scan 0 0 10; } >wide.jpg
refused 'wide.jpg: ' 'a JPEG with 65535 x 65535 pixels' "$run" -i vit.ft --image wide.jpg
{ bytes 255 216 255; exec cat /dev/zero; } >jpeg 2>cat.err &
refused 'jpeg: is larger than 128 MiB, the limit for images' 'a JPEG that never ends' \
    "$run" -i vit.ft --image jpeg
{ begun 64 64 1; scan 0 0 3; } >cut.jpg
refused 'cut.jpg: Premature end of JPEG file' 'a truncated JPEG' "$run" -i vit.ft --image cut.jpg

echo "1..$count"
