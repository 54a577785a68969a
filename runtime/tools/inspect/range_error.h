/*
 * range_error.h - what the range of a point costs its float values, apart from all other errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_RANGE_ERROR_H
#define FT_RUNTIME_TOOLS_INSPECT_RANGE_ERROR_H

#include "kernels/count.h"
#include "runtime/error.h"

typedef struct ft_range_error {
    float amax;      /* the range */
    float best_amax; /* the range with the highest SQNR, of those tried */
    float max;       /* the largest magnitude */
    double clipped;  /* fraction of the values beyond the range */
    double sqnr_db;  /* of the values quantized with the range; infinite without an error */
    double best_db;  /* with the best range */
} ft_range_error;

/*
 * Measure the range `amax` on counted values, which are finalized.  The ranges tried are the
 * largest magnitude times 2^(-k/8), k = 0 .. 48, and `amax` itself, so best_db >= sqnr_db.
 * FT_ENOMEM; FT_EFORMAT, with `name`, if a NaN or an infinity was counted.
 */
FT_MUST_USE ft_status ft_range_error_measure(ft_range_error *out, const char *name,
                                             ft_counts *counts, float amax, ft_error *err);

#endif
