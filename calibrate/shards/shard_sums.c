/*
 * shard_sums.c - adds what the file of a shard holds to the sums of others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/shard_file.h"

#include "calibrate/ranges/counters_file.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------------------------ */

/* The stream at an offset; the file must still be the one that was checked. */
static ft_status open_at(FILE **out, const ft_shard_file *shard, uint64_t offset, ft_error *err)
{
    uint8_t digest[FT_FINGERPRINT];
    FILE *file = *out = shard->file != NULL ? shard->file : fopen(shard->who, "rb");
    if (file == NULL)
        return ft_fail_errno(err, "%s", shard->who);
    if (fseeko(file, -(off_t) sizeof digest, SEEK_END) != 0 ||
        fread(digest, 1, sizeof digest, file) != sizeof digest ||
        fseeko(file, (off_t) offset, SEEK_SET) != 0)
        return ft_fail_errno(err, "%s: cannot read", shard->who);
    return memcmp(digest, shard->digest, sizeof digest) == 0
               ? FT_OK
               : ft_fail(err, FT_EFORMAT, "%s: has changed since it was opened; start again",
                         shard->who);
}

static void close_again(const ft_shard_file *shard, FILE *file)
{
    if (file != NULL && shard->file == NULL)
        fclose(file);
}

/* ---- Numbers ------------------------------------------------------------------------------ */

typedef struct reader {
    const ft_shard_file *shard;
    FILE *file;
    unsigned char *buffer; /* of one row, 16 bytes a column */
    const char *name;      /* of the input */
    ft_error *err;
} reader;

static ft_status read_row(const reader *r, size_t bytes)
{
    return fread(r->buffer, 1, bytes, r->file) == bytes
               ? FT_OK
               : ft_fail(r->err, FT_EIO, "%s: cannot read %zu bytes", r->shard->who, bytes);
}

/* Sums of magnitudes and squares are at most 2^125 units, so that two of them fit. */
static ft_status read_sums(const reader *r, ft_int128 *sum, size_t count)
{
    FT_TRY(read_row(r, 16 * count));
    for (size_t i = 0; i < count; i++) {
        uint64_t low = ft_load_le64(r->buffer + 16 * i),
                 high = ft_load_le64(r->buffer + 16 * i + 8);
        if (high > UINT64_C(1) << 61)
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: the sum of column %zu is out of range",
                           r->shard->who, r->name, i);
        sum[i] = (ft_int128) high << 64 | low;
    }
    return FT_OK;
}

static ft_status read_floats(const reader *r, float *value, size_t count)
{
    FT_TRY(read_row(r, 4 * count));
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = ft_load_le32(r->buffer + 4 * i);
        memcpy(&value[i], &bits, sizeof bits);
        if (!isfinite(value[i]))
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: column %zu is not finite", r->shard->who,
                           r->name, i);
    }
    return FT_OK;
}

/* ---- One input ---------------------------------------------------------------------------- */

static ft_status add_moments(const reader *r, ft_exact_sums *sums, int64_t *row)
{
    size_t cols = sums->cols;
    for (size_t i = 0; i < cols; i++) {
        FT_TRY(read_row(r, 8 * (cols - i)));
        for (size_t k = 0; k < cols - i; k++)
            row[k] = (int64_t) ft_load_le64(r->buffer + 8 * k);
        FT_TRY(ft_exact_sums_add_moments(sums, i, row, r->name, r->err));
    }
    return FT_OK;
}

/* `others` and `row` are memory for a row. */
static ft_status add_half(const reader *r, ft_half_stats *half, size_t kept, ft_exact_sums *others,
                          float *row)
{
    size_t cols = others->cols;
    FT_TRY(read_floats(r, row, cols));
    for (size_t i = 0; i < cols; i++) {
        if (signbit(row[i]))
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: the maximum of column %zu is negative",
                           r->shard->who, r->name, i);
        half->amax[i] = fmaxf(half->amax[i], row[i]);
    }
    memset(others->magnitude, 0, cols * sizeof *others->magnitude);
    others->rows = 0;
    FT_TRY(read_sums(r, others->square, cols));
    FT_TRY(ft_exact_sums_merge(&half->sums, others, r->name, r->err));
    for (size_t i = 0; i < kept; i++) {
        FT_TRY(read_floats(r, row, cols));
        if (half->rows < half->max_rows)
            memcpy(half->x + half->rows++ * cols, row, cols * sizeof *row);
    }
    return FT_OK;
}

