/*
 * shards-t.c - the parts of the samples, and the files of shards: what is written is read, and no
 * damage is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/merged_shards.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { COLS = 3, SHARDS = 3, PATH = 128, MAX_BYTES = 4096 };

static ft_error err;
static char folder[FOLDER_PATH];

/* ---- Parts -------------------------------------------------------------------------------- */

static void check_parts(void)
{
    bool contiguous = true, balanced = true;
    for (uint32_t count = 1; count <= 70; count++)
        for (uint64_t samples = 1; samples <= 130; samples += 7) {
            uint64_t next = 5;
            for (uint32_t i = 0; i < count; i++) {
                uint64_t first = 5, last = 5 + samples;
                ft_shard_samples((ft_shard){ i, count }, &first, &last);
                contiguous = contiguous && first == next && last >= first;
                balanced = balanced && last - first >= samples / count &&
                           last - first <= samples / count + 1;
                next = last;
            }
            contiguous = contiguous && next == 5 + samples;
        }
    ok(contiguous, "the shards of 1 to 70 have each of 1 to 130 samples once, in order");
    ok(balanced, "the numbers of samples of two shards differ by one at most");
}

/* ---- Files -------------------------------------------------------------------------------- */

/* The statistics of one sample, [1, COLS], with a row in the half of its parity. */
static void make_sums(ft_exact_sums *sums, ft_half_stats *half, const float *x)
{
    double scratch[COLS * COLS];
    ft_linalg linalg;
    if (ft_linalg_init(&linalg, 1, &err) != FT_OK ||
        ft_exact_sums_init(sums, COLS, true, &err) != FT_OK)
        bail_out("%s", err.text);
    sums->unit = 0x1p-20;
    if (ft_exact_sums_add(sums, &linalg, x, 1, scratch, "x", &err) != FT_OK ||
        ft_exact_sums_add(&half->sums, NULL, x, 1, NULL, "x", &err) != FT_OK)
        bail_out("%s", err.text);
    for (int i = 0; i < COLS; i++)
        half->amax[i] = x[i] < 0 ? -x[i] : x[i];
    memcpy(half->x, x, COLS * sizeof *x);
    half->rows = 1;
}

