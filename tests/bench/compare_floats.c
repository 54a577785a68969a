/*
 * compare_floats.c - the processor's peak of float fused multiply-adds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/compare.h"
#include "tests/bench/measure.h"

#if defined __x86_64__
#define ZMM(i) "vfmadd231ps %%zmm31, %%zmm30, %%zmm" #i "\n\t"
#define YMM(i) "vfmadd231ps %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define TWELVE_CLOBBERS                                                                            \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

__attribute__((target("avx512f"))) static double zmm_operations(long loops)
{
    long left = loops;
    __asm__ volatile("vpxorq %%zmm30, %%zmm30, %%zmm30\n\tvpxorq %%zmm31, %%zmm31, %%zmm31\n\t"
                     "1:\n\t" TWELVE(ZMM) "dec %0\n\tjnz 1b"
                     : "+r"(left)
                     :
                     : TWELVE_CLOBBERS, "xmm30", "xmm31");
    return (double) loops * 12 * 32;
}

__attribute__((target("avx2"))) static double ymm_operations(long loops)
{
    long left = loops;
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15\n\t"
                     "1:\n\t" TWELVE(YMM) "dec %0\n\tjnz 1b"
                     : "+r"(left)
                     :
                     : TWELVE_CLOBBERS, "xmm14", "xmm15");
    return (double) loops * 12 * 16;
}
#endif

static double operations_of(const void *job, int thread)
{
    const ft_isa *isa = job;
    (void) thread;
#if defined __x86_64__
    if (*isa >= FT_ISA_AVX512VNNI)
        return zmm_operations(20000);
    if (*isa >= FT_ISA_AVX2)
        return ymm_operations(40000);
#else
    (void) isa;
#endif
    return 0.0;
}

double peak_of_floats(ft_isa isa, int threads)
{
    double start = seconds_by(threads);
    double operations = sum_by_threads(threads, operations_of, &isa);
    return operations / (seconds_by(threads) - start);
}
