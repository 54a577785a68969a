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

static void write_bytes(ft_shard_writer *w, const void *bytes, size_t size)
{
    w->failed = w->failed || fwrite(bytes, 1, size, w->file) != size;
    ft_sha256_update(w->hash, bytes, size);
}

static void write_u32(ft_shard_writer *w, size_t value)
{
    unsigned char bytes[4];
    ft_store_le32(bytes, (uint32_t) value);
    write_bytes(w, bytes, sizeof bytes);
}

static void write_u64(ft_shard_writer *w, uint64_t value)
{
    unsigned char bytes[8];
    ft_store_le64(bytes, value);
    write_bytes(w, bytes, sizeof bytes);
}

static void write_double(ft_shard_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    write_u64(w, bits);
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
    write_bytes(w, w->buffer, 16 * count);
}

static void write_i64(ft_shard_writer *w, const int64_t *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ft_store_le64(w->buffer + 8 * i, (uint64_t) value[i]);
    write_bytes(w, w->buffer, 8 * count);
}

static void write_floats(ft_shard_writer *w, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        ft_store_le32(w->buffer + 4 * i, bits);
    }
    write_bytes(w, w->buffer, 4 * count);
}

/* ---- Parts -------------------------------------------------------------------------------- */

static void write_header(ft_shard_writer *w, const ft_shard_header *header)
{
    write_bytes(w, ft_shard_magic, sizeof ft_shard_magic);
    write_u32(w, FT_SHARD_VERSION);
    write_u32(w, header->stage);
    write_u32(w, header->shard.index);
    write_u32(w, header->shard.count);
    write_u32(w, header->moments);
    write_u32(w, header->inputs);
    write_u64(w, header->first);
    write_u64(w, header->last);
    write_u64(w, header->kept_rows);
    write_bytes(w, header->model, FT_FINGERPRINT);
    write_bytes(w, header->data, FT_FINGERPRINT);
}

ft_status ft_shard_writer_begin(ft_shard_writer *w, ft_atomic_file *output,
                                const ft_shard_header *header, ft_error *err)
{
    *w = (ft_shard_writer){ .output = output,
                            .file = ft_atomic_file_stream(output),
                            .hash = ft_sha256_new() };
    if (w->file == NULL || w->hash == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory to write statistics",
                       ft_atomic_file_path(output));
    ft_sha256_init(w->hash);
    write_header(w, header);
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
    write_u32(w, strlen(input->name));
    write_u32(w, input->half[0].rows);
    write_u32(w, input->half[1].rows);
    write_u64(w, cols);
    write_u64(w, sums->rows);
    write_double(w, sums->unit);
    write_bytes(w, input->name, strlen(input->name));
    write_sums(w, sums->magnitude, cols);
    write_sums(w, sums->square, cols);
    for (size_t row = 0; row < cols && sums->moments != NULL; row++)
        write_i64(w, sums->moments + row * cols + row, cols - row);
    for (int i = 0; i < 2 && input->half[i].x != NULL; i++)
        write_half(w, &input->half[i], cols);
    return w->failed ? ft_fail_errno(err, "%s: cannot write", ft_atomic_file_path(w->output))
                     : FT_OK;
}

ft_status ft_shard_writer_add_counters(ft_shard_writer *w, ft_counter_set *set, ft_error *err)
{
    char *bytes;
    size_t size;
    FT_TRY(ft_counter_set_format(&bytes, &size, set, ft_atomic_file_path(w->output), err));
    write_u64(w, size);
    write_bytes(w, bytes, size);
    free(bytes);
    return FT_OK;
}

ft_status ft_shard_writer_commit(ft_shard_writer *w, ft_error *err)
{
    uint8_t digest[FT_FINGERPRINT];
    if (w->failed || !ft_sha256_final(w->hash, digest) ||
        fwrite(digest, 1, sizeof digest, w->file) != sizeof digest)
        return ft_fail_errno(err, "%s: cannot write", ft_atomic_file_path(w->output));
    return ft_atomic_file_commit(w->output, err);
}

void ft_shard_writer_fini(ft_shard_writer *w)
{
    ft_sha256_free(w->hash);
    free(w->buffer);
    *w = (ft_shard_writer){ .file = NULL };
}
