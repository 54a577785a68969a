/*
 * shard.c - fuzz target: arbitrary bytes read as the statistics of a shard.
 *
 * Mutated bytes rarely match their SHA-256, so they are tried a second time with the correct one.
 * The parts of an accepted file are added to empty sums and written again: that equals the input.
 * The same sums are then added a second time, as those of another shard would be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/shard_file.h"
#include "runtime/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <string.h>
#include <unistd.h>

/* ---- One input ---------------------------------------------------------------------------- */

static bool init_half(ft_half_stats *half, size_t cols, uint64_t kept_rows)
{
    *half = (ft_half_stats){ .max_rows = (size_t) (kept_rows + 1) / 2,
                             .amax = ft_calloc(cols, sizeof(float)) };
    half->x = ft_calloc((half->max_rows + 1) * cols, sizeof(float));
    return half->x != NULL && half->amax != NULL &&
           ft_exact_sums_init(&half->sums, cols, false, NULL) == FT_OK;
}

static void free_half(ft_half_stats *half)
{
    free(half->x);
    free(half->amax);
    ft_exact_sums_fini(&half->sums);
}

/* Adds input number i, and writes it; returns the status of adding. */
static ft_status copy_input(ft_shard_writer *writer, const ft_shard_file *shard, size_t i)
{
    ft_input_stats input = { .name = shard->input[i].name, .cols = shard->input[i].cols };
    uint64_t kept = shard->header.kept_rows;
    ft_exact_sums sums;
    ft_status status = ft_exact_sums_init(&sums, input.cols, shard->header.moments, NULL);
    for (int half = 0; half < 2 && kept > 0 && status == FT_OK; half++)
        if (!init_half(&input.half[half], input.cols, kept))
            status = FT_ENOMEM;
    if (status == FT_OK)
        status = ft_shard_file_add_sums(shard, i, &input, &sums, NULL);
    if (status == FT_OK) {
        require(ft_shard_writer_add(writer, &input, &sums, NULL) == FT_OK);
        ft_status again = ft_shard_file_add_sums(shard, i, &input, &sums, NULL);
        require(again == FT_OK || again == FT_EFORMAT);
    }
    for (int half = 0; half < 2; half++)
        free_half(&input.half[half]);
    ft_exact_sums_fini(&sums);
    return status;
}

/* ---- A file ------------------------------------------------------------------------------- */

static ft_status copy_counters(ft_shard_writer *writer, const ft_shard_file *shard)
{
    ft_counter_set *set = NULL;
    ft_status status = ft_shard_file_read_counters(&set, shard, NULL);
    if (status == FT_OK)
        require(ft_shard_writer_add_counters(writer, set, NULL) == FT_OK);
    ft_counter_set_free(set);
    return status;
}

static ft_status copy(ft_shard_writer *writer, const ft_shard_file *shard)
{
    ft_status status = FT_OK;
    for (size_t i = 0; i < shard->header.inputs && status == FT_OK; i++)
        status = copy_input(writer, shard, i);
    return status == FT_OK && shard->header.stage == FT_STAGE_RANGES ? copy_counters(writer, shard)
                                                                     : status;
}

static void must_be(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *again = malloc(size + 1);
    require(file != NULL && again != NULL && fread(again, 1, size + 1, file) == size);
    require(memcmp(again, data, size) == 0);
    fclose(file);
    unlink(path);
    free(again);
}

static void must_be_the_same_again(const ft_shard_file *shard, const uint8_t *data, size_t size)
{
    char path[64];
    ft_atomic_file *output;
    ft_shard_writer writer;
    snprintf(path, sizeof path, "/dev/shm/fuzz-shard.%ld", (long) getpid());
    require(ft_atomic_file_open(&output, path, true, NULL) == FT_OK);
    require(ft_shard_writer_begin(&writer, output, &shard->header, NULL) == FT_OK);
    if (copy(&writer, shard) == FT_OK) {
        require(ft_shard_writer_commit(&writer, NULL) == FT_OK);
        must_be(path, data, size);
    }
    ft_shard_writer_fini(&writer);
    ft_atomic_file_close(output);
}

/* Columns are bounded by the bytes of the file, kept rows are not: memory would not suffice. */
static bool is_small(const ft_shard_header *header)
{
    return header->kept_rows <= 1024;
}

static void read_shard(uint8_t *data, size_t size)
{
    ft_shard_file shard;
    FILE *file = fmemopen(data, size, "rb");
    if (file == NULL)
        return;
    if (ft_shard_file_read(&shard, file, "fuzz", NULL) == FT_OK && is_small(&shard.header))
        must_be_the_same_again(&shard, data, size);
    ft_shard_file_fini(&shard);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = malloc(size + 1);
    if (sealed == NULL || size < FT_FINGERPRINT) {
        free(sealed);
        return 0;
    }
    memcpy(sealed, data, size);
    read_shard(sealed, size);
    require(ft_sha256_digest(sealed, size - FT_FINGERPRINT, sealed + size - FT_FINGERPRINT));
    read_shard(sealed, size);
    free(sealed);
    return 0;
}

/* Mutates the bytes before the digest, which the target recomputes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t state = seed;
    return mutate_bytes(data, size, room, &state);
}
