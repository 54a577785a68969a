/*
 * loader-t.c - the loader refuses a model with missing, surplus or mismatched weights and scales.
 *
 * Each case copies a valid int8 artifact with one change.  The copies are valid containers: only
 * the model loader can detect the error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Copies with a change ----------------------------------------------------------------- */

enum { TENSORS = 64 };

/* The change in a copy; members that are not set change nothing. */
typedef struct change {
    const char *tensor; /* the name of the tensor to change: */
    bool drop, transpose, flatten, store;
    const char *role, *rename;
    ft_dtype dtype;    /* with `store` */
    ft_layout layout;  /* with `store` */
    const char *extra; /* an additional tensor */

    const char *drop_amax, *add_amax;
    const char *family;
    const char *config, *recipe; /* members to set, as JSON; null removes a member */
} change;

/* The original bytes of a tensor, followed by zeros if it has become longer. */
typedef struct bytes {
    const char *data;
    size_t left;
} bytes;

static ft_status produce(void *user, void *buffer, size_t size, size_t *produced, ft_error *err)
{
    (void) err;
    bytes *source = user;
    size_t count = ft_min_size(size, source->left);
    memset(buffer, 0, size);
    if (count > 0) {
        memcpy(buffer, source->data, count);
        source->data += count;
        source->left -= count;
    }
    *produced = size;
    return FT_OK;
}

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static const float ones[TENSORS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

/* embed.word, 20 x 8, group-wise quantized: all values 0 and a scale of 1 per row. */
static const char *blocks_of_words(void)
{
    static unsigned char panel[32 * 32 + 32 * 2];
    for (int row = 0; row < 20; row++)
        panel[32 * 32 + 2 * row + 1] = 0x3c;
    return (const char *) panel;
}

static void apply(ft_artifact_tensor *t, const change *c)
{
    if (c->role != NULL)
        t->role = c->role;
    if (c->rename != NULL)
        t->name = c->rename;
    if (c->transpose) {
        int64_t rows = t->dim[0];
        t->dim[0] = t->dim[1];
        t->dim[1] = rows;
    }
    if (c->flatten) {
        t->dim[0] *= t->dim[1];
        t->ndim = 1;
    }
    if (c->store) {
        t->dtype = c->dtype;
        t->layout = c->layout;
        t->scale = c->dtype == FT_I8 ? ones : NULL;
    }
}

static void add_tensors(ft_artifact_writer *writer, const ft_artifact *from, bytes *source,
                        const change *c)
{
    ft_error err;
    size_t count = ft_artifact_count(from);
    for (size_t i = 0; i < count; i++) {
        ft_artifact_tensor tensor = *ft_artifact_at(from, i);
        source[i] = (bytes){ tensor.data, tensor.bytes };
        bool changed = c->tensor != NULL && strcmp(tensor.name, c->tensor) == 0;
        if (changed)
            apply(&tensor, c);
        if (changed && tensor.layout == FT_PANEL32)
            source[i] = (bytes){ blocks_of_words(), 32 * 32 + 32 * 2 };
        if (!changed || !c->drop)
            must(ft_artifact_add_tensor(writer, &tensor, produce, &source[i], &err), &err);
    }
    ft_artifact_tensor extra = { .name = c->extra, .role = "vector", .ndim = 1, .dim = { 8 } };
    if (c->extra != NULL)
        must(ft_artifact_add_tensor(writer, &extra, produce, &source[count], &err), &err);
}

/* NULL: a float artifact has no ranges. */
static char *changed_amax(const ft_artifact *from, const change *c, size_t *length)
{
    const ft_amax_table *amax = ft_artifact_amax(from);
    if (amax == NULL)
        return NULL;
    ft_amax_table *copy = ft_amax_table_new();
    ft_amax_entry more = { .name = (char *) (uintptr_t) c->add_amax, .amax = 1, .method = "max" };
    char *text;
    ft_error err;
    for (size_t i = 0; i < amax->count; i++)
        if (c->drop_amax == NULL || strcmp(amax->entry[i].name, c->drop_amax) != 0)
            must(ft_amax_table_add(copy, &amax->entry[i], &err), &err);
    if (c->add_amax != NULL)
        must(ft_amax_table_add(copy, &more, &err), &err);
    must(ft_amax_table_format(copy, &text, length, &err), &err);
    ft_amax_table_free(copy);
    return text;
}

static json_t *with_members(const json_t *object, const char *members)
{
    json_t *copy = json_deep_copy(object), *more = json_loads(members ? members : "{}", 0, NULL);
    const char *key;
    json_t *value;
    json_object_foreach(more, key, value)
    {
        if (json_is_null(value))
            json_object_del(copy, key);
        else
            json_object_set(copy, key, value);
    }
    json_decref(more);
    return copy;
}

static void write_copy(const char *path, const ft_artifact *from, const change *c)
{
    ft_artifact_writer *writer;
    ft_artifact_header head = *ft_artifact_get_header(from);
    bytes source[TENSORS] = { 0 };
    ft_error err;
    size_t length;
    char *amax = changed_amax(from, c, &length);
    head.config = with_members(head.config, c->config);
    head.recipe = with_members(head.recipe, c->recipe);
    head.family = c->family ? c->family : head.family;
    must(ft_artifact_create(&writer, path, true, &err), &err);
    add_tensors(writer, from, source, c);
    if (amax != NULL)
        must(ft_artifact_add_memory(writer, "amax.tsv", amax, length, &err), &err);
    must(ft_artifact_finish(writer, &head, &err), &err);
    ft_artifact_discard(writer);
    json_decref(head.config);
    json_decref(head.recipe);
    free(amax);
}

/* ---- Refused artifacts -------------------------------------------------------------------- */

typedef struct refusal {
    change change;
    ft_status status;
    const char *text; /* after the path */
} refusal;

static const refusal weights[] = {
    { { .tensor = "layer.1.ffn.up.bias", .drop = true },
      FT_EFORMAT,
      "layer.1.ffn.up.bias: missing" },
    { { .tensor = "layer.1.ffn.up.bias", .rename = "layer.2.ffn.up.bias" },
      FT_EFORMAT,
      "layer.1.ffn.up.bias: missing" },
    { { .extra = "layer.0.ffn.gate" },
      FT_EFORMAT,
      "layer.0.ffn.gate: is not a weight of the model" },
    { { .tensor = "layer.0.ffn.up.weight", .role = "dense" },
      FT_EFORMAT,
      "layer.0.ffn.up.weight: role dense, expected linear" },
    { { .tensor = "embed.norm.bias", .role = "bias" },
      FT_EFORMAT,
      "embed.norm.bias: role bias, expected vector" },
    { { .tensor = "layer.0.ffn.up.weight", .transpose = true },
      FT_ESHAPE,
      "layer.0.ffn.up.weight: shape [8, 12], expected [12, 8]" },
    { { .tensor = "embed.word", .flatten = true },
      FT_ESHAPE,
      "embed.word: shape [160], expected [20, 8]" },
};

static const refusal storage[] = {
    { { .tensor = "layer.0.ffn.up.weight", .store = true, .dtype = FT_F32 },
      FT_EFORMAT, /* a linear may stay float: its input then needs no range */
      "layer.0.attn.norm: has an amax, but is not a calibration point of the model" },
    { { .tensor = "embed.word", .store = true, .dtype = FT_U8, .layout = FT_PANEL32 },
      FT_EFORMAT,
      "embed.word: stored as U8 panel32, which is not valid for a table weight" },
    { { .tensor = "layer.0.ffn.up.weight", .store = true, .dtype = FT_I8 },
      FT_EFORMAT,
      "layer.0.ffn.up.weight: stored as I8 row, which is not valid for a linear weight" },
    { { .tensor = "layer.0.ffn.up.weight", .store = true, .dtype = FT_I8, .layout = FT_COL32 },
      FT_EFORMAT,
      "layer.0.ffn.up.weight: stored as I8 col32, which is not valid for a linear weight" },
    { { .tensor = "embed.norm.bias", .store = true, .dtype = FT_F16 },
      FT_EFORMAT,
      "embed.norm.bias: stored as F16 row, which is not valid for a vector weight" },
    { { .tensor = "embed.word", .store = true, .dtype = FT_I8 },
      FT_EFORMAT,
      "embed.word: stored as I8 row, which is not valid for a table weight" },
    { { .tensor = "classifier.weight", .store = true, .dtype = FT_F64 },
      FT_EFORMAT,
      "classifier.weight: stored as F64 row, which is not valid for a dense weight" },
};

static const refusal scales[] = {
    { { .drop_amax = "layer.0.ffn.act" },
      FT_EFORMAT,
      "layer.0.ffn.act: no amax for this calibration point" },
    { { .drop_amax = "layer.1.attn.probs", .add_amax = "layer.2.ffn.act" },
      FT_EFORMAT,
      "layer.1.attn.probs: no amax for this calibration point" },
    { { .add_amax = "layer.2.ffn.act" },
      FT_EFORMAT,
      "layer.2.ffn.act: has an amax, but is not a calibration point of the model" },
    { { .add_amax = "layer.0.ffn.up" },
      FT_EFORMAT,
      "layer.0.ffn.up: has an amax, but is not a calibration point of the model" },
};

static const refusal heads[] = {
    { { .family = "t5" }, FT_EUNSUPPORTED, "family t5 is unknown to this version" },
    { { .recipe = "{\"residual\": null}" },
      FT_EFORMAT,
      "recipe: residual is neither float nor int8" },
    { { .recipe = "{\"residual\": \"int4\"}" },
      FT_EFORMAT,
      "recipe: residual is neither float nor int8" },
    { { .recipe = "{\"residual\": 1}" }, FT_EFORMAT, "recipe: residual is neither float nor int8" },
    { { .config = "{\"hidden\": 0}" },
      FT_EFORMAT,
      "config: hidden: found 0, expected an integer from 1 to 65536" },
    { { .config = "{\"layers\": 1001}" },
      FT_EFORMAT,
      "config: layers: found 1001, expected an integer from 1 to 1000" },
    { { .config = "{\"ffn\": null}" },
      FT_EFORMAT,
      "config: ffn: found nothing, expected an integer from 1 to 65536" },
    { { .config = "{\"heads\": 3}" }, FT_EFORMAT, "config: 3 heads do not divide 8 columns" },
    { { .config = "{\"position_offset\": 10}" },
      FT_EFORMAT,
      "config: position offset 10, but only 10 positions" },
    { { .config = "{\"eps\": 0}" },
      FT_EFORMAT,
      "config: eps: found 0, expected a float from 0 to 1, exclusive" },
    { { .config = "{\"layers\": 3}" }, FT_EFORMAT, "layer.2.attn.q.weight: missing" },
    { { .config = "{\"layers\": 1}" },
      FT_EFORMAT,
      "layer.1.attn.q.weight: is not a weight of the model" },
};

static void check(const char *path, const ft_artifact *from, const refusal *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft_model *model;
        ft_error err = { FT_OK, "" };
        char text[256];
        write_copy(path, from, &r[i].change);
        ft_status status = ft_model_open(&model, path, NULL, &err);
        snprintf(text, sizeof text, "%s: %s", path, r[i].text);
        ok(status == r[i].status && model == NULL && strcmp(err.text, text) == 0,
           "ft_model_open() refuses the artifact: %s", r[i].text);
        if (status != r[i].status || strcmp(err.text, text) != 0)
            diag("found %s \"%s\"", ft_status_name(status), err.text);
        ft_model_close(model);
    }
}

