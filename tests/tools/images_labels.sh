# images_labels.sh - ft-calibrate and ft-eval read image files, folders of them, and folders of classes:
# the same bytes as from pixel values, accuracy, and their errors.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
if ! grep -q 'define HAVE_LIBPNG' "$FT_BUILDDIR/config.h" ||
    ! grep -q 'define HAVE_LIBJPEG' "$FT_BUILDDIR/config.h"; then
    echo '1..0 # SKIP this build has no libpng or no libjpeg'
    exit
fi
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
golden=$FT_SRCDIR/tests/golden/images
LC_ALL=C
export LC_ALL
cd "$dir" || exit 99

# gives METRIC VALUE SENTENCE: the last evaluation printed this metric.
gives () {
    matches out "^$1 $2\$" "$3"
}

# fails STATUS TEXT SENTENCE COMMAND...: the command fails with this message and writes nothing.
fails () {
    status=$1 text=$2 sentence=$3
    shift 3
    rm -rf no.ft no.counters
    is "$status" "$sentence fails" "$@"
    says err "$text" "$sentence fails with a message that says what is wrong"
    test ! -e no.ft && test ! -e no.counters
    check $? "$sentence leaves no output behind"
}

# ---- A model of eight classes -------------------------------------------------------------------

# numbers COUNT: that many numbers between -1 and 1, separated by commas.
numbers () {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++)
            printf "%s%g", i ? "," : "", ((i * i * 37 + i) % 41 - 20) / 20
    }'
}

# The weights are those of a random ViT without classes, and a classifier in a file of its own.  Pixel
# values are multiples of 1/256, so that they can be written exactly.
quietly "$FT_BUILDDIR/tests/programs/make-checkpoint" vit hidden vit
mv vit/model.safetensors vit/body.safetensors
quietly "$make_tensors" vit/head.safetensors "classifier.weight:F32:8,32=$(numbers 256)" \
    classifier.bias:F32:8=0
{ echo '{"weight_map": {'
    head -c 8000 vit/body.safetensors | grep -ao '"[a-z][^"]*":{' | sed 's/:{/: "body.safetensors",/'
    echo '"classifier.weight": "head.safetensors", "classifier.bias": "head.safetensors"}}'
} >vit/model.safetensors.index.json
names='{"0": "cat", "1": "dog", "2": "bird", "3": "fish", "4": "tench, Tinca tinca", "5": "crane",'
names="$names \"6\": \"crane\", \"7\": \"frog\"}"
sed "s/\"ViTModel\"]/\"ViTForImageClassification\"], \"id2label\": $names/" vit/config.json >config.json
mv config.json vit/config.json
echo '{"size": 12, "resample": 2, "rescale_factor": 0.00390625, "do_normalize": false}' \
    >vit/preprocessor_config.json
quietly "$convert" -i vit -o vit.ft --dtype f32

# ---- The same bytes as from pixel values --------------------------------------------------------

# pixels FILE...: the pixel values of these images as Pillow makes them, [N, 3, 12, 12].
pixels () {
    for image; do
        grep "^$image 12 12 2 0 " "$golden/expected.txt"
    done | awk 'function digit(c) { return index("0123456789abcdef", c) - 1 }
        { for (c = 0; c < 3; c++)
              for (i = c; i < 432; i += 3)
                  printf "%s%.8f", n++ ? "," : "",
                      (16 * digit(substr($6, 2 * i + 1, 1)) + digit(substr($6, 2 * i + 2, 1))) / 256 }'
}

mkdir flat
for image in rgb square thin wide bits; do
    cp "$golden/$image.png" flat
done
: >flat/.hidden
quietly "$make_tensors" flat.safetensors \
    "pixel_values:F32:5,3,12,12=$(pixels bits.png rgb.png square.png thin.png wide.png)"
is 0 'ft-run reads a folder of images' "$run" -i vit.ft --image flat
test "$(sed 's|.*/flat/||; s|.* flat/||' out | tr '\n' ' ')" = \
    'bits.png rgb.png square.png thin.png wide.png '
