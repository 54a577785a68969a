/*
 * input_sums.c - adds up the moments of the inputs of a linear, sample by sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

/* ---- Start -------------------------------------------------------------------------------- */

static void *take(char *begin, size_t *used, size_t bytes)
{
    void *section = begin + *used;
    *used += ft_round_up(bytes, 256);
    return section;
}

ft_quantizer_columns ft_quantizer_columns_of(const ft_quantizer *q)
{
    ft_quantizer_columns c = { 0 };
    char *begin = q->columns.data;
    c.magnitude = take(begin, &c.bytes, q->cols * sizeof *c.magnitude);
    c.square = take(begin, &c.bytes, q->cols * sizeof *c.square);
    c.difference = take(begin, &c.bytes, q->cols * sizeof *c.difference);
    c.failed = take(begin, &c.bytes, q->cols * sizeof *c.failed);
    c.failed_difference = take(begin, &c.bytes, q->cols * sizeof *c.failed_difference);
    c.amax_bits = take(begin, &c.bytes, sizeof *c.amax_bits);
    return c;
}

static ft_status clear(ft_quantizer *q, ft_cuda_buffer *buffer, size_t bytes, ft_error *err)
{
    FT_TRY(ft_quantizer_reserve(q, buffer, bytes, err));
    return ft_quantizer_fill(q, buffer->data, 0, bytes, err);
}

ft_status ft_quantizer_begin(ft_quantizer *q, size_t cols, bool cross, ft_error *err)
{
    FT_TRY(ft_quantizer_select(q, err));
    q->cols = cols;
    q->has_cross = cross;
    q->unit = 1.0;
    FT_TRY(clear(q, &q->columns, ft_quantizer_columns_of(q).bytes, err));
    FT_TRY(clear(q, &q->moments, cols * cols * sizeof(int64_t), err));
    return cross ? clear(q, &q->cross, cols * cols * sizeof(int64_t), err) : FT_OK;
}

/* ---- One sample --------------------------------------------------------------------------- */

static bool is_float(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16;
}

static ft_status check_value(const ft_quantizer *q, const ft_exec *exec, int value, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    if ((size_t) v->cols != q->cols)
        return ft_fail(err, FT_ESHAPE, "%s has %d columns, expected %zu", v->name, v->cols,
                       q->cols);
    if (!is_float(v->dtype))
        return ft_fail(err, FT_EUNSUPPORTED, "%s is quantized, expected float values", v->name);
    return FT_OK;
}

/* Lets one stream wait for what another has been given so far. */
static ft_status wait_for(const ft_quantizer *q, cudaStream_t waiting, cudaStream_t stream,
                          ft_error *err)
{
    int code = (int) cudaEventRecord(q->event, stream);
    if (code == 0)
        code = (int) cudaStreamWaitEvent(waiting, q->event, 0);
    return ft_quantizer_check(q, code, err);
}

/* The partial sums of the columns of a sample; `amax_bits`, or NULL, receives its amax. */
static ft_status sum_columns(ft_quantizer *q, const ft_cuda_input_sample *sample,
                             uint32_t *amax_bits, ft_error *err)
{
    size_t count = ft_divide_up(sample->rows, FT_CUDA_ROW_CHUNK) * q->cols;
    FT_TRY(ft_quantizer_reserve(q, &q->partial, 2 * count * sizeof(double), err));
    if (amax_bits != NULL)
        FT_TRY(ft_quantizer_fill(q, amax_bits, 0, sizeof *amax_bits, err));
    double *magnitude = q->partial.data;
    FT_QUANTIZER_LAUNCH(q, sum_columns, count, err, .sample = *sample, .magnitude = magnitude,
                        .square = magnitude + count, .amax_bits = amax_bits);
    return FT_OK;
}

static ft_status add_columns(ft_quantizer *q, const ft_cuda_input_sample *sample,
                             ft_cuda_int128 *magnitude, ft_cuda_int128 *square, double *failed,
                             ft_error *err)
{
    size_t chunks = ft_divide_up(sample->rows, FT_CUDA_ROW_CHUNK);
    const double *partial = q->partial.data;
    FT_QUANTIZER_LAUNCH(q, add_columns, q->cols, err, .magnitude = partial,
                        .square = partial + chunks * q->cols, .chunks = chunks, .cols = q->cols,
                        .total_magnitude = magnitude, .total_square = square, .failed = failed);
    return FT_OK;
}

