/*
 * shard_read.c - checks the file of a shard and finds its parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/shard_file.h"

#include "runtime/container/file_type.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool ft_is_shard_file(const char *path)
{
    return ft_detect_file_kind_at(path) == FT_FILE_SHARD;
}

/* What is read, and how many bytes are left before the digest. */
typedef struct reader {
    ft_shard_file *shard;
    FILE *file;
    uint64_t at, end;
    ft_error *err;
} reader;

static ft_status fail_cut(const reader *r, uint64_t expected)
{
    return ft_fail(r->err, FT_EFORMAT,
                   "%s: cut off: %" PRIu64 " bytes expected at %" PRIu64 ", %" PRIu64 " left",
                   r->shard->who, expected, r->at, r->end - r->at);
}

static ft_status read_bytes(reader *r, void *bytes, size_t size)
{
    if (size > r->end - r->at)
        return fail_cut(r, size);
    if (fread(bytes, 1, size, r->file) != size)
        return ft_fail(r->err, FT_EIO, "%s: cannot read %zu bytes", r->shard->who, size);
    r->at += size;
    return FT_OK;
}

static ft_status skip(reader *r, uint64_t size)
{
    if (size > r->end - r->at)
        return fail_cut(r, size);
    r->at += size;
    return fseeko(r->file, (off_t) r->at, SEEK_SET) == 0
               ? FT_OK
               : ft_fail_errno(r->err, "%s: cannot read", r->shard->who);
}

/* ---- Digest ------------------------------------------------------------------------------- */

static ft_status hash_file(reader *r, uint8_t digest[FT_FINGERPRINT])
{
    static const size_t block_bytes = 1 << 16;
    unsigned char *block = malloc(block_bytes);
    ft_sha256 *hash = ft_sha256_new();
    ft_status status = block != NULL && hash != NULL
                           ? FT_OK
                           : ft_fail(r->err, FT_ENOMEM, "%s: no memory to hash it", r->shard->who);
    if (status == FT_OK)
        ft_sha256_init(hash);
    while (status == FT_OK && r->at < r->end) {
        size_t size = ft_min_size(block_bytes, (size_t) (r->end - r->at));
        status = read_bytes(r, block, size);
        if (status == FT_OK)
            ft_sha256_update(hash, block, size);
    }
    if (status == FT_OK && !ft_sha256_final(hash, digest))
        status = ft_fail(r->err, FT_ENOMEM, "%s: cannot compute SHA-256", r->shard->who);
    ft_sha256_free(hash);
    free(block);
    return status;
}

static ft_status check_magic(reader *r)
{
    unsigned char bytes[12];
    const char *who = r->shard->who;
    if (r->end < FT_SHARD_HEADER_BYTES + FT_FINGERPRINT)
        return ft_fail(r->err, FT_EFORMAT,
                       "%s: %" PRIu64 " bytes, too few for the statistics of a shard", who, r->end);
    FT_TRY(read_bytes(r, bytes, sizeof bytes));
    if (memcmp(bytes, ft_shard_magic, sizeof ft_shard_magic) != 0)
        return ft_fail(r->err, FT_EFORMAT, "%s: not the statistics of a shard", who);
    uint32_t version = ft_load_le32(bytes + 8);
    if (version != FT_SHARD_VERSION)
        return ft_fail(r->err, FT_EFORMAT,
                       "%s: statistics version %" PRIu32 ", expected %d: run the shard again with "
                       "this version of ft-calibrate",
                       who, version, FT_SHARD_VERSION);
    rewind(r->file);
    r->at = 0;
    r->end -= FT_FINGERPRINT;
    return FT_OK;
}

/* Leaves the reader behind magic and version. */
static ft_status check_digest(reader *r)
{
    uint8_t found[FT_FINGERPRINT];
    FT_TRY(check_magic(r));
    FT_TRY(hash_file(r, found));
    if (fread(r->shard->digest, 1, FT_FINGERPRINT, r->file) != FT_FINGERPRINT)
        return ft_fail(r->err, FT_EIO, "%s: cannot read its SHA-256", r->shard->who);
    if (memcmp(found, r->shard->digest, FT_FINGERPRINT) != 0)
        return ft_fail(r->err, FT_EFORMAT,
                       "%s: altered or cut off: SHA-256 differs; run the shard again",
                       r->shard->who);
    rewind(r->file);
    r->at = 0;
    return skip(r, 12);
}