check $? 'the images of a folder are sorted by name, and hidden files are left out'
quietly "$run" -i vit.ft --image flat -o images.st
quietly "$run" -i vit.ft -d flat.safetensors -o pixels.st
same images.st pixels.st 'ft-run gives the same logits for image files and for their pixel values'
quietly "$run" -i vit.ft --image flat -o passes.st --max-tokens 20
same images.st passes.st 'images in several forward passes give the same logits'

is 0 'ft-calibrate reads a folder of images' "$calibrate" -i vit.ft --image flat -o images.ft
says out '5 calibration samples' 'without held-out images, observed ones are evaluated'
quietly "$calibrate" -i vit.ft -d flat.safetensors -o pixels.ft
same_model images.ft pixels.ft 'image files give the model that their pixel values give'
set -- flat/bits.png flat/rgb.png flat/square.png flat/thin.png flat/wide.png
is 0 'ft-calibrate reads image files' "$calibrate" -q -i vit.ft -t 2 -o files.ft --image "$@"
same_model files.ft images.ft 'images named one by one give the model that their folder gives'
quietly "$calibrate" -q -i vit.ft --image flat -o gptq.ft --scheme w4a16 --group-pad --round gptq
quietly "$calibrate" -q -i vit.ft -d flat.safetensors -o other.ft --scheme w4a16 --group-pad \
    --round gptq
same_model gptq.ft other.ft 'GPTQ on image files gives the model that it gives on their pixel values'

# ---- Counters and held-out images ---------------------------------------------------------------

is 0 'ft-calibrate counts the first images' \
    "$calibrate" -q -i vit.ft --image flat --samples 2 --save-counters 1.counters
is 0 'ft-calibrate counts the other images' \
    "$calibrate" -q -i vit.ft --image flat --samples 2:5 --save-counters 2.counters
is 0 'ft-calibrate merges the counters of images' \
    "$calibrate" -q -i vit.ft -o merged.ft --merge 1.counters 2.counters
same_model merged.ft images.ft 'merged counters of images give the model of all images'
quietly "$calibrate" -q -i vit.ft -d flat.safetensors --samples 2:5 --save-counters pixels.counters
same 2.counters pixels.counters 'images have the counters of their pixel values'
fails 1 '2.counters' 'merging the same images twice' \
    "$calibrate" -q -i vit.ft -o no.ft --merge pixels.counters 2.counters
is 0 'counters are merged and evaluated on images' \
    "$calibrate" -i vit.ft -n --image flat --merge 1.counters 2.counters
is 0 'images that were not observed are evaluated' "$calibrate" -i vit.ft --image flat --samples 2 -n
says out '3 held-out samples' 'the report counts the images that were not observed'
is 0 'a folder of held-out images is evaluated' \
    "$calibrate" -i vit.ft --image flat/rgb.png flat/thin.png --eval flat -n
says out '5 held-out samples' 'the report counts the images of the held-out folder'
fails 1 'flat: has 5 samples, but --samples asks for 2 to 8' 'a range beyond the images' \
    "$calibrate" -i vit.ft --image flat --samples 2:9 -o no.ft
fails 1 'flat/bits.png and the images after it: are 5 samples' 'a range beyond several files' \
    "$calibrate" -i vit.ft --samples 2:9 -o no.ft --image "$@"

# ---- Classes ------------------------------------------------------------------------------------

# class FOLDER FILE...: images of a class.
class () {
    mkdir -p "classes/$1"
    for image in $2; do
        cp "$golden/$image" "classes/$1"
    done
}
class 3 'alpha.png clear.png'
class 5 gray.png
class cat 'rgb.png square.png deep.png'
class dog 'photo.jpg wide.png'
class 'tench, Tinca tinca' 'thin.png one.png flat.png'
echo '3 3 5 0 0 0 1 1 4 4 4' >labels

