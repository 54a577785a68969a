# images.sh - a ViT from checkpoint to classes: convert, calibrate, run, evaluate; and image files.
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

# ---- From checkpoint to int8 artifact -----------------------------------------------------------

is 0 'ft-convert converts a ViT' "$FT_BUILDDIR/ft-convert" -i model -o float.ft
accurate 1 float.ft 'the float ViT predicts the classes that transformers predicts'
is 0 'ft-calibrate calibrates a ViT' \
    "$FT_BUILDDIR/ft-calibrate" -i float.ft -o int8.ft -d "$reference" -t 1
accurate 1 int8.ft 'the int8 ViT predicts the classes that transformers predicts'
is 0 'ft-calibrate calibrates a ViT with two threads' \
    "$FT_BUILDDIR/ft-calibrate" -i float.ft -o again.ft -d "$reference" -t 2
same int8.ft again.ft 'calibration of a ViT writes the same bytes with one and two threads'
is 1 'ft-calibrate refuses --residual int8 for a ViT' \
    "$FT_BUILDDIR/ft-calibrate" -i float.ft -o no.ft \
    -d "$reference" --residual int8
says err 'float.ft: the residual stream of family vit is not normalized and stays float' \
    'ft-calibrate says that the residual stream of a ViT stays float'
is 0 'ft-inspect --plan shows the plan of an int8 ViT' "$FT_BUILDDIR/ft-inspect" --plan int8.ft
says out 'patchify         embed.patches  T x 48  I8' \
    'one operation extracts and quantizes the patches of an image'

# ---- Identical results --------------------------------------------------------------------------

outputs="logits,last_hidden_state"
quietly "$run" -i int8.ft -d "$reference" -o int8.st --outputs $outputs
quietly "$run" -i int8.ft -d "$reference" -o other.st --outputs $outputs --fake
same int8.st other.st 'a ViT gives the same bits with fake quantization'
quietly "$run" -i int8.ft -d "$reference" -o other.st -f --outputs $outputs --no-fuse
same int8.st other.st 'a ViT gives the same bits without fused operations'
quietly "$run" -i int8.ft -d "$reference" -o int8.st -f --outputs last_hidden_state
quietly "$run" -i int8.ft -d "$reference" -o other.st -f --outputs last_hidden_state \
    --max-tokens 20 -t 1
same int8.st other.st \
    'the hidden states of a ViT have the same bits with two images per batch and one thread'

# ---- Evaluation ---------------------------------------------------------------------------------

is 0 'ft-eval compares an int8 ViT with the float ViT' \
    "$FT_BUILDDIR/ft-eval" -i int8.ft -d "$reference" --against float.ft
says out '3 rows, 30 tokens, 3 predictions' 'ft-eval counts images, tokens and predictions of a ViT'
says out 'accuracy 1.0000' 'ft-eval computes the accuracy of a ViT from the labels'
is 0 'ft-bench times a ViT artifact' "$FT_BUILDDIR/ft-bench" --roofline 1,1,1,1 -i int8.ft -b 2 -r 1 -q
says out '      2      10      20 ' 'ft-bench lists images with their number of tokens'
is 1 'ft-bench refuses --length for a ViT' "$FT_BUILDDIR/ft-bench" --roofline 1,1,1,1 -i int8.ft -b 2 -l 64 -r 1 -q
says err '--length, --fill and --decode apply to text models, but int8.ft is a vision model' \
    'ft-bench says that the options apply to text models'

# ---- A trained model ----------------------------------------------------------------------------

sample=$FT_MODELS/digits-vit
if test -d "$sample"; then
    quietly "$FT_BUILDDIR/ft-convert" -i "$sample" -o digits.ft
    accurate 0.9777 digits.ft 'digits-vit has the accuracy of transformers'
    quietly "$FT_BUILDDIR/ft-calibrate" -i digits.ft -o digits.int8.ft \
        -d "$sample/calibration.safetensors"
    accurate 0.966 digits.int8.ft 'digits-vit has an accuracy of at least 0.966 with int8'
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
is 0 'ft-run --image classifies PNG and JPEG files' \
    "$run" -i float.ft --image "$images/rgb.png" "$images/photo.jpg" \
    --image "$images/gray.jpg"
test "$(wc -l <out)" -eq 3 && test "$(grep -c '^LABEL_[0-9]  *0\.[0-9]*  /.*/images/' out)" -eq 3
check $? 'ft-run prints class, probability and file name for each image'
is 0 'ft-run --image --json classifies an image' \
    "$run" -i int8.ft --image "$images/rgb.png" --json -o json.st
says out '"sequences": 1' 'the JSON contains the number of images'
for bad in bad-cmyk.jpg:'colours are CMYK, expected grey' expected.txt:'is neither a PNG nor a JPEG'
do
    is 1 "ft-run --image refuses ${bad%%:*}" \
        "$run" -i float.ft --image "$images/rgb.png" "$images/${bad%%:*}"
    says err "${bad%%:*}: ${bad#*:}" "ft-run --image names ${bad%%:*} and the error"
done
head -c 500 "$images/rgb.png" >half.png
is 1 'ft-run --image refuses a truncated PNG' "$run" -i float.ft --image half.png
says err 'half.png: the file ends too early' 'ft-run --image says that the PNG file ends too early'
is 1 'ft-run --image refuses a file that does not exist' "$run" -i float.ft --image nowhere.png
says err 'nowhere.png: cannot open: No such file or directory' \
    'ft-run --image names the file that does not exist'
is 1 'ft-run refuses texts for a ViT' "$run" -i float.ft 'a text'
says err 'float.ft: is a vision model: use --image' 'ft-run suggests --image for a ViT'
is 2 'ft-run refuses -d together with --image' "$run" -i float.ft -d "$reference" --image half.png
says err 'give either -d FILE, --text FILE, --image FILE or texts' \
    'ft-run lists the possible inputs'
is 2 'ft-run refuses to overwrite an input image' "$run" -i float.ft --image half.png -o half.png -f
says err 'half.png' 'ft-run names the image that would be overwritten'

echo '{"size": 31}' >model/preprocessor_config.json
quietly "$FT_BUILDDIR/ft-convert" -i model -o small.ft
is 1 'ft-run refuses images that preprocessing scales to another size than the model expects' \
    "$run" -i small.ft --image "$images/rgb.png"
says err 'rgb.png: has 31 x 31 pixels after preprocessing, but the model expects 12 x 12' \
    'ft-run names the size after preprocessing and the expected size'
echo '{"do_pad": true}' >model/preprocessor_config.json
quietly "$FT_BUILDDIR/ft-convert" -i model -o pad.ft
is 1 'ft-run refuses an image processor with unsupported steps' \
    "$run" -i pad.ft --image "$images/rgb.png"
says err 'preprocessor_config.json: do_pad: found true' \
    'ft-run names the unsupported step of the image processor'
rm model/preprocessor_config.json
is 0 'ft-convert converts a ViT without preprocessor_config.json' \
    "$FT_BUILDDIR/ft-convert" -i model -o bare.ft
says err 'no preprocessor_config.json: the artifact will take pixel values, but no image files' \
    'ft-convert notes that preprocessor_config.json is missing'
is 1 'ft-run --image refuses an artifact without preprocessor_config.json' \
    "$run" -i bare.ft --image "$images/rgb.png"
says err 'bare.ft: has no preprocessor_config.json: give pixel_values' \
    'ft-run suggests pixel_values for an artifact without preprocessor_config.json'

echo "1..$count"
