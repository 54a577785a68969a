/*
 * padded_batch.h - the caller's padded inputs [sequences, positions], and packing without padding.
 *
 * Unmasked positions are packed into rows, one sequence after the other.  All inputs are validated
 * here, so kernels need not check them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PADDED_BATCH_H
#define FT_RUNTIME_MODEL_PADDED_BATCH_H

#include "kernels/op.h"

enum { FT_INPUT_IDS, FT_INPUT_MASK, FT_INPUT_TYPES, FT_INPUTS };

/* Limits of the inputs. */
typedef struct ft_padded_limits {
    const char *name[FT_INPUTS]; /* "input_ids", ...; NULL: the model has no such input */
    size_t tokens, sequences;    /* per forward pass */
    int64_t positions;           /* per sequence ... */
    const char *whose;           /* ... and what imposes this limit, for messages: "model" */
    bool reads_first;            /* the model pools the first token, so it must not be masked */
} ft_padded_limits;

typedef struct ft_padded {
    ft_padded_limits limits;
    int64_t *input[FT_INPUTS]; /* [rows, cols], copies; NULL: not set */
    size_t rows, cols;

    /* Set by ft_padded_pack(). */
    size_t tokens, longest;
    int32_t *start; /* [rows + 1]: cumulative sequence lengths */
    size_t
        *place; /* [tokens]: index of each packed row in the padded matrix, row * cols + column */
} ft_padded;

/* Allocate for the limits.  Free with ft_padded_fini(), also after an error. */
FT_MUST_USE ft_status ft_padded_init(ft_padded *padded, const ft_padded_limits *limits,
                                     ft_error *err);
void ft_padded_fini(ft_padded *padded);

/* Index of the input with this name, or -1. */
int ft_padded_find(const ft_padded *padded, const char *name);

/* Copy an input, I32 or I64 [rows, cols].  Setting the ids clears the other inputs. */
FT_MUST_USE ft_status ft_padded_set(ft_padded *padded, int input, const ft_tensor *tensor,
                                    ft_error *err);

/* Sequences of equal length without id inputs, such as images: every position is a row. */
void ft_padded_fill(ft_padded *padded, size_t rows, size_t cols);

/* Pack: fill in the members above.  FT_ELIMIT: too many tokens; FT_EARG: an empty sequence. */
FT_MUST_USE ft_status ft_padded_pack(ft_padded *padded, ft_error *err);

/* The packed values of an input [tokens], 0 if it is not set.  FT_EARG: outside 0 .. bound - 1. */
FT_MUST_USE ft_status ft_padded_column(const ft_padded *padded, int input, int32_t bound,
                                       int32_t *out, ft_error *err);

/*
 * Position ids of the packed rows.  With offset 0 they are the columns, as in BERT.  Otherwise they
 * start at the offset and count the non-padding tokens of the sequence, including masked ones;
 * padding tokens get the padding id, as in RoBERTa.
 */
void ft_padded_positions(const ft_padded *padded, int32_t offset, int32_t padding_id, int32_t *out);

/* Unpack rows of `cols` floats in place to [rows, columns, cols]; other positions become zero. */
void ft_padded_unpack(const ft_padded *padded, float *values, size_t cols);

#endif
