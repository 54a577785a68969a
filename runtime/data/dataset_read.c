/*
 * dataset_read.c - read a safetensors file as a dataset and validate it against a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"

#include "runtime/data/target_labels.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/model/pixels.h"
#include "runtime/container/file_type.h"
#include "runtime/container/safetensors.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    const char *path;
    const ft_safetensors *file;
    bool allow_long_rows; /* rows may be longer than the model's positions */
} source;

/* "[3]" or "[0][3]": the index of element i of a vector or a matrix. */
static const char *format_index(char *out, size_t size, const ft_tensor *tensor, size_t i)
{
    size_t cols = (size_t) tensor->dim[tensor->ndim - 1];
    if (tensor->ndim == 1)
        snprintf(out, size, "[%zu]", i);
    else
        snprintf(out, size, "[%zu][%zu]", i / cols, i % cols);
    return out;
}

/* Copy a tensor of integers from `low` to `high` - 1. */
static ft_status copy_integers(int32_t **out, const source *from, const char *name, int32_t low,
                               int64_t high, ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, name);
    size_t count = ft_tensor_numel(tensor);
    if (tensor->dtype != FT_I32 && tensor->dtype != FT_I64)
        return ft_fail(err, FT_EFORMAT, "%s: %s: dtype %s, expected I32 or I64", from->path, name,
                       ft_dtype_name(tensor->dtype));
    *out = ft_calloc(count, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: %s: no memory for %zu elements", from->path, name,
                       count);
    for (size_t i = 0; i < count; i++) {
        int64_t number = ft_tensor_get_i64(tensor, i);
        char index_text[48];
        if (number < low || number >= high)
            return ft_fail(err, FT_EFORMAT, "%s: %s%s is %" PRId64 ", expected %d to %" PRId64,
                           from->path, name, format_index(index_text, sizeof index_text, tensor, i),
                           number, low, high - 1);
        (*out)[i] = (int32_t) number;
    }
    return FT_OK;
}

static ft_status check_shape(const source *from, const char *name, int ndim, const int64_t *dim,
                             ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, name);
    char found[FT_SHAPE_TEXT], expected[FT_SHAPE_TEXT];
    if (tensor->ndim == ndim && memcmp(tensor->dim, dim, (size_t) ndim * sizeof *dim) == 0)
        return FT_OK;
    return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected %s", from->path, name,
                   ft_shape_text(found, tensor->ndim, tensor->dim),
                   ft_shape_text(expected, ndim, dim));
}

static ft_status read_ids(ft_dataset *out, const source *from, const ft_model *model, ft_error *err)
{
    const ft_tensor *ids = ft_safetensors_find(from->file, "input_ids");
    char shape[FT_SHAPE_TEXT];
    if (ids == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: no tensor \"input_ids\"", from->path);
    if (ids->ndim != 2)
        return ft_fail(err, FT_ESHAPE, "%s: input_ids: shape %s, expected [samples, positions]",
                       from->path, ft_shape_text(shape, ids->ndim, ids->dim));
    if (ft_tensor_numel(ids) == 0)
        return ft_fail(err, FT_ESHAPE, "%s: input_ids: shape %s: there are no samples", from->path,
                       ft_shape_text(shape, ids->ndim, ids->dim));
    int32_t positions = ft_model_get_info(model).max_positions;
    if (ids->dim[1] > positions && !from->allow_long_rows)
        return ft_fail(err, FT_ELIMIT, "%s: input_ids: %" PRId64 " positions, but the model has %d",
                       from->path, ids->dim[1], positions);
    out->rows = (size_t) ids->dim[0];
    out->cols = (size_t) ids->dim[1];
    return copy_integers(&out->ids, from, "input_ids", 0, model->config.vocabulary, err);
}

