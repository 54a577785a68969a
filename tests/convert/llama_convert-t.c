/*
 * llama_convert-t.c - checkpoints of Llama, Mistral and Qwen2 are converted to artifacts.
 *
 * The checkpoints are those of tests/golden/llama-variants.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static const ft_convert_options keep;
static json_t *variants;

/* ---- Names ---------------------------------------------------------------------------------- */

static const struct {
    const char *theirs, *ours;
} parts[] = {
    { "input_layernorm.", "attn.norm." },    { "self_attn.q_proj.", "attn.q." },
    { "self_attn.k_proj.", "attn.k." },      { "self_attn.v_proj.", "attn.v." },
    { "self_attn.o_proj.", "attn.out." },    { "post_attention_layernorm.", "ffn.norm." },
    { "mlp.gate_proj.", "ffn.gate." },       { "mlp.up_proj.", "ffn.up." },
    { "mlp.down_proj.", "ffn.down." },       { "self_attn.q_norm.", "attn.q_norm." },
    { "self_attn.k_norm.", "attn.k_norm." },
};

static const char *const top[][2] = {
    { "model.embed_tokens.weight", "embed.word" },
    { "model.norm.weight", "norm.weight" },
    { "lm_head.weight", "head.weight" },
};

/* The name of a checkpoint's tensor in an artifact. */
static const char *our_name(char text[96], const char *theirs)
{
    int layer, skipped;
    for (size_t i = 0; i < FT_COUNT(top); i++)
        if (strcmp(theirs, top[i][0]) == 0)
            return top[i][1];
    if (sscanf(theirs, "model.layers.%d.%n", &layer, &skipped) != 1)
        bail_out("%s", theirs);
    for (size_t i = 0; i < FT_COUNT(parts); i++) {
        size_t length = strlen(parts[i].theirs);
        if (strncmp(theirs + skipped, parts[i].theirs, length) == 0) {
            snprintf(text, 96, "layer.%d.%s%s", layer, parts[i].ours, theirs + skipped + length);
            return text;
        }
    }
    bail_out("%s", theirs);
}

/* The number of tensors of the checkpoint whose shapes and values are in the artifact. */
static int count_same(const ft_artifact *artifact, tiny *t)
{
    int n = 0;
    char name[96];
    for (size_t i = 0; i < t->count; i++)
        n += converted_same(artifact, our_name(name, t->name[i]), t, t->name[i]);
    return n;
}

/* ---- Every variant -------------------------------------------------------------------------- */

