/*
 * padded_batch.h - texts as callers give them, in padded matrices, and the rows that become of them.
 *
 * Only the places that a mask keeps become rows, one text after the other.  Everything that could
 * go wrong in a kernel because of an input is refused here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PADDED_BATCH_H
#define FT_RUNTIME_MODEL_PADDED_BATCH_H

#include "kernels/op.h"

enum { FT_INPUT_IDS, FT_INPUT_MASK, FT_INPUT_TYPES, FT_INPUTS };

/* What texts may be. */
typedef struct ft_padded_limits {
    const char *name[FT_INPUTS]; /* "input_ids", ...; NULL: there is no such input */
    size_t tokens, sequences;    /* of a run */
    int64_t positions;           /* of a text ... */
    const char *whose;           /* ... which "the %s has": "model" */
    bool reads_first;            /* the first token of each text is needed */
} ft_padded_limits;

typedef struct ft_padded {
    ft_padded_limits limits;
    int64_t *input[FT_INPUTS]; /* [rows, cols], as given; NULL: not set */
    size_t rows, cols;

    /* Once packed. */
    size_t tokens, longest;
    int32_t *start; /* [rows + 1] */
    size_t *place;  /* [tokens]: where each row came from, row * cols + column */
} ft_padded;

/* Room for runs within limits.  Free with ft_padded_fini(), also after an error. */
FT_MUST_USE ft_status ft_padded_init(ft_padded *padded, const ft_padded_limits *limits,
                                     ft_error *err);
void ft_padded_fini(ft_padded *padded);

/* The input of that name, or -1. */
int ft_padded_find(const ft_padded *padded, const char *name);

/* Copy an input, I32 or I64 [rows, cols].  New ids make the others be forgotten. */
FT_MUST_USE ft_status ft_padded_set(ft_padded *padded, int input, const ft_tensor *tensor,
                                    ft_error *err);

/* Texts of one length without inputs, as images are: every place is a row. */
void ft_padded_fill(ft_padded *padded, size_t rows, size_t cols);

/* Find the rows. */
FT_MUST_USE ft_status ft_padded_pack(ft_padded *padded, ft_error *err);

/* The numbers of an input, 0 where it is not set, one a row: each from 0 to bound - 1. */
FT_MUST_USE ft_status ft_padded_column(const ft_padded *padded, int input, int32_t bound,
                                       int32_t *out, ft_error *err);

/*
 * Positions of rows.  Without an offset they are columns, as in BERT.  With one they begin there
 * and count the tokens of a text that are not padding, also masked ones, and padding tokens have
 * the padding id itself, as in RoBERTa.
 */
void ft_padded_positions(const ft_padded *padded, int32_t offset, int32_t padding_id, int32_t *out);

/* Move packed rows of `cols` floats to their places in [rows, columns, cols]; the rest is zeros. */
void ft_padded_unpack(const ft_padded *padded, float *values, size_t cols);

#endif
