/*
 * wgmma_f16.cuh - warpgroup-level f16 and bf16 wgmma, sm_90a only.
 *
 * As in wgmma.cuh, c[4j + i] is row 16w + g + 8 (i / 2), column 8j + 2t + i % 2; one instruction
 * covers 16 k. Operands in shared memory are panels of 128-byte rows (64 elements) with 16-byte
 * chunk c of row r at c ^ (r % 8). The rows are rows of a or b (K-major, ft_wgmma_descriptor()) or
 * the k of b (MN-major, ft_wgmma_descriptor_trans()). Source: PTX ISA, "Asynchronous warpgroup
 * level matrix multiply-accumulate operation".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_WGMMA_F16_CUH
#define FT_KERNELS_CUDA_PTX_WGMMA_F16_CUH

#include "kernels/cuda/ptx/wgmma.cuh"

#ifdef FT_HAS_WGMMA

/*
 * Descriptor of an MN-major b; columns beyond 64 are in a panel `panel` bytes further. Add 128 for
 * the next 16 k.
 */
__device__ __forceinline__ uint64_t ft_wgmma_descriptor_trans(const void *shared, int panel)
{
    return ft_wgmma_descriptor(shared) | (uint64_t) (panel >> 4) << 16;
}

/*
 * Compiler fence: no use of the accumulators may move above it, since the wait updates them behind
 * the compiler's back.
 */
template <int n> __device__ __forceinline__ void ft_wgmma_fence_acc(float (&c)[n])
{
#pragma unroll
    for (int i = 0; i < n; i++)
        asm volatile("" : "+f"(c[i])::"memory");
}

/*
 * Write four 8 x 8 matrices of 16-bit elements to shared memory: lane l gives the address of row
 * l % 8 of matrix l / 8, and holds columns 2t and 2t + 1 of row g of each, as an accumulator does.
 */
__device__ __forceinline__ void ft_stmatrix_x4(uint32_t address, const uint32_t (&matrix)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

/* c [64, N] = (add ? c : 0) + a . b^T for 16 k, both operands in shared memory. */
template <int N, bool bf16>
__device__ __forceinline__ void ft_wgmma_f16(float (&c)[N / 2], uint64_t a, uint64_t b, int add);

/* The same with MN-major b: ft_wgmma_descriptor_trans(). */
template <int N, bool bf16>
__device__ __forceinline__ void ft_wgmma_f16_trans_b(float (&c)[N / 2], uint64_t a, uint64_t b,
                                                     int add);

/*
 * c [64, N] += a . b with MN-major b; a [64, 16] in registers in the layout of ft_mma_f16(),
 * which must not change until the wgmma completes.
 */
template <int N, bool bf16>
__device__ __forceinline__ void ft_wgmma_f16_register_a_trans_b(float (&c)[N / 2],
                                                                const uint32_t (&a)[4], uint64_t b);

/* c [64, N] = (add ? c : 0) + a . b^T, a in registers in the same layout. */
template <int N, bool bf16>
__device__ __forceinline__ void ft_wgmma_f16_register_a(float (&c)[N / 2], const uint32_t (&a)[4],
                                                        uint64_t b, int add);

#define FT_WGMMA_F16(N, BF16, TYPE, REGS, OPERANDS, A, B, ADD)                                     \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_f16<N, BF16>(float(&c)[N / 2], uint64_t a,            \
                                                          uint64_t b, int add)                     \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS     \
                     "}, " A ", " B ", add, 1, 1, 0, 0;\n\t}"                                      \
                     : OPERANDS("+f", c)                                                           \
                     : "l"(a), "l"(b), "r"(add));                                                  \
    }
#define FT_WGMMA_F16_TRANS_B(N, BF16, TYPE, REGS, OPERANDS, A, B, ADD)                             \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_f16_trans_b<N, BF16>(float(&c)[N / 2], uint64_t a,    \
                                                                  uint64_t b, int add)             \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS     \
                     "}, " A ", " B ", add, 1, 1, 0, 1;\n\t}"                                      \
                     : OPERANDS("+f", c)                                                           \
                     : "l"(a), "l"(b), "r"(add));                                                  \
    }
#define FT_WGMMA_F16_REGISTER_A_TRANS_B(N, BF16, TYPE, REGS, OPERANDS, A, B)                       \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_f16_register_a_trans_b<N, BF16>(                      \
        float(&c)[N / 2], const uint32_t(&a)[4], uint64_t b)                                       \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 1, 0;\n\t"                          \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS     \
                     "}, {" A "}, " B ", add, 1, 1, 1;\n\t}"                                       \
                     : OPERANDS("+f", c)                                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                        \
    }
