# cuda_libraries.sh - which files use CUB, cuRAND and cuBLAS, by their sources and by the linker's symbols.
#
# Device-wide algorithms of CUB are kernels of its own, which have symbols.  Its block and warp primitives are
# inlined into ours and leave none, neither in the host object nor in the device code; only the source names
# them.  A new use here needs a figure in docs/experiments, as a primitive by hand does.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "${FT_SRCDIR:-.}" || exit 99
. tests/lib/tap.sh
build=${FT_BUILDDIR:-build}

# listed FILE SENTENCE: the lines of FILE are those of standard input, in any order.
listed () {
    sort >"$dir/expected"
    sort -u "$1" | diff "$dir/expected" - >"$dir/difference"
    check $? "$2"
    sed -n 's/^</# missing: /p; s/^>/# unexpected: /p' "$dir/difference"
}

# "FILE PRIMITIVE"
find kernels runtime convert calibrate \( -name '*.cu' -o -name '*.cuh' -o -name '*.[ch]' \) \
    -exec grep -oE 'cub::[A-Z][A-Za-z]*' /dev/null {} + | sed 's/:cub::/ /' >"$dir/primitives"
listed "$dir/primitives" 'the sources use the listed primitives of CUB, and no others' <<EOF
kernels/cuda/sampling/beam_candidates.cu BlockReduce
EOF

# "FILE HEADER"
find kernels runtime convert calibrate \( -name '*.cu' -o -name '*.cuh' -o -name '*.[ch]' \) \
    -exec grep -oE 'include *<cub/[^>]*' /dev/null {} + | sed 's/:include *</ /' >"$dir/headers"
listed "$dir/headers" 'a file includes the headers of the primitives that it uses, and no others of CUB' <<EOF
kernels/cuda/sampling/beam_candidates.cu cub/block/block_reduce.cuh
EOF

# "OBJECT SYMBOL": what the objects of the CUDA backend define and import.  Libtool places them in .libs.
find "$build/kernels/cuda" -name '*.o' 2>/dev/null >"$dir/objects"
if test ! -s "$dir/objects"; then
    for i in 1 2 3; do skip 'this build has no CUDA backend'; done
    echo "1..$count"
    exit 0
fi
xargs nm -A -C --defined-only <"$dir/objects" 2>/dev/null | grep -E 'cub::.*(Kernel|kernel)' >"$dir/kernels"
listed "$dir/kernels" 'no object has a device-wide algorithm of CUB, which would allocate and launch on its own' </dev/null

xargs nm -A -u <"$dir/objects" 2>/dev/null | sed "s,^$build/,,; s,\.libs/,,; s/\.o:.* U / /" >"$dir/imports"
sed -n 's/ curand.*/ cuRAND/p; s/ cublasLt.*/ cuBLASLt/p; s/ cublas[A-Z].*/ cuBLAS/p' "$dir/imports" >"$dir/libraries"
listed "$dir/libraries" 'the listed objects call cuRAND, cuBLAS and cuBLASLt, and no others do' <<EOF
kernels/cuda/gemm/int8/cublaslt cuBLASLt
kernels/cuda/gemm/linear_float cuBLAS
kernels/cuda/host/backend cuBLAS
kernels/cuda/host/exec cuBLAS
kernels/cuda/host/fill_normal cuRAND
kernels/cuda/quantize/blas cuBLAS
kernels/cuda/quantize/quantizer cuBLAS
kernels/cuda/tune/benchmark_candidate cuBLASLt
kernels/cuda/tune/benchmark_cublaslt cuBLASLt
kernels/cuda/tune/benchmark_gemm cuBLASLt
kernels/cuda/tune/operand_sets cuBLAS
EOF

sed -n 's/^.* \(curand.*\)/\1/p' "$dir/imports" >"$dir/calls"
listed "$dir/calls" 'the CUDA backend calls the listed functions of cuRAND, on the device and on the host' <<EOF
curandCreateGenerator
curandCreateGeneratorHost
curandDestroyGenerator
curandGenerateNormal
curandSetGeneratorOffset
curandSetPseudoRandomGeneratorSeed
EOF
echo "1..$count"
