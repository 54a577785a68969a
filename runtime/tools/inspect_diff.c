/*
 * inspect_diff.c - what differs between two artifacts.
 *
 * Contents are compared by the digests in the manifests: two models of any size in no time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect.h"

#include "runtime/error.h"
#include "runtime/manifest.h"
#include "runtime/tensor.h"

#include <string.h>

/* Differences: {"kind", "name", "aspect", "first", "second"}; null where one side has none. */
typedef struct {
    json_t *found;
    const ft_artifact *a, *b;
} comparison;

static void differ(const comparison *c, const char *kind, const char *name, const char *aspect,
                   const char *first, const char *second)
{
    if (first != NULL && second != NULL && strcmp(first, second) == 0)
        return;
    json_array_append_new(c->found, json_pack("{ss, ss, ss, ss?, ss?}", "kind", kind, "name", name,
                                              "aspect", aspect, "first", first, "second", second));
}

static void compare_json(const comparison *c, const char *aspect, const json_t *x, const json_t *y)
{
    if (json_equal(x, y) || (x == NULL && y == NULL))
        return;
    char *first = json_dumps(x, JSON_COMPACT), *second = json_dumps(y, JSON_COMPACT);
    differ(c, "model", "", aspect, first, second);
    free(first);
    free(second);
}

static void compare_heads(const comparison *c)
{
    const ft_artifact_head *x = ft_artifact_get_head(c->a), *y = ft_artifact_get_head(c->b);
    differ(c, "model", "", "family", x->family, y->family);
    differ(c, "model", "", "state", ft_state_name(x->state), ft_state_name(y->state));
    compare_json(c, "config", x->config, y->config);
    compare_json(c, "recipe", x->recipe, y->recipe);
}

static void compare_digests(const comparison *c, const char *kind, const char *name,
                            const uint8_t *x, const uint8_t *y)
{
    char text[2][FT_SHA256_TEXT];
    differ(c, kind, name, "sha256", ft_sha256_text(text[0], x), ft_sha256_text(text[1], y));
}

/* Scales and zeros are files; here is what a group is.  "none": not in blocks. */
static void compare_blocks(const comparison *c, const ft_artifact_tensor *x,
                           const ft_artifact_tensor *y)
{
    char text[2][16] = { "none", "none" };
    const ft_artifact_tensor *both[] = { x, y };
    const char *zeros[2], *inputs[2];
    for (int i = 0; i < 2; i++) {
        if (both[i]->layout == FT_PANEL32)
            snprintf(text[i], sizeof text[i], "%d", both[i]->blocks.group);
        zeros[i] = both[i]->zeros ? "stored" : "none";
        inputs[i] = both[i]->blocks.by_codes ? "int8" : "float";
    }
    differ(c, "tensor", x->name, "group", text[0], text[1]);
    differ(c, "tensor", x->name, "zeros", zeros[0], zeros[1]);
    if (both[0]->layout == both[1]->layout)
        differ(c, "tensor", x->name, "activations", inputs[0], inputs[1]);
}

static void compare_tensor(const comparison *c, const ft_artifact_tensor *x,
                           const ft_artifact_tensor *y)
{
    char text[2][FT_SHAPE_TEXT];
    differ(c, "tensor", x->name, "role", x->role, y->role);
    differ(c, "tensor", x->name, "dtype", ft_dtype_name(x->dtype), ft_dtype_name(y->dtype));
    differ(c, "tensor", x->name, "shape", ft_shape_text(text[0], x->ndim, x->dim),
           ft_shape_text(text[1], y->ndim, y->dim));
    differ(c, "tensor", x->name, "layout", ft_layout_name(x->layout), ft_layout_name(y->layout));
    snprintf(text[0], sizeof text[0], "%zu", x->bytes);
    snprintf(text[1], sizeof text[1], "%zu", y->bytes);
    differ(c, "tensor", x->name, "bytes", text[0], text[1]);
    compare_digests(c, "tensor", x->name, x->sha256, y->sha256);
    compare_blocks(c, x, y);
}

