/*
 * tiny.c - builds a checkpoint tensor by tensor, and writes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/tiny.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HIDDEN = 8, FFN = 12, LAYERS = 2, TOKENS = 20, POSITIONS = 10 };

/* ---- Tensors -------------------------------------------------------------------------------- */

ft_tensor *tiny_add(tiny *t, const char *name, ft_dtype dtype, int rows, int cols)
{
    if (t->count == TINY_TENSORS)
        bail_out("too many tensors");
    ft_named_tensor *named = &t->tensor[t->count];
    ft_tensor *tensor = &named->tensor;
    snprintf(t->name[t->count], TINY_NAME, "%s", name);
    named->name = t->name[t->count];
    *tensor = (ft_tensor){ .dtype = dtype, .ndim = cols > 0 ? 2 : 1, .dim = { rows, cols } };
    tensor->data = calloc(1, ft_tensor_bytes(tensor));
    float *value = tensor->data;
    for (size_t i = 0; dtype == FT_F32 && i < ft_tensor_numel(tensor); i++)
        value[i] = (float) ((int) ((i * 7 + t->count * 13) % 97) - 48) / 64.0f;
    t->count++;
    return tensor;
}

void tiny_add_linear(tiny *t, const char *name, int rows, int cols)
{
    char full[TINY_NAME];
    snprintf(full, sizeof full, "%s.weight", name);
    tiny_add(t, full, FT_F32, rows, cols);
    snprintf(full, sizeof full, "%s.bias", name);
    tiny_add(t, full, FT_F32, rows, 0);
}

static size_t index_of(const tiny *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->name[i], name) == 0)
            return i;
    bail_out("no tensor %s", name);
}

ft_tensor *tiny_find(tiny *t, const char *name)
{
    return &t->tensor[index_of(t, name)].tensor;
}

void tiny_drop(tiny *t, const char *name)
{
    size_t i = index_of(t, name), last = --t->count;
    free(t->tensor[i].tensor.data);
    t->tensor[i].tensor = t->tensor[last].tensor;
    memcpy(t->name[i], t->name[last], TINY_NAME);
}

void tiny_rename(tiny *t, const char *name, const char *other)
{
    snprintf(t->name[index_of(t, name)], TINY_NAME, "%s", other);
}

/* ---- Dtypes --------------------------------------------------------------------------------- */

double tiny_value(const ft_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case FT_F64:
        return ((const double *) tensor->data)[index];
    case FT_F16:
        return (double) ft_float_from_f16(((const uint16_t *) tensor->data)[index]);
    case FT_BF16:
        return (double) ft_float_from_bf16(((const uint16_t *) tensor->data)[index]);
    default:
        return (double) ((const float *) tensor->data)[index];
    }
}

static void store(ft_tensor *tensor, size_t index, double value)
{
    switch (tensor->dtype) {
    case FT_F64:
        ((double *) tensor->data)[index] = value;
        break;
    case FT_F16:
        ((uint16_t *) tensor->data)[index] = ft_f16_from_float((float) value);
        break;
    case FT_BF16:
        ((uint16_t *) tensor->data)[index] = ft_bf16_from_float((float) value);
        break;
    default:
        ((float *) tensor->data)[index] = (float) value;
    }
}

void tiny_cast(ft_tensor *tensor, ft_dtype dtype)
{
    ft_tensor old = *tensor;
    tensor->dtype = dtype;
    tensor->data = calloc(1, ft_tensor_bytes(tensor));
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        store(tensor, i, tiny_value(&old, i));
    free(old.data);
}

void tiny_cast_all(tiny *t, ft_dtype dtype)
{
    for (size_t i = 0; i < t->count; i++)
        tiny_cast(&t->tensor[i].tensor, dtype);
}

/* ---- Encoders ------------------------------------------------------------------------------- */

/* The tensors of one layer, after "PREFIXencoder.layer.N.": rows and columns, 0 for a norm. */
typedef struct {
    const char *name;
    int rows, cols;
} part;

static const part bert_parts[] = {
    { "attention.self.query", HIDDEN, HIDDEN },
    { "attention.self.key", HIDDEN, HIDDEN },
    { "attention.self.value", HIDDEN, HIDDEN },
    { "attention.output.dense", HIDDEN, HIDDEN },
    { "attention.output.LayerNorm", HIDDEN, 0 },
    { "intermediate.dense", FFN, HIDDEN },
    { "output.dense", HIDDEN, FFN },
    { "output.LayerNorm", HIDDEN, 0 },
};

