# problem_types.sh - exclusive labels, independent labels and regression: from config.json to the
# output of ft-run, ft-eval and ft-inspect.
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

# list KEY: the numbers in the lists of that key in out, one per line.
list () {
    awk -v key="\"$1\":" '$1 == key && $2 == "[" { on = 1; next } /\]/ { on = 0 }
                          on { gsub(/,/, ""); print $1 }' out
}

# value KEY: a number or string in out.
value () {
    sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" out | tr -d '"'
}

# near A B SENTENCE: two files have the same numbers within 1e-5.
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

# ---- The artifact --------------------------------------------------------------------------------

shows () {
    is 0 "$1: ft-inspect lists the model" "$inspect" "$1.ft"
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
is 1 'ft-convert refuses a problem_type that transformers does not have' \
    "$convert" -i wrong -o wrong.ft
says err 'problem_type: found "clustering", expected "single_label_classification", "multi_label_classification" or "regression"' \
    'ft-convert lists the known problem types'
quietly "$make_classifier" tanh 1 \
    '{"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}'
is 1 'ft-convert refuses an unsupported activation of the logits' "$convert" -i tanh -o tanh.ft
says err 'activation_fn is "torch.nn.modules.activation.Tanh", which may change the result' \
    'ft-convert names the unsupported activation'

# ---- The output of ft-run ------------------------------------------------------------------------

is 0 'ft-run classifies with exclusive labels' "$run" -i plain.ft --json 'a b c'
list logits | awk '{ e[NR] = exp($1); sum += e[NR]; if (e[NR] > most) most = e[NR] }
                   END { printf "%.8f\n", most / sum }' >expected
value probability >found
near found expected 'the probability of an exclusive label is a softmax'

is 0 'ft-run classifies with independent labels' "$run" -i multi.ft --json 'a b c'
test "$(value problem_type)" = multi_label_classification
check $? 'the JSON contains the problem_type'
list logits | awk "$sigmoid" >expected
list probabilities >found
near found expected 'the probability of an independent label is the sigmoid of its logit'
sort -g expected | tail -1 >most
value probability >found
near found most 'the JSON field probability is that of the most likely label'
awk 'BEGIN { split("toxic rude kind", name) }
     $1 > 0.5 { held = held sprintf("%s%s %.4f", held == "" ? "" : ", ", name[NR], $1) }
     END { print (held == "" ? "none" : held) "  a b c" }' expected >line
is 0 'ft-run prints independent labels as text' "$run" -i multi.ft 'a b c'
same line out 'ft-run prints every label above 0.5 with its probability'

is 0 'ft-run classifies with a single label' "$run" -i one.ft --json 'a b c'
list logits | awk "$sigmoid" >expected
list probabilities >found
near found expected 'the probability of a single label is the sigmoid of its logit'
is 0 'ft-run prints a single label as text' "$run" -i one.ft 'a b c'
awk '{ printf "%-12s  %6.4f  a b c\n", "0", $1 }' expected >line
same line out 'ft-run prints the probability of a single label even if it is small'

is 0 'ft-run evaluates a regression model' "$run" -i number.ft --json 'a b c'
list logits >expected
test "$(value problem_type) $(grep -c probabilit out)" = 'regression 0'
check $? 'the JSON of a regression contains no probability'
is 0 'ft-run prints a regression as text' "$run" -i number.ft 'a b c'
awk '{ printf "%-12s  %.6g  a b c\n", "0", $1 }' expected >line
same line out 'ft-run prints the value of a regression'
is 0 'ft-run evaluates a regression with several values' "$run" -i amounts.ft --json 'a b c'
list logits | awk '{ line = line sprintf("%s%d %.6g", (NR > 1 ? ", " : ""), NR - 1, $1) }
                   END { print line "  a b c" }' >line
is 0 'ft-run prints a regression with several values as text' "$run" -i amounts.ft 'a b c'
same line out 'ft-run prints all values of a regression'

# ---- The metrics of ft-eval and ft-run -----------------------------------------------------------

rows='input_ids:I32:4,4=2,5,6,3,2,7,8,3,2,9,10,3,2,11,12,3'
quietly "$make_tensors" ids.st "$rows"

# measured ARTIFACT KEY VALUE: ft-eval and ft-run -d report that value within 1e-5.
measured () {
    for tool in "$eval" "$run"; do
        is 0 "$1: ${tool##*/} evaluates the data" "$tool" -i "$1" -d labels.st --json
        value "$2" >found
        echo "$3" >expected
        near found expected "$1: ${tool##*/} reports $2 as $3"
    done
}

is 0 'ft-run prints logits of independent labels' "$run" -i multi.ft -d ids.st --json
list logits >logits
# The first label of the first row is flipped: 11 of 12 labels and 3 of 4 rows are right.
truth=$(awk '{ printf "%s%d", (NR > 1 ? "," : ""), ($1 > 0) != (NR == 1) }' logits)
for dtype in I32 I64 F32; do
    quietly "$make_tensors" labels.st "$rows" "labels:$dtype:4,3=$truth"
    measured multi.ft accuracy 0.91666667
done
measured multi.ft exact_match 0.75
is 0 'ft-eval prints metrics of independent labels' "$eval" -i multi.ft -d labels.st
says out 'accuracy 0.9167' 'accuracy is the fraction of labels that are right'
says out 'exact_match 0.7500' 'exact_match is the fraction of rows whose labels are all right'
matches out '^micro_f1 0\.[0-9]*$' 'ft-eval prints the micro F1 of independent labels'
matches out '^macro_f1 0\.[0-9]*$' 'ft-eval prints the macro F1 of independent labels'

is 0 'ft-run prints logits of a single label' "$run" -i one.ft -d ids.st --json
list logits >logits
truth=$(awk '{ printf "%s%d", (NR > 1 ? "," : ""), ($1 > 0) != (NR == 2) }' logits)
for shape in 4 4,1; do
    quietly "$make_tensors" labels.st "$rows" "labels:I32:$shape=$truth"
    measured one.ft accuracy 0.75
done

is 0 'ft-run prints values of a regression' "$run" -i number.ft -d ids.st --json
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
is 0 'ft-eval prints metrics of a regression' "$eval" -i number.ft -d labels.st
says out 'mse 0.15625' 'ft-eval prints the mean squared error of a regression'
matches out '^spearman -*[01]\.[0-9]*$' 'ft-eval prints the rank correlation of a regression'
grep -q accuracy out
test $? -eq 1
check $? 'ft-eval prints no accuracy for a regression'

# ---- Against another model -----------------------------------------------------------------------

for name in multi one number; do
    quietly "$calibrate" -q -i $name.ft -o $name.int8.ft -d ids.st
    is 0 "$name: ft-eval compares the int8 model with the float model" \
        "$eval" -i $name.int8.ft --against $name.ft \
        -d ids.st --json
    cp out compared
    is 0 "$name: ft-eval compares the float model with itself" \
        "$eval" -i $name.ft --against $name.ft -d ids.st --json
done
test "$(value mse_against)" = 0.0
check $? 'a regression model has no mean squared error against itself'
is 0 'ft-eval compares a model with independent labels with itself' \
    "$eval" -i multi.ft --against multi.ft -d ids.st --json
test "$(value kl_mean) $(value agreement)" = '0.0 1.0'
check $? 'a model with independent labels fully agrees with itself'
is 1 'ft-eval refuses to compare models with different problem types' \
    "$eval" -i multi.ft --against plain.ft -d ids.st
says err 'plain.ft: problem_type is single_label_classification, but multi.ft has multi_label_classification' \
    'ft-eval names both problem types'

# ---- Invalid labels ------------------------------------------------------------------------------

# refused ARTIFACT LABELS TEXT SENTENCE: ft-eval refuses the labels, and its message contains TEXT.
refused () {
    quietly "$make_tensors" bad.st "$rows" "labels:$2"
    is 1 "ft-eval refuses $4" "$eval" -i "$1" -d bad.st
    says err "$3" "the message of ft-eval for $4 says: $3"
}
refused multi.ft I32:4=1 'bad.st: labels: shape [4], expected [4, 3]' \
    'class ids for independent labels'
refused multi.ft F32:4,3=0.5 'bad.st: labels[0][0] is 0.5, expected 0 or 1' \
    'an independent label of 0.5'
refused multi.ft I32:4,3=2 'bad.st: labels[0][0] is 2, expected 0 or 1' 'an independent label of 2'
refused number.ft F32:4,2=1 'bad.st: labels: shape [4, 2], expected [4] or [4, 1]' \
    'two values per row for a regression with one value'
refused number.ft F32:4=nan 'bad.st: labels[0] is nan, expected a finite number' \
    'a regression label that is NaN'
refused plain.ft F32:4=1 'bad.st: labels: dtype F32, expected I32 or I64' 'floats for class ids'

echo "1..$count"
