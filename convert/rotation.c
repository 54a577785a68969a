/*
 * rotation.c - orthogonal matrices that spread each column over all others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/rotation.h"

#include "kernels/math/elementary.h"
#include "kernels/philox.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16 }; /* values of a block that the Hartley transform takes at once */

/* ---- Making --------------------------------------------------------------------------------- */

size_t ft_rotation_odd_factor(size_t size)
{
    while (size % 2 == 0)
        size /= 2;
    return size;
}

static bool is_negative(uint64_t seed, size_t i)
{
    return ft_philox_draw(seed, (uint32_t) (i / 64)) >> (i % 64) & 1;
}

static void fill_signs(ft_rotation *r, uint64_t seed)
{
    double scale = 1.0 / sqrt((double) (r->size / r->odd));
    for (size_t i = 0; i < r->size; i++)
        r->sign[i] = is_negative(seed, i) ? -scale : scale;
}

static void fill_hartley(ft_rotation *r)
{
    static const double two_pi = 6.283185307179586476925;
    size_t m = r->odd;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++) {
            double t = two_pi * (double) (i * j % m) / (double) m;
            r->hartley[i * m + j] = (ft_math_cos(t) + ft_math_sin(t)) / sqrt((double) m);
        }
}

ft_status ft_rotation_init(ft_rotation *out, size_t size, uint64_t seed, ft_error *err)
{
    size_t m = ft_rotation_odd_factor(size);
    *out = (ft_rotation){
        .size = size,
        .odd = m,
        .sign = ft_calloc(size, sizeof *out->sign),
        .hartley = ft_calloc(m * m, sizeof *out->hartley),
    };
    if (out->sign == NULL || out->hartley == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a rotation of %zu columns", size);
    fill_signs(out, seed);
    fill_hartley(out);
    return FT_OK;
}

void ft_rotation_fini(ft_rotation *rotation)
{
    free(rotation->sign);
    free(rotation->hartley);
    *rotation = (ft_rotation){ 0 };
}

/* ---- Applying ------------------------------------------------------------------------------- */

static void apply_signs(const ft_rotation *r, double *values, size_t columns)
{
    for (size_t i = 0; i < r->size; i++)
        for (size_t j = 0; j < columns; j++)
            values[i * columns + j] *= r->sign[i];
}

/* Sums and differences of the two halves. */
static void butterfly(double *restrict first, double *restrict second, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        double a = first[i], b = second[i];
        first[i] = a + b;
        second[i] = a - b;
    }
}

/* The Hadamard matrix of each 2^k rows: the fast Walsh-Hadamard transform. */
static void apply_hadamard(const ft_rotation *r, double *values, size_t columns)
{
    size_t end = r->size * columns, block = r->size / r->odd * columns;
    for (size_t half = columns; half < block; half *= 2)
        for (size_t at = 0; at < end; at += 2 * half)
            butterfly(values + at, values + at + half, half);
}

/* C of the `width` values at one position of all m blocks. */
static void apply_hartley_at(const ft_rotation *r, double *values, size_t block, size_t width)
{
    double in[FT_ROTATION_MAX_ODD][WIDTH], sum[WIDTH];
    size_t m = r->odd;
    for (size_t j = 0; j < m; j++)
        memcpy(in[j], values + j * block, width * sizeof *sum);
    for (size_t i = 0; i < m; i++) {
        memset(sum, 0, sizeof sum);
        for (size_t j = 0; j < m; j++)
            for (size_t w = 0; w < width; w++)
                sum[w] += r->hartley[i * m + j] * in[j][w];
        memcpy(values + i * block, sum, width * sizeof *sum);
    }
}

static void apply_hartley(const ft_rotation *r, double *values, size_t columns)
{
    size_t block = r->size / r->odd * columns;
    for (size_t i = 0; i < block; i += WIDTH)
        apply_hartley_at(r, values + i, block, ft_min_size(block - i, WIDTH));
}

void ft_rotation_apply(const ft_rotation *rotation, double *values, size_t columns)
{
    apply_signs(rotation, values, columns);
    apply_hadamard(rotation, values, columns);
    if (rotation->odd > 1)
        apply_hartley(rotation, values, columns);
}