/* Adds a^T x to sums [cols, cols]; a is x, or the differences with their amax. */
static ft_status add_products(ft_quantizer *q, int64_t *sums, const void *a, const void *x,
                              const ft_cuda_input_sample *sample, const uint32_t *amax_bits,
                              ft_error *err)
{
    size_t cols = q->cols, bytes = sample->dtype == FT_F32 ? 4 : 2;
    bool upper = a == x;
    size_t stripe = ft_min_size(q->product_cols, cols);
    FT_TRY(ft_quantizer_reserve(q, &q->product, stripe * cols * sizeof(float), err));
    for (size_t first = 0; first < cols; first += stripe) {
        size_t count = ft_min_size(stripe, cols - first), left = upper ? first : 0;
        FT_TRY(ft_quantizer_gemm_transposed(
            q,
            &(ft_quantizer_gemm){ .m = count,
                                  .n = cols - left,
                                  .k = sample->rows,
                                  .a = (const char *) a + first * bytes,
                                  .b = (const char *) x + left * bytes,
                                  .a_stride = cols,
                                  .b_stride = cols,
                                  .c = q->product.data },
            sample->dtype, err));
        FT_QUANTIZER_LAUNCH(q, add_products, count * (cols - left), err, .product = q->product.data,
                            .first = first, .left = left, .width = cols - left, .cols = cols,
                            .sums = sums, .units = 1.0 / q->unit, .amax_bits = amax_bits,
                            .upper = upper);
    }
    return FT_OK;
}

static ft_status add_moments(ft_quantizer *q, const ft_cuda_input_sample *sample, ft_error *err)
{
    const ft_quantizer_columns c = ft_quantizer_columns_of(q);
    FT_TRY(sum_columns(q, sample, NULL, err));
    FT_TRY(add_columns(q, sample, c.magnitude, c.square, c.failed, err));
    return add_products(q, q->moments.data, sample->x, sample->x, sample, NULL, err);
}

static ft_status add_cross(ft_quantizer *q, const ft_cuda_input_sample *sample, ft_error *err)
{
    const ft_quantizer_columns c = ft_quantizer_columns_of(q);
    size_t elements = sample->rows * q->cols;
    FT_TRY(ft_quantizer_reserve(q, &q->difference, elements * sizeof(float), err));
    FT_TRY(sum_columns(q, sample, c.amax_bits, err));
    FT_TRY(add_columns(q, sample, NULL, c.difference, c.failed_difference, err));
    FT_QUANTIZER_LAUNCH(q, store_difference, elements, err, .sample = *sample,
                        .amax_bits = c.amax_bits, .out = q->difference.data);
    return add_products(q, q->cross.data, q->difference.data, sample->x, sample, c.amax_bits, err);
}

static ft_cuda_input_sample sample_of(const ft_quantizer *q, const ft_exec *exec, int value,
                                      size_t rows)
{
    return (ft_cuda_input_sample){ .x = ft_cuda_value_data(exec, value),
                                   .dtype = exec->plan->value[value].dtype,
                                   .rows = rows,
                                   .cols = q->cols };
}

