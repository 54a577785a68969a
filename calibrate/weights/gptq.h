/*
 * gptq.h - choose codes so that later columns of a row put right what earlier ones did wrong.
 *
 * Let H be the sums of x x^T over the inputs of a linear.  Codes of a row w are chosen to keep
 * (w - q) H (w - q)^T small, not each |w - q|: columns are rounded one after the other, those with
 * the largest inputs first, and the error of each is made up for, as far as it can be, by the
 * columns that are still to come.  Grids are chosen before, from the weights as they were.
 *
 * The first columns could not know what the last would need.  So single codes are then changed, in
 * the same order, a few times round, while that lessens the error.
 *
 * Sources: Frantar et al. 2022, "GPTQ"; its U is the upper triangle with H^-1 = U^T U.  Behdin et
 * al. 2023, "QuantEase", for the descent behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GPTQ_H
#define FT_CALIBRATE_WEIGHTS_GPTQ_H

#include "calibrate/weights/groupwise.h"
#include "runtime/error.h"

/* What rounding needs to know about the inputs of a matrix. */
typedef struct ft_gptq {
    size_t cols;
    size_t *order; /* [cols]: the columns in the order in which they are rounded */
    size_t dead;   /* the last ones in it, whose inputs were always 0: so are their weights */
    float *upper;  /* [cols, cols], in that order: U */
    int sweeps;    /* rounds of single changes at most; 0: none */

    const double *moments; /* borrowed: H, to whose diagonal is added ... */
    double damping;        /* ... this */
} ft_gptq;

/*
 * Make ready for matrices with these inputs.
 *
 *   moments  [cols, cols], symmetric; borrowed
 *
 * A hundredth of the mean of its diagonal is added to the diagonal: inputs that were few, or depend
 * on each other, say little about what the errors of others cost.  FT_ENOMEM; FT_EFORMAT, with
 * `name`, where moments are none.
 */
FT_MUST_USE ft_status ft_gptq_init(ft_gptq *gptq, const double *moments, size_t cols,
                                   const char *name, ft_error *err);
void ft_gptq_fini(ft_gptq *gptq); /* takes a zeroed or failed one too */

/* An ft_blocks_round, whose user is an ft_gptq. */
void ft_gptq_round(const void *gptq, ft_blocks_panel *panel, const ft_blocks_how *how);

#endif