# The fractions of images whose label is the most likely one, and one of the five most likely ones.
"$run" -i vit.ft --image classes --json >classes.json
awk 'NR == FNR { images = split($0, label, " "); next }
     /"logits"/ { row++; n = -1 }
     n < 0 && /^ *-?[0-9]/ { logit[row, size[row]++] = $1 + 0 }
     /\]/ { n = 0 }
     END {
         for (row = 1; row <= images; row++) {
             above = 0
             for (i = 0; i < 8; i++)
                 above += logit[row, i] > logit[row, label[row]]
             right += above == 0
             near += above < 5
         }
         printf "%.4f %.4f %d\n", right / images, near / images, size[1] * row
     }' labels classes.json >expected
read -r accuracy top5 values <expected
test "$values" -eq 96 # eight logits, eleven images
check $? 'ft-run prints the logits of all images of all classes'
awk '{ exit !(0 < $1 && $1 < $2 && $2 < 1) }' expected
check $? 'some images are right, more are among the five best, and some are not'
sed 's/^/# /' expected

is 0 'ft-eval reads folders of classes' "$eval" -i vit.ft --image classes
says out '11 rows, 110 tokens, 11 predictions' 'ft-eval counts images'
gives accuracy "$accuracy" 'the accuracy of images is that of the most likely class of ft-run'
gives top5_accuracy "$top5" 'the top-5 accuracy is that of the five most likely classes of ft-run'
is 0 'ft-eval reads several folders' "$eval" -i vit.ft --image classes --image classes --json
says out '"rows": 22' 'the images of all folders are evaluated'
is 0 'two models are compared on images' "$eval" -i images.ft --against vit.ft --image flat
matches out '^top1_agreement [01]\.' 'images without classes need a baseline alone'
quietly "$calibrate" -q -i vit.ft --image classes -o int8.ft --report report.json
awk -v expected="$accuracy" '/"accuracy_float"/ { found = sprintf("%.4f", $2 + 0) }
    END { exit found != expected }' report.json
check $? 'ft-calibrate reports the accuracy of the images that have classes'

# ---- Errors -------------------------------------------------------------------------------------

fails 1 'flat/bits.png: no labels; put the images of each class into a folder' \
    'evaluating images without classes' "$eval" -i vit.ft --image flat/bits.png
mkdir empty sparse few
mkdir sparse/cat few/cat few/dog
: >empty/.hidden
cp flat/rgb.png few/cat
fails 1 'empty: holds no visible files, expected PNG or JPEG images, or a folder of them' \
    'an empty folder' "$calibrate" -i vit.ft --image empty -o no.ft
fails 1 'few/dog: holds no visible files' 'an empty class' "$eval" -i vit.ft --image few
fails 1 'missing: cannot open: No such file or directory' 'a missing folder' \
    "$eval" -i vit.ft --image missing
mkdir sparse/cat/deep
fails 1 'sparse/cat/deep: is a folder, expected the images of class "cat"' \
    'a folder in the folder of a class' "$eval" -i vit.ft --image sparse
mkdir -p strange/wolf indices/8 double/crane
cp flat/rgb.png strange/wolf
cp flat/rgb.png indices/8
cp flat/rgb.png double/crane
fails 1 'strange/wolf/rgb.png: found the class "wolf", expected a name of the model' \
    'an unknown class' "$eval" -i vit.ft --image strange
says err 'id2label (the first is "cat") or an index below 8' \
    'the message names the first class and the number of classes'
fails 1 'found the class "8"' 'an index that is no label' \
    "$calibrate" -i vit.ft --image indices -o no.ft
fails 1 'the class "crane" is the name of the labels 5 and 6: name the folder by the index' \
    'a name of two classes' "$eval" -i vit.ft --image double
is 0 'ft-run does not read labels' "$run" -i vit.ft --image strange double
cp -r classes mixed
cp flat/rgb.png mixed
fails 1 'mixed/rgb.png: has no class, but mixed/3/alpha.png has one: give images alone' \
    'a mixture of classes and images' "$eval" -i vit.ft --image mixed
fails 1 'has no class, but' 'an image next to a folder of classes' \
    "$calibrate" -i vit.ft -o no.ft --image classes flat/rgb.png
