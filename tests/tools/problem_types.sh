# problem_types.sh - what labels of classifiers are to each other: one holds, each may hold, or they are
# quantities; from config.json to what ft-run, ft-eval and ft-inspect tell.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
inspect=$FT_BUILDDIR/ft-inspect
run=$FT_BUILDDIR/ft-run
make_classifier=$FT_BUILDDIR/tests/programs/make-classifier
make_tensors=$FT_BUILDDIR/tests/programs/make-tensors
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# classifier NAME LABELS [MEMBERS]: a checkpoint NAME and its float artifact NAME.ft.
classifier () {
    quietly "$make_classifier" "$1" "$2" "${3:-{\}}"
    quietly "$convert" -i "$1" -o "$1.ft" --dtype f32
}

# list KEY: the numbers of lists of that key in out, one a line.
list () {
    awk -v key="\"$1\":" '$1 == key && $2 == "[" { on = 1; next } /\]/ { on = 0 }
                          on { gsub(/,/, ""); print $1 }' out
}

# value KEY: of one number or word in out.
value () {
    sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" out | tr -d '"'
}

# near A B SENTENCE: two files have the same numbers, but for 1e-5.
near () {
    paste "$1" "$2" | awk '{ d = $1 - $2; far += NF != 2 || (d < 0 ? -d : d) > 1e-5 }
                           END { exit NR == 0 || far }'
    check $? "$3"
}

sigmoid='{ printf "%.8f\n", 1 / (1 + exp(-$1)) }'

multi='{"problem_type": "multi_label_classification"}'
identity='{"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}'
named='"id2label": {"0": "toxic", "1": "rude", "2": "kind"}'
classifier plain 3
classifier multi 3 "{\"problem_type\": \"multi_label_classification\", $named}"
classifier amounts 3 '{"problem_type": "regression"}'
classifier one 1
classifier raw 1 "$identity"
classifier single 1 '{"problem_type": "single_label_classification"}'
classifier number 1 '{"problem_type": "regression"}'

# ---- What is stored ------------------------------------------------------------------------------

shows () {
    is 0 "$1: ft-inspect shows the model" "$inspect" "$1.ft"
    says out "$2" "$1: ft-inspect shows $2"
}
shows plain '3 labels, single_label_classification'
shows multi '3 labels, multi_label_classification'
shows amounts '3 labels, regression'
shows one '1 label, multi_label_classification'
shows single '1 label, multi_label_classification'
shows raw '1 label, regression'
shows number '1 label, regression'
quietly "$make_classifier" wrong 3 '{"problem_type": "clustering"}'
is 1 'a problem_type that transformers does not know is refused' "$convert" -i wrong -o wrong.ft
says err 'problem_type is "clustering", expected "single_label_classification", "multi_label_classification" or "regression"' \
    'and the message says what is known'
quietly "$make_classifier" tanh 1 \
    '{"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}'
is 1 'an activation that this build does not apply is refused' "$convert" -i tanh -o tanh.ft
says err 'activation_fn is "torch.nn.modules.activation.Tanh", which may change the result' \
    'and the message names it'

# ---- What ft-run tells ---------------------------------------------------------------------------

is 0 'several labels that exclude each other are run' "$run" -i plain.ft --json 'a b c'
list logits | awk '{ e[NR] = exp($1); sum += e[NR]; if (e[NR] > most) most = e[NR] }
                   END { printf "%.8f\n", most / sum }' >expected
value probability >found
near found expected 'their probability is a softmax'

is 0 'labels that exclude nothing are run' "$run" -i multi.ft --json 'a b c'
test "$(value problem_type)" = multi_label_classification
check $? 'JSON names the problem_type'
list logits | awk "$sigmoid" >expected
list probabilities >found
near found expected 'each label has the probability that its sigmoid gives'
sort -g expected | tail -1 >most
value probability >found
near found most 'probability is that of the likeliest label'
awk 'BEGIN { split("toxic rude kind", name) }
     $1 > 0.5 { held = held sprintf("%s%s %.4f", held == "" ? "" : ", ", name[NR], $1) }
     END { print (held == "" ? "none" : held) "  a b c" }' expected >line
is 0 'and for people' "$run" -i multi.ft 'a b c'
same line out 'the line has every label above 0.5 with its probability'

is 0 'one label is run' "$run" -i one.ft --json 'a b c'
list logits | awk "$sigmoid" >expected
list probabilities >found
near found expected 'its probability is the sigmoid'
is 0 'and for people' "$run" -i one.ft 'a b c'
awk '{ printf "%-12s  %6.4f  a b c\n", "0", $1 }' expected >line
same line out 'the line has its probability, whether it is likely or not'

is 0 'a regression is run' "$run" -i number.ft --json 'a b c'
list logits >expected
test "$(value problem_type) $(grep -c probabilit out)" = 'regression 0'
check $? 'it has no probability'
is 0 'and for people' "$run" -i number.ft 'a b c'
awk '{ printf "%-12s  %.6g  a b c\n", "0", $1 }' expected >line
same line out 'the line has the number itself'
is 0 'a regression of several numbers is run' "$run" -i amounts.ft --json 'a b c'
list logits | awk '{ line = line sprintf("%s%d %.6g", (NR > 1 ? ", " : ""), NR - 1, $1) }
                   END { print line "  a b c" }' >line
