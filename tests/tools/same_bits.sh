# same_bits.sh - artifacts, counters, reports and results are the same on every instruction set, and
# with the variants of libm for processors without FMA.
#
# tests/aarch64.sh compares this build with one for another processor: $FT_CROSS_BUILDDIR, whose
# programs run by the command $FT_CROSS_RUN.  $FT_CROSS_SETS lists its instruction sets, and
# $FT_CROSS_FEW, if not empty, asks for fewer comparisons.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
convert=$FT_BUILDDIR/ft-convert
calibrate=$FT_BUILDDIR/ft-calibrate
eval=$FT_BUILDDIR/ft-eval
run=$FT_BUILDDIR/ft-run
sample=$FT_SRCDIR/samples/source-language-bert
. "$FT_SRCDIR/tests/lib/tap.sh"
unset FT_CPU GLIBC_TUNABLES
cd "$dir" || exit 99

machines='amx avx512vnni avxvnni avx2 generic generic-libm'
test -z "${FT_CROSS_BUILDDIR-}" || machines=$(printf 'cross-%s ' $FT_CROSS_SETS)

# crossed COMMAND...: runs it with the tools of the other build.
crossed () {
    for argument; do
        shift
        case $argument in
        "$FT_BUILDDIR"/ft-*) set -- "$@" $FT_CROSS_RUN "$FT_CROSS_BUILDDIR/${argument##*/}" ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    "$@"
}

# on MACHINE COMMAND...: runs it as on that machine; returns 77 if this one cannot.
on () {
    machine=$1
    shift
    (
        case $machine in
        this) ;;
        *-libm)
            GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA FT_CPU=${machine%-libm}
            export GLIBC_TUNABLES FT_CPU
            ;;
        *) FT_CPU=${machine#cross-} && export FT_CPU ;;
        esac
        case $machine in cross-*) set -- crossed "$@" ;; esac
        "$@"
    ) >out 2>err
    found=$?
    test $found -ne 0 && grep -q 'not supported by this processor' err && return 77
    return $found
}

# untimed COMMAND...: prints the output of the command without the lines that report times.
untimed () {
    "$@" >timed || return
    grep -vE "second|, [0-9.]+ m?s" timed
    return 0
}

# compared SENTENCE FILE... -- COMMAND...: the files that the command writes, and its output, are the
# same on every machine.
compared () {
    sentence=$1 files=out
    shift
    while test "$1" != --; do
        files="$files $1"
        shift
    done
    shift
    for machine in this $machines; do
        on $machine "$@"
        found=$?
        if test $found -eq 77; then
            skip "$sentence: $(cut -d ' ' -f 2- err)"
            continue
        elif test $found -ne 0; then
            check 1 "$sentence with FT_CPU=$machine"
            show err
            continue
        fi
        for file in $files; do
            if test $machine = this; then
                cp "$file" "expected-$file"
            else
                cmp "expected-$file" "$file" >&2 || found=1
            fi
        done
        test $machine = this || check $found "$sentence the same bytes with FT_CPU=$machine"
    done
}

compare_decoder () {
    for options; do
        pad=
        case $options in *w8a8-block*|*a16*) pad=--group-pad ;; esac
        compared "ft-calibrate $options of a decoder writes" new.ft report.json -- \
            "$calibrate" -f -i decoder.ft -o new.ft -d rows.st --samples 6 --report report.json \
            --json $options $pad
        compared "ft-eval of a decoder with $options prints" -- \
            untimed "$eval" -i new.ft --against decoder.ft -d rows.st --json
    done
}

compare_encoder () {
    for options; do
        compared "ft-calibrate $options of an encoder writes" new.ft report.json -- \
            "$calibrate" -f -i encoder.ft -o new.ft -d some.st \
            --samples 3 --eval few.st --report report.json --json $options
    done
}

# ---- A decoder ----------------------------------------------------------------------------------

ids=$(awk 'BEGIN { for (i = 0; i < 256; i++) printf "%s%d", i ? "," : "", i * 37 % 251 + i * i % 11 }')
quietly "$FT_BUILDDIR/tests/programs/make-decoder" decoder 7
quietly "$convert" -q -i decoder -o decoder.ft
compared 'ft-convert of a decoder writes' new.ft -- "$convert" -q -f -i decoder -o new.ft
compared 'ft-convert --rotate of a decoder writes' new.ft -- "$convert" -q -f -i decoder -o new.ft --rotate
quietly "$FT_BUILDDIR/tests/programs/make-tensors" rows.st "input_ids:I32:8,32=$ids"
compare_decoder '' '--scheme w8a8-block' '--scheme w8a16 --group 0 --clip imatrix' \
    '--scheme w4a16 --asym --round gptq' '--scheme w4a16 --round gptaq'
test -n "${FT_CROSS_FEW-}" ||
    compare_decoder '-m max' '-m percentile' '-m mse' '-m entropy' '--head int8' \
        '--scheme w8a8-dynamic' '--scheme w4a16 --scale awq' \
        '--scheme w4a16 --clip imatrix --scale awq --round gptq'
compared 'ft-run generates with a float decoder' -- \
    untimed "$run" -i decoder.ft --max-new-tokens 8 'abc' 'a longer prompt' --json

# ---- An encoder ---------------------------------------------------------------------------------

if test -f "$sample/model.safetensors"; then
    quietly "$convert" -q -i "$sample" -o encoder.ft
    compared 'ft-convert of an encoder writes' new.ft -- "$convert" -q -f -i "$sample" -o new.ft
    quietly "$FT_BUILDDIR/tests/programs/pick-rows" "$sample/reference.safetensors" few.st 0:4
    quietly "$FT_BUILDDIR/tests/programs/pick-rows" "$sample/calibration.safetensors" some.st 0:8
    # Targets are compared with the decoder; an emulator takes minutes for them here.
    compare_encoder "${FT_CROSS_FEW:+--target none}"
    test -n "${FT_CROSS_FEW-}" ||
        compare_encoder '--residual int8' '--tensor up=w8a16' \
            '--scheme w4a16 --clip imatrix --scale awq --round gptq'
    compared 'ft-calibrate --save-counters writes' counts -- \
        "$calibrate" -f -i encoder.ft -d some.st --samples 3 \
        --save-counters counts -q
    compared 'ft-run of a float encoder writes' results.st -- \
        untimed "$run" -f -i encoder.ft -d few.st -o results.st
    compared 'ft-run prints classes' -- untimed "$run" -i encoder.ft --json 'int main(void)' 'def f(x):'
    compared 'ft-eval of an encoder writes' -- untimed "$eval" -i new.ft --against encoder.ft -d few.st --json
fi
echo "1..$count"