is 0 'ft-run reads a mixture of classes and images' "$run" -i vit.ft --image mixed
cp -r flat notes
echo 'a text' >notes/readme.txt
fails 1 'notes/readme.txt: is neither a PNG nor a JPEG image' 'a text file among images' \
    "$calibrate" -i vit.ft --image notes -o no.ft
mkdir damaged
cp flat/*.png damaged
head -c 500 flat/rgb.png >damaged/rgb.png
fails 1 'damaged/rgb.png: the file ends too early' 'a damaged image' \
    "$calibrate" -i vit.ft --image damaged -o no.ft --save-counters no.counters
fails 1 'damaged/rgb.png: the file ends too early' 'a damaged image of GPTQ' \
    "$calibrate" -i vit.ft --image damaged -o no.ft --scheme w4a16 --group-pad --round gptq
fails 1 'damaged/rgb.png: the file ends too early' 'a damaged held-out image' \
    "$calibrate" -i vit.ft --image flat --eval damaged -o no.ft
fails 1 'damaged/rgb.png: the file ends too early' 'evaluating a damaged image' \
    "$eval" -i vit.ft --against images.ft --image damaged
fails 1 'damaged/rgb.png: the file ends too early' 'ft-run with a damaged image' \
    "$run" -i vit.ft --image damaged -o no.ft
cp -r flat kept
fails 1 'kept/thin.png' 'replacing an image of a folder' \
    "$calibrate" -i vit.ft --image kept -o kept/thin.png -f
fails 2 'kept/thin.png' 'replacing an image' \
    "$calibrate" -i vit.ft -f --save-counters kept/thin.png --image kept/rgb.png kept/thin.png
fails 1 'kept/thin.png' 'replacing a held-out image' \
    "$calibrate" -i vit.ft --image flat --eval kept -o kept/thin.png -f
fails 1 'kept/thin.png' 'replacing an image of ft-run' \
    "$run" -i vit.ft --image kept -o kept/thin.png -f
cmp flat/thin.png kept/thin.png
check $? 'an image that is an input stays as it is'
mkfifo pipe || exit 99
fails 1 'pipe: is not a regular file, but samples are read several times' 'a pipe as a sample' \
    "$calibrate" -i vit.ft --image pipe -o no.ft
cat flat/rgb.png >pipe &
is 0 'ft-run reads an image from a pipe' "$run" -i vit.ft --image pipe

fails 2 'give either -d FILE, --text FILE or --image FILE' 'images together with pixel values' \
    "$calibrate" -i vit.ft -d flat.safetensors -o no.ft --image flat
fails 2 'give either -d FILE, --text FILE or --image FILE' 'images together with texts' \
    "$eval" -i vit.ft --text classes.json --image flat
fails 2 'operands are counters files, after --merge, or images, after --image' \
    'an operand without --image' "$calibrate" -i vit.ft -d flat.safetensors -o no.ft flat
fails 2 '--ctx splits the rows of -d: images have one length' '--ctx with images' \
    "$eval" -i vit.ft --ctx 4 --image flat
quietly "$FT_BUILDDIR/tests/programs/make-classifier" bert 3
quietly "$convert" -i bert -o bert.ft
fails 1 'bert.ft: a model of family bert reads texts, not images' 'images for a model of texts' \
    "$calibrate" -i bert.ft --image flat -o no.ft
fails 1 'bert.ft: a model of family bert reads texts, not images' \
    'evaluating a model of texts on images' "$eval" -i bert.ft --image flat
sed 's/"id2label"/"problem_type": "multi_label_classification", &/' vit/config.json >config.json
mv config.json vit/config.json
quietly "$convert" -i vit -o multi.ft --dtype f32
fails 1 'multi.ft: has the problem_type multi_label_classification, but the folder of' \
    'classes for a model of several labels' "$eval" -i multi.ft --image classes
is 0 'images without classes calibrate a model of several labels' \
    "$calibrate" -q -i multi.ft --image flat -n

echo "1..$count"
