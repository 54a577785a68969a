/*
 * exact_sums.h - sums over samples of |x|, x * x and x[i] * x[j] that are the same in any order.
 *
 * What one sample contributes is computed in double precision, in a fixed order, and rounded to a
 * multiple of a power of two. Sums of such multiples are integer sums, so they depend neither on
 * the order of the samples nor on how partial sums are split and merged.
 *
 * Sums of columns are 128-bit multiples of 2^-60, which needs no idea of their magnitude. Second
 * moments are 64-bit integers, because there are cols * cols of them; their unit must be set
 * before. With a unit of 2^-20 times the mean square of typical inputs, 2^22 rows may be 1,400
 * times as large as these, and a sample of inputs 1,000 times smaller still contributes a unit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_STATS_EXACT_SUMS_H
#define FT_CALIBRATE_STATS_EXACT_SUMS_H

#include "kernels/linalg.h"

#include <stdint.h>

__extension__ typedef __int128 ft_int128;

typedef struct ft_exact_sums {
    size_t cols;
    uint64_t rows;                 /* added so far */
    ft_int128 *magnitude, *square; /* [cols], multiples of 2^-60 */
    int64_t *moments; /* [cols, cols], multiples of `unit`; the upper triangle; NULL: not needed */
    double unit;      /* a power of two */

    /* Of a second value d for each x: sums of d * d, and of d[i] * x[j]; NULL: not needed. */
    ft_int128 *difference; /* [cols], multiples of 2^-60 */
    int64_t *cross;        /* [cols, cols], multiples of `unit` */
} ft_exact_sums;

/* All sums are 0. FT_ENOMEM. fini also accepts a zeroed or failed one. */
FT_MUST_USE ft_status ft_exact_sums_init(ft_exact_sums *sums, size_t cols, bool moments,
                                         ft_error *err);
FT_MUST_USE ft_status ft_exact_sums_init_cross(ft_exact_sums *sums, ft_error *err);
void ft_exact_sums_fini(ft_exact_sums *sums);

/* The unit of second moments for inputs like x, [rows, cols]; finite if x is not. */
double ft_exact_sums_unit(const float *x, size_t rows, size_t cols);

/* Doubles of the scratch memory that ft_exact_sums_add() needs for moments. */
size_t ft_exact_sums_scratch(size_t cols);

/*
 * Adds one sample, x [rows, cols]. Errors, with `name`: FT_EFORMAT if a column is not finite, or if
 * its sum of squares exceeds 2^61 units or 2^65. The sums are then incomplete.
 */
FT_MUST_USE ft_status ft_exact_sums_add(ft_exact_sums *sums, const ft_linalg *linalg,
                                        const float *x, size_t rows, double *scratch,
                                        const char *name, ft_error *err);

/* Adds d[i] * x[j] of the sample that was added last; both [rows, cols]. The same errors. */
FT_MUST_USE ft_status ft_exact_sums_add_cross(ft_exact_sums *sums, const ft_linalg *linalg,
                                              const float *d, const float *x, size_t rows,
                                              double *scratch, const char *name, ft_error *err);

/*
 * Adds the sums of other samples; both have the same columns and unit. Where others->moments is
 * NULL, the caller adds the moments row by row with ft_exact_sums_add_moments(). The same errors.
 */
FT_MUST_USE ft_status ft_exact_sums_merge(ft_exact_sums *sums, const ft_exact_sums *others,
                                          const char *name, ft_error *err);

/*
 * Adds `moments`, [cols - row]: those of a row of the upper triangle, from the diagonal on, over
 * other samples. FT_EFORMAT, with `name`, if a sum is larger than one can be.
 */
FT_MUST_USE ft_status ft_exact_sums_add_moments(ft_exact_sums *sums, size_t row,
                                                const int64_t *moments, const char *name,
                                                ft_error *err);

/* The sums of columns as doubles: magnitude, unless it is NULL, and square, [cols] each. */
void ft_exact_sums_columns(const ft_exact_sums *sums, double *magnitude, double *square);

/*
 * The moments as doubles, symmetric, in the memory of the integers, which now belongs to the
 * caller; NULL without moments. The diagonal is that of the columns, so that no column with tiny
 * inputs seems to be always 0.
 */
double *ft_exact_sums_take_moments(ft_exact_sums *sums);
double *ft_exact_sums_take_cross(ft_exact_sums *sums); /* the same, not symmetric */

#endif
