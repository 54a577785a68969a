/*
 * quantize.c - quantizes a matrix, in stripes of rows that fit into device memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "kernels/groupwise.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

/* A matrix that is being quantized. */
typedef struct job {
    ft_quantizer *q;
    const ft_quantizer_matrix *matrix;
    const ft_quantizer_options *options;
    size_t groups, padded_rows;
    size_t stripe_rows;                   /* of a stripe at most; a multiple of 32 */
    const float *row_factor, *col_factor; /* on the device, or NULL */
    const float *importance;              /* on the device, or NULL */
    uint16_t *scale;                      /* [groups, padded rows], on the device */
    uint8_t *zero;                        /* the same; NULL: symmetric */
    double *row_sums;                     /* [4, stripe], in host memory */
    ft_quantizer_error *error;
} job;

/* ---- Memory ------------------------------------------------------------------------------- */

static size_t stripe_rows(const ft_quantizer *q, const ft_quantizer_matrix *m)
{
    size_t most = q->stripe_elements / m->cols / FT_PANEL_ROWS * FT_PANEL_ROWS;
    return ft_min_size(ft_layout_rows(FT_PANEL32, m->rows), ft_max_size(most, FT_PANEL_ROWS));
}

static ft_status reserve_stripe(const job *j, ft_error *err)
{
    ft_quantizer *q = j->q;
    size_t rows = j->stripe_rows, cols = q->cols, elements = rows * cols;
    FT_TRY(ft_quantizer_reserve(q, &q->weight, elements * sizeof(float), err));
    FT_TRY(ft_quantizer_reserve(q, &q->q, elements, err));
    FT_TRY(ft_quantizer_reserve(q, &q->grids, rows * j->groups * (sizeof(float) + 1), err));
    for (int i = 0; i < 3; i++) /* [rows, 128] floats must fit, too */
        FT_TRY(ft_quantizer_reserve(
            q, &q->work[i], rows * ft_max_size(cols, FT_CUDA_COL_BLOCK) * sizeof(double), err));
    FT_TRY(ft_quantizer_reserve(q, &q->rows, FT_CUDA_COL_BLOCK * cols * sizeof(double), err));
    FT_TRY(ft_quantizer_reserve(q, &q->block,
                                FT_CUDA_COL_BLOCK * FT_CUDA_COL_BLOCK * sizeof(double), err));
    FT_TRY(ft_quantizer_reserve(q, &q->invalid, sizeof(unsigned long long), err));
    FT_TRY(ft_quantizer_reserve(q, &q->words, ft_panel_bytes(rows, cols, j->options->bits), err));
    return ft_quantizer_reserve(q, &q->row_sums, 4 * rows * sizeof(double), err);
}

/* Copies `count` floats behind the *used ones of a buffer; NULL stays NULL. */
static ft_status upload_floats(const ft_quantizer *q, const float **out, float *buffer,
                               size_t *used, const float *from, size_t count, ft_error *err)
{
    *out = NULL;
    if (from == NULL)
        return FT_OK;
    FT_TRY(ft_quantizer_upload(q, buffer + *used, from, count * sizeof *from, err));
    *out = buffer + *used;
    *used += count;
    return FT_OK;
}

static ft_status upload_vectors(job *j, ft_error *err)
{
    ft_quantizer *q = j->q;
    const ft_quantizer_matrix *m = j->matrix;
    size_t used = 0;
    FT_TRY(ft_quantizer_reserve(q, &q->factors, (m->rows + 2 * m->cols) * sizeof(float), err));
    float *buffer = q->factors.data;
    FT_TRY(upload_floats(q, &j->row_factor, buffer, &used, m->row_factor, m->rows, err));
    FT_TRY(upload_floats(q, &j->col_factor, buffer, &used, m->col_factor, m->cols, err));
    return upload_floats(q, &j->importance, buffer, &used, j->options->importance, m->cols, err);
}

static ft_status reserve_scales(job *j, ft_error *err)
{
    size_t count = j->groups * j->padded_rows;
    FT_TRY(ft_quantizer_reserve(j->q, &j->q->scales, count * (sizeof(uint16_t) + 1), err));
    j->scale = j->q->scales.data;
    j->zero = j->options->asymmetric ? (uint8_t *) (j->scale + count) : NULL;
    return FT_OK;
}

