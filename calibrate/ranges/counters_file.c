/*
 * counters_file.c - writes and reads counter sets.
 *
 * The reader validates everything: lengths, orders and sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/counters_file.h"

#include "calibrate/ranges/hashed_output.h"
#include "runtime/mem.h"
#include "runtime/container/file_type.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[8] = { 'F', 'T', 'C', 'O', 'U', 'N', 'T', 'S' };

enum {
    FORMAT_VERSION = 1,
    HEADER_BYTES = 8 + 3 * 4 + FT_FINGERPRINT,
    RANGE_BYTES = FT_FINGERPRINT + 2 * 8,
    POINT_BYTES = 3 * 4 + 3 * 8
};

/* ---- Writing ------------------------------------------------------------------------------ */

static void write_point(ft_hashed_output *out, const ft_counters *point)
{
    const ft_counts *counts = &point->counts;
    size_t keys = 0;
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        keys += counts->key[key] > 0;
    ft_hashed_output_write_u32(out, strlen(point->name));
    ft_hashed_output_write_u32(out, keys);
    ft_hashed_output_write_u32(out, counts->tail_used);
    ft_hashed_output_write_u64(out, counts->zeros);
    ft_hashed_output_write_u64(out, counts->nans);
    ft_hashed_output_write_u64(out, counts->infinities);
    ft_hashed_output_write(out, point->name, strlen(point->name));
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        if (counts->key[key] > 0) {
            ft_hashed_output_write_u32(out, key);
            ft_hashed_output_write_u64(out, counts->key[key]);
        }
    for (size_t i = 0; i < counts->tail_used; i++)
        ft_hashed_output_write_u32(out, counts->tail[i]);
}

static void write_set(ft_hashed_output *out, const ft_counter_set *set)
{
    ft_hashed_output_write(out, magic, sizeof magic);
    ft_hashed_output_write_u32(out, FORMAT_VERSION);
    ft_hashed_output_write_u32(out, set->count);
    ft_hashed_output_write_u32(out, set->range_count);
    ft_hashed_output_write(out, set->model, FT_FINGERPRINT);
    for (size_t i = 0; i < set->range_count; i++) {
        ft_hashed_output_write(out, set->range[i].data, FT_FINGERPRINT);
        ft_hashed_output_write_u64(out, set->range[i].first);
        ft_hashed_output_write_u64(out, set->range[i].last);
    }
    for (size_t i = 0; i < set->count; i++)
        write_point(out, &set->point[i]);
}

static ft_status write_to(FILE *file, ft_counter_set *set, const char *path, ft_error *err)
{
    ft_hashed_output out;
    ft_status rc = FT_OK;
    if (!ft_hashed_output_init(&out, file)) {
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory to write counters", path);
    } else {
        ft_counter_set_finalize(set);
        write_set(&out, set);
        if (!ft_hashed_output_finish(&out))
            rc = ft_fail_errno(err, "%s: cannot write", path);
    }
    ft_hashed_output_fini(&out);
    return rc;
}

