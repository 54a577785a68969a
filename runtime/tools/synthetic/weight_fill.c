/*
 * weight_fill.c - a weight with random values: generated in float, stored in its dtype and layout.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/synthetic/synthetic.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows --------------------------------------------------------------------------------- */

/* Cast away const from data that this file has allocated. */
static void *mutable_data(const void *data)
{
    return (void *) (uintptr_t) data;
}

static void store_int8(const ft_weight *weight, size_t row, const float *values)
{
    size_t cols = weight->cols;
    int8_t *quantized = mutable_data(weight->data);
    float amax = 0.0f;
    for (size_t i = 0; i < cols; i++)
        amax = fmaxf(amax, fabsf(values[i]));
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    ((float *) mutable_data(weight->scale))[row] = scale;
    for (size_t i = 0; i < cols; i++)
        quantized[ft_offset(weight->layout, row, i, weight->rows, cols)] =
            ft_quantize(values[i], inverse);
}

/* Symmetric: the absmax of a group maps to the largest distance from the zero point. */
static void store_groupwise(const ft_weight *weight, size_t row, const float *values)
{
    int bits = ft_groupwise_bits(weight->dtype), zero_point = 1 << (bits - 1);
    size_t cols = weight->cols, groups = ft_groupwise_groups(&weight->groupwise, cols);
    size_t group_cols = (cols + groups - 1) / groups;
    if (weight->groupwise.group > 0)
        group_cols = (size_t) weight->groupwise.group;
    for (size_t first = 0; first < cols; first += group_cols) {
        size_t end = ft_min_size(first + group_cols, cols);
        size_t at = ft_groupwise_scale_index(&weight->groupwise, row, first, weight->rows);
        float amax = 0.0f;
        for (size_t i = first; i < end; i++)
            amax = fmaxf(amax, fabsf(values[i]));
        uint16_t scale_f16 = ft_f16_from_float(amax / (float) (zero_point - 1));
        float inverse = ft_inverse_scale(ft_float_from_f16(scale_f16));
        ((uint16_t *) mutable_data(weight->groupwise.scale))[at] = scale_f16;
        for (size_t i = first; i < end; i++) {
            int q = zero_point + (int) rintf(values[i] * inverse);
            q = q < 0 ? 0 : q > 2 * zero_point - 1 ? 2 * zero_point - 1 : q;
            ((uint32_t *) mutable_data(weight->data))[ft_panel_word(row, i, cols, bits)] |=
                (uint32_t) q << ft_panel_shift(i, bits);
        }
    }
}

static void store_row(const ft_weight *weight, size_t row, const float *values)
{
    size_t cols = weight->cols;
    if (weight->dtype == FT_I8)
        store_int8(weight, row, values);
    else if (weight->layout == FT_PANEL32)
        store_groupwise(weight, row, values);
    else if (weight->dtype == FT_F16)
        for (size_t i = 0; i < cols; i++)
            ((uint16_t *) mutable_data(weight->data))[row * cols + i] =
                ft_f16_from_float(values[i]);
    else if (weight->dtype == FT_BF16)
        for (size_t i = 0; i < cols; i++)
            ((uint16_t *) mutable_data(weight->data))[row * cols + i] =
                ft_bf16_from_float(values[i]);
    else
        memcpy((float *) mutable_data(weight->data) + row * cols, values, cols * sizeof *values);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static bool allocate(ft_weight *weight)
{
    bool blocks = weight->layout == FT_PANEL32;
    size_t bytes = ft_weight_bytes(weight);
    size_t scales =
        blocks ? ft_groupwise_scale_count(&weight->groupwise, weight->rows, weight->cols) * 2 : 0;
    weight->data = ft_calloc_aligned(bytes);
    if (weight->dtype == FT_I8)
        weight->scale = ft_calloc_aligned(weight->rows * sizeof(float));
    if (blocks)
        weight->groupwise.scale = ft_calloc_aligned(scales);
    if (weight->data == NULL || (weight->dtype == FT_I8 && weight->scale == NULL) ||
        (blocks && weight->groupwise.scale == NULL))
        return false;
    if (blocks) { /* padding must be zero */
        memset(mutable_data(weight->data), 0, bytes);
        memset(mutable_data(weight->groupwise.scale), 0, scales);
    }
    return true;
}

static ft_status fail_memory(const ft_weight *weight, ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "%s: no memory for [%zu, %zu]", weight->name, weight->rows,
                   weight->cols);
}