static void test_good(const char *path, const ft_artifact *from)
{
    ft_model *model;
    ft_error err;
    write_copy(path, from, &(change){ .tensor = NULL });
    is_int(ft_model_open(&model, path, NULL, &err), FT_OK,
           "ft_model_open() opens an unchanged copy");
    int inside = 0;
    for (int i = 0; i < model->nweight; i++)
        inside +=
            model->weight[i].data == ft_artifact_find(model->artifact, model->weight[i].name)->data;
    is_int(inside, model->nweight, "every weight is used in place in the mapped file");
    ft_model_close(model);
    is_int(ft_model_open_with_config(&model, path, NULL,
                                     &(ft_quant_config){ .mode = FT_MODE_OBSERVE }, &err),
           FT_EARG, "ft_model_open_with_config() refuses to observe an int8 artifact");
    has(err.text, "has state int8, expected a float artifact",
        "the error states the artifact state found and expected");
}

/* An untied decoder whose manifest says that its head is the embedding table. */
static void test_stored_head(void)
{
    tiny t;
    ft_artifact *from;
    ft_model *model;
    ft_error err;
    char path[128], text[256];
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&t, llama_variant(variants, "grouped"));
    json_decref(variants);
    from = converted(&t, &(ft_convert_options){ 0 });
    snprintf(path, sizeof path, "%s/copy.ft", t.folder);
    write_copy(path, from, &(change){ .config = "{\"tied\": true}" });
    is_int(ft_model_open_with_config(
               &model, path, NULL,
               &(ft_quant_config){ .mode = FT_MODE_INT8, .dynamic = true, .quantized_head = true },
               &err),
           FT_EFORMAT, "ft_model_open_with_config() refuses a head beside a shared table");
    snprintf(text, sizeof text, "%s: head.weight: stored, but the model shares its embedding table",
             path);
    is_str(err.text, text, "the error names the head");
    ft_artifact_close(from);
    tiny_remove(&t);
}

int main(void)
{
    tiny t;
    calibrated files;
    ft_artifact *from;
    ft_error err;
    char path[CALIBRATED_PATH];
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    must(ft_artifact_open(&from, files.quantized, FT_VERIFY_STRUCTURE, &err), &err);
    snprintf(path, sizeof path, "%s/copy.ft", t.folder);
    test_good(path, from);
    check(path, from, weights, FT_COUNT(weights));
    check(path, from, storage, FT_COUNT(storage));
    check(path, from, scales, FT_COUNT(scales));
    check(path, from, heads, FT_COUNT(heads));
    test_stored_head();
    ft_artifact_close(from);
    tiny_remove(&t);
    return done_testing();
}