static const part distilbert_parts[] = {
    { "attention.q_lin", HIDDEN, HIDDEN }, { "attention.k_lin", HIDDEN, HIDDEN },
    { "attention.v_lin", HIDDEN, HIDDEN }, { "attention.out_lin", HIDDEN, HIDDEN },
    { "sa_layer_norm", HIDDEN, 0 },        { "ffn.lin1", FFN, HIDDEN },
    { "ffn.lin2", HIDDEN, FFN },           { "output_layer_norm", HIDDEN, 0 },
};

static void add_table(tiny *t, const char *prefix, const char *table, int rows)
{
    char name[TINY_NAME];
    snprintf(name, sizeof name, "%sembeddings.%s.weight", prefix, table);
    tiny_add(t, name, FT_F32, rows, HIDDEN);
}

static void add_tensors(tiny *t, tiny_kind kind, const char *prefix)
{
    char name[TINY_NAME];
    add_table(t, prefix, "word_embeddings", TOKENS);
    add_table(t, prefix, "position_embeddings", POSITIONS);
    if (kind != TINY_DISTILBERT)
        add_table(t, prefix, "token_type_embeddings", 2);
    snprintf(name, sizeof name, "%sembeddings.LayerNorm", prefix);
    tiny_add_linear(t, name, HIDDEN, 0);
    const part *parts = kind == TINY_DISTILBERT ? distilbert_parts : bert_parts;
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < FT_COUNT(bert_parts); i++) {
            snprintf(name, sizeof name, "%s%s.layer.%d.%s", prefix,
                     kind == TINY_DISTILBERT ? "transformer" : "encoder", layer, parts[i].name);
            tiny_add_linear(t, name, parts[i].rows, parts[i].cols);
        }
}

static const char *const configs[] = {
    [TINY_BERT] = "{\"model_type\": \"bert\", \"hidden_size\": 8, \"num_hidden_layers\": 2,"
                  " \"num_attention_heads\": 2, \"intermediate_size\": 12, \"vocab_size\": 20,"
                  " \"max_position_embeddings\": 10}",
    [TINY_ROBERTA] = "{\"model_type\": \"roberta\", \"hidden_size\": 8, \"num_hidden_layers\": 2,"
                     " \"num_attention_heads\": 2, \"intermediate_size\": 12, \"vocab_size\": 20,"
                     " \"max_position_embeddings\": 10, \"pad_token_id\": 1}",
    [TINY_DISTILBERT] = "{\"model_type\": \"distilbert\", \"dim\": 8, \"n_layers\": 2,"
                        " \"n_heads\": 2, \"hidden_dim\": 12, \"vocab_size\": 20,"
                        " \"max_position_embeddings\": 10}",
};

void tiny_make(tiny *t, tiny_kind kind, const char *prefix)
{
    memset(t, 0, sizeof *t);
    folder_make(t->folder);
    tiny_write_file(t, "config.json", configs[kind]);
    add_tensors(t, kind, prefix);
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void path_of(char path[256], const tiny *t, const char *file)
{
    snprintf(path, 256, "%s/%s", t->folder, file);
}

void tiny_write_file(const tiny *t, const char *file, const char *text)
{
    char path[256];
    path_of(path, t, file);
    char *slash = strchr(path + strlen(t->folder) + 1, '/');
    if (slash != NULL) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *out = fopen(path, "w");
    if (out == NULL || fputs(text, out) == EOF || fclose(out) != 0)
        bail_out("cannot write %s", path);
}

void tiny_configure(tiny *t, const char *members)
{
    char path[256];
    path_of(path, t, "config.json");
    json_t *config = json_load_file(path, 0, NULL), *more = json_loads(members, 0, NULL);
    if (config == NULL || more == NULL || json_object_update(config, more) != 0 ||
        json_dump_file(config, path, 0) != 0)
        bail_out("cannot add %s to %s", members, path);
    json_decref(config);
    json_decref(more);
}

void tiny_write(const tiny *t)
{
    char path[256];
    ft_error err;
    path_of(path, t, "model.safetensors");
    if (ft_safetensors_write(path, t->tensor, t->count, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

void tiny_make_classifier(tiny *t)
{
    tiny_make(t, TINY_BERT, "bert.");
    tiny_add_linear(t, "bert.pooler.dense", HIDDEN, HIDDEN);
    tiny_add_linear(t, "classifier", 3, HIDDEN);
    tiny_configure(t, "{\"architectures\": [\"BertForSequenceClassification\"],"
                      " \"num_labels\": 3}");
}

void tiny_remove(tiny *t)
{
    char path[256];
    path_of(path, t, "1_Pooling");
    folder_remove(path);
    for (int i = 2; i < 9; i++) {
        snprintf(path, sizeof path, "%s/%d_Dense", t->folder, i);
        folder_remove(path);
    }
    folder_remove(t->folder);
    for (size_t i = 0; i < t->count; i++)
        free(t->tensor[i].tensor.data);
}
