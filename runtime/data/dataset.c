/*
 * dataset.c - datasets of token sequences or images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/model/pixels.h"

#include <stdlib.h>
#include <string.h>

size_t ft_dataset_pixel_count(const ft_dataset *dataset)
{
    return (size_t) (dataset->image[0] * dataset->image[1] * dataset->image[2]);
}

bool ft_dataset_has_images(const ft_dataset *dataset)
{
    return dataset->pixels != NULL || dataset->reader.read != NULL;
}

ft_status ft_dataset_read_pixels(const ft_dataset *dataset, size_t row, float *out, ft_error *err)
{
    size_t pixels = ft_dataset_pixel_count(dataset);
    const ft_pixel_reader *reader = &dataset->reader;
    if (dataset->pixels == NULL)
        return reader->read(reader->user, dataset->first + row, out, err);
    memcpy(out, dataset->pixels + row * pixels, pixels * sizeof *out);
    return FT_OK;
}

ft_dataset ft_dataset_slice(const ft_dataset *dataset, size_t first, size_t rows)
{
    size_t skipped = first * dataset->cols, targets = first * dataset->target_cols;
    return (ft_dataset){
        .rows = ft_min_size(rows, dataset->rows - first),
        .cols = dataset->cols,
        .ids = dataset->ids == NULL ? NULL : dataset->ids + skipped,
        .mask = dataset->mask == NULL ? NULL : dataset->mask + skipped,
        .types = dataset->types == NULL ? NULL : dataset->types + skipped,
        .labels = dataset->labels == NULL ? NULL : dataset->labels + first,
        .float_label_cols = dataset->float_label_cols,
        .float_labels = dataset->float_labels == NULL
                            ? NULL
                            : dataset->float_labels + first * dataset->float_label_cols,
        .token_labels = dataset->token_labels == NULL ? NULL : dataset->token_labels + skipped,
        .pixels = dataset->pixels == NULL
                      ? NULL
                      : dataset->pixels + first * ft_dataset_pixel_count(dataset),
        .reader = dataset->reader,
        .first = dataset->first + first,
        .image = { dataset->image[0], dataset->image[1], dataset->image[2] },
        .target_cols = dataset->target_cols,
        .target_ids = dataset->target_ids == NULL ? NULL : dataset->target_ids + targets,
        .target_mask = dataset->target_ids == NULL ? NULL : dataset->target_mask + targets,
        .target_labels = dataset->target_labels == NULL ? NULL : dataset->target_labels + targets,
    };
}

/* Number of tokens in a row of a mask; without a mask all are tokens. */
static size_t count_tokens(const int32_t *mask, size_t cols, size_t row)
{
    size_t tokens = 0;
    if (mask == NULL)
        return cols;
    for (size_t i = row * cols; i < (row + 1) * cols; i++)
        tokens += mask[i] != 0;
    return tokens;
}

size_t ft_dataset_row_tokens(const ft_dataset *dataset, size_t row)
{
    size_t tokens = count_tokens(dataset->mask, dataset->cols, row), target = 0;
    if (dataset->target_ids != NULL)
        target = count_tokens(dataset->target_mask, dataset->target_cols, row);
    return tokens > target ? tokens : target;
}

size_t ft_dataset_tokens(const ft_dataset *dataset)
{
    size_t tokens = 0;
    for (size_t row = 0; row < dataset->rows; row++)
        tokens += ft_dataset_row_tokens(dataset, row);
    return tokens;
}

static size_t count_all_tokens(const int32_t *mask, size_t cols, size_t rows)
{
    size_t tokens = 0;
    for (size_t row = 0; row < rows; row++)
        tokens += count_tokens(mask, cols, row);
    return tokens;
}

size_t ft_dataset_source_tokens(const ft_dataset *dataset)
{
    return count_all_tokens(dataset->mask, dataset->cols, dataset->rows);
}