/* The first lengths[i] positions of row i are tokens; NULL: all are. */
static ft_status make_mask(ft_dataset *out, const int32_t *lengths, ft_error *err)
{
    size_t count = out->rows * out->cols;
    out->mask = ft_calloc(count, sizeof *out->mask);
    if (out->mask == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a mask of %zu elements", count);
    for (size_t i = 0; i < count; i++)
        out->mask[i] = lengths == NULL || i % out->cols < (size_t) lengths[i / out->cols];
    return FT_OK;
}

static void mask_padding(int32_t *mask, const int32_t *ids, size_t count, int32_t pad_id)
{
    for (size_t i = 0; i < count; i++)
        mask[i] = mask[i] != 0 && ids[i] != pad_id;
}

/* Read attention_mask, or else lengths; without both there is no padding. */
static ft_status read_mask(ft_dataset *out, const source *from, const ft_model *model,
                           ft_error *err)
{
    int64_t dim[2] = { (int64_t) out->rows, (int64_t) out->cols };
    int32_t *lengths = NULL;
    out->has_mask = true;
    if (ft_safetensors_find(from->file, "attention_mask") != NULL) {
        FT_TRY(check_shape(from, "attention_mask", 2, dim, err));
        return copy_integers(&out->mask, from, "attention_mask", 0, 2, err);
    }
    if (ft_safetensors_find(from->file, "lengths") == NULL) {
        out->has_mask = false;
        FT_TRY(make_mask(out, NULL, err));
        if (ft_config_is_encoder_decoder(&model->config))
            mask_padding(out->mask, out->ids, out->rows * out->cols, model->config.pad_id);
        return FT_OK;
    }
    FT_TRY(check_shape(from, "lengths", 1, dim, err));
    ft_status status = copy_integers(&lengths, from, "lengths", 1, dim[1] + 1, err);
    if (status == FT_OK)
        status = make_mask(out, lengths, err);
    free(lengths);
    return status;
}

/* ---- Targets ------------------------------------------------------------------------------ */

/* Take T from the tensor `name` [rows, T]. */
static ft_status read_target_cols(ft_dataset *out, const source *from, const char *name,
                                  const ft_model *model, ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, name);
    char shape[FT_SHAPE_TEXT];
    int32_t positions = ft_model_get_info(model).max_positions;
    if (tensor->ndim != 2 || (size_t) tensor->dim[0] != out->rows || tensor->dim[1] < 1)
        return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected [%zu, positions]", from->path,
                       name, ft_shape_text(shape, tensor->ndim, tensor->dim), out->rows);
    if (tensor->dim[1] > positions)
        return ft_fail(err, FT_ELIMIT, "%s: %s: %" PRId64 " positions, but the model has %d",
                       from->path, name, tensor->dim[1], positions);
    out->target_cols = (size_t) tensor->dim[1];
    return FT_OK;
}

/* The start token may have the padding id: the first position of a row is always a token. */
static ft_status mask_target_padding(ft_dataset *out, const source *from, int32_t pad_id,
                                     ft_error *err)
{
    size_t count = out->rows * out->target_cols;
    out->target_mask = ft_calloc(count, sizeof *out->target_mask);
    if (out->target_mask == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a mask of %zu elements", from->path,
                       count);
    for (size_t i = 0; i < count; i++)
        out->target_mask[i] = i % out->target_cols == 0 || out->target_ids[i] != pad_id;
    return FT_OK;
}

static ft_status read_decoder_ids(ft_dataset *out, const source *from, const ft_model *model,
                                  ft_error *err)
{
    const ft_config *config = &model->config;
    FT_TRY(read_target_cols(out, from, "decoder_input_ids", model, err));
    FT_TRY(copy_integers(&out->target_ids, from, "decoder_input_ids", 0, config->vocabulary, err));
    if (ft_safetensors_find(from->file, "decoder_attention_mask") == NULL)
        return mask_target_padding(out, from, config->pad_id, err);
    int64_t dim[2] = { (int64_t) out->rows, (int64_t) out->target_cols };
    FT_TRY(check_shape(from, "decoder_attention_mask", 2, dim, err));
    return copy_integers(&out->target_mask, from, "decoder_attention_mask", 0, 2, err);
}

/* The next token of each target. Padding, by its id or as any negative number, is -1. */
static ft_status read_target_labels(ft_dataset *out, const source *from, const ft_model *model,
                                    ft_error *err)
{
    const ft_config *config = &model->config;
    FT_TRY(copy_integers(&out->target_labels, from, "labels", -100, config->vocabulary, err));
    for (size_t i = 0; i < out->rows * out->target_cols; i++)
        if (out->target_labels[i] < 0 || out->target_labels[i] == config->pad_id)
            out->target_labels[i] = -1;
    return FT_OK;
}

static ft_status read_shifted_labels(ft_dataset *out, const source *from, const ft_model *model,
                                     ft_error *err)
{
    FT_TRY(read_target_cols(out, from, "labels", model, err));
    FT_TRY(read_target_labels(out, from, model, err));
    return ft_dataset_shift_labels(out, &model->config, err);
}

