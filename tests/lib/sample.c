/*
 * sample.c - a small artifact with an entry of every kind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/sample.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 5, LARGE_ROWS = 130 };

/* 37 x 70 is not aligned to any tile: 40 x 96 with the padding of COL4_4R2_8C. */
static const ft_artifact_tensor float_tensors[] = {
    { .name = "embed.word", .role = "table", .dtype = FT_F16, .ndim = 2, .dim = { 11, 24 } },
    { .name = "layer.0.ffn.up.weight",
      .role = "linear",
      .dtype = FT_F32,
      .ndim = 2,
      .dim = { 37, 70 } },
    { .name = "layer.0.norm.weight", .role = "vector", .dtype = FT_F32, .ndim = 1, .dim = { 24 } },
    { .name = "temperature", .role = "scalar", .dtype = FT_F32 },
};

static const ft_artifact_tensor int8_tensors[] = {
    { .name = "embed.word", .role = "table", .dtype = FT_F16, .ndim = 2, .dim = { 11, 24 } },
    { .name = "layer.0.ffn.up.weight",
      .role = "linear",
      .dtype = FT_I8,
      .layout = FT_COL4_4R2_8C,
      .ndim = 2,
      .dim = { 37, 70 } },
    { .name = "head.weight", .role = "dense", .dtype = FT_I8, .ndim = 2, .dim = { 3, 5 } },
    { .name = "layer.0.norm.weight", .role = "vector", .dtype = FT_F32, .ndim = 1, .dim = { 24 } },
};

/* 37 x 70 in panels is 64 x 96: 3072 bytes, and three groups of 64 scales and zero points. */
static const ft_artifact_tensor blocks_tensors[] = {
    { .name = "embed.word", .role = "table", .dtype = FT_F16, .ndim = 2, .dim = { 11, 24 } },
    { .name = "layer.0.ffn.up.weight",
      .role = "linear",
      .dtype = FT_U4,
      .layout = FT_PANEL32,
      .ndim = 2,
      .dim = { 37, 70 },
      .groupwise = { .group = 32 },
      .has_zero_points = true },
    { .name = "head.weight",
      .role = "linear",
      .dtype = FT_U8,
      .layout = FT_PANEL32,
      .ndim = 2,
      .dim = { 3, 5 },
      .groupwise = { .int8_activations = true } },
    { .name = "layer.0.norm.weight", .role = "vector", .dtype = FT_F32, .ndim = 1, .dim = { 24 } },
};

static const ft_amax_entry ranges[] = {
    { "layer.0.input", 3.1415927f, "percentile", 0.0001, 41.25 },
    { "layer.0.ffn.gelu", 0.1f, "max", 0.0, 38.5 },
};

typedef struct {
    const sample *what;
    int tensor;
    size_t at;
    size_t quantized, scales; /* bytes of a group-wise matrix; else `quantized` is unlimited */
    size_t rows;
    float scale[LARGE_ROWS]; /* written by the producer, as a quantizer would */
} weights;

unsigned char sample_byte(const sample *what, int tensor, size_t index)
{
    return (unsigned char) (what->seed + 31 * tensor + 7 * (int) (index % 1021));
}

unsigned char sample_group_byte(bool zeros, size_t rows, size_t index)
{
    size_t row = (zeros ? index : index / 2) % ft_layout_rows(FT_PANEL32, rows);
    if (row >= rows)
        return 0;
    return zeros ? (unsigned char) (row % 16) : (unsigned char) (index % 2 == 0 ? row + 1 : 0x3c);
}

/* Quantized values, then scales, then zero points. */
static unsigned char next_byte(weights *w)
{
    size_t at = w->at++;
    if (at < w->quantized)
        return sample_byte(w->what, w->tensor, at);
    at -= w->quantized;
    return at < w->scales ? sample_group_byte(false, w->rows, at)
                          : sample_group_byte(true, w->rows, at - w->scales);
}

static ft_status produce(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    (void) err;
    weights *w = user;
    unsigned char *b = buffer;
    size_t count = w->what->piece == 0 ? bytes : ft_min_size(bytes, w->what->piece);
    for (size_t i = 0; i < count; i++)
        b[i] = next_byte(w);
    for (size_t i = 0; i < FT_COUNT(w->scale); i++)
        w->scale[i] = 0.001f * (float) (i + 1 + w->what->seed);
    *produced = count;
    return FT_OK;
}

static ft_artifact_tensor tensor_of(const sample *what, int index)
{
    if (index == TENSORS - 1)
        return (ft_artifact_tensor){ .name = what->name != NULL ? what->name : "large.weight",
                                     .role = "linear",
                                     .dtype = FT_I8,
                                     .ndim = 2,
                                     .dim = { LARGE_ROWS, (int64_t) what->large } };
    if (what->state == FT_ARTIFACT_GROUPWISE || (what->mixed && index == 1))
        return blocks_tensors[index];
    return what->state == FT_ARTIFACT_INT8 ? int8_tensors[index] : float_tensors[index];
}

