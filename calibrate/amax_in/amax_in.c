/*
 * amax_in.c - reads the ranges of all calibration points from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/amax_in.h"

#include "calibrate/amax_in/list_in.h"
#include "calibrate/amax_in/name_list.h"
#include "calibrate/amax_in/quantizers.h"
#include "runtime/base/affix.h"
#include "runtime/container/file_type.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- amax.tsv ------------------------------------------------------------------------------ */

/* The columns of the first line. */
#define FIRST_COLUMN "name\t"

static ft_status add_table(ft_given_ranges *ranges, const ft_amax_table *table, ft_error *err)
{
    ft_name_list unknown = { 0 };
    for (size_t i = 0; i < table->count; i++) {
        const ft_amax_entry *entry = &table->entry[i];
        int value = ft_given_ranges_find(ranges, entry->name);
        if (value < 0)
            ft_name_list_add(&unknown, entry->name);
        else
            FT_TRY(ft_given_ranges_add(ranges, value, entry, entry->name, err));
    }
    if (unknown.count > 0)
        ft_messages_add(ranges->input->notes, FT_EFORMAT,
                        "%s: %zu range%s of nothing that is a calibration point of the model: %s",
                        ranges->path, unknown.count, unknown.count == 1 ? " is" : "s are",
                        ft_name_list_text(&unknown));
    return FT_OK;
}

static ft_status read_tsv(ft_given_ranges *ranges, const void *text, size_t size, ft_error *err)
{
    ft_amax_table *table;
    FT_TRY(ft_amax_table_parse(&table, ranges->path, text, size, err));
    ft_status status = add_table(ranges, table, err);
    ft_amax_table_free(table);
    return status;
}

/* ---- Formats ------------------------------------------------------------------------------- */

static ft_status read_artifact(ft_given_ranges *ranges, ft_error *err)
{
    ft_artifact *artifact;
    FT_TRY(ft_artifact_open(&artifact, ranges->path, FT_VERIFY_STRUCTURE, err));
    const ft_amax_table *table = ft_artifact_amax(artifact);
    if (json_object_get(ft_artifact_get_header(artifact)->recipe, "smooth") != NULL)
        ft_messages_add(ranges->input->notes, FT_EFORMAT,
                        "%s: its model is smoothed, so its ranges do not fit the model without "
                        "smoothing; make one with --smooth none",
                        ranges->path);
    ft_status status = table != NULL
                           ? add_table(ranges, table, err)
                           : ft_fail(err, FT_EFORMAT, "%s: has no calibrated ranges", ranges->path);
    ft_artifact_close(artifact);
    return status;
}

static ft_status read_checkpoint(ft_given_ranges *ranges, ft_error *err)
{
    ft_safetensors *tensors;
    FT_TRY(ft_safetensors_open(&tensors, ranges->path, err));
    ft_status status = ft_quantizers_read(ranges, tensors, err);
    ft_safetensors_close(tensors);
    return status;
}

static ft_status fail_unknown(const ft_given_ranges *ranges, const void *bytes, size_t size,
                              ft_error *err)
{
    ft_file_kind kind = ft_detect_file_kind(bytes, size);
    size_t expected = ft_amax_lists_bytes(ranges->input->model);
    char list[64] = "";
    if (expected > 0)
        snprintf(list, sizeof list, " (%zu bytes for this model)", expected);
    return ft_fail(
        err, FT_EFORMAT,
        "%s: is %s of %zu bytes, expected amax.tsv (whose first line names its columns), "
        "an artifact, safetensors with ..._amax tensors, or FasterTransformer's "
        "amaxList%s",
        ranges->path, ft_file_kind_name(kind), size, list);
}

static ft_status read_bytes(ft_given_ranges *ranges, const void *bytes, size_t size, ft_error *err)
{
    size_t column = strlen(FIRST_COLUMN);
    if (size >= column && memcmp(bytes, FIRST_COLUMN, column) == 0)
        return read_tsv(ranges, bytes, size, err);
    if (size > 0 && size == ft_amax_lists_bytes(ranges->input->model))
        return ft_amax_lists_read(ranges, bytes, err);
    return fail_unknown(ranges, bytes, size, err);
}

/* ---- Files --------------------------------------------------------------------------------- */

/* The whole file as *bytes, which the caller frees. */
static ft_status load(const char *path, FILE *file, char **bytes, size_t *size, ft_error *err)
{
    size_t capacity = 0;
    *size = 0;
    do {
        if (*size == capacity) {
            char *grown = ft_array_grow(*bytes, &capacity, 1 << 16, 1);
            if (grown == NULL)
                return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", path, *size);
            *bytes = grown;
        }
        *size += fread(*bytes + *size, 1, capacity - *size, file);
    } while (!feof(file) && !ferror(file) && *size <= FT_AMAX_FILE_MAX_BYTES);
    if (ferror(file))
        return ft_fail_errno(err, "%s: cannot read", path);
    return *size <= FT_AMAX_FILE_MAX_BYTES ? FT_OK
                                           : ft_fail(err, FT_ELIMIT, "%s: larger than %d MiB", path,
                                                     FT_AMAX_FILE_MAX_BYTES >> 20);
}

static ft_status read_plain(ft_given_ranges *ranges, ft_error *err)
{
    char *bytes = NULL;
    size_t size;
    FILE *file = fopen(ranges->path, "rb");
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", ranges->path);
    ft_status status = load(ranges->path, file, &bytes, &size, err);
    fclose(file);
    if (status == FT_OK)
        status = read_bytes(ranges, bytes, size, err);
    free(bytes);
    return status;
}

static ft_status read_file(ft_given_ranges *ranges, ft_error *err)
{
    switch (ft_detect_file_kind_at(ranges->path)) {
    case FT_FILE_ARTIFACT:
        return read_artifact(ranges, err);
    case FT_FILE_SAFETENSORS:
        return read_checkpoint(ranges, err);
    default:
        return read_plain(ranges, err);
    }
}

/* Makes the table, unless reading has failed, and releases the ranges. */
static ft_status finish(ft_given_ranges *ranges, ft_status status, ft_amax_table **out,
                        ft_error *err)
{
    if (status == FT_OK)
        status = ft_given_ranges_finish(ranges, out, err);
    ft_given_ranges_fini(ranges);
    return status;
}

ft_status ft_amax_input_read(ft_amax_table **out, const char *path, const ft_amax_input *input,
                             ft_error *err)
{
    ft_given_ranges ranges;
    *out = NULL;
    FT_TRY(ft_given_ranges_init(&ranges, path, input, err));
    return finish(&ranges, read_file(&ranges, err), out, err);
}

ft_status ft_amax_input_parse(ft_amax_table **out, const char *path, const void *bytes, size_t size,
                              const ft_amax_input *input, ft_error *err)
{
    ft_given_ranges ranges;
    *out = NULL;
    FT_TRY(ft_given_ranges_init(&ranges, path, input, err));
    return finish(&ranges, read_bytes(&ranges, bytes, size, err), out, err);
}