ft_status ft_counter_set_format(char **out, size_t *size, ft_counter_set *set, const char *who,
                                ft_error *err)
{
    *out = NULL;
    FILE *file = open_memstream(out, size);
    ft_status rc = write_to(file, set, who, err);
    if (file != NULL && fclose(file) != 0 && rc == FT_OK)
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory to write counters", who);
    if (rc != FT_OK) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

ft_status ft_counter_set_write(ft_counter_set *set, ft_atomic_file *output, ft_error *err)
{
    FT_TRY(write_to(ft_atomic_file_stream(output), set, ft_atomic_file_path(output), err));
    return ft_atomic_file_commit(output, err);
}

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct reader {
    const unsigned char *cursor, *end;
    const char *who;
    ft_error *err;
} reader;

/* The next count * element_size bytes, or NULL with the error set. */
static const unsigned char *read_bytes(reader *r, size_t count, size_t element_size)
{
    size_t size;
    if (!ft_checked_mul(count, element_size, &size) || size > (size_t) (r->end - r->cursor)) {
        ft_fail(r->err, FT_EFORMAT, "%s: cut off: %zu x %zu bytes expected, %zu left", r->who,
                count, element_size, (size_t) (r->end - r->cursor));
        return NULL;
    }
    const unsigned char *bytes = r->cursor;
    r->cursor += size;
    return bytes;
}

static ft_status check_digest(reader *r)
{
    if ((size_t) (r->end - r->cursor) < HEADER_BYTES + FT_FINGERPRINT ||
        memcmp(r->cursor, magic, sizeof magic) != 0)
        return ft_fail(r->err, FT_EFORMAT, "%s: not a counters file", r->who);
    uint32_t version = ft_load_le32(r->cursor + 8);
    if (version != FORMAT_VERSION)
        return ft_fail(r->err, FT_EFORMAT, "%s: counters version %" PRIu32 ", expected %d", r->who,
                       version, FORMAT_VERSION);
    r->end -= FT_FINGERPRINT;
    uint8_t digest_bytes[FT_SHA256_BYTES];
    if (!ft_sha256_digest(r->cursor, (size_t) (r->end - r->cursor), digest_bytes))
        return ft_fail(r->err, FT_ENOMEM, "%s: cannot compute SHA-256", r->who);
    if (memcmp(digest_bytes, r->end, FT_FINGERPRINT) != 0)
        return ft_fail(r->err, FT_EFORMAT, "%s: altered or cut off: SHA-256 differs", r->who);
    return FT_OK;
}

static ft_status read_ranges(const reader *r, ft_counter_set *set, const unsigned char *bytes,
                             size_t count)
{
    for (size_t i = 0; i < count; i++, bytes += RANGE_BYTES) {
        ft_sample_range range = { .first = ft_load_le64(bytes + FT_FINGERPRINT),
                                  .last = ft_load_le64(bytes + FT_FINGERPRINT + 8) };
        memcpy(range.data, bytes, FT_FINGERPRINT);
        size_t before = set->range_count;
        FT_TRY(ft_counter_set_add_range(set, range, r->who, r->err));
        const ft_sample_range *last = &set->range[set->range_count - 1];
        if (set->range_count != before + 1 || memcmp(last, &range, sizeof range) != 0)
            return ft_fail(r->err, FT_EFORMAT, "%s: range %zu of samples is out of order", r->who,
                           i + 1);
    }
    return FT_OK;
}

/*
 * Keys ascend, counts are positive, and their sum is exact in a double, because methods divide by
 * it.
 */
static ft_status read_keys(reader *r, ft_counters *point, const unsigned char *bytes, size_t count)
{
    ft_counts *counts = &point->counts;
    const uint64_t max_total = UINT64_C(1) << 53;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++, bytes += 12) {
        uint32_t key = ft_load_le32(bytes);
        uint64_t n_times = ft_load_le64(bytes + 4);
        if (key >= FT_COUNT_KEYS || (i > 0 && key <= ft_load_le32(bytes - 12)))
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: key %" PRIu32 " is out of order", r->who,
                           point->name, key);
        if (n_times == 0 || n_times > max_total - total)
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: key %" PRIu32 " has count %" PRIu64, r->who,
                           point->name, key, n_times);
        counts->key[key] = n_times;
        total += n_times;
    }
    if (counts->zeros > counts->key[0])
        return ft_fail(r->err, FT_EFORMAT, "%s: %s: %" PRIu64 " zeros of %" PRIu64 " in key 0",
                       r->who, point->name, counts->zeros, counts->key[0]);
    return FT_OK;
}

/*
 * The tail is ascending, holds positive finite magnitudes, and is full if any key below it has
 * counts.
 */
static ft_status read_tail(reader *r, ft_counters *point, const unsigned char *bytes, size_t count,
                           uint32_t last_key)
{
    ft_counts *counts = &point->counts;
    for (size_t i = 0; i < count; i++, bytes += 4) {
        uint32_t magnitude = ft_load_le32(bytes);
        if (magnitude == 0 || magnitude >= FT_COUNT_INFINITY ||
            (i > 0 && magnitude < counts->tail[i - 1]))
            return ft_fail(r->err, FT_EFORMAT, "%s: %s: value %zu of the tail is out of order",
                           r->who, point->name, i + 1);
        counts->tail[i] = magnitude;
    }
    counts->tail_used = count;
    bool has_body = last_key > 0 || counts->key[0] > counts->zeros;
    if (has_body && (count < FT_COUNT_TAIL || last_key > ft_count_key(counts->tail[0])))
        return ft_fail(r->err, FT_EFORMAT, "%s: %s: keys above the tail of %zu values", r->who,
                       point->name, count);
    counts->threshold = count == FT_COUNT_TAIL ? counts->tail[0] : 0;
    return FT_OK;
}

/* The counters of the next point; read_names() has checked that its bytes exist. */
static ft_status read_counts(reader *r, ft_counters *point)
{
    const unsigned char *header_bytes = read_bytes(r, 1, POINT_BYTES);
    read_bytes(r, ft_load_le32(header_bytes), 1);
    size_t keys = ft_load_le32(header_bytes + 4), tail = ft_load_le32(header_bytes + 8);
    if (keys > FT_COUNT_KEYS || tail > FT_COUNT_TAIL)
        return ft_fail(r->err, FT_EFORMAT, "%s: %s: %zu keys and a tail of %zu, at most %d and %d",
                       r->who, point->name, keys, tail, FT_COUNT_KEYS, FT_COUNT_TAIL);
    point->counts.zeros = ft_load_le64(header_bytes + 12);
    point->counts.nans = ft_load_le64(header_bytes + 20);
    point->counts.infinities = ft_load_le64(header_bytes + 28);
    const unsigned char *key_bytes = read_bytes(r, keys, 12), *tail_bytes = read_bytes(r, tail, 4);
    FT_TRY(read_keys(r, point, key_bytes, keys));
    uint32_t last_key = keys > 0 ? ft_load_le32(key_bytes + 12 * (keys - 1)) : 0;
    return read_tail(r, point, tail_bytes, tail, last_key);
}

