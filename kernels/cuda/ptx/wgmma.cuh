/*
 * wgmma.cuh - warpgroup-level INT8 wgmma, sm_90a only: c [64, N] += a . b^T, exact int32 sums.
 *
 * Lane l of warp w (0 .. 3) has g = l / 4 and t = l % 4. c[4j + i] is row 16w + g + 8 (i / 2),
 * column 8j + 2t + i % 2. Operands in shared memory are rows of 128 bytes (128 k), with 16-byte
 * chunk c of row r at c ^ (r % 8), in blocks of 8 rows aligned to 1,024 bytes.
 * Source: PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate operation".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_WGMMA_CUH
#define FT_KERNELS_CUDA_PTX_WGMMA_CUH

#include <stdint.h>

#if defined __CUDA_ARCH_FEAT_SM90_ALL
#define FT_HAS_WGMMA

/* Matrix descriptor of an operand; add 2 for the next 32 k, 64 for the next 8 rows. */
__device__ __forceinline__ uint64_t ft_wgmma_descriptor(const void *shared)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | (uint64_t) (1024 >> 4) << 32 | (uint64_t) 1 << 62;
}

/* Before the first wgmma, and after registers of one were accessed. */
__device__ __forceinline__ void ft_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Close a group of all wgmma issued since the last commit. */
__device__ __forceinline__ void ft_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Wait until at most `left` groups are pending. */
template <int left> __device__ __forceinline__ void ft_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/*
 * Compiler fence: the wait updates the accumulators behind the compiler's back, so no use of them
 * may move above this.
 */
template <int n> __device__ __forceinline__ void ft_wgmma_fence_acc(int32_t (&c)[n])
{
#pragma unroll
    for (int i = 0; i < n; i++)
        asm volatile("" : "+r"(c[i])::"memory");
}

/* Operand lists: accumulators are %0, %1, ... */
#define FT_C8(m, c, i)                                                                             \
    m((c)[i]), m((c)[i + 1]), m((c)[i + 2]), m((c)[i + 3]), m((c)[i + 4]), m((c)[i + 5]),          \
        m((c)[i + 6]), m((c)[i + 7])
#define FT_C16(m, c) FT_C8(m, c, 0), FT_C8(m, c, 8)
#define FT_C32_AT(m, c, i)                                                                         \
    FT_C8(m, c, i), FT_C8(m, c, i + 8), FT_C8(m, c, i + 16), FT_C8(m, c, i + 24)
#define FT_C32(m, c) FT_C32_AT(m, c, 0)
#define FT_C48(m, c) FT_C32(m, c), FT_C8(m, c, 32), FT_C8(m, c, 40)
#define FT_C64(m, c) FT_C32(m, c), FT_C32_AT(m, c, 32)
#define FT_C96(m, c) FT_C64(m, c), FT_C32_AT(m, c, 64)
#define FT_C8_ALL(m, c) FT_C8(m, c, 0)
#define FT_REGS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FT_REGS_0                                                                                  \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FT_REGS_1A "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FT_REGS_1                                                                                  \
    FT_REGS_1A ", "                                                                                \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FT_REGS_2                                                                                  \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
/* c = (add ? c : 0) + a . b^T for 32 k, both operands in shared memory. */
template <int N>
__device__ __forceinline__ void ft_wgmma_i8(int32_t (&c)[N / 2], uint64_t a, uint64_t b,
                                            int add = 1);

#define FT_WGMMA_I8(N, REGS, OPERANDS, A, B, ADD)                                                  \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_i8<N>(int32_t(&c)[N / 2], uint64_t a, uint64_t b,     \
                                                   int add)                                        \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.s32.s8.s8 {" REGS "}, " A ", " B  \
                     ", add;\n\t}"                                                                 \
                     : OPERANDS("+r", c)                                                           \
                     : "l"(a), "l"(b), "r"(add));                                                  \
    }
FT_WGMMA_I8(64, FT_REGS_0, FT_C32, "%32", "%33", "%34")
FT_WGMMA_I8(96, FT_REGS_0 ", " FT_REGS_1A, FT_C48, "%48", "%49", "%50")
FT_WGMMA_I8(128, FT_REGS_0 ", " FT_REGS_1, FT_C64, "%64", "%65", "%66")
FT_WGMMA_I8(192, FT_REGS_0 ", " FT_REGS_1 ", " FT_REGS_2, FT_C96, "%96", "%97", "%98")
#undef FT_WGMMA_I8

/*
 * The same with a [64, 32] in registers: lane l of warp w holds k 4t .. 4t + 3 of row 16w + g
 * (a[0]) and k + 16 (a[2]), and the same of row 16w + g + 8 (a[1], a[3]). The registers must not
 * change until the wgmma completes.
 */
template <int N>
__device__ __forceinline__ void ft_wgmma_i8_register_a(int32_t (&c)[N / 2], const uint32_t (&a)[4],
                                                       uint64_t b);

#define FT_WGMMA_I8_REGISTER_A(N, REGS, OPERANDS, A, B)                                            \
    template <>                                                                                    \
    __device__ __forceinline__ void ft_wgmma_i8_register_a<N>(int32_t(&c)[N / 2],                  \
                                                              const uint32_t(&a)[4], uint64_t b)   \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 1, 0;\n\t"                          \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.s32.s8.s8 {" REGS "}, {" A        \
                     "}, " B ", add;\n\t}"                                                         \
                     : OPERANDS("+r", c)                                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                        \
    }
FT_WGMMA_I8_REGISTER_A(16, FT_REGS_8, FT_C8_ALL, "%8, %9, %10, %11", "%12")
FT_WGMMA_I8_REGISTER_A(32, FT_REGS_8 ", %8, %9, %10, %11, %12, %13, %14, %15", FT_C16,
                       "%16, %17, %18, %19", "%20")
FT_WGMMA_I8_REGISTER_A(64, FT_REGS_0, FT_C32, "%32, %33, %34, %35", "%36")
FT_WGMMA_I8_REGISTER_A(128, FT_REGS_0 ", " FT_REGS_1, FT_C64, "%64, %65, %66, %67", "%68")
#undef FT_WGMMA_I8_REGISTER_A

#endif
#endif