static void init_half(ft_half_stats *half)
{
    *half = (ft_half_stats){ .x = ft_calloc(2 * COLS, sizeof(float)),
                             .max_rows = 2,
                             .amax = ft_calloc(COLS, sizeof(float)),
                             .square = ft_calloc(COLS, sizeof(double)) };
    if (ft_exact_sums_init(&half->sums, COLS, false, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void free_half(ft_half_stats *half)
{
    free(half->x);
    free(half->amax);
    free(half->square);
    ft_exact_sums_fini(&half->sums);
}

static const float samples[SHARDS][COLS] = { { 1.0f, -2.0f, 3.0f },
                                             { 0.5f, 4.0f, -1.0f },
                                             { -3.0f, 0.25f, 2.0f } };

static const char *path_of(int shard)
{
    static char path[SHARDS][PATH + 16];
    snprintf(path[shard], sizeof path[shard], "%s/%d.stats", folder, shard);
    return path[shard];
}

/* Shard i of 3 holds sample i of an input named "x". */
static void write_shard(int shard, const char *path, ft_shard_header header)
{
    ft_atomic_file *output;
    ft_shard_writer writer;
    ft_input_stats input = { .name = "x", .cols = COLS };
    ft_exact_sums sums;
    init_half(&input.half[0]);
    init_half(&input.half[1]);
    make_sums(&sums, &input.half[shard % 2], samples[shard]);
    header.shard = (ft_shard){ (uint32_t) shard, SHARDS };
    if (ft_atomic_file_open(&output, path, true, &err) != FT_OK ||
        ft_shard_writer_begin(&writer, output, &header, &err) != FT_OK ||
        ft_shard_writer_add(&writer, &input, &sums, &err) != FT_OK ||
        ft_shard_writer_commit(&writer, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_shard_writer_fini(&writer);
    ft_atomic_file_close(output);
    ft_exact_sums_fini(&sums);
    free_half(&input.half[0]);
    free_half(&input.half[1]);
}

static const ft_shard_header plain = {
    .stage = FT_STAGE_INPUTS, .moments = true, .inputs = 1, .last = SHARDS, .kept_rows = 4
};

static ft_status open_all(const char *const *path, size_t count)
{
    ft_merged_shards merged;
    ft_status status = ft_merged_shards_open(&merged, path, count, &err);
    ft_merged_shards_fini(&merged);
    return status;
}

static void check_sums(void)
{
    const char *const path[] = { path_of(2), path_of(0), path_of(1) };
    ft_merged_shards merged;
    ft_input_stats input = { .name = "x", .cols = COLS };
    ft_exact_sums sums;
    init_half(&input.half[0]);
    init_half(&input.half[1]);
    if (ft_exact_sums_init(&sums, COLS, true, &err) != FT_OK ||
        ft_merged_shards_open(&merged, path, SHARDS, &err) != FT_OK)
        bail_out("%s", err.text);
    const ft_stats_source *source = &merged.source[FT_STAGE_INPUTS];
    ok(source->read(source->user, &input, &sums, &err) == FT_OK && sums.rows == SHARDS,
       "the files of three shards are merged in any order");
    is_int(sums.moments[1], (long long) ((1 * -2 + 0.5 * 4 + -3 * 0.25) * 0x1p20),
           "merged second moments are the sums of all samples");
    is_int(input.half[0].rows == 2 && memcmp(input.half[0].x, samples[0], sizeof samples[0]) == 0 &&
               memcmp(input.half[0].x + COLS, samples[2], sizeof samples[2]) == 0,
           1, "rows are kept in the order of samples, whatever the order of files");
    near((double) input.half[0].amax[0], 3.0, 0.0, "merged maxima are those of all samples");
    ft_input_stats other = { .name = "y", .cols = COLS };
    ok(source->read(source->user, &other, &sums, &err) == FT_EARG,
       "an input that the files do not hold is refused");
    has(err.text, "no statistics of y", "the message names it");
    ft_merged_shards_fini(&merged);
    ft_exact_sums_fini(&sums);
    free_half(&input.half[0]);
    free_half(&input.half[1]);
}

static void check_splits(void)
{
    const char *const twice[] = { path_of(0), path_of(1), path_of(1), path_of(2) };
    is_int(open_all(twice, 4), FT_EARG, "a shard that is given twice is refused");
    has(err.text, "shard 2/3 overlaps", "the message says which shard overlaps");
    const char *const two[] = { path_of(0), path_of(2) };
    is_int(open_all(two, 2), FT_EARG, "a missing shard is refused");
    has(err.text, "--shard 2/3", "the message says which one to run");

    char path[PATH + 16];
    snprintf(path, sizeof path, "%s/other.stats", folder);
    const char *const mixed[] = { path_of(0), path, path_of(2) };
    ft_shard_header header = plain;
    header.model[0] = 1;
    write_shard(1, path, header);
    is_int(open_all(mixed, 3), FT_EARG, "a shard of another model is refused");
    has(err.text, "other models", "the message says so");
    header = plain;
    header.data[0] = 1;
    write_shard(1, path, header);
    is_int(open_all(mixed, 3), FT_EARG, "a shard of other data is refused");
    header = plain;
    header.last = 9;
    write_shard(1, path, header);
    is_int(open_all(mixed, 3), FT_EARG, "a shard of other --samples is refused");
    has(err.text, "samples 0 to 8, expected 0 to 2",
        "the message says what was found and expected");
}

/* ---- Damage ------------------------------------------------------------------------------- */

static size_t load(unsigned char *bytes, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(bytes, 1, MAX_BYTES, file) : 0;
    if (size == 0)
        bail_out("%s: cannot read", path);
    fclose(file);
    return size;
}

static ft_status read_bytes(unsigned char *bytes, size_t size)
{
    ft_shard_file shard;
    FILE *file = fmemopen(bytes, size, "rb");
    if (file == NULL)
        bail_out("no memory for a stream");
    ft_status status = ft_shard_file_read(&shard, file, "shard", &err);
    ft_shard_file_fini(&shard);
    fclose(file);
    return status;
}

static void check_damage(void)
{
    unsigned char bytes[MAX_BYTES];
    size_t size = load(bytes, path_of(0)), accepted = 0;
    is_int(read_bytes(bytes, size), FT_OK, "an undamaged file is read");
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x10;
        accepted += read_bytes(bytes, size) == FT_OK;
        bytes[i] ^= 0x10;
    }
    is_int((long long) accepted, 0, "a file with any byte altered is refused");
    for (size_t i = 1; i < size; i++)
        accepted += read_bytes(bytes, i) == FT_OK;
    is_int((long long) accepted, 0, "a file that is cut off anywhere is refused");
    bytes[8] = 2;
    is_int(read_bytes(bytes, size), FT_EFORMAT, "a file of another version is refused");
    has(err.text, "version 2, expected 1", "the message says which versions");
}

int main(void)
{
    folder_make(folder);
    check_parts();
    for (int i = 0; i < SHARDS; i++)
        write_shard(i, path_of(i), plain);
    check_sums();
    check_splits();
    check_damage();
    folder_remove(folder);
    return done_testing();
}