static ft_status read_targets(ft_dataset *out, const source *from, const ft_model *model,
                              ft_error *err)
{
    if (!ft_config_is_encoder_decoder(&model->config))
        return FT_OK;
    const ft_tensor *ids = ft_safetensors_find(from->file, "decoder_input_ids");
    const ft_tensor *labels = ft_safetensors_find(from->file, "labels");
    if (ids == NULL)
        return labels != NULL ? read_shifted_labels(out, from, model, err) : FT_OK;
    FT_TRY(read_decoder_ids(out, from, model, err));
    bool same_shape = labels != NULL && labels->ndim == 2 && labels->dim[0] == ids->dim[0] &&
                      labels->dim[1] == ids->dim[1];
    return same_shape ? read_target_labels(out, from, model, err) : FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

/* [N, C], or [N] for one label. */
static ft_status check_float_labels_shape(const source *from, int64_t rows, int64_t labels,
                                          ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, "labels");
    const int64_t dim[2] = { rows, labels };
    char found[FT_SHAPE_TEXT];
    if (labels > 1)
        return check_shape(from, "labels", 2, dim, err);
    if (tensor->ndim == 1 && tensor->dim[0] == rows)
        return FT_OK;
    if (tensor->ndim == 2 && memcmp(tensor->dim, dim, sizeof dim) == 0)
        return FT_OK;
    return ft_fail(err, FT_ESHAPE,
                   "%s: labels: shape %s, expected [%" PRId64 "] or [%" PRId64 ", 1]", from->path,
                   ft_shape_text(found, tensor->ndim, tensor->dim), rows, rows);
}

/* Labels of multi-label and regression models. */
static ft_status read_float_labels(ft_dataset *out, const source *from, const ft_config *config,
                                   ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, "labels");
    bool is_regression = config->problem_type == FT_PROBLEM_REGRESSION;
    size_t count = ft_tensor_numel(tensor);
    FT_TRY(check_float_labels_shape(from, (int64_t) out->rows, config->labels, err));
    if (tensor->dtype != FT_I32 && tensor->dtype != FT_I64 && tensor->dtype != FT_F32)
        return ft_fail(err, FT_EFORMAT, "%s: labels: dtype %s, expected I32, I64 or F32",
                       from->path, ft_dtype_name(tensor->dtype));
    out->float_label_cols = (size_t) config->labels;
    out->float_labels = ft_calloc(count, sizeof *out->float_labels);
    if (out->float_labels == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: labels: no memory for %zu elements", from->path, count);
    for (size_t i = 0; i < count; i++) {
        float number = ft_tensor_get_f32(tensor, i);
        char index_text[48];
        if (is_regression ? !isfinite(number) : number != 0.0f && number != 1.0f)
            return ft_fail(err, FT_EFORMAT, "%s: labels%s is %g, expected %s", from->path,
                           format_index(index_text, sizeof index_text, tensor, i), (double) number,
                           is_regression ? "a finite number" : "0 or 1");
        out->float_labels[i] = number;
    }
    return FT_OK;
}

/* Labels of tokens: classes, or ids of a masked language model. All negative ones are ignored. */
static ft_status read_token_labels(ft_dataset *out, const source *from, const ft_config *config,
                                   ft_error *err)
{
    const int64_t dim[2] = { (int64_t) out->rows, (int64_t) out->cols };
    int32_t labels = config->head == FT_HEAD_TOKENS ? config->labels : config->vocabulary;
    FT_TRY(check_shape(from, "labels", 2, dim, err));
    FT_TRY(copy_integers(&out->token_labels, from, "labels", -100, labels, err));
    for (size_t i = 0; i < out->rows * out->cols; i++)
        out->token_labels[i] = out->token_labels[i] < 0 ? -1 : out->token_labels[i];
    return FT_OK;
}

/* Positions of answers. */
static ft_status read_span_labels(ft_dataset *out, const source *from, ft_error *err)
{
    static const char *const name[] = { "start_positions", "end_positions" };
    const int64_t rows = (int64_t) out->rows;
    if (ft_safetensors_find(from->file, name[0]) == NULL ||
        ft_safetensors_find(from->file, name[1]) == NULL)
        return FT_OK;
    out->span_labels = ft_calloc(out->rows, 2 * sizeof *out->span_labels);
    if (out->span_labels == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu positions", from->path, out->rows);
    for (size_t i = 0; i < 2; i++) {
        int32_t *positions = NULL;
        FT_TRY(check_shape(from, name[i], 1, &rows, err));
        ft_status status = copy_integers(&positions, from, name[i], 0, (int64_t) out->cols, err);
        if (status == FT_OK)
            memcpy(out->span_labels + i * out->rows, positions, out->rows * sizeof *positions);
        free(positions);
        FT_TRY(status);
    }
    return FT_OK;
}

/* Class indices, or the labels of multi-label and regression models. */
static ft_status read_labels(ft_dataset *out, const source *from, const ft_model *model,
                             ft_error *err)
{
    int64_t rows = (int64_t) out->rows;
    ft_head head = model->config.head;
    if (head == FT_HEAD_SPAN)
        return read_span_labels(out, from, err);
    if (ft_safetensors_find(from->file, "labels") == NULL || head == FT_HEAD_NONE)
        return FT_OK;
    if (head == FT_HEAD_TOKENS || head == FT_HEAD_LM)
        return read_token_labels(out, from, &model->config, err);
    if (model->config.problem_type != FT_PROBLEM_SINGLE)
        return read_float_labels(out, from, &model->config, err);
    FT_TRY(check_shape(from, "labels", 1, &rows, err));
    return copy_integers(&out->labels, from, "labels", 0, model->config.labels, err);
}

static ft_status read_images(ft_dataset *out, const source *from, const ft_model *model,
                             ft_error *err)
{
    const ft_tensor *tensor = ft_safetensors_find(from->file, FT_PIXEL_VALUES);
    char what[FT_NAME + 256];
    if (tensor == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: no tensor \"%s\"", from->path, FT_PIXEL_VALUES);
    snprintf(what, sizeof what, "%.250s: %s", from->path, FT_PIXEL_VALUES);
    ft_tensor copy = *tensor; /* tensors in files may be unaligned */
    copy.data = out->pixels = ft_calloc_aligned(ft_tensor_bytes(tensor) + 1);
    if (out->pixels == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", what,
                       ft_tensor_bytes(tensor));
    memcpy(out->pixels, tensor->data, ft_tensor_bytes(tensor));
    FT_TRY(ft_pixels_check(&model->config, &copy, what, err));
    memcpy(out->image, tensor->dim + 1, sizeof out->image);
    out->rows = (size_t) tensor->dim[0];
    out->cols = (size_t) model->config.positions;
    return read_labels(out, from, model, err);
}

static bool is_padding(const int32_t *mask, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mask[i] != 0)
            return false;
    return true;
}

