/*
 * diff.c - compare two artifacts.
 *
 * Contents are compared by the digests in the manifests, without reading the data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"
#include "runtime/cli/json_stream.h"

#include "runtime/error.h"
#include "runtime/container/manifest.h"
#include "runtime/tensor.h"

#include <string.h>

typedef struct {
    const ft_inspection *inspection;
    const ft_artifact *a, *b;
    ft_json_stream json;
    size_t found;
    bool no_memory;
} comparison;

/* {"kind", "name", "field", "first", "second"}; null if one side lacks it. */
static void put(ft_json_stream *json, const char *key, const char *text)
{
    if (text != NULL)
        ft_json_stream_string(json, key, text);
    else
        ft_json_stream_null(json, key);
}

static void print_difference(const ft_inspection *inspection, const char *kind, const char *name,
                             const char *aspect, const char *first, const char *second)
{
    printf("%s%s%s: ", kind, name[0] != '\0' ? " " : "", name);
    if (first != NULL && second != NULL)
        printf("%s: %s | %s\n", aspect, first, second);
    else
        printf("%s: only in %s\n", aspect, inspection->path[first == NULL]);
}

static void report_difference(comparison *c, const char *kind, const char *name, const char *aspect,
                              const char *first, const char *second)
{
    if (first != NULL && second != NULL && strcmp(first, second) == 0)
        return;
    c->found++;
    if (!c->inspection->json) {
        print_difference(c->inspection, kind, name, aspect, first, second);
        return;
    }
    ft_json_stream_begin(&c->json, NULL, '{');
    put(&c->json, "kind", kind);
    put(&c->json, "name", name);
    put(&c->json, "field", aspect);
    put(&c->json, "first", first);
    put(&c->json, "second", second);
    ft_json_stream_end(&c->json, '{');
}

static void compare_json(comparison *c, const char *aspect, const json_t *x, const json_t *y)
{
    if (json_equal(x, y) || (x == NULL && y == NULL))
        return;
    char *first = json_dumps(x, JSON_COMPACT), *second = json_dumps(y, JSON_COMPACT);
    if ((x != NULL && first == NULL) || (y != NULL && second == NULL))
        c->no_memory = true;
    else
        report_difference(c, "model", "", aspect, first, second);
    free(first);
    free(second);
}

static void compare_heads(comparison *c)
{
    const ft_artifact_header *x = ft_artifact_get_header(c->a), *y = ft_artifact_get_header(c->b);
    report_difference(c, "model", "", "family", x->family, y->family);
    report_difference(c, "model", "", "state", ft_artifact_state_name(x->state),
                      ft_artifact_state_name(y->state));
    compare_json(c, "config", x->config, y->config);
    compare_json(c, "recipe", x->recipe, y->recipe);
    compare_json(c, "requires", x->required, y->required);
}

static void compare_digests(comparison *c, const char *kind, const char *name, const uint8_t *x,
                            const uint8_t *y)
{
    char text[2][FT_SHA256_HEX_SIZE];
    report_difference(c, kind, name, "sha256", ft_sha256_to_hex(text[0], x),
                      ft_sha256_to_hex(text[1], y));
}

/* Group size, zero points and activations; "none": not group-wise.  Scales are compared as files.
 */
static void compare_groupwise(comparison *c, const ft_artifact_tensor *x,
                              const ft_artifact_tensor *y)
{
    char text[2][16] = { "none", "none" };
    const ft_artifact_tensor *both[] = { x, y };
    const char *zeros[2], *inputs[2];
    for (int i = 0; i < 2; i++) {
        if (both[i]->layout == FT_PANEL32)
            snprintf(text[i], sizeof text[i], "%d", both[i]->groupwise.group);
        zeros[i] = both[i]->has_zero_points ? "stored" : "none";
        inputs[i] = both[i]->groupwise.int8_activations ? "int8" : "float";
    }
    report_difference(c, "tensor", x->name, "group", text[0], text[1]);
    report_difference(c, "tensor", x->name, "zeros", zeros[0], zeros[1]);
    if (both[0]->layout == both[1]->layout)
        report_difference(c, "tensor", x->name, "activations", inputs[0], inputs[1]);
}