void ft_synthetic_weight_free(ft_weight *weight)
{
    free(mutable_data(weight->data));
    free(mutable_data(weight->scale));
    free(mutable_data(weight->groupwise.scale));
    weight->data = NULL;
    weight->scale = NULL;
    weight->groupwise.scale = NULL;
}

/* ---- Values from counter_rng.h ------------------------------------------------------------ */

typedef struct fill_job {
    const ft_weight *weight;
    const ft_distribution *how;
    float *rows; /* one row per thread */
} fill_job;

static void fill_rows(const void *job, int thread, size_t first, size_t end)
{
    const fill_job *f = job;
    size_t cols = f->weight->cols;
    float *values = f->rows + (size_t) thread * cols;
    for (size_t row = first; row < end; row++) {
        for (size_t i = 0; i < cols; i++)
            values[i] = f->how->mean +
                        f->how->deviation * ft_counter_rng_normal(f->how->key, row * cols + i);
        store_row(f->weight, row, values);
    }
}

static ft_status fill_by_counter(const ft_weight *weight, const ft_distribution *how, int threads,
                                 ft_error *err)
{
    float *rows = ft_calloc((size_t) threads * weight->cols, sizeof *rows);
    if (rows == NULL)
        return fail_memory(weight, err);
    ft_parallel_for(threads, weight->rows, fill_rows, &(fill_job){ weight, how, rows });
    free(rows);
    return FT_OK;
}

/* ---- Values from a device ----------------------------------------------------------------- */

enum { BLOCK = 4 << 20, CHUNK = 65536 }; /* values that a device generates, a thread stores */

/* Rows first .. end - 1 of a weight, in float. */
typedef struct row_block {
    size_t first, end;
    float *values;
} row_block;

/* While the device generates `next`, which is chunk 0, other threads store `ready`. */
typedef struct block_job {
    const ft_weight *weight;
    const ft_distribution *how;
    row_block ready, next;
    size_t chunk_rows;
    ft_status *status; /* of `next` */
    ft_error *err;
} block_job;

static void generate_block(const block_job *b)
{
    const ft_distribution *how = b->how;
    *b->status = how->backend->fill_normal(
        how->device, b->next.values, (b->next.end - b->next.first) * b->weight->cols, how->mean,
        how->deviation, ft_counter_rng(how->key, b->next.first), b->err);
}

static void process_chunks(const void *job, int thread, size_t first, size_t end)
{
    const block_job *b = job;
    (void) thread;
    for (size_t chunk = first; chunk < end; chunk++) {
        if (chunk == 0) {
            generate_block(b);
            continue;
        }
        size_t row = b->ready.first + (chunk - 1) * b->chunk_rows;
        size_t last = ft_min_size(row + b->chunk_rows, b->ready.end);
        for (; row < last; row++)
            store_row(b->weight, row, b->ready.values + (row - b->ready.first) * b->weight->cols);
    }
}

static ft_status fill_from_device(const ft_weight *weight, const ft_distribution *how, int threads,
                                  ft_error *err)
{
    size_t rows = weight->rows, cols = weight->cols;
    size_t block_rows = ft_min_size(BLOCK / cols + 1, rows), chunk_rows = CHUNK / cols + 1;
    ft_status status = FT_OK;
    float *values = ft_calloc(2 * block_rows, cols * sizeof *values);
    if (values == NULL)
        return fail_memory(weight, err);
    block_job job = {
        weight,  how, { .values = values }, { .values = values + block_rows * cols }, chunk_rows,
        &status, err
    };
    while (job.ready.first < rows && status == FT_OK) {
        size_t ready_rows = job.ready.end - job.ready.first;
        job.next.first = job.ready.end;
        job.next.end = ft_min_size(job.next.first + block_rows, rows);
        ft_parallel_for_dynamic(threads, 1 + (ready_rows + chunk_rows - 1) / chunk_rows,
                                process_chunks, &job);
        row_block stored = job.ready;
        job.ready = job.next;
        job.next = stored;
    }
    free(values);
    return status;
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_synthetic_weight_fill(ft_weight *weight, const ft_distribution *how, int threads,
                                   ft_error *err)
{
    bool on_device = how->backend != NULL && how->backend->fill_normal != NULL;
    ft_status status = allocate(weight) ? FT_OK : fail_memory(weight, err);
    if (status == FT_OK)
        status = on_device ? fill_from_device(weight, how, threads, err)
                           : fill_by_counter(weight, how, threads, err);
    if (status != FT_OK)
        ft_synthetic_weight_free(weight);
    return status;
}
