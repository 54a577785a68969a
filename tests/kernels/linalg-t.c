/*
 * linalg-t.c - dense linear algebra: every instruction set against plain loops, and the Cholesky
 * factorization against its definition.
 *
 * The header defines each element of a product as one chain of operations, so the plain loops give
 * the expected bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/isa.h"
#include "kernels/linalg.h"
#include "runtime/mem.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 5 };

static double *random_doubles(uint64_t seed, size_t count)
{
    double *x = must_have(count, sizeof *x);
    rng r = { seed };
    for (size_t i = 0; i < count; i++)
        x[i] = rng_normal(&r);
    return x;
}

/* ---- Products ----------------------------------------------------------------------------- */

typedef struct product {
    size_t m, n, k;
    bool a_transposed, b_transposed, a_float, b_float, subtract, upper, b_upper;
} product;

static const product products[] = {
    { .m = 1, .n = 1, .k = 1 },
    { .m = 3, .n = 5, .k = 7, .a_transposed = true },
    { .m = 8, .n = 24, .k = 128, .b_transposed = true },
    { .m = 9, .n = 25, .k = 129, .subtract = true },
    { .m = 200, .n = 193, .k = 30, .a_float = true, .b_float = true },
    { .m = 70, .n = 410, .k = 300, .a_float = true, .b_float = true, .b_transposed = true },
    { .m = 211, .n = 211, .k = 64, .a_transposed = true, .upper = true },
    { .m = 395, .n = 395, .k = 40, .a_transposed = true, .upper = true, .subtract = true },
    { .m = 50, .n = 230, .k = 230, .b_upper = true, .subtract = true },
    { .m = 20, .n = 450, .k = 210, .b_upper = true },
};

/* A random matrix, as double or as float. */
static ft_linalg_matrix make_matrix(uint64_t seed, size_t rows, size_t cols, bool is_float,
                                    bool transposed)
{
    size_t count = rows * cols + 3 * (transposed ? cols : rows);
    ft_linalg_matrix m = { .row_stride = transposed ? 1 : cols + 3,
                           .col_stride = transposed ? rows + 3 : 1 };
    if (is_float)
        m.f32 = random_floats(seed, count, 1.0);
    else
        m.f64 = random_doubles(seed, count);
    return m;
}

/* Zeros below the diagonal. */
static void clear_lower(const ft_linalg_matrix *m, size_t rows)
{
    double *x = (double *) (uintptr_t) m->f64;
    for (size_t i = 1; i < rows; i++)
        memset(x + i * m->row_stride, 0, i * sizeof *x);
}

static double at(const ft_linalg_matrix *m, size_t row, size_t col)
{
    size_t i = row * m->row_stride + col * m->col_stride;
    return m->f64 != NULL ? m->f64[i] : (double) m->f32[i];
}

static void free_matrix(ft_linalg_matrix *m)
{
    free((void *) (uintptr_t) m->f64);
    free((void *) (uintptr_t) m->f32);
}

static double expected_element(const product *p, const ft_dgemm *g, double c, size_t i, size_t j)
{
    for (size_t l = 0; l < p->k; l++) {
        volatile double term = at(&g->a, i, l) * at(&g->b, l, j); /* rounded, not fused */
        c = p->subtract ? c - term : c + term;
    }
    return c;
}

/* Elements that differ, and guards beyond the rows that have changed. */
static size_t wrong_elements(const product *p, const double *expected, const double *found,
                             size_t stride)
{
    size_t wrong = 0;
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < stride; j++)
            if (j >= p->n || !p->upper || j >= i)
                wrong +=
                    memcmp(&expected[i * stride + j], &found[i * stride + j], sizeof *found) != 0;
    return wrong;
}

static void test_product(const product *p)
{
    size_t stride = p->n + 2, count = p->m * stride;
    double *start = random_doubles(3, count), *expected = must_have(count, sizeof *expected),
           *found = must_have(count, sizeof *found);
    ft_dgemm g = { .m = p->m,
                   .n = p->n,
                   .k = p->k,
                   .a = make_matrix(1, p->m, p->k, p->a_float, p->a_transposed),
                   .b = make_matrix(2, p->k, p->n, p->b_float, p->b_transposed),
                   .subtract = p->subtract,
                   .upper = p->upper,
                   .b_upper = p->b_upper,
                   .c = found,
                   .c_stride = stride };
    if (p->b_upper)
        clear_lower(&g.b, p->k);
    memcpy(expected, start, count * sizeof *start);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            expected[i * stride + j] = expected_element(p, &g, start[i * stride + j], i, j);
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        size_t wrong = 0;
        if (!ft_isa_supported((ft_isa) isa)) {
            skip(1, "this machine or this build has no %s", ft_isa_name((ft_isa) isa));
            continue;
        }
        for (int threads = 1; threads <= MAX_THREADS; threads += 2) {
            memcpy(found, start, count * sizeof *start);
            ft_linalg_dgemm(&(ft_linalg){ isa, threads }, &g);
            wrong += wrong_elements(p, expected, found, stride);
        }
        is_int((long long) wrong, 0, "%s: a product of %zu x %zu x %zu has the bits of plain loops",
               ft_isa_name((ft_isa) isa), p->m, p->n, p->k);
    }
    free_matrix(&g.a);
    free_matrix(&g.b);
    free(start);
    free(expected);
    free(found);
}

