#!/bin/sh
# quickstart.sh - build FT and take a trained BERT from its checkpoint to INT8 answers.
#
#   sh samples/quickstart.sh ["a snippet of source code" ...]
#
# Installs the packages it needs (Debian 12, Ubuntu 24.04), builds in _build/, converts and
# calibrates the checkpoint in samples/source-language-bert, and tells in which language the
# snippets are written.
# SPDX-License-Identifier: Apache-2.0
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/samples/packages.sh"
model=$top/samples/source-language-bert
build=$top/_build

ft_install $ft_packages

cd "$top"
test -x configure || autoreconf -fi >/dev/null 2>&1
mkdir -p "$build"
cd "$build"
echo "Building in $build ..."
test -f Makefile || ../configure -q --with-cuda=no >/dev/null
make -s -j"$(nproc)" >make.log 2>&1 || { tail -n 30 make.log >&2; exit 1; }

echo "1. Convert: safetensors to a float artifact"
./ft-convert -i "$model" -o source-language.ft -f

echo "2. Calibrate: sample data to an INT8 artifact"
./ft-calibrate -i source-language.ft -o source-language.int8.ft -d "$model/calibration.safetensors" -f

echo "3. Run: accuracy on the reference snippets, float and INT8"
./ft-run -i source-language.ft -d "$model/reference.safetensors"
./ft-run -i source-language.int8.ft -d "$model/reference.safetensors"

echo "4. Classify"
if test $# = 0; then
    set -- 'int main(int argc, char **argv) { printf("%d\n", argc); return 0; }' \
        'template <typename T> std::vector<T> sorted(std::vector<T> v);' \
        'def greet(name): return f"hello {name}"' \
        'my %count; while (<STDIN>) { chomp; $count{$_}++; }' \
        'for f in *.txt; do mv "$f" "${f%.txt}.md"; done' \
        'add_executable(app main.c) target_link_libraries(app PRIVATE m)'
fi
./ft-run -i source-language.int8.ft "$@"
