#!/bin/sh
# quickstart.sh - build FT, convert and calibrate a trained BERT, and classify with INT8.
#
#   sh samples/quickstart.sh ["a snippet of source code" ...]
#
# Installs the required packages (Debian 12, Ubuntu 24.04), builds in _build/, converts and calibrates
# the checkpoint in samples/source-language-bert, and classifies snippets of source code by language.
# If there is an NVIDIA GPU and nvcc, the model runs on the GPU.
# SPDX-License-Identifier: Apache-2.0
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/samples/packages.sh"
. "$top/samples/phases.sh"
. "$top/samples/device.sh"
model=$top/samples/source-language-bert
build=$top/_build
mkdir -p "$build"
cd "$build"

# phase NAME PROGRESS COMMAND...: run a phase; if it fails, print its output and exit.
phase() {
    ft_phase "$@" && return
    ft_output | tail -n 30
    exit 1
}

# configure OPTION...: unless the build folder is already configured with these options.
configure() {
    test -f Makefile && test "$(cat configured 2>/dev/null)" = "$*" && return
    (cd "$top" && { test -x configure || autoreconf -fi; }) &&
        "$top/configure" -q "$@" && echo "$*" >configured
}

convert() {
    ./ft-convert -q -i "$model" -o source-language.ft -f
}

calibrate() {
    ./ft-calibrate -i source-language.ft -o source-language.int8.ft \
        --text "$model/calibration.txt" --device "$ft_device" -f
}

# measure FILE: print "accuracy N" for the labeled snippets.
measure() {
    ./ft-eval -i "$1" --text "$model/evaluation.jsonl" --device "$ft_device"
}

ft_begin "$build/quickstart.log" "Building FT"
ft_choose_device
phase packages ft_unknown ft_install $ft_packages
phase configure ft_unknown configure $ft_configure
phase build ft_made ft_make
phase convert ft_unknown convert
ft_try_device ./ft-inspect --plan source-language.ft
phase calibrate ft_unknown calibrate
phase float ft_unknown measure source-language.ft
float=$(ft_output | awk '$1 == "accuracy" { print $2 }')
phase int8 ft_unknown measure source-language.int8.ft
int8=$(ft_output | awk '$1 == "accuracy" { print $2 }')
echo "Total: $(ft_seconds "$ft_began"), computed on $ft_device ($ft_why)"

echo
echo "Accuracy on 480 snippets outside the calibration data"
echo "  float  $float"
echo "  int8   $int8"
echo
echo "Language predicted by the int8 model, probability, snippet"
if test $# = 0; then
    ./ft-run -i source-language.int8.ft --device "$ft_device" --text "$top/samples/snippets.txt"
else
    ./ft-run -i source-language.int8.ft --device "$ft_device" -- "$@"
fi
