/*
 * gptq.h - GPTQ: rounds the columns of a row so that later columns compensate the errors of earlier
 * ones.
 *
 * Let H be the sum of x x^T over the inputs of a linear. The quantized row q is chosen to keep (w -
 * q) H (w - q)^T small instead of each |w - q|: columns are rounded one after the other, those with
 * the largest inputs first, and the remaining columns compensate the error of each as far as
 * possible. Grids are chosen before, from the original weights.
 *
 * The first columns could not take the later ones into account. So coordinate descent then changes
 * single values, in the same order and for a few sweeps, as long as that reduces the error. Between
 * two sweeps it does the same with the scales: with its values fixed, the best scale of a group has
 * a closed form. Where that ends, all values of a group move together with its scale and its zero
 * point (group_descent.h), and descent over single values goes on from there.
 *
 * Sources: Frantar et al. 2022, "GPTQ"; U is the upper triangle with H^-1 = U^T U. Behdin et al.
 * 2023, "QuantEase", for the coordinate descent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GPTQ_H
#define FT_CALIBRATE_WEIGHTS_GPTQ_H

#include "calibrate/weights/groupwise.h"
#include "kernels/linalg.h"
#include "runtime/error.h"

/* What rounding needs to know about the inputs of a matrix. */
typedef struct ft_gptq {
    size_t cols;
    size_t *order; /* [cols]: column indices in rounding order */
    size_t n_dead; /* columns at its end whose inputs are always 0: their weights become 0 */
    float *upper;  /* [cols, stride], in rounding order: U */
    size_t stride; /* columns rounded up to a multiple of FT_LINALG_SGEMM_UNIT */

    /*
     * Maximum sweeps of coordinate descent: over single values and scales, and after these over
     * whole groups. If the first is 0, there is neither, and grids stay.
     */
    int sweeps, group_sweeps;

    const double *moments; /* borrowed: H, whose diagonal is damped by ... */
    double damping;        /* ... this */
    ft_linalg linalg;      /* for one panel */
} ft_gptq;

/*
 * Prepares for matrices with these inputs, on `threads` threads.
 *
 *   moments  [cols, cols], symmetric; borrowed
 *
 * A hundredth of the mean of the diagonal is added to the diagonal, because few or correlated
 * inputs say little about the interaction of errors. FT_ENOMEM; FT_EFORMAT, with `name`, if the
 * moments are not positive definite.
 */
FT_MUST_USE ft_status ft_gptq_init(ft_gptq *gptq, const double *moments, size_t cols, int threads,
                                   const char *name, ft_error *err);
void ft_gptq_fini(ft_gptq *gptq); /* also accepts a zeroed or failed one */

/* An ft_groupwise_round_fn, whose user is an ft_gptq. */
void ft_gptq_round(const void *gptq, ft_groupwise_panel *panel, const ft_groupwise_options *how);

#endif