#define FT_WGMMA_F16_REGISTER_A(N, BF16, TYPE, REGS, OPERANDS, A, B, ADD)                          \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_f16_register_a<N, BF16>(                              \
        float(&c)[N / 2], const uint32_t(&a)[4], uint64_t b, int add)                              \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS     \
                     "}, {" A "}, " B ", add, 1, 1, 0;\n\t}"                                       \
                     : OPERANDS("+f", c)                                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }
/* Operand lists used only here. */
#define FT_C4(m, c) m((c)[0]), m((c)[1]), m((c)[2]), m((c)[3])
#define FT_C24(m, c) FT_C16(m, c), FT_C8(m, c, 16)
#define FT_C52(m, c) FT_C48(m, c), m((c)[48]), m((c)[49]), m((c)[50]), m((c)[51])
#define FT_C128(m, c) FT_C64(m, c), FT_C32_AT(m, c, 64), FT_C32_AT(m, c, 96)
#define FT_REGS_16 FT_REGS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FT_REGS_24 FT_REGS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define FT_REGS_52 FT_REGS_1A ", %48, %49, %50, %51"
#define FT_REGS_3                                                                                  \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127"
#define FT_WGMMA_F16_ALL(BF16, TYPE)                                                               \
    FT_WGMMA_F16(8, BF16, TYPE, "%0, %1, %2, %3", FT_C4, "%4", "%5", "%6")                         \
    FT_WGMMA_F16(16, BF16, TYPE, FT_REGS_8, FT_C8_ALL, "%8", "%9", "%10")                          \
    FT_WGMMA_F16(32, BF16, TYPE, FT_REGS_16, FT_C16, "%16", "%17", "%18")                          \
    FT_WGMMA_F16(64, BF16, TYPE, FT_REGS_0, FT_C32, "%32", "%33", "%34")                           \
    FT_WGMMA_F16(96, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1A, FT_C48, "%48", "%49", "%50")           \
    FT_WGMMA_F16_TRANS_B(64, BF16, TYPE, FT_REGS_0, FT_C32, "%32", "%33", "%34")                   \
    FT_WGMMA_F16_TRANS_B(128, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1, FT_C64, "%64", "%65", "%66")   \
    FT_WGMMA_F16(192, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1 ", " FT_REGS_2, FT_C96, "%96", "%97",   \
                 "%98")                                                                            \
    FT_WGMMA_F16(256, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1 ", " FT_REGS_2 ", " FT_REGS_3, FT_C128, \
                 "%128", "%129", "%130")                                                           \
    FT_WGMMA_F16(128, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1, FT_C64, "%64", "%65", "%66")           \
    FT_WGMMA_F16_REGISTER_A_TRANS_B(64, BF16, TYPE, FT_REGS_0, FT_C32, "%32, %33, %34, %35",       \
                                    "%36")                                                         \
    FT_WGMMA_F16_REGISTER_A_TRANS_B(128, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1, FT_C64,             \
                                    "%64, %65, %66, %67", "%68")                                   \
    FT_WGMMA_F16_REGISTER_A(16, BF16, TYPE, FT_REGS_8, FT_C8_ALL, "%8, %9, %10, %11", "%12",       \
                            "%13")                                                                 \
    FT_WGMMA_F16_REGISTER_A(32, BF16, TYPE, FT_REGS_16, FT_C16, "%16, %17, %18, %19", "%20",       \
                            "%21")                                                                 \
    FT_WGMMA_F16_REGISTER_A(48, BF16, TYPE, FT_REGS_24, FT_C24, "%24, %25, %26, %27", "%28",       \
                            "%29")                                                                 \
    FT_WGMMA_F16_REGISTER_A(64, BF16, TYPE, FT_REGS_0, FT_C32, "%32, %33, %34, %35", "%36", "%37") \
    FT_WGMMA_F16_REGISTER_A(96, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1A, FT_C48,                     \
                            "%48, %49, %50, %51", "%52", "%53")                                    \
    FT_WGMMA_F16_REGISTER_A(104, BF16, TYPE, FT_REGS_0 ", " FT_REGS_52, FT_C52,                    \
                            "%52, %53, %54, %55", "%56", "%57")                                    \
    FT_WGMMA_F16_REGISTER_A(128, BF16, TYPE, FT_REGS_0 ", " FT_REGS_1, FT_C64,                     \
                            "%64, %65, %66, %67", "%68", "%69")
FT_WGMMA_F16_ALL(false, "f16")
FT_WGMMA_F16_ALL(true, "bf16")
#undef FT_WGMMA_F16_ALL
#undef FT_WGMMA_F16_REGISTER_A
#undef FT_WGMMA_F16_REGISTER_A_TRANS_B
#undef FT_WGMMA_F16_TRANS_B
#undef FT_WGMMA_F16
#undef FT_REGS_3
#undef FT_REGS_52
#undef FT_REGS_24
#undef FT_REGS_16
#undef FT_C128
#undef FT_C52
#undef FT_C24
#undef FT_C4

#endif
#endif