static void compare_tensor(comparison *c, const ft_artifact_tensor *x, const ft_artifact_tensor *y)
{
    char text[2][FT_SHAPE_TEXT];
    report_difference(c, "tensor", x->name, "role", x->role, y->role);
    report_difference(c, "tensor", x->name, "dtype", ft_dtype_name(x->dtype),
                      ft_dtype_name(y->dtype));
    report_difference(c, "tensor", x->name, "shape", ft_shape_text(text[0], x->ndim, x->dim),
                      ft_shape_text(text[1], y->ndim, y->dim));
    report_difference(c, "tensor", x->name, "layout", ft_layout_name(x->layout),
                      ft_layout_name(y->layout));
    snprintf(text[0], sizeof text[0], "%zu", x->bytes);
    snprintf(text[1], sizeof text[1], "%zu", y->bytes);
    report_difference(c, "tensor", x->name, "bytes", text[0], text[1]);
    compare_digests(c, "tensor", x->name, x->sha256, y->sha256);
    compare_groupwise(c, x, y);
}

static void compare_tensors(comparison *c)
{
    for (size_t i = 0; i < ft_artifact_count(c->a); i++) {
        const ft_artifact_tensor *x = ft_artifact_at(c->a, i);
        const ft_artifact_tensor *y = ft_artifact_find(c->b, x->name);
        if (y != NULL)
            compare_tensor(c, x, y);
        else
            report_difference(c, "tensor", x->name, "presence", "present", NULL);
    }
    for (size_t i = 0; i < ft_artifact_count(c->b); i++) {
        const char *name = ft_artifact_at(c->b, i)->name;
        if (ft_artifact_find(c->a, name) == NULL)
            report_difference(c, "tensor", name, "presence", NULL, "present");
    }
}

/* amax.tsv is compared line by line in compare_amax(). */
static void compare_files(comparison *c)
{
    for (size_t i = 0; i < ft_artifact_file_count(c->a); i++) {
        const ft_artifact_entry *x = ft_artifact_file_at(c->a, i);
        const ft_artifact_entry *y = ft_artifact_find_file(c->b, x->name);
        if (strcmp(x->name, FT_AMAX_ENTRY) == 0)
            continue;
        if (y != NULL)
            compare_digests(c, "file", x->name, x->sha256, y->sha256);
        else
            report_difference(c, "file", x->name, "presence", "present", NULL);
    }
    for (size_t i = 0; i < ft_artifact_file_count(c->b); i++) {
        const char *name = ft_artifact_file_at(c->b, i)->name;
        if (strcmp(name, FT_AMAX_ENTRY) != 0 && ft_artifact_find_file(c->a, name) == NULL)
            report_difference(c, "file", name, "presence", NULL, "present");
    }
}

static void compare_amax(comparison *c)
{
    const ft_amax_table *x = ft_artifact_amax(c->a), *y = ft_artifact_amax(c->b);
    char text[2][32];
    for (size_t i = 0; x != NULL && i < x->count; i++) {
        const ft_amax_entry *first = &x->entry[i];
        const ft_amax_entry *second = y != NULL ? ft_amax_table_find(y, first->name) : NULL;
        snprintf(text[0], sizeof text[0], "%.9g", (double) first->amax);
        if (second != NULL)
            snprintf(text[1], sizeof text[1], "%.9g", (double) second->amax);
        report_difference(c, "amax", first->name, "amax", text[0], second != NULL ? text[1] : NULL);
        if (second != NULL)
            report_difference(c, "amax", first->name, "method", first->method, second->method);
    }
    for (size_t i = 0; y != NULL && i < y->count; i++) {
        const ft_amax_entry *second = &y->entry[i];
        snprintf(text[1], sizeof text[1], "%.9g", (double) second->amax);
        if (x == NULL || ft_amax_table_find(x, second->name) == NULL)
            report_difference(c, "amax", second->name, "amax", NULL, text[1]);
    }
}

ft_status ft_inspect_diff(ft_inspection *inspection, ft_error *err)
{
    comparison c = { .inspection = inspection,
                     .a = inspection->artifact[0],
                     .b = inspection->artifact[1],
                     .json = { .file = stdout, .digits = 17 } };
    if (inspection->json)
        ft_json_stream_begin(&c.json, NULL, '[');
    compare_heads(&c);
    compare_tensors(&c);
    compare_files(&c);
    compare_amax(&c);
    inspection->different = c.found > 0;
    if (inspection->json)
        ft_json_stream_end(&c.json, '[');
    else if (c.found == 0)
        printf("no difference\n");
    return c.no_memory ? ft_fail(err, FT_ENOMEM, "no memory to compare configurations") : FT_OK;
}
