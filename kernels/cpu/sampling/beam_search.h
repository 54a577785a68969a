/*
 * beam_search.h - a step of beam search, on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_SAMPLING_BEAM_SEARCH_H
#define FT_KERNELS_CPU_SAMPLING_BEAM_SEARCH_H

#include "kernels/beam_search.h"
#include "kernels/cpu/base/rows.h"

/* What a lane hands in: candidates in order, none behind the first 0. */
typedef struct ft_beam_list {
    uint64_t candidate[FT_BEAM_CANDIDATES];
    bool failed; /* a logit is NaN */
} ft_beam_list;

/*
 * The best candidates of a live lane from its row of logits; `values` has room for a row.  Only
 * reads the memory.
 */
void ft_cpu_beam_row(const ft_rows_isa *isa, const ft_beam_memory *memory, const ft_beams *beams,
                     int32_t lane, const float *logits, float *values, ft_beam_list *out);

/* The lists of all lanes, [width], become the next lanes; lists of dead lanes are not read. */
void ft_cpu_beam_merge(const ft_beam_memory *memory, const ft_beams *beams, ft_beam_list *lists);

#endif