static void test_sgemm(size_t m, size_t n, size_t k)
{
    float *a = random_floats(1, m * k, 1.0), *b = random_floats(2, k * n, 1.0),
          *start = random_floats(3, m * n, 1.0), *c = must_have(m * n, sizeof *c);
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        size_t wrong = 0;
        if (!ft_isa_supported((ft_isa) isa)) {
            skip(1, "this machine or this build has no %s", ft_isa_name((ft_isa) isa));
            continue;
        }
        memcpy(c, start, m * n * sizeof *c);
        ft_linalg_sgemm_subtract(&(ft_linalg){ isa, 1 }, &(ft_sgemm){ .m = m,
                                                                      .n = n,
                                                                      .k = k,
                                                                      .a = a,
                                                                      .a_stride = k,
                                                                      .b = b,
                                                                      .b_stride = n,
                                                                      .c = c,
                                                                      .c_stride = n });
        for (size_t i = 0; i < m * n; i++) {
            float sum = start[i];
            for (size_t l = 0; l < k; l++)
                sum = fmaf(-a[i / n * k + l], b[l * n + i % n], sum);
            wrong += memcmp(&sum, &c[i], sizeof sum) != 0;
        }
        is_int((long long) wrong, 0,
               "%s: a float product of %zu x %zu x %zu has the bits of plain loops",
               ft_isa_name((ft_isa) isa), m, n, k);
    }
    free(a);
    free(b);
    free(start);
    free(c);
}

/* ---- Cholesky ----------------------------------------------------------------------------- */

/* X^T X of a random X with twice as many rows. */
static double *random_definite(uint64_t seed, size_t n)
{
    double *x = random_doubles(seed, 2 * n * n), *a = must_have(n * n, sizeof *a);
    for (size_t l = 0; l < 2 * n; l++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                a[i * n + j] += x[l * n + i] * x[l * n + j];
    free(x);
    return a;
}

/* The largest difference between X^T A X, where X = U^-1, and the identity. */
static double inverse_error(const double *a, const double *x, size_t n)
{
    double *a_x = must_have(n * n, sizeof *a_x), max = 0.0;
    for (size_t i = 0; i < n; i++) /* A X; X is an upper triangle */
        for (size_t l = 0; l < n; l++)
            for (size_t j = l; j < n; j++)
                a_x[i * n + j] += a[i * n + l] * x[l * n + j];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = i == j ? -1.0 : 0.0;
            for (size_t l = 0; l <= i; l++)
                sum += x[l * n + i] * a_x[l * n + j];
            max = fmax(max, fabs(sum));
        }
    free(a_x);
    return max;
}

static void copy_upper(double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            to[i * n + j] = j >= i ? from[i * n + j] : (double) NAN;
}

static void test_cholesky(size_t n)
{
    double *a = random_definite(n, n), *first = must_have(n * n, sizeof *first),
           *found = must_have(n * n, sizeof *found);
    int variants = 0, different = 0;
    ft_error err;
    for (int isa = FT_ISA_COUNT - 1; isa >= 0; isa--)
        for (int threads = 1; ft_isa_supported((ft_isa) isa) && threads <= MAX_THREADS;
             threads += 2) {
            copy_upper(found, a, n);
            if (ft_linalg_cholesky_inverse(&(ft_linalg){ isa, threads }, found, n, &err) != FT_OK)
                bail_out("%s", err.text);
            for (size_t i = 1; i < n; i++) /* below the diagonal is anything */
                memset(found + i * n, 0, i * sizeof *found);
            if (variants++ == 0)
                memcpy(first, found, n * n * sizeof *found);
            different += memcmp(first, found, n * n * sizeof *found) != 0;
        }
    double error = inverse_error(a, first, n);
    ok(error < 1e-11 * (double) n, "the inverse factor of %zu x %zu satisfies its definition (%g)",
       n, n, error);
    is_int(different, 0,
           "the inverse factor of %zu x %zu is the same on all instruction sets and threads", n, n);
    free(a);
    free(first);
    free(found);
}

/* One number of a matrix that is otherwise positive definite makes it invalid. */
static void test_refusal(double value, size_t n, size_t row, size_t col, const char *what)
{
    ft_linalg linalg;
    ft_error err;
    double *a = random_definite(5, n);
    a[row * n + col] = value;
    if (ft_linalg_init(&linalg, 2, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int(ft_linalg_cholesky_inverse(&linalg, a, n, &err), FT_EFORMAT,
           "a matrix with %s is refused", what);
    has(err.text, "is not positive definite", "the message says that it is not definite");
    free(a);
}

int main(void)
{
    for (size_t i = 0; i < FT_COUNT(products); i++)
        test_product(&products[i]);
    test_sgemm(1, 16, 1);
    test_sgemm(32, 80, 128);
    test_sgemm(7, 48, 300);
    for (size_t n = 1; n <= 257; n = 2 * n + (n > 16))
        test_cholesky(n);
    test_refusal(-1.0, 40, 39, 39, "a negative diagonal");
    test_refusal(0.0, 40, 0, 0, "a zero on its diagonal");
    test_refusal((double) NAN, 40, 7, 30, "a NaN");
    test_refusal((double) INFINITY, 70, 3, 3, "an infinity");
    return done_testing();
}
