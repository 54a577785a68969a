/*
 * rotate-t.c - what a rotated artifact stores, and which checkpoints cannot be rotated.
 *
 * The checkpoints are those of tests/golden/llama-variants.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/features.h"
#include "runtime/mem.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/translator_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_convert_options rotate = { .rotate = true };
static const ft_convert_options rotate_f32 = { .rotate = true, .cast = true, .dtype = FT_F32 };
static json_t *variants;

static ft_artifact *must_convert(tiny *t, const ft_convert_options *options)
{
    ft_artifact *a = converted(t, options);
    if (a == NULL)
        bail_out("%s", converted_problem(0));
    return a;
}

/* ---- The artifact --------------------------------------------------------------------------- */

static bool is_ones(const ft_artifact_tensor *tensor)
{
    const float *value = tensor->data;
    for (int64_t i = 0; i < tensor->dim[0]; i++)
        if (value[i] < 1.0f || value[i] > 1.0f)
            return false;
    return true;
}

static void test_norms(void)
{
    int folded = 0, kept = 0;
    tiny t;
    llama_make(&t, llama_variant(variants, "qwen3"));
    ft_artifact *a = must_convert(&t, &rotate_f32);
    for (size_t i = 0; i < ft_artifact_count(a); i++) {
        const ft_artifact_tensor *tensor = ft_artifact_at(a, i);
        bool is_norm = strstr(tensor->name, "norm.weight") != NULL;
        bool of_heads = strstr(tensor->name, "q_norm") != NULL || strstr(tensor->name, "k_norm");
        folded += is_norm && !of_heads && is_ones(tensor);
        kept += of_heads && !is_ones(tensor);
    }
    is_int(folded, 5, "the weights of the norms of all layers and of the last one become 1");
    is_int(kept, 4, "the norms of query and key heads keep their weights");
    ft_artifact_close(a);
    tiny_remove(&t);
}

/* The squares of all elements: no rotation changes their sum. */
static double energy(const ft_tensor *tensor)
{
    double sum = 0.0;
    for (size_t i = 0; i < (size_t) (tensor->dim[0] * (tensor->ndim == 2 ? tensor->dim[1] : 1));
         i++)
        sum += tiny_value(tensor, i) * tiny_value(tensor, i);
    return sum;
}

