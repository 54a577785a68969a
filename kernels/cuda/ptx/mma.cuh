/*
 * mma.cuh - warp-level mma.sync and ldmatrix, sm_75 and later.
 *
 * Lane l has g = l / 4 and t = l % 4. INT8 fragments: a [16, 32] row-major, lane l holds k 4t .. 4t
 * + 3 of row g (a0) and g + 8 (a1), and the same of k + 16 (a2, a3); b [8, 32] (n, k), k 4t .. of
 * row g (b0) and k + 16 (b1); c [16, 8], columns 2t, 2t + 1 of row g (c0, c1) and of row g + 8 (c2,
 * c3).
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k32".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_MMA_CUH
#define FT_KERNELS_CUDA_PTX_MMA_CUH

#include <stdint.h>

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
/* c [8, 8] += a [8, 16] . b [8, 16]^T: the INT8 instruction of Turing. */
__device__ __forceinline__ void ft_mma_i8_m8n8k16(int32_t &c0, int32_t &c1, uint32_t a, uint32_t b)
{
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c0), "+r"(c1)
        : "r"(a), "r"(b));
}
#endif

/* c [16, 8] += a [16, 32] . b [8, 32]^T, exact. */
__device__ __forceinline__ void ft_mma_i8(int32_t c[4], const uint32_t a[4], uint32_t b0,
                                          uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    ft_mma_i8_m8n8k16(c[0], c[1], a[0], b0);
    ft_mma_i8_m8n8k16(c[0], c[1], a[2], b1);
    ft_mma_i8_m8n8k16(c[2], c[3], a[1], b0);
    ft_mma_i8_m8n8k16(c[2], c[3], a[3], b1);
#else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* d [16, 8] = c + a [16, 32] . b [8, 32]^T, exact; c is not overwritten. */
__device__ __forceinline__ void ft_mma_i8_add(int32_t d[4], const int32_t c[4], const uint32_t a[4],
                                              uint32_t b0, uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    for (int i = 0; i < 4; i++)
        d[i] = c[i];
    ft_mma_i8(d, a, b0, b1);
#else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]),
          "r"(c[2]), "r"(c[3]));
#endif
}

/*
 * c [16, 8] += a [16, 16] . b [8, 16]^T of f16 or bf16. Words hold two elements: a k 2t, 2t + 1 of
 * row g (a0) and g + 8 (a1), the same of k + 8 (a2, a3); b k 2t, 2t + 1 (b0) and k + 8 (b1) of row
 * g; c as above. Turing has no bf16.
 */
template <bool bf16>
__device__ __forceinline__ void ft_mma_f16(float c[4], const uint32_t a[4], uint32_t b0,
                                           uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    if (bf16)
        __trap();
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#elif defined __CUDA_ARCH__
    if (bf16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
            "%7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
            "%7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* Load four tiles of 8 rows x 16 bytes; lane l passes the address of row l % 8 of tile l / 8. */
__device__ __forceinline__ void ft_ldmatrix_x4(uint32_t r[4], const void *row)
{
    uint32_t address = (uint32_t) __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/*
 * The same for tiles of 8 x 8 16-bit elements, transposed: lane l receives elements 2t, 2t + 1 of
 * column g.
 */
__device__ __forceinline__ void ft_ldmatrix_x4_trans(uint32_t r[4], const void *row)
{
    uint32_t address = (uint32_t) __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/*
 * The inverse, sm_90 and later: stores four tiles of 8 x 8 16-bit elements, of which lane l holds
 * elements 2t, 2t + 1 of row g; it passes the address of row l % 8 of tile l / 8.
 */
__device__ __forceinline__ void ft_stmatrix_x4(void *row, const uint32_t (&r)[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    uint32_t address = (uint32_t) __cvta_generic_to_shared(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
#endif
}

#endif
