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
typedef struct ft_beam_list {
    uint64_t candidate[FT_BEAM_CANDIDATES];
    bool failed; /* a logit is NaN */
} ft_beam_list;

/*
 * Computes the best candidates of an active beam from its row of logits; `values` is a buffer of
 * one row. Only reads the search state.
 */
void ft_cpu_beam_row(const ft_rows_isa *isa, const ft_beam_memory *memory, const ft_beams *beams,
                     int32_t lane, const float *logits, float *values, ft_beam_list *out);

/*
 * Merges the lists of all beams, [width], into the beams of the next step; lists of inactive beams
 * are not read.
 */
void ft_cpu_beam_merge(const ft_beam_memory *memory, const ft_beams *beams, ft_beam_list *lists);

#endif