/* The offsets at which the producer switches to scales and zero points. */
static void set_parts(weights *w, const ft_artifact_tensor *t)
{
    w->quantized = SIZE_MAX;
    if (t->layout != FT_PANEL32)
        return;
    w->rows = (size_t) t->dim[0];
    w->quantized = ft_panel_bytes(w->rows, (size_t) t->dim[1], ft_groupwise_bits(t->dtype));
    w->scales = 2 * ft_groupwise_scale_count(&t->groupwise, w->rows, (size_t) t->dim[1]);
}

static ft_status add_weights(ft_artifact_writer *writer, weights list[TENSORS], const sample *what,
                             ft_error *err)
{
    for (int i = 0; i < TENSORS - (what->large == 0); i++) {
        ft_artifact_tensor t = tensor_of(what, i);
        list[i] = (weights){ .what = what, .tensor = i };
        set_parts(&list[i], &t);
        if (t.dtype == FT_I8)
            t.scale = list[i].scale;
        FT_TRY(ft_artifact_add_tensor(writer, &t, produce, &list[i], err));
    }
    return FT_OK;
}

static ft_status add_calibration(ft_artifact_writer *writer, char **amax, const float *list,
                                 size_t list_bytes, ft_error *err)
{
    ft_amax_table *points = ft_amax_table_new();
    size_t bytes = 0;
    ft_status rc = FT_OK;
    for (size_t i = 0; i < FT_COUNT(ranges) && rc == FT_OK; i++)
        rc = ft_amax_table_add(points, &ranges[i], err);
    if (rc == FT_OK)
        rc = ft_amax_table_format(points, amax, &bytes, err);
    ft_amax_table_free(points);
    FT_TRY(rc);
    FT_TRY(ft_artifact_add_memory(writer, "amax.tsv", *amax, bytes, err));
    return ft_artifact_add_memory(writer, "amax_list/0", list, list_bytes, err);
}

static ft_status write_with(ft_artifact_writer *writer, const sample *what, ft_error *err)
{
    static const char tokenizer[] = "{\"model\": {}}";
    bool int8 = what->state == FT_ARTIFACT_INT8;
    weights list[TENSORS];
    float layer[FT_AMAX_LIST_HEADER + 9 * 2] = { 3.0f };
    char *amax = NULL;
    json_t *config = json_pack("{si, sf, ss}", "hidden", 24, "eps", 1e-12, "act", "gelu");
    json_t *recipe =
        what->state != FT_ARTIFACT_FLOAT ? json_pack("{ss}", "residual", "float") : NULL;
    const ft_artifact_header head = { .state = what->state,
                                      .family = "bert",
                                      .tool = "ft-sample",
                                      .config = config,
                                      .recipe = recipe };

    ft_artifact_set_progress(writer, what->progress, what->user);
    ft_status rc = ft_artifact_add_memory(writer, "config.json", "{}", 2, err);
    if (rc == FT_OK)
        rc = add_weights(writer, list, what, err);
    if (rc == FT_OK && int8)
        rc = add_calibration(writer, &amax, layer, sizeof layer, err);
    if (rc == FT_OK)
        rc = ft_artifact_add_memory(writer, "tokenizer.json", tokenizer, strlen(tokenizer), err);
    if (rc == FT_OK)
        rc = ft_artifact_add_memory(writer, "selftest/empty", "", 0, err);
    if (rc == FT_OK)
        rc = ft_artifact_finish(writer, &head, err);
    free(amax);
    json_decref(config);
    json_decref(recipe);
    return rc;
}

ft_status sample_write(const char *path, const sample *what, ft_error *err)
{
    ft_artifact_writer *writer;
    FT_TRY(ft_artifact_create(&writer, path, what->force, err));
    ft_status rc = write_with(writer, what, err);
    ft_artifact_discard(writer);
    return rc;
}

bool sample_holds(const ft_artifact *artifact, const sample *what)
{
    for (size_t i = 0; i < ft_artifact_count(artifact); i++) {
        const ft_artifact_tensor *t = ft_artifact_at(artifact, i);
        const unsigned char *data = t->data;
        int tensor = strcmp(t->name, "large.weight") == 0 ? TENSORS - 1 : (int) i;
        for (size_t k = 0; k < t->bytes; k++)
            if (data[k] != sample_byte(what, tensor, k))
                return false;
    }
    return ft_artifact_count(artifact) == TENSORS - (what->large == 0);
}