static ft_status add_columns(const reader *r, ft_exact_sums *sums, ft_exact_sums *others)
{
    FT_TRY(read_sums(r, others->magnitude, others->cols));
    FT_TRY(read_sums(r, others->square, others->cols));
    return ft_exact_sums_merge(sums, others, r->name, r->err);
}

/* Moments that nobody asked for lie before the halves. */
static ft_status skip_moments(const reader *r, size_t cols)
{
    return fseeko(r->file, (off_t) (cols * (cols + 1) / 2 * 8), SEEK_CUR) == 0
               ? FT_OK
               : ft_fail_errno(r->err, "%s: cannot read", r->shard->who);
}

static ft_status add_parts(const reader *r, const ft_shard_input *from, ft_input_stats *input,
                           ft_exact_sums *sums, ft_exact_sums *others, void *row)
{
    FT_TRY(add_columns(r, sums, others));
    if (sums->moments != NULL)
        FT_TRY(add_moments(r, sums, row));
    else if (r->shard->header.moments)
        FT_TRY(skip_moments(r, sums->cols));
    for (int i = 0; i < 2 && input->half[i].x != NULL; i++)
        FT_TRY(add_half(r, &input->half[i], from->kept[i], others, row));
    return FT_OK;
}

ft_status ft_shard_file_add_sums(const ft_shard_file *shard, size_t index, ft_input_stats *input,
                                 ft_exact_sums *sums, ft_error *err)
{
    const ft_shard_input *from = &shard->input[index];
    ft_exact_sums others;
    reader r = { .shard = shard, .name = from->name, .err = err };
    ft_status status = ft_exact_sums_init(&others, from->cols, false, err);
    int64_t *row = ft_calloc(from->cols, sizeof *row);
    r.buffer = ft_calloc(from->cols, 16);
    others.rows = from->rows;
    sums->unit = from->unit;
    if (status == FT_OK && (row == NULL || r.buffer == NULL))
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns", shard->who, from->cols);
    if (status == FT_OK)
        status = open_at(&r.file, shard, from->offset, err);
    if (status == FT_OK)
        status = add_parts(&r, from, input, sums, &others, row);
    close_again(shard, r.file);
    free(r.buffer);
    free(row);
    ft_exact_sums_fini(&others);
    return status;
}

/* ---- Counters ----------------------------------------------------------------------------- */

ft_status ft_shard_file_read_counters(ft_counter_set **out, const ft_shard_file *shard,
                                      ft_error *err)
{
    *out = NULL;
    size_t size = (size_t) shard->counter_bytes;
    unsigned char *bytes = malloc(size + 1);
    FILE *file = NULL;
    ft_status status =
        bytes != NULL ? open_at(&file, shard, shard->counters, err)
                      : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", shard->who, size);
    if (status == FT_OK && fread(bytes, 1, size, file) != size)
        status = ft_fail(err, FT_EIO, "%s: cannot read %zu bytes", shard->who, size);
    if (status == FT_OK)
        status = ft_counter_set_parse(out, bytes, size, shard->who, err);
    close_again(shard, file);
    free(bytes);
    return status;
}

ft_status ft_shard_file_add_counters(const ft_shard_file *shard, ft_counter_set *set, ft_error *err)
{
    ft_counter_set *from = NULL;
    ft_status status = ft_shard_file_read_counters(&from, shard, err);
    if (status == FT_OK)
        status = ft_counter_set_merge(set, from, shard->who, err);
    ft_counter_set_free(from);
    return status;
}
