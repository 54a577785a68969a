/*
 * merged_shards.c - the files of all shards, as one source of counters and statistics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/shards/merged_shards.h"

#include "calibrate/ranges/observe.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- One description --------------------------------------------------------------------- */

/* The first digits of a fingerprint tell two of them apart. */
static const char *short_hex(char text[FT_SHA256_HEX_SIZE], const uint8_t *fingerprint)
{
    ft_sha256_to_hex(text, fingerprint)[12] = '\0';
    return text;
}

ft_status ft_shard_describe(ft_shard_header *out, ft_shard_stage stage, ft_shard shard,
                            const ft_activation_stats_options *options, ft_error *err)
{
    bool has_inputs = stage != FT_STAGE_RANGES;
    *out = (ft_shard_header){
        .stage = stage,
        .shard = shard,
        .moments = has_inputs && options->moments,
        .first = options->first,
        .last = options->last,
        .kept_rows = has_inputs ? options->kept_rows : 0,
    };
    FT_TRY(ft_model_fingerprint(options->model, out->model, err));
    return ft_data_fingerprint(options->data, out->data, err);
}

static ft_status check_fingerprint(const ft_shard_file *file, const uint8_t *found,
                                   const uint8_t *expected, const char *what, ft_error *err)
{
    char a[FT_SHA256_HEX_SIZE], b[FT_SHA256_HEX_SIZE];
    if (memcmp(found, expected, FT_FINGERPRINT) == 0)
        return FT_OK;
    return ft_fail(
        err, FT_EARG,
        "%s: computed on other %s: fingerprint %s, expected %s; run the shards again, or "
        "give the %s and options that they had",
        file->who, what, short_hex(a, found), short_hex(b, expected), what);
}

ft_status ft_shard_file_check(const ft_shard_file *file, const ft_shard_header *expected,
                              ft_error *err)
{
    const ft_shard_header *found = &file->header;
    FT_TRY(check_fingerprint(file, found->model, expected->model, "models", err));
    FT_TRY(check_fingerprint(file, found->data, expected->data, "samples", err));
    if (found->first != expected->first || found->last != expected->last)
        return ft_fail(err, FT_EARG,
                       "%s: all shards together have samples %" PRIu64 " to %" PRIu64
                       ", expected %" PRIu64 " to %" PRIu64 ": give the same --samples everywhere",
                       file->who, found->first, found->last - 1, expected->first,
                       expected->last - 1);
    if (expected->moments && !found->moments)
        return ft_fail(err, FT_EARG,
                       "%s: has no second moments, which --scale awq and --round gptq need: run "
                       "the shards again with these options",
                       file->who);
    if (found->kept_rows != expected->kept_rows)
        return ft_fail(err, FT_EARG, "%s: keeps %" PRIu64 " rows of an input, expected %" PRIu64,
                       file->who, found->kept_rows, expected->kept_rows);
    return FT_OK;
}

/* ---- Several files ------------------------------------------------------------------------ */

static int by_shard(const void *a, const void *b)
{
    const ft_shard_header *x = &((const ft_shard_file *) a)->header,
                          *y = &((const ft_shard_file *) b)->header;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return (x->shard.index > y->shard.index) - (x->shard.index < y->shard.index);
}

static ft_status check_inputs(const ft_shard_file *file, const ft_shard_file *first, ft_error *err)
{
    if (file->header.inputs != first->header.inputs)
        return ft_fail(err, FT_EARG, "%s: %zu inputs, but %s has %zu", file->who,
                       file->header.inputs, first->who, first->header.inputs);
    for (size_t i = 0; i < file->header.inputs; i++) {
        const ft_shard_input *a = &file->input[i], *b = &first->input[i];
        if (strcmp(a->name, b->name) != 0 || a->cols != b->cols)
            return ft_fail(err, FT_EARG,
                           "%s: input %zu is %s with %zu columns, but %s has %s with "
                           "%zu",
                           file->who, i + 1, a->name, a->cols, first->who, b->name, b->cols);
        if (a->unit < b->unit || a->unit > b->unit)
            return ft_fail(err, FT_EARG, "%s: %s: the unit of moments is %g, but that of %s is %g",
                           file->who, a->name, a->unit, first->who, b->unit);
    }
    return FT_OK;
}

/* The shards of one split agree in everything but their index, which each has alone. */
static ft_status check_pair(const ft_shard_file *file, const ft_shard_file *first,
                            const ft_shard_file *previous, ft_error *err)
{
    const ft_shard *shard = &file->header.shard;
    if (shard->count != first->header.shard.count)
        return ft_fail(err, FT_EARG,
                       "%s: one of %" PRIu32 " shards, but %s is one of %" PRIu32
                       ": merge the files of one split",
                       file->who, shard->count, first->who, first->header.shard.count);
    if (previous != NULL && shard->index == previous->header.shard.index)
        return ft_fail(err, FT_EARG,
                       "%s: shard %" PRIu32 "/%" PRIu32 " overlaps %s, which is the same one: give "
                       "each shard once",
                       file->who, shard->index + 1, shard->count, previous->who);
    if (file->header.moments != first->header.moments)
        return ft_fail(err, FT_EARG,
                       "%s: %s second moments, but %s %s: run all shards with the "
                       "same options",
                       file->who, file->header.moments ? "has" : "has no", first->who,
                       first->header.moments ? "has them" : "has none");
    FT_TRY(ft_shard_file_check(file, &first->header, err));
    return check_inputs(file, first, err);
}