/* Reads the name of the next point, which the caller frees, and skips to the point after it. */
static ft_status read_name(reader *r, char **out)
{
    const unsigned char *header_bytes = read_bytes(r, 1, POINT_BYTES);
    size_t length = header_bytes == NULL ? 0 : ft_load_le32(header_bytes);
    const unsigned char *name = header_bytes == NULL ? NULL : read_bytes(r, length, 1);
    if (name == NULL || read_bytes(r, ft_load_le32(header_bytes + 4), 12) == NULL ||
        read_bytes(r, ft_load_le32(header_bytes + 8), 4) == NULL)
        return FT_EFORMAT;
    if (memchr(name, '\0', length) != NULL)
        return ft_fail(r->err, FT_EFORMAT, "%s: a point's name contains a zero byte", r->who);
    *out = strndup((const char *) name, length);
    return *out != NULL ? FT_OK : ft_fail(r->err, FT_ENOMEM, "%s: no memory for a name", r->who);
}

/* Names are read first, because the set is created from them before its counters are filled in. */
static ft_status read_names(reader r, ft_counter_set **out, const unsigned char *header)
{
    size_t count = ft_load_le32(header + 12), read = 0;
    if (count > FT_COUNTER_POINTS)
        return ft_fail(r.err, FT_ELIMIT, "%s: %zu points, at most %d are supported", r.who, count,
                       FT_COUNTER_POINTS);
    char **names = ft_calloc(count, sizeof *names);
    if (names == NULL)
        return ft_fail(r.err, FT_ENOMEM, "%s: no memory for %zu names", r.who, count);
    ft_status rc = FT_OK;
    while (rc == FT_OK && read < count)
        if ((rc = read_name(&r, &names[read])) == FT_OK)
            read++;
    if (rc == FT_OK && r.cursor != r.end)
        rc = ft_fail(r.err, FT_EFORMAT, "%s: %zu bytes after the last point", r.who,
                     (size_t) (r.end - r.cursor));
    if (rc == FT_OK)
        rc = ft_counter_set_new(out, header + 20, (const char *const *) names, count, r.who, r.err);
    for (size_t i = 0; i < read; i++)
        free(names[i]);
    free(names);
    return rc;
}

static ft_status read_set(reader *r, ft_counter_set **out)
{
    FT_TRY(check_digest(r));
    const unsigned char *header = read_bytes(r, 1, HEADER_BYTES);
    size_t range_count = ft_load_le32(header + 16);
    const unsigned char *ranges = read_bytes(r, range_count, RANGE_BYTES);
    if (ranges == NULL)
        return FT_EFORMAT;
    FT_TRY(read_names(*r, out, header));
    FT_TRY(read_ranges(r, *out, ranges, range_count));
    for (size_t i = 0; i < (*out)->count; i++)
        FT_TRY(read_counts(r, &(*out)->point[i]));
    return FT_OK;
}

ft_status ft_counter_set_parse(ft_counter_set **out, const void *bytes, size_t size,
                               const char *who, ft_error *err)
{
    *out = NULL;
    reader r = {
        .cursor = bytes, .end = (const unsigned char *) bytes + size, .who = who, .err = err
    };
    ft_status rc = read_set(&r, out);
    if (rc != FT_OK) {
        ft_counter_set_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Reads into memory instead of mapping: truncating a mapped file kills its reader. */
static ft_status read_file(unsigned char **out, size_t *size, const char *path, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        ft_status rc = ft_fail_errno(err, "%s", path);
        if (file != NULL)
            fclose(file);
        return rc;
    }
    ft_status rc = FT_OK;
    *size = S_ISREG(status.st_mode) ? (size_t) status.st_size : 0;
    *out = malloc(*size + 1);
    if (*out == NULL)
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", path, *size);
    else if (fread(*out, 1, *size, file) != *size)
        rc = ft_fail(err, FT_EIO, "%s: cannot read %zu bytes", path, *size);
    fclose(file);
    return rc;
}

ft_status ft_counter_set_read(ft_counter_set **out, const char *path, ft_error *err)
{
    *out = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0;
    ft_status rc = read_file(&bytes, &size, path, err);
    if (rc == FT_OK)
        rc = ft_counter_set_parse(out, bytes, size, path, err);
    free(bytes);
    return rc == FT_OK ? FT_OK : ft_explain_wrong_file(path, FT_EXPECTED_COUNTERS, rc, err);
}
