/*
 * round.c - GPTQ and coordinate descent on a stripe of rows: what calibrate/weights/gptq.c does on
 * a panel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"
#include "runtime/mem.h"

/* ---- GPTQ --------------------------------------------------------------------------------- */

/* Compensates the errors of a block in the columns behind it. */
static ft_status update_trailing(const ft_quantizer *q, const ft_quantizer_stripe *s,
                                 float *ordered, const float *error, size_t first, size_t end,
                                 ft_error *err)
{
    if (end == q->cols)
        return FT_OK;
    return ft_quantizer_sgemm(
        q,
        &(ft_quantizer_gemm){ .m = s->rows,
                              .n = q->cols - end,
                              .k = end - first,
                              .alpha = -1.0,
                              .beta = 1.0,
                              .a = error,
                              .a_stride = FT_CUDA_COL_BLOCK,
                              .b = (const float *) q->upper.data + first * q->cols + end,
                              .b_stride = q->cols,
                              .c = ordered + end,
                              .c_stride = q->cols },
        err);
}

static ft_status round_columns(ft_quantizer *q, const ft_quantizer_stripe *s, ft_error *err)
{
    float *ordered = (void *) s->work[0], *error = (void *) s->work[1];
    FT_QUANTIZER_LAUNCH(q, order_columns, s->rows * q->cols, err, .weight = s->weight,
                        .order = q->order.data, .cols = q->cols, .n_live = q->cols - q->n_dead,
                        .out = ordered);
    for (size_t first = 0, end; first < q->cols; first = end) {
        end = first + ft_min_size(FT_CUDA_COL_BLOCK, q->cols - first);
        FT_QUANTIZER_LAUNCH(q, round_block, s->rows, err, .ordered = ordered,
                            .upper = q->upper.data, .order = q->order.data, .first = first,
                            .count = end - first, .grids = s->grids, .error = error);
        FT_TRY(update_trailing(q, s, ordered, error, first, end, err));
    }
    return FT_OK;
}

/* ---- Coordinate descent ------------------------------------------------------------------- */

/* product [rows, n] = alpha x [rows, k] . h [k, n] + beta product; h is a part of H. */
static ft_status multiply(const ft_quantizer *q, const ft_quantizer_stripe *s, double alpha,
                          const double *x, size_t k, const double *h, double beta, double *product,
                          size_t n, ft_error *err)
{
    return ft_quantizer_dgemm(q,
                              &(ft_quantizer_gemm){ .m = s->rows,
                                                    .n = n,
                                                    .k = k,
                                                    .alpha = alpha,
                                                    .beta = beta,
                                                    .a = x,
                                                    .a_stride = k,
                                                    .b = h,
                                                    .b_stride = q->cols,
                                                    .c = product,
                                                    .c_stride = n },
                              err);
}

static ft_status compute_gradient(ft_quantizer *q, const ft_quantizer_stripe *s, double *gradient,
                                  ft_error *err)
{
    FT_QUANTIZER_LAUNCH(q, subtract_quantized, s->rows * q->cols, err, .weight = s->weight,
                        .grids = s->grids, .damping = q->damping, .error = s->work[0],
                        .gradient = gradient);
    return multiply(q, s, 1.0, s->work[0], q->cols, q->moments.data, 1.0, gradient, q->cols, err);
}

static ft_status sweep_block(ft_quantizer *q, const ft_quantizer_stripe *s, double *gradient,
                             size_t first, size_t count, ft_error *err)
{
    double *change = s->work[0];
    FT_QUANTIZER_LAUNCH(q, order_rows, count * q->cols, err, .moments = q->moments.data,
                        .order = q->order.data, .first = first, .cols = q->cols,
                        .out = q->rows.data);
    FT_QUANTIZER_LAUNCH(q, order_block, count * count, err, .moments = q->moments.data,
                        .order = q->order.data, .first = first, .count = count, .cols = q->cols,
                        .out = q->block.data);
    FT_QUANTIZER_LAUNCH(q, update_values, s->rows, err, .block = q->block.data,
                        .order = q->order.data, .first = first, .count = count, .grids = s->grids,
                        .damping = q->damping, .gradient = gradient, .change = change);
    return multiply(q, s, -1.0, change, count, q->rows.data, 1.0, gradient, q->cols, err);
}

static ft_status sweep_values(ft_quantizer *q, const ft_quantizer_stripe *s, double *gradient,
                              ft_error *err)
{
    size_t n_live = q->cols - q->n_dead;
    for (size_t first = 0; first < n_live; first += FT_CUDA_COL_BLOCK)
        FT_TRY(sweep_block(q, s, gradient, first, ft_min_size(FT_CUDA_COL_BLOCK, n_live - first),
                           err));
    return FT_OK;
}

static ft_status sweep_scales(ft_quantizer *q, const ft_quantizer_stripe *s, double *gradient,
                              ft_error *err)
{
    double *values = s->work[0], *product = s->work[2];
    for (size_t first = 0, count; first < q->cols; first += count) {
        count = ft_min_size(s->grids.group, q->cols - first);
        const double *moments = (const double *) q->moments.data + first * q->cols;
        FT_QUANTIZER_LAUNCH(q, offset_values, s->rows * count, err, .grids = s->grids,
                            .first = first, .count = count, .out = values);
        FT_TRY(multiply(q, s, 1.0, values, count, moments + first, 0.0, product, count, err));
        FT_QUANTIZER_LAUNCH(q, update_scales, s->rows, err, .grids = s->grids, .first = first,
                            .count = count, .damping = q->damping, .values = values,
                            .product = product, .gradient = gradient);
        FT_TRY(multiply(q, s, -1.0, values, count, moments, 1.0, gradient, q->cols, err));
    }
    return FT_OK;
}

ft_status ft_quantizer_round(ft_quantizer *q, const ft_quantizer_stripe *s, int sweeps,
                             ft_error *err)
{
    double *gradient = s->work[1];
    FT_TRY(round_columns(q, s, err));
    if (sweeps > 0)
        FT_TRY(compute_gradient(q, s, gradient, err));
    for (int sweep = 0; sweep < sweeps; sweep++) {
        FT_TRY(sweep_values(q, s, gradient, err));
        if (sweep + 1 < sweeps) /* values are also swept after the last scales */
            FT_TRY(sweep_scales(q, s, gradient, err));
    }
    return FT_OK;
}
