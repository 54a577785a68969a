/*
 * rotation-t.c - rotations are orthogonal, spread every column, and have the same bits everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/rotation.h"

#include "kernels/philox.h"
#include "runtime/base/sha256.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 2^k, m 2^k with small and large m, and odd sizes. */
static const size_t sizes[] = { 1, 2, 7, 24, 64, 80, 96, 127, 254 };

static ft_rotation make(size_t size, uint64_t seed)
{
    ft_rotation r;
    ft_error err;
    if (ft_rotation_init(&r, size, seed, &err) != FT_OK)
        bail_out("%s", err.text);
    return r;
}

/* Q^T, as it is applied to the identity; for free(). */
static double *transposed(const ft_rotation *r)
{
    double *q = ft_calloc(r->size * r->size, sizeof *q);
    if (q == NULL)
        bail_out("no memory");
    for (size_t i = 0; i < r->size; i++)
        q[i * r->size + i] = 1.0;
    ft_rotation_apply(r, q, r->size);
    return q;
}

/* The largest element of |Q^T Q - I|. */
static double defect(const double *q, size_t n)
{
    double worst = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = i == j ? -1.0 : 0.0;
            for (size_t k = 0; k < n; k++)
                sum += q[i * n + k] * q[j * n + k];
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

static double largest(const double *q, size_t count)
{
    double worst = 0.0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, fabs(q[i]));
    return worst;
}

static void test_orthogonal(void)
{
    double worst = 0.0, excess = 0.0, uneven = 0.0;
    for (size_t i = 0; i < FT_COUNT(sizes); i++) {
        ft_rotation r = make(sizes[i], 1);
        double *q = transposed(&r), n = (double) r.size, most = largest(q, r.size * r.size);
        worst = fmax(worst, defect(q, r.size));
        excess = fmax(excess, most - sqrt((r.odd > 1 ? 2.0 : 1.0) / n));
        for (size_t k = 0; k < r.size * r.size && r.odd == 1; k++)
            uneven = fmax(uneven, fabs(fabs(q[k]) - 1.0 / sqrt(n)));
        free(q);
        ft_rotation_fini(&r);
    }
    near(worst, 0.0, 1e-14, "rotations of every kind of size are orthogonal");
    near(excess, 0.0, 1e-15, "no entry of a rotation of n columns exceeds sqrt(2 / n)");
    near(uneven, 0.0, 1e-15, "all entries have the same magnitude where n is a power of two");
}

static void test_signs(void)
{
    ft_rotation r = make(256, 7), other = make(256, 8);
    int same = 0, different = 0;
    for (size_t i = 0; i < 256; i++) {
        bool negative = ft_philox_draw(7, (uint32_t) (i / 64)) >> (i % 64) & 1;
        same += signbit(r.sign[i]) ? negative : !negative;
        different += signbit(r.sign[i]) != signbit(other.sign[i]);
    }
    is_int(same, 256, "the signs are the bits of Philox");
    ok(different > 64 && different < 192, "another seed gives other signs");
    ft_rotation_fini(&r);
    ft_rotation_fini(&other);
}

static void fill(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (double) (int32_t) ft_philox_draw(3, (uint32_t) i) * 0x1p-31;
}

/* Columns of a matrix are rotated independently. */
static void test_columns(void)
{
    enum { COLUMNS = 19 };
    int different = 0;
    for (size_t i = 0; i < FT_COUNT(sizes); i++) {
        static double matrix[254 * COLUMNS], before[254 * COLUMNS], column[254];
        ft_rotation r = make(sizes[i], 1);
        fill(matrix, r.size * COLUMNS);
        memcpy(before, matrix, sizeof before);
        ft_rotation_apply(&r, matrix, COLUMNS);
        for (size_t c = 0; c < COLUMNS; c++) {
            for (size_t k = 0; k < r.size; k++)
                column[k] = before[k * COLUMNS + c];
            ft_rotation_apply(&r, column, 1);
            for (size_t k = 0; k < r.size; k++)
                different += memcmp(&column[k], &matrix[k * COLUMNS + c], sizeof *column) != 0;
        }
        ft_rotation_fini(&r);
    }
    is_int(different, 0, "a column has the same bits alone and in a matrix");
}

static void test_bits(void)
{
    static double values[896];
    uint8_t digest[FT_SHA256_BYTES];
    char text[FT_SHA256_HEX_SIZE];
    ft_sha256 *hash = ft_sha256_new();
    ft_rotation r = make(896, 1);
    if (hash == NULL)
        bail_out("no memory");
    fill(values, 896);
    ft_rotation_apply(&r, values, 1);
    ft_sha256_init(hash);
    ft_sha256_update(hash, values, sizeof values);
    if (!ft_sha256_final(hash, digest))
        bail_out("no digest");
    is_str(ft_sha256_to_hex(text, digest),
           "a77d5277075dde5732db022efeaab524fead508caaa195175246c17de6d37124",
           "a rotation has the same bits on every processor");
    ft_sha256_free(hash);
    ft_rotation_fini(&r);
}

static void test_odd_factor(void)
{
    is_int((long long) ft_rotation_odd_factor(896), 7, "the odd factor of 896 is 7");
    is_int((long long) ft_rotation_odd_factor(4096), 1, "the odd factor of a power of two is 1");
}

int main(void)
{
    test_orthogonal();
    test_signs();
    test_columns();
    test_bits();
    test_odd_factor();
    return done_testing();
}
