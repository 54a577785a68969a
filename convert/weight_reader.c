/*
 * weight_reader.c - stream one weight of a conversion, rotated where it is to be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/weight_reader.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <stdlib.h>

enum {
    TILE_COLUMNS = 64,    /* where the rotation does not mix columns */
    BAND_VALUES = 1 << 16 /* at least, if the matrix has as many; read at once */
};

static bool is_rotated(const ft_mapped_weight *weight)
{
    const ft_weight_rotation *r = &weight->rotation;
    return r->rows != NULL || r->cols != NULL || r->norm != NULL || r->is_folded;
}

/* A vector is a column. */
static size_t columns_of(const ft_mapped_weight *weight)
{
    return weight->spec.ndim == 2 ? (size_t) weight->spec.dim[1] : 1;
}

static ft_tensor_reader open_values(const ft_mapped_weight *weight, ft_dtype dtype)
{
    return (ft_tensor_reader){
        .checkpoint = weight->checkpoint,
        .source = weight->source,
        .name = weight->spec.name,
        .tensor = weight->tensor,
        .dtype = dtype,
    };
}

void ft_weight_reader_init(ft_weight_reader *out, const ft_mapped_weight *weight)
{
    *out = (ft_weight_reader){
        .weight = weight,
        .source = open_values(weight, is_rotated(weight) ? FT_F32 : weight->dtype),
    };
}

void ft_weight_reader_fini(ft_weight_reader *reader)
{
    free(reader->band);
    free(reader->norm);
    free(reader->tile);
    reader->band = reader->norm = NULL;
    reader->tile = NULL;
}

/* ---- Rotating ------------------------------------------------------------------------------- */

/* Read `n` values as F32. */
static ft_status read_floats(ft_tensor_reader *source, float *out, size_t n, ft_error *err)
{
    size_t bytes;
    for (size_t i = 0; i < n; i += BAND_VALUES) {
        size_t block = ft_min_size(n - i, BAND_VALUES);
        FT_TRY(ft_tensor_reader_read(source, out + i, block * sizeof *out, &bytes, err));
    }
    return FT_OK;
}

static ft_status read_norm(ft_weight_reader *r, ft_error *err)
{
    if (r->weight->rotation.norm == NULL)
        return FT_OK;
    ft_tensor_reader values = open_values(r->weight->rotation.norm, FT_F32);
    r->norm = ft_calloc(r->cols, sizeof *r->norm);
    return r->norm != NULL ? read_floats(&values, r->norm, r->cols, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu factors", r->cols);
}

static ft_status begin(ft_weight_reader *r, ft_error *err)
{
    const ft_weight_rotation *rotation = &r->weight->rotation;
    r->cols = columns_of(r->weight);
    r->tile_rows = rotation->rows != NULL ? rotation->rows->size : 1;
    r->tile_cols =
        rotation->cols != NULL ? rotation->cols->size : ft_min_size(r->cols, TILE_COLUMNS);
    size_t tiles = BAND_VALUES / (r->tile_rows * r->cols);
    r->rows = r->tile_rows * ft_max_size(tiles, 1);
    r->band = ft_calloc(r->rows * r->cols, sizeof *r->band);
    r->tile = ft_calloc(r->tile_rows * r->tile_cols, sizeof *r->tile);
    if (r->band == NULL || r->tile == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows of %zu values",
                       r->weight->source, r->rows, r->cols);
    return read_norm(r, err);
}

/* `band` points to the first value of the tile, in the band. */
static void load_tile(const ft_weight_reader *r, const float *band, const float *norm, size_t width)
{
    for (size_t i = 0; i < r->tile_rows; i++)
        for (size_t j = 0; j < width; j++) {
            double factor = norm != NULL ? (double) norm[j] : 1.0;
            r->tile[i * width + j] = factor * (double) band[i * r->cols + j];
        }
}

static void store_tile(const ft_weight_reader *r, float *band, size_t width)
{
    for (size_t i = 0; i < r->tile_rows; i++)
        for (size_t j = 0; j < width; j++)
            band[i * r->cols + j] = (float) r->tile[i * width + j];
}

/* Rotate the tile of `width` columns whose first value is that of `row` and `col` of the band. */
static void rotate_tile(const ft_weight_reader *r, size_t row, size_t col, size_t width)
{
    const ft_weight_rotation *rotation = &r->weight->rotation;
    float *band = r->band + row * r->cols + col;
    load_tile(r, band, r->norm != NULL ? r->norm + col : NULL, width);
    if (rotation->cols != NULL)
        for (size_t i = 0; i < r->tile_rows; i++)
            ft_rotation_apply(rotation->cols, r->tile + i * width, 1);
    if (rotation->rows != NULL)
        ft_rotation_apply(rotation->rows, r->tile, width);
    store_tile(r, band, width);
}

static void rotate_band(const ft_weight_reader *r)
{
    size_t rows = r->count / r->cols;
    for (size_t i = 0; i < rows; i += r->tile_rows)
        for (size_t j = 0; j < r->cols; j += r->tile_cols)
            rotate_tile(r, i, j, ft_min_size(r->cols - j, r->tile_cols));
}

/* The weight of a folded norm is 1. */
static void fill_ones(const ft_weight_reader *r)
{
    for (size_t i = 0; i < r->count; i++)
        r->band[i] = 1.0f;
}

static ft_status next_band(ft_weight_reader *r, ft_error *err)
{
    if (r->band == NULL)
        FT_TRY(begin(r, err));
    size_t unread = ft_tensor_numel(r->weight->tensor) - r->source.n_read;
    r->count = ft_min_size(unread, r->rows * r->cols);
    FT_TRY(read_floats(&r->source, r->band, r->count, err));
    if (r->weight->rotation.is_folded)
        fill_ones(r);
    else
        rotate_band(r);
    r->left = r->count;
    return FT_OK;
}

/* ---- Delivering ----------------------------------------------------------------------------- */

static ft_status deliver(ft_weight_reader *r, void *buffer, size_t n, ft_error *err)
{
    const float *values = r->band + r->count - r->left;
    size_t first_bad = ft_dtype_convert_floats(buffer, r->weight->dtype, values, n);
    if (first_bad < n)
        return ft_tensor_reader_fail_overflow(&r->source, r->weight->dtype,
                                              (double) values[first_bad],
                                              r->source.n_read - r->left + first_bad, err);
    r->left -= n;
    if (r->left == 0 && r->source.n_read == ft_tensor_numel(r->weight->tensor))
        ft_weight_reader_fini(r);
    return FT_OK;
}

ft_status ft_weight_reader_read(void *user, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err)
{
    ft_weight_reader *r = user;
    size_t size = ft_dtype_size(r->weight->dtype);
    if (!is_rotated(r->weight))
        return ft_tensor_reader_read(&r->source, buffer, bytes, produced, err);
    if (r->left == 0)
        FT_TRY(next_band(r, err));
    size_t n = ft_min_size(bytes / size, r->left);
    *produced = n * size;
    return deliver(r, buffer, n, err);
}