static void compare_tensors(const comparison *c)
{
    for (size_t i = 0; i < ft_artifact_count(c->a); i++) {
        const ft_artifact_tensor *x = ft_artifact_at(c->a, i);
        const ft_artifact_tensor *y = ft_artifact_find(c->b, x->name);
        if (y != NULL)
            compare_tensor(c, x, y);
        else
            differ(c, "tensor", x->name, "presence", "present", NULL);
    }
    for (size_t i = 0; i < ft_artifact_count(c->b); i++) {
        const char *name = ft_artifact_at(c->b, i)->name;
        if (ft_artifact_find(c->a, name) == NULL)
            differ(c, "tensor", name, "presence", NULL, "present");
    }
}

/* amax.tsv is compared line by line elsewhere. */
static void compare_files(const comparison *c)
{
    for (size_t i = 0; i < ft_artifact_file_count(c->a); i++) {
        const ft_artifact_entry *x = ft_artifact_file_at(c->a, i);
        const ft_artifact_entry *y = ft_artifact_find_file(c->b, x->name);
        if (strcmp(x->name, FT_AMAX_ENTRY) == 0)
            continue;
        if (y != NULL)
            compare_digests(c, "file", x->name, x->sha256, y->sha256);
        else
            differ(c, "file", x->name, "presence", "present", NULL);
    }
    for (size_t i = 0; i < ft_artifact_file_count(c->b); i++) {
        const char *name = ft_artifact_file_at(c->b, i)->name;
        if (strcmp(name, FT_AMAX_ENTRY) != 0 && ft_artifact_find_file(c->a, name) == NULL)
            differ(c, "file", name, "presence", NULL, "present");
    }
}

static void compare_amax(const comparison *c)
{
    const ft_amax *x = ft_artifact_amax(c->a), *y = ft_artifact_amax(c->b);
    char text[2][32];
    for (size_t i = 0; x != NULL && i < x->count; i++) {
        const ft_amax_entry *first = &x->entry[i];
        const ft_amax_entry *second = y != NULL ? ft_amax_find(y, first->name) : NULL;
        snprintf(text[0], sizeof text[0], "%.9g", (double) first->amax);
        if (second != NULL)
            snprintf(text[1], sizeof text[1], "%.9g", (double) second->amax);
        differ(c, "amax", first->name, "amax", text[0], second != NULL ? text[1] : NULL);
        if (second != NULL)
            differ(c, "amax", first->name, "method", first->method, second->method);
    }
    for (size_t i = 0; y != NULL && i < y->count; i++) {
        const ft_amax_entry *second = &y->entry[i];
        snprintf(text[1], sizeof text[1], "%.9g", (double) second->amax);
        if (x == NULL || ft_amax_find(x, second->name) == NULL)
            differ(c, "amax", second->name, "amax", NULL, text[1]);
    }
}

static void print_text(const ft_inspection *what, json_t *found)
{
    size_t index;
    json_t *d;
    json_array_foreach(found, index, d)
    {
        const char *kind, *name, *aspect, *first = NULL, *second = NULL;
        json_unpack(d, "{ss, ss, ss, s?s, s?s}", "kind", &kind, "name", &name, "aspect", &aspect,
                    "first", &first, "second", &second);
        printf("%s%s%s: ", kind, name[0] != '\0' ? " " : "", name);
        if (first != NULL && second != NULL)
            printf("%s: %s | %s\n", aspect, first, second);
        else
            printf("%s: only in %s\n", aspect, what->path[first == NULL]);
    }
    if (index == 0)
        printf("no difference\n");
}

ft_status ft_inspect_diff(ft_inspection *what, ft_error *err)
{
    comparison c = { json_array(), what->artifact[0], what->artifact[1] };
    compare_heads(&c);
    compare_tensors(&c);
    compare_files(&c);
    compare_amax(&c);
    what->different = json_array_size(c.found) > 0;
    if (what->json)
        return ft_inspect_print(c.found, err);
    print_text(what, c.found);
    json_decref(c.found);
    return FT_OK;
}
