/*
 * shard_file.h - the file format of what one shard of the samples contributes to a calibration.
 *
 * All numbers are little-endian, without padding; a sum is an integer of 16 bytes, in units of
 * calibrate/stats/exact_sums.h:
 *
 *   8  "FTSHARD\0"                u32 version = 1           u32 stage
 *   u32 index   u32 shards        u32 1 with moments        u32 inputs
 *   u64 first   u64 last          samples of all shards together
 *   u64 rows of each input to keep, of all shards together; 0: there are no halves
 *   32 fingerprint of the model   32 fingerprint of the data
 *   inputs x {
 *       u32 bytes of the name     u32 kept rows of samples with even, u32 with odd numbers
 *       u64 columns               u64 rows                  f64 unit of the moments
 *       name
 *       columns x sum of |x|      columns x sum of x * x
 *       with moments: the upper triangle, row by row, x i64
 *       with halves: 2 x { columns x f32 amax, columns x sum of x * x, kept rows x columns x f32 }
 *   }
 *   stage "ranges": u64 bytes     a counters file of calibrate/ranges/counters_file.h
 *   32 SHA-256 of everything before it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SHARDS_SHARD_FILE_H
#define FT_CALIBRATE_SHARDS_SHARD_FILE_H

#include "calibrate/ranges/counters.h"
#include "calibrate/ranges/hashed_output.h"
#include "calibrate/stats/activation_stats.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/sha256.h"

enum {
    FT_SHARD_VERSION = 1,
    FT_SHARD_HEADER_BYTES = 8 + 6 * 4 + 3 * 8 + 2 * FT_FINGERPRINT,
    FT_SHARD_INPUT_BYTES = 3 * 4 + 3 * 8,
    FT_SHARD_INPUTS = 65536,   /* maximum */
    FT_SHARD_COLUMNS = 1 << 24 /* maximum */
};

extern const char ft_shard_magic[8];

/* What the samples are run for; a calibration has the stages that it needs, in this order. */
typedef enum ft_shard_stage {
    FT_STAGE_SMOOTHING, /* SmoothQuant's statistics of the original model */
    FT_STAGE_RANGES,    /* counters of the model that is quantized */
    FT_STAGE_INPUTS,    /* statistics for imatrix, AWQ and GPTQ */
    FT_NUM_STAGES
} ft_shard_stage;

/* "smoothing", "ranges", "inputs". */
const char *ft_shard_stage_name(ft_shard_stage stage);

/* What a file says of itself; files that differ in more than the index cannot be merged. */
typedef struct ft_shard_header {
    ft_shard_stage stage;
    ft_shard shard;
    bool moments;
    size_t inputs;
    uint64_t first, last, kept_rows;
    uint8_t model[FT_FINGERPRINT], data[FT_FINGERPRINT];
} ft_shard_header;

/* ---- Writing ------------------------------------------------------------------------------ */

typedef struct ft_shard_writer {
    ft_atomic_file *output;
    ft_hashed_output hashed;
    unsigned char *buffer; /* of one row */
    size_t capacity;
} ft_shard_writer;

/*
 * Begins with the header; then come the inputs, or the counters; commit names the file. fini also
 * accepts a zeroed or failed one. FT_ENOMEM, FT_EIO.
 */
FT_MUST_USE ft_status ft_shard_writer_begin(ft_shard_writer *writer, ft_atomic_file *output,
                                            const ft_shard_header *header, ft_error *err);
FT_MUST_USE ft_status ft_shard_writer_add(ft_shard_writer *writer, const ft_input_stats *input,
                                          const ft_exact_sums *sums, ft_error *err);
FT_MUST_USE ft_status ft_shard_writer_add_counters(ft_shard_writer *writer, ft_counter_set *set,
                                                   ft_error *err);
FT_MUST_USE ft_status ft_shard_writer_commit(ft_shard_writer *writer, ft_error *err);
void ft_shard_writer_fini(ft_shard_writer *writer);

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct ft_shard_input {
    char *name;
    size_t cols, kept[2];
    uint64_t rows, offset; /* of its columns in the file */
    double unit;
} ft_shard_input;

typedef struct ft_shard_file {
    ft_shard_header header;
    ft_shard_input *input;            /* [header.inputs] */
    uint64_t counters, counter_bytes; /* where they are in the file */
    uint8_t digest[FT_FINGERPRINT];   /* the last bytes of the file */
    const char *who;                  /* its path, borrowed */
    FILE *file;                       /* NULL: opened while it is read; else borrowed */
} ft_shard_file;

/* Whether the file at `path` begins like one. */
bool ft_is_shard_file(const char *path);

/*
 * Checks the digest and reads all but the sums themselves, in memory for the names alone; the
 * second from an open stream, which errors name `who`. fini also accepts a zeroed or failed one.
 * FT_EFORMAT, FT_EIO, FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_shard_file_open(ft_shard_file *shard, const char *path, ft_error *err);
FT_MUST_USE ft_status ft_shard_file_read(ft_shard_file *shard, FILE *file, const char *who,
                                         ft_error *err);
void ft_shard_file_fini(ft_shard_file *shard);

/*
 * Adds the sums of input number `index` to `sums`, and what its halves hold to those of `input`, if
 * these are in memory, behind the rows that are there. FT_EFORMAT, also if the sums of both are out
 * of range, or if the file has changed since it was opened; FT_EIO, FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_shard_file_add_sums(const ft_shard_file *shard, size_t index,
                                             ft_input_stats *input, ft_exact_sums *sums,
                                             ft_error *err);

/*
 * The counters of a file of the stage "ranges", which the caller frees; or adds them to a set. The
 * same errors, and those of merging.
 */
FT_MUST_USE ft_status ft_shard_file_read_counters(ft_counter_set **out, const ft_shard_file *shard,
                                                  ft_error *err);
FT_MUST_USE ft_status ft_shard_file_add_counters(const ft_shard_file *shard, ft_counter_set *set,
                                                 ft_error *err);

#endif
