/*
 * shard_write.c - writes what one shard of the samples contributes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/shard_file.h"

#include "calibrate/ranges/counters_file.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

const char ft_shard_magic[8] = "FTSHARD";

const char *ft_shard_stage_name(ft_shard_stage stage)
{
    static const char *const names[] = { "smoothing", "ranges", "inputs" };
    return names[stage];
}

/* ---- Bytes -------------------------------------------------------------------------------- */

static void write_double(ft_shard_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    ft_hashed_output_write_u64(&w->hashed, bits);
}

/* The columns of a row of up to 16 bytes each are encoded together. */
static ft_status reserve(ft_shard_writer *w, size_t cols, ft_error *err)
{
    size_t bytes = cols * 16;
    if (bytes <= w->capacity)
        return FT_OK;
    free(w->buffer);
    w->buffer = malloc(bytes);
    w->capacity = w->buffer != NULL ? bytes : 0;
    return w->buffer != NULL ? FT_OK
                             : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns",
                                       ft_atomic_file_path(w->output), cols);
}

static void write_sums(ft_shard_writer *w, const ft_int128 *sum, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft_store_le64(w->buffer + 16 * i, (uint64_t) sum[i]);
        ft_store_le64(w->buffer + 16 * i + 8, (uint64_t) (sum[i] >> 64));
    }
    ft_hashed_output_write(&w->hashed, w->buffer, 16 * count);
}

static void write_i64(ft_shard_writer *w, const int64_t *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ft_store_le64(w->buffer + 8 * i, (uint64_t) value[i]);
    ft_hashed_output_write(&w->hashed, w->buffer, 8 * count);
}

static void write_floats(ft_shard_writer *w, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        ft_store_le32(w->buffer + 4 * i, bits);
    }
    ft_hashed_output_write(&w->hashed, w->buffer, 4 * count);
}

/* ---- Parts -------------------------------------------------------------------------------- */

static void write_header(ft_hashed_output *out, const ft_shard_header *header)
{
    ft_hashed_output_write(out, ft_shard_magic, sizeof ft_shard_magic);
    ft_hashed_output_write_u32(out, FT_SHARD_VERSION);
    ft_hashed_output_write_u32(out, header->stage);
    ft_hashed_output_write_u32(out, header->shard.index);
    ft_hashed_output_write_u32(out, header->shard.count);
    ft_hashed_output_write_u32(out, header->moments);
    ft_hashed_output_write_u32(out, header->inputs);
    ft_hashed_output_write_u64(out, header->first);
    ft_hashed_output_write_u64(out, header->last);
    ft_hashed_output_write_u64(out, header->kept_rows);
    ft_hashed_output_write(out, header->model, FT_FINGERPRINT);
    ft_hashed_output_write(out, header->data, FT_FINGERPRINT);
}

ft_status ft_shard_writer_begin(ft_shard_writer *w, ft_atomic_file *output,
                                const ft_shard_header *header, ft_error *err)
{
    *w = (ft_shard_writer){ .output = output };
    if (!ft_hashed_output_init(&w->hashed, ft_atomic_file_stream(output)))
        return ft_fail(err, FT_ENOMEM, "%s: no memory to write statistics",
                       ft_atomic_file_path(output));
    write_header(&w->hashed, header);
    return FT_OK;
}

static void write_half(ft_shard_writer *w, const ft_half_stats *half, size_t cols)
{
    write_floats(w, half->amax, cols);
    write_sums(w, half->sums.square, cols);
    for (size_t row = 0; row < half->rows; row++)
        write_floats(w, half->x + row * cols, cols);
}

ft_status ft_shard_writer_add(ft_shard_writer *w, const ft_input_stats *input,
                              const ft_exact_sums *sums, ft_error *err)
{
    size_t cols = input->cols;
    FT_TRY(reserve(w, cols, err));
    ft_hashed_output_write_u32(&w->hashed, strlen(input->name));
    ft_hashed_output_write_u32(&w->hashed, input->half[0].rows);
    ft_hashed_output_write_u32(&w->hashed, input->half[1].rows);
    ft_hashed_output_write_u64(&w->hashed, cols);
    ft_hashed_output_write_u64(&w->hashed, sums->rows);
    write_double(w, sums->unit);
    ft_hashed_output_write(&w->hashed, input->name, strlen(input->name));
    write_sums(w, sums->magnitude, cols);
    write_sums(w, sums->square, cols);
    for (size_t row = 0; row < cols && sums->moments != NULL; row++)
        write_i64(w, sums->moments + row * cols + row, cols - row);
    for (int i = 0; i < 2 && input->half[i].x != NULL; i++)
        write_half(w, &input->half[i], cols);
    return w->hashed.failed ? ft_fail_errno(err, "%s: cannot write", ft_atomic_file_path(w->output))
                            : FT_OK;
}

ft_status ft_shard_writer_add_counters(ft_shard_writer *w, ft_counter_set *set, ft_error *err)
{
    char *bytes;
    size_t size;
    FT_TRY(ft_counter_set_format(&bytes, &size, set, ft_atomic_file_path(w->output), err));
    ft_hashed_output_write_u64(&w->hashed, size);
    ft_hashed_output_write(&w->hashed, bytes, size);
    free(bytes);
    return FT_OK;
}

ft_status ft_shard_writer_commit(ft_shard_writer *w, ft_error *err)
{
    if (!ft_hashed_output_finish(&w->hashed))
        return ft_fail_errno(err, "%s: cannot write", ft_atomic_file_path(w->output));
    return ft_atomic_file_commit(w->output, err);
}

void ft_shard_writer_fini(ft_shard_writer *w)
{
    ft_hashed_output_fini(&w->hashed);
    free(w->buffer);
    *w = (ft_shard_writer){ .buffer = NULL };
}
