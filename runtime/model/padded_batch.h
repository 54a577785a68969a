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

enum { FT_INPUT_IDS, FT_INPUT_MASK, FT_INPUT_TYPES, FT_NUM_INPUTS };

/* Limits of the inputs. */
typedef struct ft_padded_batch_limits {
    const char *name[FT_NUM_INPUTS]; /* "input_ids", ...; NULL: the model has no such input */
    size_t tokens, sequences;        /* per forward pass */
    int64_t positions;               /* per sequence ... */
    const char *limited_by;          /* ... and what imposes this limit, for messages: "model" */
    bool needs_first_token;          /* the model pools the first token, so it must not be masked */
} ft_padded_batch_limits;

typedef struct ft_padded_batch {
    ft_padded_batch_limits limits;
    ft_tensor input[FT_NUM_INPUTS]; /* [rows, cols], copies; data NULL: not set */
    size_t rows, cols;

    /* Set by ft_padded_batch_pack(). */
    size_t tokens, longest;
    int32_t *start; /* [rows + 1]: cumulative sequence lengths */
    size_t
        *index; /* [tokens]: index of each packed row in the padded matrix, row * cols + column */
} ft_padded_batch;

/* Allocate for the limits.  Free with ft_padded_batch_fini(), also after an error. */
FT_MUST_USE ft_status ft_padded_batch_init(ft_padded_batch *padded,
                                           const ft_padded_batch_limits *limits, ft_error *err);
void ft_padded_batch_fini(ft_padded_batch *padded);

/* Index of the input with this name, or -1. */
int ft_padded_batch_find_input(const ft_padded_batch *padded, const char *name);

/* Copy an input, I32 or I64 [rows, cols].  Setting the ids clears the other inputs. */
FT_MUST_USE ft_status ft_padded_batch_set(ft_padded_batch *padded, int input,
                                          const ft_tensor *tensor, ft_error *err);

/* Sequences of equal length without id inputs, such as images: every position is a row. */
void ft_padded_batch_fill(ft_padded_batch *padded, size_t rows, size_t cols);

/* Pack: fill in the members above.  FT_ELIMIT: too many tokens; FT_EARG: an empty sequence. */
FT_MUST_USE ft_status ft_padded_batch_pack(ft_padded_batch *padded, ft_error *err);

/* Whether an input is set. */
bool ft_padded_batch_has(const ft_padded_batch *padded, int input);

/* The packed values of an input [tokens], 0 if it is not set.  FT_EARG: outside 0 .. bound - 1. */
FT_MUST_USE ft_status ft_padded_batch_packed_ids(const ft_padded_batch *padded, int input,
                                                 int32_t bound, int32_t *out, ft_error *err);

/*
 * Position ids of the packed rows.  With offset 0 they are the columns, as in BERT.  Otherwise they
 * start at the offset and count the non-padding tokens of the sequence, including masked ones;
 * padding tokens get the padding id, as in RoBERTa.
 */
void ft_padded_batch_positions(const ft_padded_batch *padded, int32_t offset, int32_t padding_id,
                               int32_t *out);

/* Unpack rows of `cols` floats in place to [rows, columns, cols]; other positions become zero. */
void ft_padded_batch_unpack(const ft_padded_batch *padded, float *values, size_t cols);

#endif
