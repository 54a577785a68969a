/*
 * rotation.h - orthogonal matrices that spread each column over all others.
 *
 * A rotation of n = m 2^k columns, m odd, is Q = D (C x H), the Kronecker product after signs:
 *
 *   D  diagonal, random signs, which keep columns of equal sign from adding up in one column
 *   C  the m x m matrix of the discrete Hartley transform, (cos t + sin t) / sqrt(m) with
 *      t = 2 pi i j / m
 *   H  the Hadamard matrix of Sylvester of 2^k columns, divided by sqrt(2^k)
 *
 * C and H are symmetric and orthogonal.  No entry of Q exceeds sqrt(2 / n), so a single column of
 * magnitude a becomes n columns of at most a sqrt(2 / n).  A Hadamard matrix would give a
 * sqrt(1 / n), but none is known for many n, and with m > 1 its construction depends on n.
 *
 * Sources: Ashkboos et al., "QuaRot", arXiv 2404.00456, 2024, and Liu et al., "SpinQuant", arXiv
 * 2405.16406, 2024 (rotations of language models); Bracewell, "Discrete Hartley transform", 1983.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_ROTATION_H
#define FT_CONVERT_ROTATION_H

#include "runtime/ft.h"

#include <stdint.h>

/* The largest m: a rotation takes k + m additions a value. */
enum { FT_ROTATION_MAX_ODD = 127 };

typedef struct ft_rotation {
    size_t size, odd; /* n and m */
    double *sign;     /* [n]: the diagonal of D, divided by sqrt(2^k) */
    double *hartley;  /* [m, m]: C */
} ft_rotation;

/* The odd factor m of a size of at least 1. */
size_t ft_rotation_odd_factor(size_t size);

/*
 * Make the rotation of `size` columns, whose odd factor is at most FT_ROTATION_MAX_ODD.  Sign i is
 * negative where bit i % 64 of ft_philox_draw(seed, i / 64) is 1 (kernels/philox.h).  Free with
 * ft_rotation_fini(), also after a failure.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_rotation_init(ft_rotation *out, size_t size, uint64_t seed, ft_error *err);
void ft_rotation_fini(ft_rotation *rotation);

/*
 * Replace the matrix `values`, [size, columns], by Q^T values.  With one column, that is also the
 * row vector `values` times Q.  Sums have a fixed order, and nothing is fused.
 */
void ft_rotation_apply(const ft_rotation *rotation, double *values, size_t columns);

#endif