ft_status ft_quantizer_choose_unit(ft_quantizer *q, const ft_exec *exec, int value, size_t rows,
                                   ft_error *err)
{
    FT_TRY(ft_quantizer_select(q, err));
    FT_TRY(check_value(q, exec, value, err));
    FT_TRY(wait_for(q, q->stream, exec->stream, err));
    ft_cuda_input_sample sample = sample_of(q, exec, value, rows);
    FT_TRY(sum_columns(q, &sample, NULL, err));
    size_t count = ft_divide_up(rows, FT_CUDA_ROW_CHUNK) * q->cols;
    double *square = ft_calloc(count, sizeof *square), sum = 0.0;
    if (square == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sums", count);
    ft_status status = ft_quantizer_download(q, square, (double *) q->partial.data + count,
                                             count * sizeof *square, err);
    for (size_t i = 0; i < count; i++)
        sum += square[i];
    free(square);
    int exponent = 0;
    if (sum > 0.0 && isfinite(sum))
        (void) frexp(sum / (double) (rows * q->cols), &exponent);
    q->unit = ldexp(1.0, exponent - 20);
    return status;
}

static ft_status add_differences(ft_quantizer *q, ft_cuda_input_sample *sample,
                                 const ft_exec *original, int original_value, const float *factor,
                                 ft_error *err)
{
    FT_TRY(check_value(q, original, original_value, err));
    FT_TRY(wait_for(q, q->stream, original->stream, err));
    sample->original = ft_cuda_value_data(original, original_value);
    sample->original_dtype = original->plan->value[original_value].dtype;
    if (factor != NULL) {
        FT_TRY(ft_quantizer_reserve(q, &q->factor, q->cols * sizeof *factor, err));
        FT_TRY(ft_quantizer_upload(q, q->factor.data, factor, q->cols * sizeof *factor, err));
        sample->factor = q->factor.data;
    }
    FT_TRY(add_cross(q, sample, err));
    return wait_for(q, original->stream, q->stream, err);
}

ft_status ft_quantizer_add(ft_quantizer *q, const ft_exec *exec, int value, const ft_exec *original,
                           int original_value, size_t rows, const float *factor, ft_error *err)
{
    if (rows == 0)
        return FT_OK;
    FT_TRY(ft_quantizer_select(q, err));
    FT_TRY(check_value(q, exec, value, err));
    FT_TRY(wait_for(q, q->stream, exec->stream, err));
    ft_cuda_input_sample sample = sample_of(q, exec, value, rows);
    FT_TRY(add_moments(q, &sample, err));
    if (q->has_cross)
        FT_TRY(add_differences(q, &sample, original, original_value, factor, err));
    return wait_for(q, exec->stream, q->stream, err);
}

/* ---- Results ------------------------------------------------------------------------------ */

/* Whether a sum of squares is exact, as in exact_sums.c. */
static ft_status check_column(const ft_quantizer *q, size_t col, double square, const char *name,
                              ft_error *err)
{
    if (!isfinite(square))
        return ft_fail(err, FT_EFORMAT, "%s: column %zu is not finite on the sample data", name,
                       col);
    if (square > FT_CUDA_MAX_COLUMN_SUM || square > FT_CUDA_MAX_UNITS * q->unit)
        return ft_fail(err, FT_EFORMAT,
                       "%s: column %zu has a sum of squares of %g, too large to be exact next to a "
                       "unit of %g; use fewer or similar samples",
                       name, col, square, q->unit);
    return FT_OK;
}

static ft_status check_columns(const ft_quantizer *q, const ft_quantizer_columns *c,
                               const char *name, ft_error *err)
{
    for (size_t i = 0; i < q->cols; i++) {
        double difference = (double) c->difference[i] / FT_CUDA_COLUMN_UNITS;
        FT_TRY(check_column(q, i, c->failed[i] != 0.0 ? c->failed[i] : q->square[i], name, err));
        FT_TRY(check_column(q, i,
                            c->failed_difference[i] != 0.0 ? c->failed_difference[i] : difference,
                            name, err));
    }
    return FT_OK;
}

ft_status ft_quantizer_finish_columns(ft_quantizer *q, const char *name, ft_error *err)
{
    ft_quantizer_columns c = ft_quantizer_columns_of(q);
    const ft_quantizer on_host = { .cols = q->cols, .columns.data = ft_calloc_aligned(c.bytes) };
    free(q->magnitude);
    free(q->square);
    q->magnitude = ft_calloc(q->cols, sizeof *q->magnitude);
    q->square = ft_calloc(q->cols, sizeof *q->square);
    ft_status status = FT_OK;
    if (on_host.columns.data == NULL || q->magnitude == NULL || q->square == NULL)
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns", name, q->cols);
    if (status == FT_OK)
        status = ft_quantizer_download(q, on_host.columns.data, q->columns.data, c.bytes, err);
    c = ft_quantizer_columns_of(&on_host);
    for (size_t i = 0; i < q->cols && status == FT_OK; i++) {
        q->magnitude[i] = (double) c.magnitude[i] / FT_CUDA_COLUMN_UNITS;
        q->square[i] = (double) c.square[i] / FT_CUDA_COLUMN_UNITS;
    }
    if (status == FT_OK)
        status = check_columns(q, &c, name, err);
    free(on_host.columns.data);
    return status;
}
