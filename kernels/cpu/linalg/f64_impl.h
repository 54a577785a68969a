/*
 * f64_impl.h - the body of f64_*.c: the register tile of a double-precision GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/linalg/f64.h"

#include "kernels/cpu/base/simd.h"

#if defined __AVX512F__ && !defined FT_SIMD_SCALAR

enum { DOUBLE_LANES = 8, ROWS = 8, VECTORS = 3 };
typedef __m512d vd;

FT_INLINE vd vd_load(const double *from)
{
    return _mm512_loadu_pd(from);
}

FT_INLINE void vd_store(double *to, vd v)
{
    _mm512_storeu_pd(to, v);
}

FT_INLINE vd vd_set(double value)
{
    return _mm512_set1_pd(value);
}

FT_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

enum { DOUBLE_LANES = 4, ROWS = 4, VECTORS = 2 };
typedef __m256d vd;

FT_INLINE vd vd_load(const double *from)
{
    return _mm256_loadu_pd(from);
}

FT_INLINE void vd_store(double *to, vd v)
{
    _mm256_storeu_pd(to, v);
}

FT_INLINE vd vd_set(double value)
{
    return _mm256_set1_pd(value);
}

FT_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

enum { DOUBLE_LANES = 2, ROWS = 4, VECTORS = 4 };
typedef float64x2_t vd;

FT_INLINE vd vd_load(const double *from)
{
    return vld1q_f64(from);
}

FT_INLINE void vd_store(double *to, vd v)
{
    vst1q_f64(to, v);
}

FT_INLINE vd vd_set(double value)
{
    return vdupq_n_f64(value);
}

FT_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return vfmaq_f64(c, a, b);
}

#else

enum { DOUBLE_LANES = 1, ROWS = 2, VECTORS = 4 };
typedef double vd;

FT_INLINE vd vd_load(const double *from)
{
    return *from;
}

FT_INLINE void vd_store(double *to, vd v)
{
    *to = v;
}

FT_INLINE vd vd_set(double value)
{
    return value;
}

/* Only for exact products, where it does not matter that the two steps are not fused. */
FT_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return a * b + c;
}

#endif

enum { COLS = VECTORS * DOUBLE_LANES };

/* The operators of vectors work by element, and contraction is off. */
FT_INLINE vd add_product(vd sum, vd a, vd b, bool subtract, bool exact)
{
    if (exact)
        return vd_fma(subtract ? -a : a, b, sum);
    return subtract ? sum - a * b : sum + a * b;
}

FT_INLINE void multiply_add_tile(const ft_double_tile *t, bool subtract, bool exact)
{
    vd sum[ROWS][VECTORS];
    FT_UNROLL
    for (size_t row = 0; row < ROWS; row++) {
        FT_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            sum[row][v] = vd_load(t->c + row * t->c_stride + v * DOUBLE_LANES);
    }
    const double *a = t->a, *b = t->b;
    for (size_t l = 0; l < t->k; l++, a += ROWS, b += COLS) {
        vd b_row[VECTORS];
        FT_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            b_row[v] = vd_load(b + v * DOUBLE_LANES);
        FT_UNROLL
        for (size_t row = 0; row < ROWS; row++) {
            vd factor = vd_set(a[row]);
            FT_UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                sum[row][v] = add_product(sum[row][v], factor, b_row[v], subtract, exact);
        }
    }
    FT_UNROLL
    for (size_t row = 0; row < ROWS; row++) {
        FT_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            vd_store(t->c + row * t->c_stride + v * DOUBLE_LANES, sum[row][v]);
    }
}

static void multiply_add(const ft_double_tile *t)
{
    if (t->exact_products)
        multiply_add_tile(t, t->subtract, true);
    else if (t->subtract)
        multiply_add_tile(t, true, false);
    else
        multiply_add_tile(t, false, false);
}

static void subtract_scaled(double *to, double factor, const double *x, size_t n)
{
    size_t j = 0;
    for (; j + DOUBLE_LANES <= n; j += DOUBLE_LANES)
        vd_store(to + j, vd_load(to + j) - vd_set(factor) * vd_load(x + j));
    for (; j < n; j++)
        to[j] -= factor * x[j];
}

#define FT_DOUBLE_KERNELS                                                                          \
    {                                                                                              \
        .rows = ROWS, .cols = COLS, .multiply_add = multiply_add,                                  \
        .subtract_scaled = subtract_scaled                                                         \
    }