/* ---- Header ------------------------------------------------------------------------------- */

static ft_status read_header(reader *r)
{
    unsigned char b[FT_SHARD_HEADER_BYTES - 12];
    ft_shard_header *h = &r->shard->header;
    FT_TRY(read_bytes(r, b, sizeof b));
    uint32_t stage = ft_load_le32(b), moments = ft_load_le32(b + 12);
    h->shard = (ft_shard){ .index = ft_load_le32(b + 4), .count = ft_load_le32(b + 8) };
    h->inputs = ft_load_le32(b + 16);
    h->first = ft_load_le64(b + 20);
    h->last = ft_load_le64(b + 28);
    h->kept_rows = ft_load_le64(b + 36);
    memcpy(h->model, b + 44, FT_FINGERPRINT);
    memcpy(h->data, b + 44 + FT_FINGERPRINT, FT_FINGERPRINT);
    bool valid = stage < FT_NUM_STAGES && moments <= 1 && h->shard.count <= FT_MAX_SHARDS &&
                 h->shard.index < h->shard.count && h->first < h->last &&
                 h->last <= UINT64_C(1) << 48 && h->kept_rows <= UINT32_MAX &&
                 h->inputs <= FT_SHARD_INPUTS && (h->inputs == 0) == (stage == FT_STAGE_RANGES);
    if (!valid)
        return ft_fail(r->err, FT_EFORMAT,
                       "%s: invalid header: stage %" PRIu32 ", shard %" PRIu32 " of %" PRIu32
                       ", samples %" PRIu64 " to %" PRIu64 ", %zu inputs",
                       r->shard->who, stage, h->shard.index + 1, h->shard.count, h->first, h->last,
                       h->inputs);
    h->stage = stage;
    h->moments = moments == 1;
    return FT_OK;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

/* Columns are bounded, so that nothing here overflows. */
static uint64_t payload_bytes(const ft_shard_header *header, const ft_shard_input *input)
{
    uint64_t cols = input->cols, bytes = cols * 2 * 16;
    if (header->moments)
        bytes += cols * (cols + 1) / 2 * 8;
    if (header->kept_rows > 0)
        bytes += 2 * cols * (4 + 16) + ((uint64_t) input->kept[0] + input->kept[1]) * cols * 4;
    return bytes;
}

static bool is_power_of_two(double unit)
{
    int exponent;
    return isfinite(unit) && unit > 0.0 && frexp(unit, &exponent) == 0.5;
}

static ft_status check_input(const reader *r, const ft_shard_input *input, size_t length)
{
    uint64_t most = (r->shard->header.kept_rows + 1) / 2;
    bool valid = length > 0 && length <= FT_COUNTER_NAME && input->cols > 0 &&
                 input->cols <= FT_SHARD_COLUMNS && input->rows <= UINT64_C(1) << 48 &&
                 is_power_of_two(input->unit) && input->kept[0] <= most && input->kept[1] <= most;
    return valid ? FT_OK
                 : ft_fail(r->err, FT_EFORMAT,
                           "%s: input %zu is invalid: name of %zu bytes, %zu columns, %" PRIu64
                           " rows, %zu and %zu kept ones, unit %g",
                           r->shard->who, (size_t) (input - r->shard->input) + 1, length,
                           input->cols, input->rows, input->kept[0], input->kept[1], input->unit);
}

static ft_status read_name(reader *r, ft_shard_input *input, size_t length)
{
    input->name = ft_calloc(length + 1, 1);
    if (input->name == NULL)
        return ft_fail(r->err, FT_ENOMEM, "%s: no memory for a name", r->shard->who);
    FT_TRY(read_bytes(r, input->name, length));
    return memchr(input->name, '\0', length) == NULL
               ? FT_OK
               : ft_fail(r->err, FT_EFORMAT, "%s: the name of an input contains a zero byte",
                         r->shard->who);
}

static ft_status read_input(reader *r, ft_shard_input *input)
{
    unsigned char b[FT_SHARD_INPUT_BYTES];
    FT_TRY(read_bytes(r, b, sizeof b));
    size_t length = ft_load_le32(b);
    uint64_t cols = ft_load_le64(b + 12), unit = ft_load_le64(b + 28);
    input->kept[0] = ft_load_le32(b + 4);
    input->kept[1] = ft_load_le32(b + 8);
    input->cols = cols <= FT_SHARD_COLUMNS ? (size_t) cols : 0;
    input->rows = ft_load_le64(b + 20);
    memcpy(&input->unit, &unit, sizeof unit);
    FT_TRY(check_input(r, input, length));
    FT_TRY(read_name(r, input, length));
    input->offset = r->at;
    return skip(r, payload_bytes(&r->shard->header, input));
}

/* Memory for inputs is bounded by the bytes that are there. */
static ft_status read_inputs(reader *r)
{
    ft_shard_file *shard = r->shard;
    size_t count = shard->header.inputs;
    if (count > (r->end - r->at) / FT_SHARD_INPUT_BYTES)
        return fail_cut(r, (uint64_t) count * FT_SHARD_INPUT_BYTES);
    shard->input = ft_calloc(count + 1, sizeof *shard->input);
    if (shard->input == NULL)
        return ft_fail(r->err, FT_ENOMEM, "%s: no memory for %zu inputs", shard->who, count);
    for (size_t i = 0; i < count; i++)
        FT_TRY(read_input(r, &shard->input[i]));
    return FT_OK;
}

static ft_status find_counters(reader *r)
{
    unsigned char bytes[8];
    if (r->shard->header.stage != FT_STAGE_RANGES)
        return FT_OK;
    FT_TRY(read_bytes(r, bytes, sizeof bytes));
    r->shard->counter_bytes = ft_load_le64(bytes);
    r->shard->counters = r->at;
    return skip(r, r->shard->counter_bytes);
}

/* ---- All ---------------------------------------------------------------------------------- */

static ft_status find_parts(reader *r)
{
    FT_TRY(check_digest(r));
    FT_TRY(read_header(r));
    FT_TRY(read_inputs(r));
    FT_TRY(find_counters(r));
    return r->at == r->end
               ? FT_OK
               : ft_fail(r->err, FT_EFORMAT, "%s: %" PRIu64 " bytes behind the last part",
                         r->shard->who, r->end - r->at);
}

ft_status ft_shard_file_read(ft_shard_file *shard, FILE *file, const char *who, ft_error *err)
{
    *shard = (ft_shard_file){ .who = who, .file = file };
    reader r = { .shard = shard, .file = file, .err = err };
    off_t size = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : -1;
    if (size < 0)
        return ft_fail_errno(err, "%s: not a regular file: cannot read", who);
    r.end = (uint64_t) size;
    rewind(file);
    return find_parts(&r);
}

ft_status ft_shard_file_open(ft_shard_file *shard, const char *path, ft_error *err)
{
    *shard = (ft_shard_file){ .who = path };
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (file == NULL)
        return ft_explain_wrong_file(path, FT_EXPECTED_SHARD, ft_fail_errno(err, "%s", path), err);
    ft_status status = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode)
                           ? ft_shard_file_read(shard, file, path, err)
                           : ft_fail(err, FT_EFORMAT,
                                     "%s: not a regular file, expected one of --save-stats", path);
    fclose(file);
    shard->file = NULL;
    return status == FT_OK ? FT_OK : ft_explain_wrong_file(path, FT_EXPECTED_SHARD, status, err);
}

void ft_shard_file_fini(ft_shard_file *shard)
{
    for (size_t i = 0; i < shard->header.inputs && shard->input != NULL; i++)
        free(shard->input[i].name);
    free(shard->input);
    *shard = (ft_shard_file){ .who = NULL };
}
