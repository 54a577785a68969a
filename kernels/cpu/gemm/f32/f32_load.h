/*
 * f32_load.h - vectors of floats loaded from F32, F16 or BF16, for the float GEMM kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_F32_F32_LOAD_H
#define FT_KERNELS_CPU_GEMM_F32_F32_LOAD_H

#include "kernels/cpu/base/simd.h"
#include "kernels/cpu/gemm/f32/f32.h"

/* Vectors that hold the lanes of one sum. */
enum { VECTORS = FT_FLOAT_LANES / LANES };

/*
 * Keeps a vector in a register: gcc otherwise folds its load into every multiply-add, and loads are
 * the bottleneck.
 */
#if defined __AVX2__ && !defined FT_SIMD_SCALAR
#define FORCE_REGISTER(v) __asm__("" : "+v"(v))
#else
#define FORCE_REGISTER(v) (void) (v)
#endif

FT_INLINE size_t dtype_bytes(ft_dtype dtype)
{
    return dtype == FT_F32 ? 4 : 2;
}

FT_INLINE vf load_as_float(const void *w, size_t k_offset, ft_dtype dtype)
{
    if (dtype == FT_F16)
        return vf_load_f16((const uint16_t *) w + k_offset);
    if (dtype == FT_BF16)
        return vf_load_bf16((const uint16_t *) w + k_offset);
    return vf_load((const float *) w + k_offset);
}

/* Loads n elements, fewer than a vector, and zeros. */
FT_INLINE vf load_tail(const void *w, size_t k_offset, size_t n, ft_dtype dtype)
{
    union {
        float floats[LANES];
        uint16_t u16[LANES];
    } tail = { { 0 } };
    memcpy(&tail, (const char *) w + k_offset * dtype_bytes(dtype), n * dtype_bytes(dtype));
    return load_as_float(&tail, 0, dtype);
}

/* Loads elements k_offset .. k_offset + LANES - 1 of a row of k; those beyond its end are zero. */
FT_INLINE vf load_padded(const void *w, size_t k_offset, size_t k, ft_dtype dtype)
{
    if (k_offset + LANES <= k)
        return load_as_float(w, k_offset, dtype);
    return k_offset < k ? load_tail(w, k_offset, k - k_offset, dtype) : vf_set(0.0f);
}

#endif
