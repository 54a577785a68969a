/*
 * dataset.h - token ids of many sequences, or many images: what ft-run runs and ft-calibrate
 * observes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_DATASET_H
#define FT_RUNTIME_DATA_DATASET_H

#include "runtime/ft.h"

/*
 * Matrices [rows, cols]; a row's tokens are where its mask is not 0.  Of images, which have neither
 * ids nor a mask, rows are images and columns the rows that each becomes.
 */
typedef struct ft_dataset {
    size_t rows, cols;
    int32_t *ids;
    int32_t *mask;
    int32_t *types;  /* NULL: all 0 */
    int32_t *labels; /* [rows]: the class of each; NULL: none */
    size_t number_cols;
    float *numbers; /* [rows, number_cols]: the labels of a model that tells no single class:
                       whether each holds, or quantities; NULL: none */
    bool masked;    /* the file said where tokens are; else all are */
    float *pixels;  /* [rows, channels, height, width]; NULL: of texts */
    int64_t image[3];

    /* Of an encoder-decoder: what it is to read as its own text so far; NULL: none. */
    size_t target_cols;
    int32_t *target_ids, *target_mask; /* [rows, target_cols] */
    int32_t *target_labels;            /* what follows each; -1: nobody says; NULL: no labels */
} ft_dataset;

/*
 * Read `input_ids` [N, S] and, where present, `attention_mask`, `token_type_ids` (same shape) and
 * `labels` [N], I32 or I64, from a safetensors file, and check them against the model: at least one
 * row, no row without a token, ids inside the vocabulary, no longer than the position table.
 * Where each label may hold, `labels` are 0 or 1, where they are quantities any finite numbers:
 * [N, C], or [N] of one label, and also F32.
 * Without a mask, `lengths` [N] may say how many tokens stand at the front of each row.
 *
 * Of an encoder-decoder these are sources, where padding is also known by its id.  Its targets are
 * `decoder_input_ids` [N, T], by whose padding `decoder_attention_mask` may be left out, or else
 * `labels` [N, T], which are read one place later, behind the start; -100 is padding too.  Labels
 * beside `decoder_input_ids` are ignored unless they have their shape.
 * Errors name file, tensor, place, found and expected.
 */
FT_MUST_USE ft_status ft_dataset_read(ft_dataset *out, const char *path, const ft_model *model,
                                      ft_error *err);

/*
 * Of a model that reads images, the same reads `pixel_values` [N, channels, height, width] F32 and
 * `labels`.
 */

/* The same for rows of any length, which are cut into rows of at most `cols` tokens. */
FT_MUST_USE ft_status ft_dataset_read_cut(ft_dataset *out, const char *path, const ft_model *model,
                                          size_t cols, ft_error *err);

/*
 * Encode texts, one row each, padded behind to the longest.  One that is longer than the model's
 * positions is FT_ELIMIT.  With `truncate`, one of more tokens than ft_model_info.max_seq_length is
 * cut before its closing token instead.
 */
FT_MUST_USE ft_status ft_dataset_encode(ft_dataset *out, const ft_tokenizer *tokenizer,
                                        const ft_model *model, const char *const *texts,
                                        size_t count, bool truncate, ft_error *err);

/* The first `rows` rows at most, or those from `first` on: a view, not to be freed. */
ft_dataset ft_dataset_slice(const ft_dataset *dataset, size_t first, size_t rows);

/* Elements of an image. */
size_t ft_dataset_pixels(const ft_dataset *dataset);

/* Tokens that a run has of one row, of source or target the more, and of all rows. */
size_t ft_dataset_row_tokens(const ft_dataset *dataset, size_t row);
size_t ft_dataset_tokens(const ft_dataset *dataset);

/* Tokens of all texts, which may be sources, and of all targets. */
size_t ft_dataset_text_tokens(const ft_dataset *dataset);
size_t ft_dataset_target_tokens(const ft_dataset *dataset);

/* The longest text that a cache must hold, of an encoder-decoder a target; and that a run reads. */
size_t ft_dataset_context(const ft_dataset *dataset);
size_t ft_dataset_longest(const ft_dataset *dataset);

/* How many rows from `first` on fit into one run of `tokens` tokens and `sequences` rows; >= 1. */
size_t ft_dataset_batch(const ft_dataset *dataset, size_t first, size_t tokens, size_t sequences);

/* Set the session's inputs to rows first .. first + count - 1. */
FT_MUST_USE ft_status ft_dataset_bind(const ft_dataset *dataset, size_t first, size_t count,
                                      ft_session *session, ft_error *err);

void ft_dataset_fini(ft_dataset *dataset);

#endif
