/*
 * amax.c - print calibrated ranges: amax.tsv, and FasterTransformer's amaxList of a layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "runtime/error.h"
#include "runtime/cli/table.h"
#include "runtime/mem.h"
#include "runtime/cli/json_stream.h"

#include <string.h>

static const char prefix[] = "amax_list/";

static void print_amax_json(const ft_amax_table *list)
{
    ft_json_stream json = { .file = stdout, .digits = 17 };
    ft_json_stream_begin(&json, NULL, '[');
    for (size_t i = 0; i < list->count; i++) {
        const ft_amax_entry *e = &list->entry[i];
        ft_json_stream_begin(&json, NULL, '{');
        ft_json_stream_string(&json, "name", e->name);
        ft_json_stream_double(&json, "amax", (double) e->amax);
        ft_json_stream_string(&json, "method", e->method);
        ft_json_stream_double(&json, "clipped", e->clipped);
        ft_json_stream_double(&json, "sqnr",
                              e->sqnr); /* infinite without quantization noise: null */
        ft_json_stream_end(&json, '{');
    }
    ft_json_stream_end(&json, '[');
}

static const ft_listing_column range_columns[] = {
    { .title = "name", .shrinks = true },      { .title = "amax", .is_number = true },
    { .title = "method", .shrinks = true },    { .title = "clipped", .is_number = true },
    { .title = "SQNR dB", .is_number = true },
};

static void fill_range(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_amax_entry *e = &((const ft_amax_table *) source)->entry[row];
    cell[0].text = e->name;
    ft_listing_cell_format(&cell[1], "%.9g", (double) e->amax);
    cell[2].text = e->method;
    ft_listing_cell_format(&cell[3], "%.5g", e->clipped);
    ft_listing_cell_format(&cell[4], "%.2f", e->sqnr);
}

static void print_amax(const ft_amax_table *table)
{
    const ft_listing list = { .column = range_columns,
                              .columns = FT_COUNT(range_columns),
                              .rows = table->count,
                              .fill = fill_range,
                              .source = table };
    ft_listing_print(&list, stdout);
}

ft_status ft_inspect_amax(ft_inspection *inspection, ft_error *err)
{
    const ft_amax_table *table = ft_artifact_amax(inspection->artifact[0]);
    if (table == NULL)
        return ft_fail(err, FT_EARG, "%s: has no calibrated ranges", inspection->path[0]);
    (inspection->json ? print_amax_json : print_amax)(table);
    return FT_OK;
}

/* ---- amaxList ----------------------------------------------------------------------------- */

/* The error for an unknown layer lists the available ones. */
static ft_status no_such_list(const ft_inspection *inspection, ft_error *err)
{
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < ft_artifact_file_count(inspection->artifact[0]); i++) {
        const char *name = ft_artifact_file_at(inspection->artifact[0], i)->name;
        if (strncmp(name, prefix, strlen(prefix)) != 0 || used >= sizeof names - 1)
            continue;
        int wrote = snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                             name + strlen(prefix));
        used += (size_t) wrote;
    }
    if (names[0] == '\0')
        return ft_fail(err, FT_EARG, "%s: has no amaxList", inspection->path[0]);
    return ft_fail(err, FT_EARG, "%s: has no amaxList of layer %s; available: %s",
                   inspection->path[0], inspection->layer, names);
}

static void print_list_json(const float *list, size_t count, size_t hidden)
{
    ft_json_stream json = { .file = stdout, .digits = 17 };
    ft_json_stream_begin(&json, NULL, '[');
    for (size_t i = 0; i < count; i++) {
        char meaning[FT_AMAX_LIST_DESCRIPTION_SIZE];
        ft_json_stream_begin(&json, NULL, '{');
        ft_json_stream_int(&json, "index", (int64_t) i);
        ft_json_stream_string(&json, "meaning", ft_amax_list_describe(meaning, hidden, i));
        ft_json_stream_double(&json, "value", (double) list[i]);
        ft_json_stream_end(&json, '{');
    }
    ft_json_stream_end(&json, '[');
}

typedef struct amax_list {
    const float *value;
    size_t hidden;
} amax_list;

static const ft_listing_column list_columns[] = {
    { .title = "index", .is_number = true },
    { .title = "value", .is_number = true },
    { .title = "meaning" },
};

static void fill_value(ft_listing_cell *cell, const void *source, size_t row)
{
    const amax_list *list = source;
    char meaning[FT_AMAX_LIST_DESCRIPTION_SIZE];
    ft_listing_cell_format(&cell[0], "%zu", row);
    ft_listing_cell_format(&cell[1], "%.9g", (double) list->value[row]);
    ft_listing_cell_format(&cell[2], "%s", ft_amax_list_describe(meaning, list->hidden, row));
}

static void print_list(const float *value, size_t count, size_t hidden)
{
    const amax_list source = { value, hidden };
    const ft_listing list = { .column = list_columns,
                              .columns = FT_COUNT(list_columns),
                              .rows = count,
                              .fill = fill_value,
                              .source = &source };
    ft_listing_print(&list, stdout);
}

ft_status ft_inspect_amax_list(ft_inspection *inspection, ft_error *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", prefix, inspection->layer);
    const ft_artifact_entry *file = ft_artifact_find_file(inspection->artifact[0], name);
    if (file == NULL)
        return no_such_list(inspection, err);
    const float *list = file->data;
    size_t count = file->bytes / sizeof *list;
    size_t hidden = count < FT_AMAX_LIST_HEADER ? 0 : (count - FT_AMAX_LIST_HEADER) / 9;
    if (hidden == 0 || file->bytes != ft_amax_list_size(hidden) * sizeof *list)
        return ft_fail(err, FT_EFORMAT, "%s: %s: %zu bytes, expected 80 + 9H floats",
                       inspection->path[0], name, file->bytes);
    (inspection->json ? print_list_json : print_list)(list, count, hidden);
    return FT_OK;
}
