/*
 * dataset.h - datasets of token sequences or images, for ft-run and ft-calibrate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_DATASET_H
#define FT_RUNTIME_DATA_DATASET_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Reads the pixel values of one image at a time, so that memory holds those of a batch: `read`
 * writes [channels, height, width] floats of row `row`, also from several threads at once; `close`
 * frees `user`. Zero-initialized means none.
 */
typedef struct ft_pixel_reader {
    ft_status (*read)(const void *user, size_t row, float *out, ft_error *err);
    void (*close)(void *user);
    void *user;
} ft_pixel_reader;

/*
 * Matrices [rows, cols]; the tokens of a row are where its mask is not 0. For images, which have
 * neither ids nor a mask, rows are images and cols is the sequence length of an image.
 */
typedef struct ft_dataset {
    size_t rows, cols;
    int32_t *ids;
    int32_t *mask;
    int32_t *types;  /* NULL: all 0 */
    int32_t *labels; /* [rows]: class indices; NULL: none */
    size_t float_label_cols;
    float
        *float_labels; /* [rows, float_label_cols]: multi-label or regression labels; NULL: none */
    int32_t *token_labels; /* [rows, cols] of models with a head for tokens; -1: ignored */
    int32_t *span_labels;  /* [2, rows] of question answering: positions of start and end */
    bool has_mask;         /* the file has a mask or lengths; else all are tokens */
    float *pixels; /* [rows, channels, height, width]; NULL for texts, or if `reader` has them */
    ft_pixel_reader reader; /* of images that are not in memory */
    size_t first;           /* its row that is row 0 here */
    int64_t image[3];

    /* Decoder inputs of an encoder-decoder; NULL: none. */
    size_t target_cols;
    int32_t *target_ids, *target_mask; /* [rows, target_cols] */
    int32_t *target_labels;            /* the next token of each; -1: ignored; NULL: no labels */
} ft_dataset;

/*
 * Read `input_ids` [N, S] and, if present, `attention_mask`, `token_type_ids` (same shape) and
 * `labels` [N], I32 or I64, from a safetensors file, and validate them against the model: at least
 * one row, no row without tokens, ids within the vocabulary, no longer than the position
 * embeddings. For multi-label models, `labels` are 0 or 1, for regression any finite numbers: [N,
 * C], or [N] for one label, and F32 is allowed too. For token classification and masked language
 * models they are [N, S], negative where there is no label; for question answering
 * `start_positions` and `end_positions` [N] take their place. Without a mask, `lengths` [N] may
 * give the number of leading tokens in each row.
 *
 * For an encoder-decoder these are encoder inputs, in which the padding id also marks padding. The
 * decoder inputs are `decoder_input_ids` [N, T], whose padding makes `decoder_attention_mask`
 * optional, or else `labels` [N, T], which are shifted right by one position after the start token;
 * -100 is padding too. Labels in addition to `decoder_input_ids` are ignored unless they have the
 * same shape. Errors name file, tensor, position, found and expected.
 */
FT_MUST_USE ft_status ft_dataset_read(ft_dataset *out, const char *path, const ft_model *model,
                                      ft_error *err);

/*
 * For a vision model, ft_dataset_read reads `pixel_values` [N, channels, height, width] F32 and
 * `labels`.
 */

/* The same for rows of any length, which are split into rows of at most `cols` tokens. */
FT_MUST_USE ft_status ft_dataset_read_chunked(ft_dataset *out, const char *path,
                                              const ft_model *model, size_t cols, ft_error *err);

/* At most `rows` rows from `first` on: a view, which must not be freed. */
ft_dataset ft_dataset_slice(const ft_dataset *dataset, size_t first, size_t rows);

/* Whether rows are images; the number of elements of one; and those of a row, which are copied. */
bool ft_dataset_has_images(const ft_dataset *dataset);
size_t ft_dataset_pixel_count(const ft_dataset *dataset);
FT_MUST_USE ft_status ft_dataset_read_pixels(const ft_dataset *dataset, size_t row, float *out,
                                             ft_error *err);

/*
 * Number of tokens that a forward pass has for one row, the larger of source and target, and for
 * all rows.
 */
size_t ft_dataset_row_tokens(const ft_dataset *dataset, size_t row);
size_t ft_dataset_tokens(const ft_dataset *dataset);

/* Number of tokens of all texts (encoder inputs of an encoder-decoder), and of all targets. */
size_t ft_dataset_source_tokens(const ft_dataset *dataset);
size_t ft_dataset_target_tokens(const ft_dataset *dataset);

/*
 * The longest sequence that the KV cache must hold, for an encoder-decoder a target; and the
 * longest that a forward pass reads.
 */
size_t ft_dataset_max_context(const ft_dataset *dataset);
size_t ft_dataset_max_length(const ft_dataset *dataset);

/*
 * Number of rows from `first` on that fit into one batch of `tokens` tokens and `sequences` rows;
 * >= 1.
 */
size_t ft_dataset_batch_rows(const ft_dataset *dataset, size_t first, size_t tokens,
                             size_t sequences);

/* Set the session's inputs to rows first .. first + count - 1. */
FT_MUST_USE ft_status ft_dataset_set_inputs(const ft_dataset *dataset, size_t first, size_t count,
                                            ft_session *session, ft_error *err);

void ft_dataset_fini(ft_dataset *dataset);

#pragma GCC visibility pop

#endif