/* Names the first shards that no file holds. */
static ft_status fail_missing(const ft_stage_files *files, ft_error *err)
{
    const ft_shard_header *header = &files->file[0].header;
    size_t count = header->shard.count, next = 0, length = 0;
    char text[96] = "";
    for (size_t i = 0; i < count && length + 24 < sizeof text; i++)
        if (next < files->count && files->file[next].header.shard.index == i)
            next++;
        else
            length += (size_t) snprintf(text + length, sizeof text - length, "%s%zu/%zu",
                                        length > 0 ? ", " : "", i + 1, count);
    return ft_fail(err, FT_EARG,
                   "%s: of the %zu shards of stage \"%s\" %zu are missing: run ft-calibrate with "
                   "--shard %s%s and the same options, and merge its files, too",
                   files->file[0].who, count, ft_shard_stage_name(header->stage),
                   count - files->count, text, length + 24 < sizeof text ? "" : ", ...");
}

static ft_status check_stage(const ft_stage_files *files, ft_error *err)
{
    for (size_t i = 0; i < files->count; i++)
        FT_TRY(
            check_pair(&files->file[i], &files->file[0], i > 0 ? &files->file[i - 1] : NULL, err));
    return files->count == 0 || files->count == files->file[0].header.shard.count
               ? FT_OK
               : fail_missing(files, err);
}

/* ---- Statistics --------------------------------------------------------------------------- */

static ft_status find_input(size_t *out, const ft_shard_file *file, const ft_input_stats *input,
                            ft_error *err)
{
    for (*out = 0; *out < file->header.inputs; ++*out)
        if (strcmp(file->input[*out].name, input->name) == 0 &&
            file->input[*out].cols == input->cols)
            return FT_OK;
    return ft_fail(err, FT_EARG,
                   "%s: no statistics of %s with %zu columns: run the shards with the same options",
                   file->who, input->name, input->cols);
}

/* Rows are kept in the order of samples, which is that of the shards. */
static ft_status read_stage(void *user, ft_input_stats *input, ft_exact_sums *sums, ft_error *err)
{
    const ft_stage_files *files = user;
    size_t index;
    FT_TRY(find_input(&index, &files->file[0], input, err));
    for (size_t i = 0; i < files->count; i++)
        FT_TRY(ft_shard_file_add_sums(&files->file[i], index, input, sums, err));
    return FT_OK;
}

bool ft_merged_shards_have(const ft_merged_shards *merged, ft_shard_stage stage)
{
    return merged->stage[stage].count > 0;
}

static ft_status check_fit(const ft_merged_shards *merged, ft_shard_stage stage,
                           const ft_activation_stats_options *options, ft_error *err)
{
    ft_shard_header expected;
    if (!ft_merged_shards_have(merged, stage))
        return ft_fail(err, FT_EARG,
                       "%s: no file of stage \"%s\": run all shards again, with --merge of the "
                       "files that you have and another --save-stats, and merge theirs, too",
                       merged->file[0].who, ft_shard_stage_name(stage));
    const ft_shard_file *first = merged->stage[stage].file;
    FT_TRY(ft_shard_describe(&expected, stage, first->header.shard, options, err));
    return ft_shard_file_check(first, &expected, err);
}

ft_status ft_merged_shards_find(const ft_stats_source **out, const ft_merged_shards *merged,
                                ft_shard_stage stage, const ft_activation_stats_options *options,
                                ft_error *err)
{
    *out = NULL;
    if (merged->count == 0)
        return FT_OK;
    FT_TRY(check_fit(merged, stage, options, err));
    *out = &merged->source[stage];
    return FT_OK;
}

ft_status ft_merged_shards_count(const ft_merged_shards *merged, ft_counter_set *set,
                                 const ft_activation_stats_options *options, ft_error *err)
{
    const ft_stage_files *files = &merged->stage[FT_STAGE_RANGES];
    FT_TRY(check_fit(merged, FT_STAGE_RANGES, options, err));
    for (size_t i = 0; i < files->count; i++)
        FT_TRY(ft_shard_file_add_counters(&files->file[i], set, err));
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_merged_shards_open(ft_merged_shards *m, const char *const *path, size_t count,
                                ft_error *err)
{
    *m = (ft_merged_shards){ .file = ft_calloc(count, sizeof *m->file) };
    if (m->file == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu files", count);
    while (m->count < count) {
        ft_shard_file *file = &m->file[m->count];
        FT_TRY(ft_shard_file_open(file, path[m->count++], err));
    }
    qsort(m->file, count, sizeof *m->file, by_shard);
    for (size_t i = 0; i < count; i++) {
        ft_stage_files *files = &m->stage[m->file[i].header.stage];
        files->file = files->count++ == 0 ? &m->file[i] : files->file;
    }
    for (int i = 0; i < FT_NUM_STAGES; i++) {
        m->source[i] = (ft_stats_source){ .read = read_stage, .user = &m->stage[i] };
        FT_TRY(check_stage(&m->stage[i], err));
    }
    return FT_OK;
}

void ft_merged_shards_fini(ft_merged_shards *m)
{
    for (size_t i = 0; i < m->count; i++)
        ft_shard_file_fini(&m->file[i]);
    free(m->file);
    *m = (ft_merged_shards){ .count = 0 };
}
