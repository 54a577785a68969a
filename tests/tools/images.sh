# images.sh - a ViT from checkpoint to classes: convert, calibrate, run, judge; image files.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
run=$FT_BUILDDIR/ft-run
. "$FT_SRCDIR/tests/lib/tap.sh"

cd "$dir" || exit 99
images=$FT_SRCDIR/tests/golden/images
quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" vit model
sample=$dir/model
reference=$sample/reference.safetensors

# ---- From checkpoint to codes -------------------------------------------------------------------

is 0 'a ViT becomes an artifact' "$FT_BUILDDIR/ft-convert" -i model -o float.ft
accurate 1 float.ft 'which finds the classes that transformers finds'
is 0 'it is calibrated' "$FT_BUILDDIR/ft-calibrate" -i float.ft -o int8.ft -d "$reference" -t 1
accurate 1 int8.ft 'its codes find them too'
is 0 'on two threads' "$FT_BUILDDIR/ft-calibrate" -i float.ft -o again.ft -d "$reference" -t 2
same int8.ft again.ft 'it becomes the same bytes'
is 1 'a residual stream of codes is refused' "$FT_BUILDDIR/ft-calibrate" -i float.ft -o no.ft \
    -d "$reference" --residual int8
says err 'float.ft: the residual stream of family vit is not normalized and stays float' \
    'it says why'
is 0 'the plan cuts images into codes' "$FT_BUILDDIR/ft-inspect" --plan int8.ft
says out 'patches     embed.patches  T x 48  I8' 'by one operation'

# ---- The same bits ------------------------------------------------------------------------------

outputs="logits,last_hidden_state"
quietly "$run" -i int8.ft -d "$reference" -o int8.st --outputs $outputs
quietly "$run" -i int8.ft -d "$reference" -o other.st --outputs $outputs --fake
same int8.st other.st 'faked codes give the same bits'
quietly "$run" -i int8.ft -d "$reference" -o other.st -f --outputs $outputs --no-fuse
same int8.st other.st 'operations one by one give the same bits'
quietly "$run" -i int8.ft -d "$reference" -o int8.st -f --outputs last_hidden_state
quietly "$run" -i int8.ft -d "$reference" -o other.st -f --outputs last_hidden_state \
    --max-tokens 20 -t 1
same int8.st other.st 'two images at a time, on one thread, too: all but the head, which is float'

# ---- Judging ------------------------------------------------------------------------------------

is 0 'ft-eval judges classes' "$FT_BUILDDIR/ft-eval" -i int8.ft -d "$reference" --against float.ft
says out '3 rows, 30 tokens, 3 predictions' 'of all images'
says out 'accuracy 1.0000' 'by their labels'
is 0 'ft-bench times images' "$FT_BUILDDIR/ft-bench" --roofline 1,1,1,1 -i int8.ft -b 2 -r 1 -q
says out '      2      10      20 ' 'which have as many tokens as rows'
is 1 'of no other length' "$FT_BUILDDIR/ft-bench" --roofline 1,1,1,1 -i int8.ft -b 2 -l 64 -r 1 -q
says err '--length, --fill and --decode apply to text models, but int8.ft is a vision model' 'it says so'

# ---- A trained model ----------------------------------------------------------------------------

sample=$FT_MODELS/digits-vit
if test -d "$sample"; then
    quietly "$FT_BUILDDIR/ft-convert" -i "$sample" -o digits.ft
    accurate 0.9777 digits.ft 'digits-vit is as accurate as in transformers'
    quietly "$FT_BUILDDIR/ft-calibrate" -i digits.ft -o digits.int8.ft \
        -d "$sample/calibration.safetensors"
    accurate 0.966 digits.int8.ft 'its codes are nearly as accurate'
else
    skip "no checkpoint digits-vit in $FT_MODELS"
fi

# ---- Image files --------------------------------------------------------------------------------

if ! grep -q 'define HAVE_LIBPNG' "$FT_BUILDDIR/config.h" ||
    ! grep -q 'define HAVE_LIBJPEG' "$FT_BUILDDIR/config.h"; then
    skip 'this build has no libpng or no libjpeg'
    echo "1..$count"
    exit
fi
is 0 'images are classified' "$run" -i float.ft --image "$images/rgb.png" "$images/photo.jpg" \
    --image "$images/gray.jpg"
test "$(wc -l <out)" -eq 3 && test "$(grep -c '^LABEL_[0-9]  *0\.[0-9]*  /.*/images/' out)" -eq 3
check $? 'a line for each: class, probability, file'
is 0 'and for programs' "$run" -i int8.ft --image "$images/rgb.png" --json -o json.st
says out '"sequences": 1' 'as an object'
for bad in bad-cmyk.jpg:'colours are CMYK, expected grey' expected.txt:'is neither a PNG nor a JPEG'
do
    is 1 "${bad%%:*} is refused" "$run" -i float.ft --image "$images/rgb.png" "$images/${bad%%:*}"
    says err "${bad%%:*}: ${bad#*:}" 'by its name'
done
head -c 500 "$images/rgb.png" >half.png
is 1 'half an image is refused' "$run" -i float.ft --image half.png
says err 'half.png: the file ends too early' 'by its name'
is 1 'a missing one too' "$run" -i float.ft --image nowhere.png
says err 'nowhere.png: cannot open: No such file or directory' 'by its name'
is 1 'texts are refused' "$run" -i float.ft 'a text'
says err 'float.ft: is a vision model: use --image' 'with advice'
is 2 'data and images at once are refused' "$run" -i float.ft -d "$reference" --image half.png
says err 'give either -d FILE, --text FILE, --image FILE or texts' 'with what there is'
is 2 'an image is not overwritten' "$run" -i float.ft --image half.png -o half.png -f
says err 'half.png' 'by its name'

echo '{"size": 31}' >model/preprocessor_config.json
quietly "$FT_BUILDDIR/ft-convert" -i model -o small.ft
is 1 'a processor of another size is refused' "$run" -i small.ft --image "$images/rgb.png"
says err 'rgb.png: has 31 x 31 pixels after preprocessing, but the model expects 12 x 12' 'with both sizes'
echo '{"do_pad": true}' >model/preprocessor_config.json
quietly "$FT_BUILDDIR/ft-convert" -i model -o pad.ft
is 1 'one that does more is refused' "$run" -i pad.ft --image "$images/rgb.png"
says err 'preprocessor_config.json: do_pad: found true' 'by the name of what it does'
rm model/preprocessor_config.json
is 0 'without one a model converts' "$FT_BUILDDIR/ft-convert" -i model -o bare.ft
says err 'no preprocessor_config.json: the artifact will take pixel values, but no image files' \
    'with a note'
is 1 'but reads no files' "$run" -i bare.ft --image "$images/rgb.png"
says err 'bare.ft: has no preprocessor_config.json: give pixel_values' 'and says so'

echo "1..$count"