static ft_status read_rest(ft_dataset *out, const source *from, const ft_model *model,
                           ft_error *err)
{
    int64_t dim[2] = { (int64_t) out->rows, (int64_t) out->cols };
    FT_TRY(read_mask(out, from, model, err));
    if (ft_safetensors_find(from->file, "token_type_ids") != NULL && model->config.types > 0) {
        FT_TRY(check_shape(from, "token_type_ids", 2, dim, err));
        FT_TRY(copy_integers(&out->types, from, "token_type_ids", 0, model->config.types, err));
    }
    FT_TRY(read_labels(out, from, model, err));
    FT_TRY(read_targets(out, from, model, err));
    for (size_t row = 0; row < out->rows; row++)
        if (is_padding(out->mask + row * out->cols, out->cols))
            return ft_fail(err, FT_EFORMAT, "%s: attention_mask: row %zu is all padding",
                           from->path, row);
    return FT_OK;
}

static ft_status read_inputs(ft_dataset *out, const source *from, const ft_model *model,
                             ft_error *err)
{
    if (ft_config_is_vision(&model->config))
        return read_images(out, from, model, err);
    FT_TRY(read_ids(out, from, model, err));
    return read_rest(out, from, model, err);
}

static ft_status read_file(ft_dataset *out, const char *path, const ft_model *model,
                           bool allow_long_rows, ft_error *err)
{
    ft_safetensors *file;
    memset(out, 0, sizeof *out);
    ft_status status = ft_safetensors_open(&file, path, err);
    if (status != FT_OK)
        return ft_explain_wrong_file(path, FT_EXPECTED_DATA, status, err);
    source from = { path, file, allow_long_rows };
    status = read_inputs(out, &from, model, err);
    ft_safetensors_close(file);
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}

ft_status ft_dataset_read(ft_dataset *out, const char *path, const ft_model *model, ft_error *err)
{
    return read_file(out, path, model, false, err);
}

/* ---- Splitting ------------------------------------------------------------------------------ */

/* Split the tokens of each row of `from` into rows of `out`, whose cols is set. */
static size_t split_rows(ft_dataset *out, const ft_dataset *from)
{
    size_t row = 0;
    for (size_t r = 0; r < from->rows; r++) {
        size_t col = 0;
        for (size_t i = r * from->cols; i < (r + 1) * from->cols; i++) {
            if (from->mask[i] == 0)
                continue;
            if (col == out->cols) {
                col = 0;
                row++;
            }
            out->ids[row * out->cols + col] = from->ids[i];
            out->mask[row * out->cols + col++] = 1;
        }
        row++;
    }
    return row;
}

ft_status ft_dataset_read_chunked(ft_dataset *out, const char *path, const ft_model *model,
                                  size_t cols, ft_error *err)
{
    ft_dataset unsplit;
    memset(out, 0, sizeof *out);
    FT_TRY(read_file(&unsplit, path, model, true, err));
    out->cols = ft_min_size(cols, unsplit.cols);
    size_t max_rows = unsplit.rows * ((unsplit.cols - 1) / out->cols + 1);
    out->ids = ft_calloc(max_rows * out->cols, sizeof *out->ids);
    out->mask = ft_calloc(max_rows * out->cols, sizeof *out->mask);
    out->has_mask = true;
    ft_status status = FT_OK;
    if (out->ids != NULL && out->mask != NULL)
        out->rows = split_rows(out, &unsplit);
    else
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for rows of %zu tokens", path, out->cols);
    ft_dataset_fini(&unsplit);
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}