size_t ft_dataset_target_tokens(const ft_dataset *dataset)
{
    return count_all_tokens(dataset->target_mask, dataset->target_cols, dataset->rows);
}

size_t ft_dataset_max_context(const ft_dataset *dataset)
{
    return dataset->target_ids != NULL ? dataset->target_cols : dataset->cols;
}

size_t ft_dataset_max_length(const ft_dataset *dataset)
{
    return dataset->cols > dataset->target_cols ? dataset->cols : dataset->target_cols;
}

size_t ft_dataset_batch_rows(const ft_dataset *dataset, size_t first, size_t tokens,
                             size_t sequences)
{
    size_t count = 0, used = 0;
    while (first + count < dataset->rows && count < sequences) {
        used += ft_dataset_row_tokens(dataset, first + count);
        if (used > tokens && count > 0)
            break;
        count++;
    }
    return count;
}

static ft_status set_input(ft_session *session, const char *name, int32_t *numbers, size_t rows,
                           size_t cols, ft_error *err)
{
    const ft_tensor tensor = {
        .dtype = FT_I32, .ndim = 2, .dim = { (int64_t) rows, (int64_t) cols }, .data = numbers
    };
    return numbers == NULL ? FT_OK : ft_session_set(session, name, &tensor, err);
}

static ft_status set_pixel_values(ft_session *session, const ft_dataset *d, float *pixels,
                                  ft_error *err)
{
    const ft_tensor tensor = {
        .dtype = FT_F32,
        .ndim = 4,
        .dim = { (int64_t) d->rows, d->image[0], d->image[1], d->image[2] },
        .data = pixels,
    };
    return ft_session_set(session, FT_PIXEL_VALUES, &tensor, err);
}

/* The session copies the pixels of the batch. */
static ft_status set_read_pixels(ft_session *session, const ft_dataset *d, ft_error *err)
{
    size_t pixels = ft_dataset_pixel_count(d), all;
    float *batch = ft_checked_mul(d->rows, pixels, &all) ? ft_calloc(all, sizeof *batch) : NULL;
    if (batch == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a batch of %zu images", d->rows);
    ft_status status = FT_OK;
    for (size_t row = 0; row < d->rows && status == FT_OK; row++)
        status = ft_dataset_read_pixels(d, row, batch + row * pixels, err);
    if (status == FT_OK)
        status = set_pixel_values(session, d, batch, err);
    free(batch);
    return status;
}

ft_status ft_dataset_set_inputs(const ft_dataset *dataset, size_t first, size_t count,
                                ft_session *session, ft_error *err)
{
    ft_dataset d = ft_dataset_slice(dataset, first, count);
    if (d.pixels != NULL)
        return set_pixel_values(session, &d, d.pixels, err);
    if (ft_dataset_has_images(&d))
        return set_read_pixels(session, &d, err);
    FT_TRY(set_input(session, "input_ids", d.ids, d.rows, d.cols, err));
    FT_TRY(set_input(session, "attention_mask", d.mask, d.rows, d.cols, err));
    FT_TRY(set_input(session, "token_type_ids", d.types, d.rows, d.cols, err));
    FT_TRY(set_input(session, "decoder_input_ids", d.target_ids, d.rows, d.target_cols, err));
    return set_input(session, "decoder_attention_mask", d.target_mask, d.rows, d.target_cols, err);
}

void ft_dataset_fini(ft_dataset *dataset)
{
    if (dataset->reader.close != NULL)
        dataset->reader.close(dataset->reader.user);
    free(dataset->ids);
    free(dataset->pixels);
    free(dataset->mask);
    free(dataset->types);
    free(dataset->labels);
    free(dataset->float_labels);
    free(dataset->token_labels);
    free(dataset->span_labels);
    free(dataset->target_ids);
    free(dataset->target_mask);
    free(dataset->target_labels);
    memset(dataset, 0, sizeof *dataset);
}
