/*
 * beam_search.h - one step of beam search, on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_SAMPLING_BEAM_SEARCH_H
#define FT_KERNELS_CPU_SAMPLING_BEAM_SEARCH_H

#include "kernels/beam_search.h"
#include "kernels/cpu/base/rows.h"

/* The candidates of one beam in descending order; the first 0 ends the list. */
typedef struct ft_beam_candidates {
    uint64_t candidate[FT_BEAM_CANDIDATES];
    bool failed; /* a logit is NaN */
} ft_beam_candidates;

/*
 * Computes the best candidates of an active beam from its row of logits; `values` is a buffer of
 * one row. Only reads the search state.
 */
void ft_cpu_beam_search_row(const ft_row_kernels *kernels, const ft_beam_state *memory,
                            const ft_beam_params *beams, int32_t beam, const float *logits,
                            float *values, ft_beam_candidates *out);

/*
 * Merges the lists of all beams, [width], into the beams of the next step; lists of inactive beams
 * are not read.
 */
void ft_cpu_beam_search_merge(const ft_beam_state *memory, const ft_beam_params *beams,
                              ft_beam_candidates *lists);

#endif