is 0 'and for people' "$run" -i amounts.ft 'a b c'
same line out 'the line has all of them'

# ---- What ft-eval and ft-run measure ----------------------------------------------------------------

rows='input_ids:I32:4,4=2,5,6,3,2,7,8,3,2,9,10,3,2,11,12,3'
quietly "$make_tensors" ids.st "$rows"

# measured ARTIFACT KEY VALUE: ft-eval and ft-run -d tell it so, but for 1e-5.
measured () {
    for tool in "$eval" "$run"; do
        is 0 "$1: ${tool##*/} measures" "$tool" -i "$1" -d labels.st --json
        value "$2" >found
        echo "$3" >expected
        near found expected "$1: ${tool##*/} tells $2 as $3"
    done
}

is 0 'logits of data are run' "$run" -i multi.ft -d ids.st --json
list logits >logits
# The first label of the first row is turned: 11 of 12 labels and 3 of 4 rows are right.
truth=$(awk '{ printf "%s%d", (NR > 1 ? "," : ""), ($1 > 0) != (NR == 1) }' logits)
for dtype in I32 I64 F32; do
    quietly "$make_tensors" labels.st "$rows" "labels:$dtype:4,3=$truth"
    measured multi.ft accuracy 0.91666667
done
measured multi.ft exact_match 0.75
is 0 'ft-eval tells people' "$eval" -i multi.ft -d labels.st
says out 'accuracy 0.9167' 'the part of labels that are right'
says out 'exact_match 0.7500' 'and the part of rows where all are'

is 0 'logits of one label are run' "$run" -i one.ft -d ids.st --json
list logits >logits
truth=$(awk '{ printf "%s%d", (NR > 1 ? "," : ""), ($1 > 0) != (NR == 2) }' logits)
for shape in 4 4,1; do
    quietly "$make_tensors" labels.st "$rows" "labels:I32:$shape=$truth"
    measured one.ft accuracy 0.75
done

is 0 'numbers of data are run' "$run" -i number.ft -d ids.st --json
list logits >logits
truth=$(awk '{ printf "%s%.6f", (NR > 1 ? "," : ""), $1 + (NR % 2 ? 0.5 : -0.25) }' logits)
quietly "$make_tensors" labels.st "$rows" "labels:F32:4=$truth"
measured number.ft mse 0.15625
awk -v truth="$truth" 'BEGIN { split(truth, y, ",") }
    { x[NR] = $1; sx += $1; sy += y[NR] }
    END { for (i = 1; i <= NR; i++) { a = x[i] - sx / NR; b = y[i] - sy / NR
                                      xy += a * b; xx += a * a; yy += b * b }
          printf "%.8f\n", xy / sqrt(xx * yy) }' logits >correlation
measured number.ft pearson "$(cat correlation)"
is 0 'ft-eval tells people' "$eval" -i number.ft -d labels.st
says out 'mse 0.15625' 'the mean squared error'
grep -q accuracy out
test $? -eq 1
check $? 'and no accuracy, which quantities do not have'

# ---- Against another model -----------------------------------------------------------------------

for name in multi one number; do
    quietly "$calibrate" -q -i $name.ft -o $name.int8.ft -d ids.st
    is 0 "$name: ft-eval compares codes with float" "$eval" -i $name.int8.ft --against $name.ft \
        -d ids.st --json
    cp out compared
    is 0 "$name: and float with itself" "$eval" -i $name.ft --against $name.ft -d ids.st --json
done
test "$(value mse_against)" = 0.0
check $? 'a regression is at no distance from itself'
is 0 'labels that exclude nothing are compared' "$eval" -i multi.ft --against multi.ft -d ids.st --json
test "$(value kl_mean) $(value agreement)" = '0.0 1.0'
check $? 'and agree with themselves'
is 1 'kinds of labels are not compared' "$eval" -i multi.ft --against plain.ft -d ids.st
says err 'plain.ft: problem_type is single_label_classification, but multi.ft has multi_label_classification' \
    'the message says which they are'

# ---- Labels that do not fit ----------------------------------------------------------------------

# refused ARTIFACT LABELS TEXT SENTENCE
refused () {
    quietly "$make_tensors" bad.st "$rows" "labels:$2"
    is 1 "refused: $4" "$eval" -i "$1" -d bad.st
    says err "$3" 'the message says what was expected'
}
refused multi.ft I32:4=1 'bad.st: labels: shape [4], expected [4, 3]' 'classes for labels that exclude nothing'
refused multi.ft F32:4,3=0.5 'bad.st: labels[0][0] is 0.5, expected 0 or 1' 'a label that holds by half'
refused multi.ft I32:4,3=2 'bad.st: labels[0][0] is 2, expected 0 or 1' 'a label that holds twice'
refused number.ft F32:4,2=1 'bad.st: labels: shape [4, 2], expected [4] or [4, 1]' 'two numbers for one'
refused number.ft F32:4=nan 'bad.st: labels[0] is nan, expected a finite number' 'a label that is no number'
refused plain.ft F32:4=1 'bad.st: labels: dtype F32, expected I32 or I64' 'numbers for classes'

echo "1..$count"
