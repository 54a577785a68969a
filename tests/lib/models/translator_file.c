/*
 * translator_file.c - tensors computed by a formula, with the names of M2M100 and Marian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/translator_file.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/mixed.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static const char shared[] = "model.shared.weight", bias[] = "final_logits_bias";

typedef struct {
    tiny *t;
    const char *name;
    const json_t *config;
    ft_dtype dtype;
} maker;

/* ---- Values --------------------------------------------------------------------------------- */

static float value_of(const char *name, int k)
{
    if (strstr(name, "norm.weight") != NULL)
        return 1.0f + (float) ((k + 128) / 4 - 32) / 128.0f;
    return (float) k / (strcmp(name, shared) == 0 || strcmp(name, bias) == 0 ? 128.0f : 512.0f);
}

static void add(const maker *m, const char *name, int rows, int cols)
{
    ft_tensor *tensor = tiny_add(m->t, name, FT_F32, rows, cols);
    float *value = tensor->data;
    uint64_t h = mixed_hash(m->name, name);
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        value[i] = value_of(name, mixed_number(h, i));
    tiny_cast(tensor, m->dtype);
}

/* STACK.PART.weight and STACK.PART.bias. */
static void add_part(const maker *m, const char *stack, const char *part, int rows, int cols)
{
    char name[TINY_NAME];
    snprintf(name, sizeof name, "%s.%s.weight", stack, part);
    add(m, name, rows, cols);
    snprintf(name, sizeof name, "%s.%s.bias", stack, part);
    add(m, name, rows, 0);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static int number(const maker *m, const char *key)
{
    const json_t *value = json_object_get(m->config, key);
    if (!json_is_integer(value))
        bail_out("%s: no %s", m->name, key);
    return (int) json_integer_value(value);
}

static void add_attention(const maker *m, const char *layer, const char *name, int hidden)
{
    static const char *const parts[] = { "q_proj", "k_proj", "v_proj", "out_proj" };
    char part[TINY_NAME];
    for (size_t i = 0; i < FT_COUNT(parts); i++) {
        snprintf(part, sizeof part, "%s.%s", name, parts[i]);
        add_part(m, layer, part, hidden, hidden);
    }
    snprintf(part, sizeof part, "%s_layer_norm", name);
    add_part(m, layer, part, hidden, 0);
}

/* "model.STACK.layers.0" and the others. */
static void add_stack(const maker *m, const char *stack, bool is_marian)
{
    char key[64], name[64];
    bool is_decoder = strcmp(stack, "decoder") == 0;
    int hidden = number(m, "d_model");
    snprintf(key, sizeof key, "%s_ffn_dim", stack);
    int ffn = number(m, key);
    snprintf(key, sizeof key, "%s_layers", stack);
    for (int layer = 0; layer < number(m, key); layer++) {
        snprintf(name, sizeof name, "model.%s.layers.%d", stack, layer);
        add_attention(m, name, "self_attn", hidden);
        if (is_decoder)
            add_attention(m, name, "encoder_attn", hidden);
        add_part(m, name, "fc1", ffn, hidden);
        add_part(m, name, "fc2", hidden, ffn);
        add_part(m, name, "final_layer_norm", hidden, 0);
    }
    snprintf(name, sizeof name, "model.%s", stack);
    if (!is_marian)
        add_part(m, name, "layer_norm", hidden, 0);
}

ft_tensor *translator_copy_words(tiny *t, const char *name)
{
    const ft_tensor words = *tiny_find(t, shared);
    ft_tensor *copy = tiny_add(t, name, words.dtype, (int) words.dim[0], (int) words.dim[1]);
    memcpy(copy->data, words.data, ft_tensor_bytes(copy));
    return copy;
}

void translator_make(tiny *t, const json_t *variant)
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

    const char *type = json_string_value(json_object_get(m.config, "model_type"));
    bool is_marian = strcmp(type, "marian") == 0;
    int words = number(&m, "vocab_size");
    add(&m, shared, words, number(&m, "d_model"));
    add_stack(&m, "encoder", is_marian);
    add_stack(&m, "decoder", is_marian);
    if (is_marian)
        add(&m, bias, 1, words);
    if (!json_is_true(json_object_get(m.config, "tie_word_embeddings")))
        add(&m, "lm_head.weight", words, number(&m, "d_model"));
    size_t i;
    json_t *copy;
    json_array_foreach(json_object_get(variant, "copies"), i, copy)
        translator_copy_words(t, json_string_value(copy));
}
