# tables.sh - tables fit in 100 columns, or in $COLUMNS, for any names in them.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
inspect=$FT_BUILDDIR/ft-inspect
run=$FT_BUILDDIR/ft-run
bench=$FT_BUILDDIR/ft-bench
make_checkpoint=$FT_BUILDDIR/tests/programs/make-checkpoint
make_sample=$FT_BUILDDIR/tests/programs/make-sample
export OMP_WAIT_POLICY=passive
unset FT_CPU COLUMNS
cd "$dir" || exit 99

# fits COLUMNS TABLE COMMAND...: no line after the first empty line, where tables begin, is wider.
fits () {
    most=$1 sentence=$2
    shift 2
    is 0 "$sentence: the command exits with 0" env COLUMNS="$most" "$@"
    awk -v most="$most" 'length > most && behind { wide = 1; print "# " $0 }
                         /^$/ { behind = 1 } END { exit wide || !behind }' "$dir/out"
    check $? "$sentence: the table fits in $most columns"
}

# ---- Names of tensors ---------------------------------------------------------------------------

quietly "$make_checkpoint" translator model
quietly "$convert" -q -i model -o m.ft
quietly "$calibrate" -q -i m.ft -o blocks.ft --scheme w4a16 --asym --group-pad
quietly "$calibrate" -q -i m.ft -o int8.ft -d model/reference.safetensors
for columns in 100 72; do
    fits $columns 'tensors of an encoder-decoder' "$inspect" m.ft
    fits $columns 'tensors of a group-wise artifact' "$inspect" blocks.ft
done
"$inspect" blocks.ft >out
grep -q '^decoder\.layer\.1\.cross\.out\.weight  *linear  ' out
check $? '100 columns are enough for the longest tensor name of an encoder-decoder'

very=$(printf 'very.%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22)long
quietly "$make_sample" long.ft int8 1 "$very.weight"
fits 100 'a tensor with a name of 121 characters' "$inspect" long.ft
grep -q '^very\.very\.[a-z.]*\.\.[a-z.]*ery\.long\.weight ' out
check $? 'ft-inspect abbreviates a long tensor name in the middle'
"$inspect" --json long.ft | grep -qF "\"$very.weight\""
check $? 'ft-inspect --json prints long tensor names in full'
is 0 'ft-inspect --amax lists the ranges of an artifact' env COLUMNS=72 "$inspect" --amax int8.ft
awk 'length > 72 { wide = 1; print "# " $0 } END { exit wide || NR < 20 }' out
check $? 'the table of ranges fits in 72 columns'

# ---- Reports of calibration ---------------------------------------------------------------------

# report SCHEME OPTION...: the report of a dry run fits in 100 columns.
report () {
    sentence=$1
    shift
    is 0 "$sentence: ft-calibrate -n prints a report" "$calibrate" -n -i m.ft "$@"
    awk 'length > 100 { wide = 1; print "# " $0 } END { exit wide || NR < 20 }' out
    check $? "$sentence: the report fits in 100 columns"
}
report 'int8 weights and activations' -d model/reference.safetensors
report 'group-wise weights' --scheme w4a16 --group-pad
report 'group-wise weights with imatrix, AWQ and GPTQ' \
    -d model/reference.safetensors --scheme w4a16 --asym --group-pad \
    --clip imatrix --scale awq --round gptq
report 'w8a8 with group-wise weights' -d model/reference.safetensors --tensor 'ffn=w4a16' --group-pad --round gptq
grep -q '^decoder\.layer\.1\.cross\.out\.weight  *w8a8 ' out
check $? 'the report prints the longest matrix name in full'

# ---- Labels -------------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" classes 3 \
    '{"id2label": {"0": "short", "1": "a label of some length, in words", "2": "c"}}'
quietly "$convert" -q -i classes -o c.ft
printf '%s\n' a b c d e f g h i j k l 'a b' 'c d' 'e f' 'g h' 'i j' 'k l' >texts
is 0 'ft-run classifies the lines of a file' "$run" -i c.ft --text texts
awk '{ match($0, /[01]\.[0-9][0-9][0-9][0-9]  [a-l]/); place[RSTART] = 1 }
     END { for (p in place) n++; exit n != 1 || p != 35 }' out
check $? 'the probabilities are aligned after the longest label'

# ---- Timings ------------------------------------------------------------------------------------

time_of () {
    what=$1
    shift
    fits 100 "$what" "$bench" --roofline 1.234,0.123,12.3,12.3 -b 1 -r 1 -t 1 "$@"
}
time_of 'timings of an encoder' -i c.ft -l 8
time_of 'timings of operations' -i c.ft -l 8 --ops
time_of 'timings of GEMMs' --shape minilm --scheme w8a8-block -l 9 --gemm
time_of 'timings of beam search' -i m.ft --decode 4
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -q -i decoder -o d.ft
time_of 'timings of decode steps' -i d.ft --decode 4

echo "1..$count"
