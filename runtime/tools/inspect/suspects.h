/*
 * suspects.h - the ranges and matrices of a quantized model whose scales cost more than they need
 * to.
 *
 * Each is judged by itself: a range on the values that the float model has there, a matrix against
 * the float matrix.  So an error counts where it arises and not where it arrives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_SUSPECTS_H
#define FT_RUNTIME_TOOLS_INSPECT_SUSPECTS_H

#include "runtime/cli/table.h"
#include "runtime/data/dataset.h"
#include "runtime/tools/inspect/range_error.h"
#include "runtime/tools/inspect/weight_error.h"
#include "runtime/model/model.h"

typedef struct ft_suspect {
    char name[FT_NAME];
    bool is_range, is_used;  /* is_used: the quantized plan reads the scale */
    double sqnr_db, best_db; /* of the range, or of the worst group; and what it could be */
    union {
        ft_range_error range;
        ft_weight_error weight;
    };
} ft_suspect;

typedef struct ft_suspects {
    /*
     * [count], the most suspicious first: scales in use that lose at least FT_SUSPICIOUS_LOSS, then
     * all others, both by loss.  A range beyond all values is chosen by no method, so that excess,
     * 20 log10(amax / max), counts as another loss.  Owned.
     */
    ft_suspect *suspect;
    size_t count;
} ft_suspects;

/* What the scale costs, in dB: at least 0. */
double ft_suspect_loss_db(const ft_suspect *suspect);

/* Calibration methods differ by less, so a smaller loss, in dB, proves nothing. */
enum { FT_SUSPICIOUS_LOSS = 5 };

/* "range 8.5, values up to 2.4, best range 2.1". */
enum { FT_SUSPECT_TEXT = 112 };
void ft_suspect_describe(char out[FT_SUSPECT_TEXT], const ft_suspect *suspect);

/*
 * Judge all static ranges and quantized matrices of `quantized` by the float model of the artifact
 * `real_path`, on rows 0 .. samples - 1 of the data.  Free with ft_suspects_fini(), also after a
 * failure.
 */
FT_MUST_USE ft_status ft_suspects_find(ft_suspects *out, const char *real_path,
                                       const ft_model *quantized, const ft_dataset *data,
                                       size_t samples, ft_error *err);
void ft_suspects_fini(ft_suspects *suspects);

/* Fill in a row of a table of ft_suspects: name, lost, found and best dB, and what was found. */
void ft_suspects_fill_row(ft_listing_cell *cell, const void *suspects, size_t row);

#endif
