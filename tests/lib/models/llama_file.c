/*
 * llama_file.c - tensors computed by a formula, with the names of published checkpoints.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/llama_file.h"

#include "runtime/mem.h"
#include "runtime/base/sha256.h"
#include "runtime/tensor.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/mixed.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- The file ------------------------------------------------------------------------------- */

const json_t *llama_variant(const json_t *variants, const char *name)
{
    size_t i;
    json_t *variant;
    json_array_foreach(variants, i, variant)
    {
        if (strcmp(json_string_value(json_object_get(variant, "name")), name) == 0)
            return variant;
    }
    bail_out("no variant %s", name);
}

/* ---- Values --------------------------------------------------------------------------------- */

static float value_of(const char *name, int k)
{
    if (strstr(name, "norm.weight") != NULL)
        return 1.0f + (float) ((k + 128) / 4 - 32) / 128.0f;
    return (float) k / (strstr(name, "embed_tokens") != NULL ? 128.0f : 512.0f);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

typedef struct {
    tiny *t;
    const char *name;
    const json_t *config;
    ft_dtype dtype;
} maker;

static void add(const maker *m, const char *name, int rows, int cols)
{
    ft_tensor *tensor = tiny_add(m->t, name, FT_F32, rows, cols);
    float *value = tensor->data;
    uint64_t h = mixed_hash(m->name, name);
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        value[i] = value_of(name, mixed_number(h, i));
    tiny_cast(tensor, m->dtype);
}

/* "model.layers.LAYER.PART.weight", and its bias where it has one. */
static void add_part(const maker *m, int layer, const char *part, int rows, int cols, bool bias)
{
    char name[TINY_NAME];
    snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, part);
    add(m, name, rows, cols);
    snprintf(name, sizeof name, "model.layers.%d.%s.bias", layer, part);
    if (bias)
        add(m, name, rows, 0);
}

/* An integer of the configuration, or `otherwise` if it is absent or null. */
static int number(const maker *m, const char *key, int otherwise)
{
    const json_t *value = json_object_get(m->config, key);
    return json_is_integer(value) ? (int) json_integer_value(value) : otherwise;
}

static bool flag(const maker *m, const char *key)
{
    return json_is_true(json_object_get(m->config, key));
}

static void add_layer(const maker *m, int layer)
{
    const char *type = json_string_value(json_object_get(m->config, "model_type"));
    int hidden = number(m, "hidden_size", 0), ffn = number(m, "intermediate_size", 0);
    int heads = number(m, "num_attention_heads", 0);
    int size = number(m, "head_dim", hidden / heads);
    int queries = heads * size, keys = number(m, "num_key_value_heads", heads) * size;
    bool out = flag(m, "attention_bias"), qkv = out || strcmp(type, "qwen2") == 0;
    bool mlp = flag(m, "mlp_bias");
    add_part(m, layer, "input_layernorm", hidden, 0, false);
    add_part(m, layer, "self_attn.q_proj", queries, hidden, qkv);
    add_part(m, layer, "self_attn.k_proj", keys, hidden, qkv);
    add_part(m, layer, "self_attn.v_proj", keys, hidden, qkv);
    if (strcmp(type, "qwen3") == 0) {
        add_part(m, layer, "self_attn.q_norm", size, 0, false);
        add_part(m, layer, "self_attn.k_norm", size, 0, false);
    }
    add_part(m, layer, "self_attn.o_proj", hidden, queries, out);
    add_part(m, layer, "post_attention_layernorm", hidden, 0, false);
    add_part(m, layer, "mlp.gate_proj", ffn, hidden, mlp);
    add_part(m, layer, "mlp.up_proj", ffn, hidden, mlp);
    add_part(m, layer, "mlp.down_proj", hidden, ffn, mlp);
}

void llama_make(tiny *t, const json_t *variant)
{
    maker m = { .t = t,
                .name = json_string_value(json_object_get(variant, "name")),
                .config = json_object_get(variant, "config") };
    if (!ft_dtype_parse(json_string_value(json_object_get(variant, "dtype")), &m.dtype))
        bail_out("%s: no dtype", m.name);
    memset(t, 0, sizeof *t);
    folder_make(t->folder);
    char *text = json_dumps(m.config, 0);
    tiny_write_file(t, "config.json", text);
    free(text);

    int hidden = number(&m, "hidden_size", 0), words = number(&m, "vocab_size", 0);
    add(&m, "model.embed_tokens.weight", words, hidden);
    for (int layer = 0; layer < number(&m, "num_hidden_layers", 0); layer++)
        add_layer(&m, layer);
    add(&m, "model.norm.weight", hidden, 0);
    if (!flag(&m, "tie_word_embeddings"))
        add(&m, "lm_head.weight", words, hidden);
}

/* ---- Shards --------------------------------------------------------------------------------- */

/* Tensors first, first + shards, ... go into shard `first`: consecutive ones are in other files. */
static void write_shard(const tiny *t, int first, int shards, json_t *map)
{
    ft_named_tensor some[TINY_TENSORS];
    size_t count = 0;
    char file[64], path[192];
    ft_error err;
    snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", first + 1, shards);
    snprintf(path, sizeof path, "%s/%s", t->folder, file);
    for (size_t i = (size_t) first; i < t->count; i += (size_t) shards) {
        some[count++] = t->tensor[i];
        json_object_set_new(map, t->tensor[i].name, json_string(file));
    }
    if (ft_safetensors_write(path, some, count, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

void llama_write(const tiny *t, const json_t *variant)
{
    int shards = (int) json_integer_value(json_object_get(variant, "shards"));
    if (shards == 1) {
        tiny_write(t);
        return;
    }
    json_t *map = json_object();
    for (int i = 0; i < shards; i++)
        write_shard(t, i, shards, map);
    json_t *index = json_pack("{s{} so}", "metadata", "weight_map", map);
    char *text = json_dumps(index, 0);
    tiny_write_file(t, "model.safetensors.index.json", text);
    free(text);
    json_decref(index);
}

/* ---- Comparison ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const ft_named_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static void add_to_digest(ft_sha256 *hash, const ft_named_tensor *named)
{
    ft_sha256_update(hash, named->name, strlen(named->name));
    ft_sha256_update(hash, "\n", 1);
    for (size_t i = 0; i < ft_tensor_numel(&named->tensor); i++) {
        float value = (float) tiny_value(&named->tensor, i);
        ft_sha256_update(hash, &value, sizeof value);
    }
}

bool llama_is_same(const tiny *t, const json_t *variant)
{
    ft_named_tensor sorted[TINY_TENSORS];
    uint8_t digest[FT_SHA256_BYTES];
    char text[FT_SHA256_HEX_SIZE];
    ft_sha256 *hash = ft_sha256_new();
    if (hash == NULL)
        bail_out("out of memory: digest");
    memcpy(sorted, t->tensor, t->count * sizeof *sorted);
    qsort(sorted, t->count, sizeof *sorted, by_name);
    ft_sha256_init(hash);
    for (size_t i = 0; i < t->count; i++)
        add_to_digest(hash, &sorted[i]);
    bool fine = ft_sha256_final(hash, digest);
    ft_sha256_free(hash);
    return fine && strcmp(ft_sha256_to_hex(text, digest),
                          json_string_value(json_object_get(variant, "sha256"))) == 0;
}
