/*
 * observed_counts.h - counters of what a quantized model quantizes, if its values were exact: those
 * of the float model, divided by what was folded into the quantized one or smooths it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_OBSERVED_COUNTS_H
#define FT_RUNTIME_TOOLS_INSPECT_OBSERVED_COUNTS_H

#include "kernels/count.h"
#include "runtime/data/dataset.h"
#include "runtime/tools/inspect/column_scales.h"

typedef struct ft_observed_counts {
    ft_counts *of_value; /* [count] values of the float plan; zeroed where there is no point.
                            Owned */
    int count;
} ft_observed_counts;

/*
 * Run the float model, opened in mode observe, on rows 0 .. samples - 1, each alone.  `scales` are
 * those of the quantized model.  The counters are finalized.  Free with ft_observed_counts_fini(),
 * also after a failure.  FT_ENOMEM; the errors of running a session.
 */
FT_MUST_USE ft_status ft_observed_counts_measure(ft_observed_counts *out, const ft_model *model,
                                                 const ft_column_scales *scales,
                                                 const ft_dataset *data, size_t samples,
                                                 ft_error *err);
void ft_observed_counts_fini(ft_observed_counts *counts);

#endif