/* Converts the folder without changes. */
static ft_artifact *convert_folder(const tiny *t, const ft_convert_options *options)
{
    char path[128];
    ft_error err;
    ft_artifact *artifact = NULL;
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    ft_conversion *conversion = converted_open(t, options);
    if (conversion != NULL && converted_write(conversion, path) == FT_OK &&
        ft_artifact_open(&artifact, path, FT_VERIFY_SHA256, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_conversion_close(conversion);
    return artifact;
}

static void test_variant(const json_t *variant)
{
    const char *name = json_string_value(json_object_get(variant, "name"));
    const char *dtype = json_string_value(json_object_get(variant, "dtype"));
    long long tensors = json_integer_value(json_object_get(variant, "tensors"));
    tiny t;
    llama_make(&t, variant);
    ok(llama_is_same(&t, variant), "%s: the generated weights equal those given to transformers",
       name);
    llama_write(&t, variant);
    ft_artifact *a = convert_folder(&t, &keep);
    if (!ok(a != NULL, "%s: the checkpoint is converted", name))
        bail_out("%s", converted_problem(0));
    ok((long long) ft_artifact_count(a) == tensors && count_same(a, &t) == tensors,
       "%s: the artifact has %lld tensors, each with the values of its source", name, tensors);
    is_str(ft_dtype_name(ft_artifact_find(a, "layer.1.attn.k.weight")->dtype), dtype,
           "%s: matrices keep their dtype", name);
    is_str(ft_artifact_get_header(a)->family, "llama", "%s: the artifact has the family llama",
           name);
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_variants(void)
{
    size_t i;
    json_t *variant;
    json_array_foreach(variants, i, variant) test_variant(variant);
}

static void test_dtypes(void)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_F16, FT_BF16 };
    for (size_t i = 0; i < FT_COUNT(dtypes); i++) {
        tiny t;
        const ft_convert_options options = { .cast = true, .dtype = dtypes[i] };
        const json_t *variant = llama_variant(variants, "mistral-window");
        llama_make(&t, variant);
        llama_write(&t, variant);
        ft_artifact *a = convert_folder(&t, &options);
        int right = 0;
        for (size_t k = 0; a != NULL && k < ft_artifact_count(a); k++) {
            const ft_artifact_tensor *tensor = ft_artifact_at(a, k);
            right += tensor->dtype == (tensor->ndim == 2 ? dtypes[i] : FT_F32);
        }
        ok(right == (int) t.count && count_same(a, &t) == right,
           "--dtype %s applies to matrices, the head and the embeddings, and vectors are F32",
           ft_dtype_name(dtypes[i]));
        ft_artifact_close(a);
        tiny_remove(&t);
    }
}

/* ---- Copied files -------------------------------------------------------------------------- */

static bool carries(const ft_artifact *artifact, const char *file, const char *text)
{
    const ft_artifact_entry *entry = ft_artifact_find_file(artifact, file);
    return entry != NULL && entry->bytes == strlen(text) &&
           memcmp(entry->data, text, entry->bytes) == 0;
}

static void test_files(void)
{
    static const char generation[] = "{\"eos_token_id\": [1, 2]}";
    static const char tokenizer[] = "{\"bos_token\": \"<s>\"}";
    tiny t;
    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_write_file(&t, "generation_config.json", generation);
    tiny_write_file(&t, "tokenizer_config.json", tokenizer);
    ft_artifact *a = converted(&t, &keep);
    ok(a != NULL && carries(a, "generation_config.json", generation) &&
           carries(a, "tokenizer_config.json", tokenizer),
       "generation_config.json and tokenizer_config.json are copied into the artifact");
    ft_artifact_close(a);
    tiny_write_file(&t, "modules.json", "[]");
    ok(converted(&t, &keep) == NULL, "modules of a decoder without a Pooling are refused");
    has(converted_problem(0), "modules.json: no Pooling, so there is no embedding",
        "the error names modules.json");
    tiny_remove(&t);

    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_configure(&t, "{\"architectures\": [\"LlamaModel\"]}");
    ok(converted(&t, &keep) == NULL, "a decoder's base model without modules.json is refused");
    has(converted_problem(0),
        "config.json: architectures is LlamaModel, which has no language modeling head; save it as "
        "LlamaForCausalLM, or add modules.json",
        "the error of a base model names the class to save it as");
    tiny_remove(&t);

    tiny_make(&t, TINY_BERT, "");
    tiny_write_file(&t, "generation_config.json", generation);
    tiny_write_file(&t, "tokenizer_config.json", tokenizer);
    a = converted(&t, &keep);
    ok(a != NULL && ft_artifact_file_count(a) == 1, "generation files are not copied for encoders");
    ft_artifact_close(a);
    tiny_remove(&t);
}

/* ---- Heads ---------------------------------------------------------------------------------- */

/* The tied variant, with a head in its checkpoint. */
static ft_tensor *make_tied(tiny *t)
{
    llama_make(t, llama_variant(variants, "tied"));
    ft_tensor *head = tiny_add(t, "lm_head.weight", FT_F32, 97, 64);
    tiny_cast(head, FT_BF16);
    ft_tensor *words = tiny_find(t, "model.embed_tokens.weight");
    memcpy(head->data, words->data, ft_tensor_bytes(head));
    return head;
}

static bool is_tied(const ft_artifact *artifact)
{
    return json_is_true(json_object_get(ft_artifact_get_header(artifact)->config, "tied"));
}

static void test_tied(void)
{
    tiny t;
    make_tied(&t);
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    if (conversion == NULL)
        bail_out("%s", converted_problem(0));
    ok(conversion->n_unused == 0 && conversion->hf.config.tied,
       "a stored copy of a tied head is recognized and not listed as unused");
    ft_conversion_close(conversion);
    ft_artifact *a = converted(&t, &keep);
    ok(a != NULL && is_tied(a) && ft_artifact_find(a, "head.weight") == NULL,
       "a tied head is not stored twice");
    ft_artifact_close(a);

    uint16_t *value = tiny_find(&t, "lm_head.weight")->data;
    value[97 * 64 - 1] ^= 1;
    a = converted(&t, &keep);
    ok(a != NULL && !is_tied(a) && converted_same(a, "head.weight", &t, "lm_head.weight"),
       "a head that differs in the last bit is stored as an untied head");
    ft_artifact_close(a);
    conversion = converted_open(&t, &keep);
    if (conversion == NULL || conversion->notes.count != 2)
        bail_out("expected a note about the tokenizer, and one more");
    has(conversion->notes.message[1].text,
        "lm_head.weight: differs from model.embed_tokens.weight although tie_word_embeddings",
        "a note reports the head that differs");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

static void test_other_head(void)
{
    tiny t;
    tiny_cast(make_tied(&t), FT_F32);
    ft_artifact *a = converted(&t, &keep);
    ok(a != NULL && !is_tied(a), "a head of a different dtype is stored as an untied head");
    ft_artifact_close(a);
    tiny_drop(&t, "lm_head.weight");
    tiny_add(&t, "lm_head.weight", FT_F32, 96, 64);
    ok(converted(&t, &keep) == NULL, "a head of a different shape is refused");
    has(converted_problem(0), "lm_head.weight (head.weight): shape [96, 64], expected [97, 64]",
        "the error of a head of a different shape names both shapes");
    tiny_remove(&t);
}

/* ---- Invalid or unused tensors ------------------------------------------------------------- */

static void test_buffers(void)
{
    tiny t;
    llama_make(&t, llama_variant(variants, "grouped"));
    tiny_add(&t, "model.layers.0.self_attn.rotary_emb.inv_freq", FT_F32, 8, 0);
    tiny_add(&t, "model.rotary_emb.inv_freq", FT_F32, 8, 0);
    tiny_add(&t, "model.layers.0.self_attn.q_proj.lora", FT_F32, 8, 0);
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    if (conversion == NULL)
        bail_out("%s", converted_problem(0));
    is_int((long long) conversion->n_unused, 1,
           "rotary frequencies of old checkpoints are skipped");
    is_str(conversion->unused[0], "model.layers.0.self_attn.q_proj.lora",
           "other unused tensors are listed");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

/* Removes a tensor, or changes its shape, and converts. */
static void refused(const char *variant, const char *tensor, int rows, int cols, const char *why)
{
    tiny t;
    llama_make(&t, llama_variant(variants, variant));
    tiny_drop(&t, tensor);
    if (rows > 0)
        tiny_add(&t, tensor, FT_F32, rows, cols);
    ok(converted(&t, &keep) == NULL, "%s: a checkpoint whose %s %s is refused", variant, tensor,
       rows > 0 ? "has a different shape" : "is missing");
    has(converted_problem(0), why, "%s: the error names the tensor %s", variant, tensor);
    tiny_remove(&t);
}

static void test_refused(void)
{
    refused("grouped", "lm_head.weight", 0, 0,
            "lm_head.weight (head.weight): missing, expected shape [97, 64]");
    refused("grouped", "model.layers.1.self_attn.k_proj.weight", 64, 64,
            "k_proj.weight (layer.1.attn.k.weight): shape [64, 64], expected [32, 64]");
    refused("head-size", "model.layers.2.self_attn.o_proj.weight", 96, 96,
            "o_proj.weight (layer.2.attn.out.weight): shape [96, 96], expected [96, 64]");
    refused("qwen2", "model.layers.0.self_attn.v_proj.bias", 0, 0,
            "v_proj.bias (layer.0.attn.v.bias): missing, expected shape [32]");
    refused("biases", "model.layers.0.mlp.down_proj.bias", 0, 0,
            "down_proj.bias (layer.0.ffn.down.bias): missing, expected shape [64]");
    refused("tied", "model.embed_tokens.weight", 0, 0,
            "model.embed_tokens.weight (embed.word): missing, expected shape [97, 64]");

    tiny t;
    llama_make(&t, llama_variant(variants, "qwen2"));
    tiny_configure(&t, "{\"model_type\": \"llama\", \"architectures\": null}");
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    ok(conversion != NULL && conversion->n_unused == 6, "unexpected biases are listed as unused");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

int main(void)
{
    variants = golden_json("llama-variants.json");
    test_variants();
    test_dtypes();
    test_files();
    test_tied();
    test_other_head();
    test_buffers();
    test_refused();
    json_decref(variants);
    return done_testing();
}