static void test_rotated(void)
{
    static const char *const pairs[][2] = {
        { "embed.word", "model.embed_tokens.weight" },
        { "layer.1.attn.out.weight", "model.layers.1.self_attn.o_proj.weight" },
        { "layer.1.attn.out.bias", "model.layers.1.self_attn.o_proj.bias" },
        { "layer.0.attn.v.bias", "model.layers.0.self_attn.v_proj.bias" },
        { "layer.0.ffn.down.weight", "model.layers.0.mlp.down_proj.weight" },
        { "layer.0.ffn.down.bias", "model.layers.0.mlp.down_proj.bias" },
    };
    static const char *const same[][2] = {
        { "layer.0.attn.q.bias", "model.layers.0.self_attn.q_proj.bias" },
        { "layer.0.attn.k.bias", "model.layers.0.self_attn.k_proj.bias" },
        { "layer.0.ffn.gate.bias", "model.layers.0.mlp.gate_proj.bias" },
        { "layer.0.ffn.up.bias", "model.layers.0.mlp.up_proj.bias" },
    };
    double worst = 0.0;
    int changed = 0, kept = 0;
    tiny t;
    llama_make(&t, llama_variant(variants, "biases"));
    ft_artifact *a = must_convert(&t, &rotate_f32);
    for (size_t i = 0; i < FT_COUNT(pairs); i++) {
        const ft_artifact_tensor *found = ft_artifact_find(a, pairs[i][0]);
        ft_tensor as_tensor = { found->dtype,
                                FT_ROW,
                                found->ndim,
                                { found->dim[0], found->dim[1] },
                                (void *) (uintptr_t) found->data };
        double before = energy(tiny_find(&t, pairs[i][1]));
        worst = fmax(worst, fabs(energy(&as_tensor) / before - 1.0));
        changed += !converted_same(a, pairs[i][0], &t, pairs[i][1]);
    }
    for (size_t i = 0; i < FT_COUNT(same); i++)
        kept += converted_same(a, same[i][0], &t, same[i][1]);
    near(worst, 0.0, 1e-6, "a rotated weight keeps the sum of its squares");
    is_int(changed, FT_COUNT(pairs), "what writes the residual stream or values is rotated");
    is_int(kept, FT_COUNT(same), "biases behind the residual stream are not");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_manifest(void)
{
    tiny t;
    llama_make(&t, llama_variant(variants, "grouped"));
    ft_artifact *a = must_convert(&t, &rotate);
    const ft_artifact_header *head = ft_artifact_get_header(a);
    const json_t *conversion = json_object_get(head->provenance, "conversion");
    ok(json_is_true(json_object_get(head->config, "rotated")),
       "the configuration says that the model is rotated");
    is_str(json_string_value(json_array_get(head->required, 0)), FT_FEATURE_ROTATED,
           "a rotated artifact requires a reader that knows rotations");
    ok(json_is_true(json_object_get(conversion, "rotate")),
       "the provenance says that the weights were rotated");
    ft_artifact_close(a);
    a = must_convert(&t, &(ft_convert_options){ 0 });
    head = ft_artifact_get_header(a);
    conversion = json_object_get(head->provenance, "conversion");
    ok(json_object_get(head->config, "rotated") == NULL && head->required == NULL &&
           json_object_get(conversion, "rotate") == NULL,
       "an artifact that is not rotated says nothing of rotations");
    ft_artifact_close(a);
    tiny_remove(&t);
}

/* A tied head takes the final norm, the embedding does not. */
static void test_tied(void)
{
    tiny t;
    llama_make(&t, llama_variant(variants, "tied"));
    ft_artifact *a = must_convert(&t, &rotate);
    ok(ft_artifact_find(a, "head.weight") != NULL &&
           json_object_get(ft_artifact_get_header(a)->config, "tied") == NULL,
       "a tied head gets a weight of its own");
    ft_artifact_close(a);
    ft_conversion *conversion = converted_open(&t, &rotate);
    if (conversion == NULL || conversion->notes.count != 2)
        bail_out("expected a note about the tokenizer, and one more");
    has(conversion->notes.message[1].text, "--rotate: the tied head gets a weight of its own",
        "a note says that the head is no longer tied");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

static void test_dtypes(void)
{
    static const struct {
        const char *variant;
        ft_convert_options options;
        ft_dtype stored;
        const char *what;
    } cases[] = {
        { "one-key-head", { .rotate = true }, FT_F16, "BF16 matrices are stored as F16" },
        { "all-key-heads", { .rotate = true }, FT_F16, "F16 matrices keep their dtype" },
        { "grouped", { .rotate = true }, FT_F32, "F32 matrices keep their dtype" },
        { "one-key-head",
          { .rotate = true, .cast = true, .dtype = FT_BF16 },
          FT_BF16,
          "--dtype bf16 stores BF16" },
    };
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        tiny t;
        llama_make(&t, llama_variant(variants, cases[i].variant));
        ft_artifact *a = must_convert(&t, &cases[i].options);
        ok(ft_artifact_find(a, "layer.0.ffn.down.weight")->dtype == cases[i].stored &&
               ft_artifact_find(a, "embed.word")->dtype == cases[i].stored &&
               ft_artifact_find(a, "norm.weight")->dtype == FT_F32,
           "rotated, %s", cases[i].what);
        ft_artifact_close(a);
        tiny_remove(&t);
    }
}

/* The digests of all tensors, one after the other. */
static void digests(const ft_artifact *a, uint8_t out[][FT_SHA256_BYTES])
{
    for (size_t i = 0; i < ft_artifact_count(a); i++)
        memcpy(out[i], ft_artifact_at(a, i)->sha256, FT_SHA256_BYTES);
}

static void test_reproducible(void)
{
    static uint8_t found[2][TINY_TENSORS][FT_SHA256_BYTES];
    tiny t;
    llama_make(&t, llama_variant(variants, "head-size"));
    for (int i = 0; i < 2; i++) {
        ft_artifact *a = must_convert(&t, &rotate);
        digests(a, found[i]);
        ft_artifact_close(a);
    }
    ok(memcmp(found[0], found[1], sizeof found[0]) == 0, "each conversion gives the same bytes");
    tiny_remove(&t);
}

/* ---- Values --------------------------------------------------------------------------------- */

static void test_overflow(void)
{
    tiny t;
    llama_make(&t, llama_variant(variants, "one-key-head"));
    ft_tensor *down = tiny_find(&t, "model.layers.1.mlp.down_proj.weight");
    uint16_t *value = down->data;
    for (int64_t i = 0; i < down->dim[0]; i++)
        value[i * down->dim[1] + 5] = 0x477f; /* 65280 */
    ok(converted(&t, &rotate) == NULL, "a rotated value that overflows F16 is refused");
    has(converted_problem(0), "mlp.down_proj.weight (layer.1.ffn.down.weight)",
        "the error names the tensor of a rotated value that overflows");
    has(converted_problem(0), " is too large for F16; try --dtype bf16",
        "the error of a rotated value that overflows names another dtype");
    ft_conversion *conversion = converted_open(&t, &rotate);
    ft_error err;
    if (conversion == NULL)
        bail_out("%s", converted_problem(0));
    is_int(ft_conversion_check(conversion, NULL, NULL, &err), FT_ELIMIT,
           "a dry run finds rotated values that overflow");
    ft_conversion_close(conversion);
    ft_artifact *a =
        must_convert(&t, &(ft_convert_options){ .rotate = true, .cast = true, .dtype = FT_BF16 });
    ok(a != NULL, "the other dtype stores these values");
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_not_finite(void)
{
    tiny t;
    llama_make(&t, llama_variant(variants, "grouped"));
    ((float *) tiny_find(&t, "model.layers.0.input_layernorm.weight")->data)[3] = (float) NAN;
    ok(converted(&t, &rotate) == NULL, "a norm with NaN is not folded");
    has(converted_problem(0), "model.layers.0.input_layernorm.weight (layer.0.attn.norm.weight)",
        "the error names the norm with NaN");
    tiny_remove(&t);
}

/* ---- Models --------------------------------------------------------------------------------- */

/* Converts the model with --rotate, which fails, and removes it. */
static void refused(tiny *t, const char *why, const char *what)
{
    ok(converted(t, &rotate) == NULL, "--rotate refuses %s", what);
    has(converted_problem(0), why, "the error of %s says why", what);
    tiny_remove(t);
}

static void test_refused(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    refused(&t,
            "--rotate needs a decoder with RMS norms; the layer norms of bert subtract the mean",
            "an encoder");

    json_t *translators = golden_json("translator-variants.json");
    translator_make(&t, json_array_get(translators, 0));
    refused(&t, "--rotate needs a decoder with RMS norms", "a translation model");
    json_decref(translators);

    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_write_file(
        &t, "modules.json",
        "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
    tiny_write_file(&t, "1_Pooling/config.json",
                    "{\"word_embedding_dimension\": 64, \"pooling_mode_lasttoken\": true}");
    refused(&t, "--rotate would rotate the embeddings", "a decoder that embeds texts");

    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_configure(&t, "{\"hidden_size\": 1048, \"head_dim\": 16}");
    refused(&t,
            "config.json: hidden_size 1048 = 8 * 131: --rotate needs an odd factor of at most 127",
            "a size with a large odd factor");

    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_configure(&t, "{\"head_dim\": 262}");
    refused(&t, "config.json: head_dim 262 = 2 * 131", "heads with a large odd factor");
}

int main(void)
{
    variants = golden_json("llama-variants.json");
    test_norms();
    test_rotated();
    test_manifest();
    test_tied();
    test_dtypes();
    test_reproducible();
    test_overflow();
    test_not_finite();
    test_refused();
    json_decref(variants);
    return done_testing();
}
