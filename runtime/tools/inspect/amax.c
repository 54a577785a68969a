/*
 * amax.c - print calibrated ranges: amax.tsv, and FasterTransformer's amaxList of a layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "runtime/error.h"
#include "runtime/cli/terminal_width.h"
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

static size_t longest(size_t length, const char *text)
{
    return strlen(text) > length ? strlen(text) : length;
}

ft_status ft_inspect_amax(ft_inspection *inspection, ft_error *err)
{
    const ft_amax_table *list = ft_artifact_amax(inspection->artifact[0]);
    if (list == NULL)
        return ft_fail(err, FT_EARG, "%s: has no calibrated ranges", inspection->path[0]);
    if (inspection->json) {
        print_amax_json(list);
        return FT_OK;
    }
    size_t name = 0, method = 0;
    for (size_t i = 0; i < list->count; i++) {
        name = longest(name, list->entry[i].name);
        method = longest(method, list->entry[i].method);
    }
    int wide = ft_fit_column_width(method, 6, 56), width = ft_fit_column_width(name, 4, 41 + wide);
    printf("%-*s  %14s  %-*s  %11s  %8s\n", width, "name", "amax", wide, "method", "clipped",
           "SQNR dB");
    for (size_t i = 0; i < list->count; i++) {
        const ft_amax_entry *e = &list->entry[i];
        char text[2][FT_ELLIPSIZED_SIZE];
        printf("%-*s  %14.9g  %-*s  %11.5g  %8.2f\n", width, ft_ellipsize(text[0], e->name, width),
               (double) e->amax, wide, ft_ellipsize(text[1], e->method, wide), e->clipped, e->sqnr);
    }
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

static void print_list(const float *list, size_t count, size_t hidden)
{
    for (size_t i = 0; i < count; i++) {
        char meaning[FT_AMAX_LIST_DESCRIPTION_SIZE];
        printf("%6zu  %14.9g  %s\n", i, (double) list[i],
               ft_amax_list_describe(meaning, hidden, i));
    }
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