static ft_quantizer_stripe stripe_of(const job *j, size_t rows)
{
    const ft_quantizer *q = j->q;
    size_t group = (size_t) j->options->group;
    return (ft_quantizer_stripe){
        .rows = rows,
        .weight = q->weight.data,
        .grids = { .cols = q->cols,
                   .group = group == 0 ? q->cols : group,
                   .groups = j->groups,
                   .max_q = (1 << j->options->bits) - 1,
                   .scale = q->grids.data,
                   .zero = (uint8_t *) ((float *) q->grids.data + j->stripe_rows * j->groups),
                   .q = q->q.data },
        .work = { q->work[0].data, q->work[1].data, q->work[2].data },
    };
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* product = x . h, all [rows, cols] and [cols, cols] doubles. */
static ft_status multiply(const ft_quantizer *q, const ft_quantizer_stripe *s, const double *x,
                          const void *h, double *product, ft_error *err)
{
    return ft_quantizer_dgemm(q,
                              &(ft_quantizer_gemm){ .m = s->rows,
                                                    .n = q->cols,
                                                    .k = q->cols,
                                                    .alpha = 1.0,
                                                    .a = x,
                                                    .a_stride = q->cols,
                                                    .b = h,
                                                    .b_stride = q->cols,
                                                    .c = product,
                                                    .c_stride = q->cols },
                              err);
}

/* W becomes W + W M. */
static ft_status correct_weights(const ft_quantizer *q, const ft_quantizer_stripe *s, ft_error *err)
{
    size_t elements = s->rows * q->cols;
    FT_QUANTIZER_LAUNCH(q, copy_weights, elements, err, .weight = s->weight, .out = s->work[0]);
    FT_TRY(multiply(q, s, s->work[0], q->cross.data, s->work[1], err));
    FT_QUANTIZER_LAUNCH(q, correct_weights, elements, err, .weight = s->weight,
                        .product = s->work[1]);
    return FT_OK;
}

static ft_status load_weights(const job *j, const ft_quantizer_stripe *s, size_t first_row,
                              ft_error *err)
{
    const ft_quantizer *q = j->q;
    const ft_quantizer_matrix *m = j->matrix;
    size_t elements = s->rows * q->cols, size = m->dtype == FT_F32 ? 4 : 2;
    FT_TRY(ft_quantizer_upload(q, s->work[0], (const char *) m->data + first_row * q->cols * size,
                               elements * size, err));
    FT_QUANTIZER_LAUNCH(q, load_weights, elements, err, .data = s->work[0], .dtype = m->dtype,
                        .row_factor = j->row_factor != NULL ? j->row_factor + first_row : NULL,
                        .col_factor = j->col_factor, .cols = q->cols, .out = s->weight);
    return q->has_cross ? correct_weights(q, s, err) : FT_OK;
}

static ft_status fail_invalid(const job *j, const ft_quantizer_stripe *s, size_t first_row,
                              size_t index, ft_error *err)
{
    float weight;
    size_t row = first_row + index / j->q->cols, col = index % j->q->cols;
    FT_TRY(ft_quantizer_download(j->q, &weight, s->weight + index, sizeof weight, err));
    if (!isfinite(weight))
        return ft_fail(err, FT_EFORMAT, "%s: row %zu, column %zu is %s", j->matrix->name, row, col,
                       isnan(weight) ? "NaN" : "infinite");
    return ft_fail(err, FT_EFORMAT,
                   "%s: row %zu, column %zu is %g, expected at most %g: scales are float16",
                   j->matrix->name, row, col, (double) weight, (double) FT_CUDA_MAX_WEIGHT);
}

static ft_status check_weights(const job *j, const ft_quantizer_stripe *s, size_t first_row,
                               ft_error *err)
{
    const ft_quantizer *q = j->q;
    unsigned long long first_invalid;
    FT_TRY(ft_quantizer_fill(q, q->invalid.data, 0xff, sizeof first_invalid, err));
    FT_QUANTIZER_LAUNCH(q, check_weights, s->rows * q->cols, err, .weight = s->weight,
                        .first_invalid = q->invalid.data);
    FT_TRY(ft_quantizer_download(q, &first_invalid, q->invalid.data, sizeof first_invalid, err));
    return first_invalid < s->rows * q->cols
               ? fail_invalid(j, s, first_row, (size_t) first_invalid, err)
               : FT_OK;
}

/* ---- Values ------------------------------------------------------------------------------- */

static ft_status round_weights(const job *j, const ft_quantizer_stripe *s, ft_error *err)
{
    ft_quantizer *q = j->q;
    const ft_quantizer_options *options = j->options;
    FT_QUANTIZER_LAUNCH(q, choose_grids, s->rows * j->groups, err, .weight = s->weight,
                        .importance = j->importance, .grids = s->grids, .bits = options->bits,
                        .asymmetric = options->asymmetric, .clip = options->clip);
    if (options->gptq)
        return ft_quantizer_round(q, s, options->sweeps, err);
    FT_QUANTIZER_LAUNCH(q, round_nearest, s->rows * q->cols, err, .weight = s->weight,
                        .grids = s->grids);
    return FT_OK;
}

static ft_status store_values(const job *j, const ft_quantizer_stripe *s, size_t first_row,
                              char *bytes, ft_error *err)
{
    const ft_quantizer *q = j->q;
    int bits = j->options->bits;
    size_t size = ft_panel_bytes(s->rows, q->cols, bits);
    FT_QUANTIZER_LAUNCH(q, pack_values, size / 4, err, .grids = s->grids, .rows = s->rows,
                        .bits = bits, .out = q->words.data);
    FT_QUANTIZER_LAUNCH(q, pack_grids, ft_layout_rows(FT_PANEL32, s->rows) * j->groups, err,
                        .grids = s->grids, .rows = s->rows, .first_row = first_row,
                        .padded_rows = j->padded_rows, .scale = j->scale, .zero = j->zero);
    return ft_quantizer_download(q, bytes + ft_panel_bytes(first_row, q->cols, bits), q->words.data,
                                 size, err);
}

/* The rows of a stripe among those of the matrix. */
static ft_status dequantize(const job *j, const ft_quantizer_stripe *s, size_t first_row,
                            ft_error *err)
{
    size_t size = j->matrix->dtype == FT_F32 ? 4 : 2;
    char *out = j->options->dequantized;
    if (out == NULL)
        return FT_OK;
    FT_QUANTIZER_LAUNCH(j->q, dequantize, s->rows * j->q->cols, err, .grids = s->grids,
                        .dtype = j->matrix->dtype, .out = out + first_row * j->q->cols * size);
    return FT_OK;
}

/* ---- Errors ------------------------------------------------------------------------------- */

/* The quadratic form x H x^T of each row x of work[0]. */
static ft_status sum_outputs(const ft_quantizer *q, const ft_quantizer_stripe *s, double *out,
                             ft_error *err)
{
    FT_TRY(multiply(q, s, s->work[0], q->moments.data, s->work[1], err));
    FT_QUANTIZER_LAUNCH(q, sum_products, s->rows, err, .x = s->work[0], .y = s->work[1],
                        .cols = q->cols, .out = out);
    return FT_OK;
}

/* Adds the sums of rows, and of panels where rounding may have made them negative. */
static void add_errors(const job *j, size_t rows)
{
    const double *sums = j->row_sums;
    for (size_t first = 0; first < rows; first += FT_PANEL_ROWS) {
        double signal = 0.0, noise = 0.0;
        for (size_t row = first; row < ft_min_size(first + FT_PANEL_ROWS, rows); row++) {
            j->error->signal += sums[row];
            j->error->noise += sums[rows + row];
            signal += sums[2 * rows + row];
            noise += sums[3 * rows + row];
        }
        j->error->out_signal += signal > 0.0 ? signal : 0.0;
        j->error->out_noise += noise > 0.0 ? noise : 0.0;
    }
}

static ft_status measure_error(const job *j, const ft_quantizer_stripe *s, ft_error *err)
{
    const ft_quantizer *q = j->q;
    size_t elements = s->rows * q->cols;
    double *sums = q->row_sums.data;
    FT_QUANTIZER_LAUNCH(q, sum_squares, s->rows, err, .weight = s->weight, .grids = s->grids,
                        .signal = sums, .noise = sums + s->rows);
    FT_QUANTIZER_LAUNCH(q, copy_weights, elements, err, .weight = s->weight, .out = s->work[0]);
    FT_TRY(sum_outputs(q, s, sums + 2 * s->rows, err));
    FT_QUANTIZER_LAUNCH(q, subtract_quantized, elements, err, .weight = s->weight,
                        .grids = s->grids, .error = s->work[0]);
    FT_TRY(sum_outputs(q, s, sums + 3 * s->rows, err));
    FT_TRY(ft_quantizer_download(q, j->row_sums, sums, 4 * s->rows * sizeof *sums, err));
    add_errors(j, s->rows);
    return FT_OK;
}

/* ---- Matrices ----------------------------------------------------------------------------- */

static ft_status quantize_stripe(const job *j, size_t first_row, char *bytes, ft_error *err)
{
    size_t rows = ft_min_size(j->stripe_rows, j->matrix->rows - first_row);
    ft_quantizer_stripe s = stripe_of(j, rows);
    FT_TRY(load_weights(j, &s, first_row, err));
    FT_TRY(check_weights(j, &s, first_row, err));
    FT_TRY(round_weights(j, &s, err));
    FT_TRY(store_values(j, &s, first_row, bytes, err));
    FT_TRY(dequantize(j, &s, first_row, err));
    return measure_error(j, &s, err);
}

static ft_status store_scales(const job *j, char *bytes, ft_error *err)
{
    size_t count = j->groups * j->padded_rows;
    FT_TRY(ft_quantizer_download(j->q, bytes, j->scale, count * sizeof *j->scale, err));
    return j->zero == NULL
               ? FT_OK
               : ft_quantizer_download(j->q, bytes + count * sizeof *j->scale, j->zero, count, err);
}

static ft_status quantize_matrix(job *j, char *bytes, ft_error *err)
{
    const ft_quantizer_matrix *m = j->matrix;
    FT_TRY(ft_quantizer_select(j->q, err));
    FT_TRY(reserve_stripe(j, err));
    FT_TRY(upload_vectors(j, err));
    FT_TRY(reserve_scales(j, err));
    for (size_t row = 0; row < m->rows; row += j->stripe_rows)
        FT_TRY(quantize_stripe(j, row, bytes, err));
    return store_scales(j, bytes + ft_panel_bytes(m->rows, m->cols, j->options->bits), err);
}

static ft_status check_matrix(const ft_quantizer *q, const ft_quantizer_matrix *m, ft_error *err)
{
    if (m->cols != q->cols)
        return ft_fail(err, FT_ESHAPE, "%s: %zu columns, but its inputs have %zu", m->name, m->cols,
                       q->cols);
    if (m->dtype != FT_F32 && m->dtype != FT_F16 && m->dtype != FT_BF16)
        return ft_fail(err, FT_EUNSUPPORTED, "%s is quantized, expected F32, F16 or BF16", m->name);
    return FT_OK;
}

ft_status ft_quantizer_quantize(ft_quantizer *q, const ft_quantizer_matrix *matrix,
                                const ft_quantizer_options *options, void *bytes,
                                ft_quantizer_error *error, ft_error *err)
{
    *error = (ft_quantizer_error){ 0 };
    FT_TRY(check_matrix(q, matrix, err));
    job j = { .q = q,
              .matrix = matrix,
              .options = options,
              .groups = ft_groupwise_groups(&(ft_groupwise){ .group = options->group }, q->cols),
              .padded_rows = ft_layout_rows(FT_PANEL32, matrix->rows),
              .stripe_rows = stripe_rows(q, matrix),
              .error = error };
    j.row_sums = ft_calloc(4 * j.stripe_rows, sizeof *j.row_sums);
    if (j.row_sums == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows", matrix->name, j.stripe_rows);
    ft_status status = quantize_matrix(&j, bytes, err);
    free(j.row_sums);
    return status;
}
