/*
 * vit_file.c - tensors and images computed by a formula, with the names of published checkpoints.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/vit_file.h"

#include "runtime/tensor.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/mixed.h"
#include "tests/tap/tap.h"
#include "runtime/base/affix.h"

#include <stdlib.h>
#include <string.h>

/* ---- Values --------------------------------------------------------------------------------- */

static float value_of(const char *name, int k)
{
    if (strstr(name, "layernorm") != NULL && ft_ends_with(name, ".weight"))
        return 1.0f + (float) ((k + 128) / 4 - 32) / 128.0f;
    if (strcmp(name, "pixel_values") == 0)
        return (float) k / 64.0f;
    bool large = strstr(name, "token") != NULL || strstr(name, "position") != NULL;
    return (float) k / (large ? 128.0f : 512.0f);
}

static void fill(ft_tensor *tensor, const char *variant, const char *name)
{
    uint64_t h = mixed_hash(variant, name);
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        ((float *) tensor->data)[i] = value_of(name, mixed_number(h, i));
}

/* ---- Tensors -------------------------------------------------------------------------------- */

typedef struct maker {
    tiny *t;
    const char *name, *prefix;
    const json_t *config;
    ft_dtype dtype;
    int hidden, ffn;
} maker;

/* With the prefix of the base model; the first 0 ends the dimensions. */
static void add(const maker *m, const char *name, int a, int b, int c, int d)
{
    const int dim[] = { a, b, c, d };
    char full[TINY_NAME];
    int count = 1;
    snprintf(full, sizeof full, "%s%s", m->prefix, name);
    for (int i = 0; i < 4 && dim[i] > 0; i++)
        count *= dim[i];
    ft_tensor *tensor = tiny_add(m->t, full, FT_F32, count, 0);
    for (tensor->ndim = 0; tensor->ndim < 4 && dim[tensor->ndim] > 0; tensor->ndim++)
        tensor->dim[tensor->ndim] = dim[tensor->ndim];
    fill(tensor, m->name, full);
    tiny_cast(tensor, m->dtype);
}

/* "PART.weight" [rows, cols], and its bias; cols 0: a norm. */
static void add_part(const maker *m, const char *part, int rows, int cols, bool bias)
{
    char name[TINY_NAME];
    snprintf(name, sizeof name, "%s.weight", part);
    add(m, name, rows, cols, 0, 0);
    snprintf(name, sizeof name, "%s.bias", part);
    if (bias)
        add(m, name, rows, 0, 0, 0);
}

static void add_layer(const maker *m, int layer)
{
    const struct {
        const char *name;
        int rows, cols;
        bool bias;
    } parts[] = {
        { "layernorm_before", m->hidden, 0, true },
        { "attention.attention.query", m->hidden, m->hidden, false },
        { "attention.attention.key", m->hidden, m->hidden, false },
        { "attention.attention.value", m->hidden, m->hidden, false },
        { "attention.output.dense", m->hidden, m->hidden, true },
        { "layernorm_after", m->hidden, 0, true },
        { "intermediate.dense", m->ffn, m->hidden, true },
        { "output.dense", m->hidden, m->ffn, true },
    };
    bool qkv_bias = !json_is_false(json_object_get(m->config, "qkv_bias"));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[TINY_NAME];
        snprintf(name, sizeof name, "encoder.layer.%d.%s", layer, parts[i].name);
        add_part(m, name, parts[i].rows, parts[i].cols, parts[i].bias || qkv_bias);
    }
}

static int number(const json_t *config, const char *key)
{
    return (int) json_integer_value(json_object_get(config, key));
}

/* Rows (i = 0) or columns (i = 1) of a size that may be one number for both. */
static int size_of(const json_t *config, const char *key, size_t i)
{
    const json_t *value = json_object_get(config, key);
    return (int) json_integer_value(json_is_array(value) ? json_array_get(value, i) : value);
}

static void add_embeddings(const maker *m, bool distilled)
{
    int rows = size_of(m->config, "patch_size", 0), cols = size_of(m->config, "patch_size", 1);
    int patches =
        (size_of(m->config, "image_size", 0) / rows) * (size_of(m->config, "image_size", 1) / cols);
    add(m, "embeddings.cls_token", 1, 1, m->hidden, 0);
    if (distilled)
        add(m, "embeddings.distillation_token", 1, 1, m->hidden, 0);
    add(m, "embeddings.position_embeddings", 1, patches + 1 + distilled, m->hidden, 0);
    add(m, "embeddings.patch_embeddings.projection.weight", m->hidden,
        number(m->config, "num_channels"), rows, cols);
    add(m, "embeddings.patch_embeddings.projection.bias", m->hidden, 0, 0, 0);
}

static maker begin(tiny *t, const json_t *variant)
{
    maker m = { .t = t,
                .name = json_string_value(json_object_get(variant, "name")),
                .prefix = "",
                .config = json_object_get(variant, "config") };
    if (!ft_dtype_parse(json_string_value(json_object_get(variant, "dtype")), &m.dtype))
        bail_out("%s: no dtype", m.name);
    m.hidden = number(m.config, "hidden_size");
    m.ffn = number(m.config, "intermediate_size");
    memset(t, 0, sizeof *t);
    folder_make(t->folder);
    char *text = json_dumps(m.config, 0);
    tiny_write_file(t, "config.json", text);
    free(text);
    return m;
}

void vit_make(tiny *t, const json_t *variant)
{
    maker m = begin(t, variant), head = m;
    bool distilled =
        strcmp(json_string_value(json_object_get(m.config, "model_type")), "deit") == 0;
    int labels = (int) json_object_size(json_object_get(m.config, "id2label"));
    if (labels > 0)
        m.prefix = distilled ? "deit." : "vit.";
    add_embeddings(&m, distilled);
    for (int layer = 0; layer < number(m.config, "num_hidden_layers"); layer++)
        add_layer(&m, layer);
    add_part(&m, "layernorm", m.hidden, 0, true);
    if (labels > 0)
        add_part(&head, "classifier", labels, m.hidden, true);
    else
        add_part(&m, "pooler.dense", m.hidden, m.hidden, true);
}

ft_tensor vit_images(const json_t *variant)
{
    const json_t *config = json_object_get(variant, "config");
    ft_tensor images = { .dtype = FT_F32,
                         .ndim = 4,
                         .dim = { number(variant, "images"), number(config, "num_channels"),
                                  size_of(config, "image_size", 0),
                                  size_of(config, "image_size", 1) } };
    images.data = malloc(ft_tensor_bytes(&images));
    if (images.data == NULL)
        bail_out("out of memory: images");
    fill(&images, json_string_value(json_object_get(variant, "name")), "pixel_values");
    return images;
}
