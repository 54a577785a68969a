/*
 * translator_convert-t.c - checkpoints of M2M100 and Marian are converted to artifacts.
 *
 * The checkpoints are those of tests/golden/translator-variants.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/bind.h"
#include "runtime/mem.h"
#include "runtime/graph/sinusoids.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

#define ENCODER "model.encoder.embed_tokens.weight"
#define DECODER "model.decoder.embed_tokens.weight"
#define POSITIONS "model.encoder.embed_positions.weight"

static const ft_convert_options keep;
static json_t *variants;

static void make(tiny *t, const char *variant)
{
    translator_make(t, llama_variant(variants, variant));
}

/* ---- Names ---------------------------------------------------------------------------------- */

static const struct {
    const char *theirs, *ours;
} parts[] = {
    { "self_attn.q_proj.", "attn.q." },
    { "self_attn.k_proj.", "attn.k." },
    { "self_attn.v_proj.", "attn.v." },
    { "self_attn.out_proj.", "attn.out." },
    { "self_attn_layer_norm.", "attn.norm." },
    { "encoder_attn.q_proj.", "cross.q." },
    { "encoder_attn.k_proj.", "cross.k." },
    { "encoder_attn.v_proj.", "cross.v." },
    { "encoder_attn.out_proj.", "cross.out." },
    { "encoder_attn_layer_norm.", "cross.norm." },
    { "fc1.", "ffn.up." },
    { "fc2.", "ffn.down." },
    { "final_layer_norm.", "ffn.norm." },
};

static const char *const top[][2] = {
    { "model.shared.weight", "embed.word" },
    { ENCODER, "embed.word" },
    { DECODER, "embed.word" },
    { "model.encoder.layer_norm.weight", "encoder.norm.weight" },
    { "model.encoder.layer_norm.bias", "encoder.norm.bias" },
    { "model.decoder.layer_norm.weight", "decoder.norm.weight" },
    { "model.decoder.layer_norm.bias", "decoder.norm.bias" },
    { "final_logits_bias", "head.bias" },
};

/* The name of a checkpoint's tensor in an artifact. */
static const char *our_name(char text[96], const char *theirs, bool tied)
{
    char stack[8];
    int layer, skipped;
    for (size_t i = 0; i < FT_COUNT(top); i++)
        if (strcmp(theirs, top[i][0]) == 0)
            return top[i][1];
    if (strcmp(theirs, "lm_head.weight") == 0)
        return tied ? "embed.word" : "head.weight";
    if (sscanf(theirs, "model.%7[a-z].layers.%d.%n", stack, &layer, &skipped) != 2)
        bail_out("%s", theirs);
    for (size_t i = 0; i < FT_COUNT(parts); i++) {
        size_t length = strlen(parts[i].theirs);
        if (strncmp(theirs + skipped, parts[i].theirs, length) == 0) {
            snprintf(text, 96, "%s.layer.%d.%s%s", stack, layer, parts[i].ours,
                     theirs + skipped + length);
            return text;
        }
    }
    bail_out("%s", theirs);
}

/* final_logits_bias is a matrix of one row. */
static void flatten_bias(tiny *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->name[i], "final_logits_bias") == 0) {
            ft_tensor *bias = &t->tensor[i].tensor;
            bias->dim[0] = bias->dim[1];
            bias->ndim = 1;
        }
}

static const json_t *config_of(const ft_artifact *artifact)
{
    return ft_artifact_get_header(artifact)->config;
}

static bool is_tied(const ft_artifact *artifact)
{
    return json_is_true(json_object_get(config_of(artifact), "tied"));
}

/* The number of tensors of the checkpoint whose shapes and values are in the artifact. */
static int count_same(const ft_artifact *artifact, tiny *t)
{
    int n = 0;
    char name[96];
    for (size_t i = 0; i < t->count; i++)
        n += converted_same(artifact, our_name(name, t->name[i], is_tied(artifact)), t, t->name[i]);
    return n;
}

/* ---- Every variant -------------------------------------------------------------------------- */

static ft_artifact *open_converted(const tiny *t)
{
    char path[128];
    ft_error err;
    ft_artifact *artifact = NULL;
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    ft_conversion *conversion = converted_open(t, &keep);
    if (conversion != NULL && conversion->n_unused > 0)
        bail_out("%s is unused", conversion->unused[0]);
    if (conversion != NULL && converted_write(conversion, path) == FT_OK &&
        ft_artifact_open(&artifact, path, FT_VERIFY_SHA256, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_conversion_close(conversion);
    return artifact;
}

static void test_variant(const json_t *variant)
{
    const char *name = json_string_value(json_object_get(variant, "name"));
    size_t copies = json_array_size(json_object_get(variant, "copies"));
    bool is_marian = strncmp(name, "marian", 6) == 0;
    tiny t;
    translator_make(&t, variant);
    ok(llama_is_same(&t, variant), "%s: the generated weights equal those given to transformers",
       name);
    llama_write(&t, variant);
    ft_artifact *a = open_converted(&t);
    if (!ok(a != NULL, "%s: the checkpoint is converted without unused tensors", name))
        bail_out("%s", converted_problem(0));
    flatten_bias(&t);
    is_int(count_same(a, &t), (long long) t.count, "%s: each tensor has the values of its source",
           name);
    is_int((long long) ft_artifact_count(a), (long long) (t.count - copies),
           "%s: embeddings are not stored twice", name);
    is_str(ft_artifact_get_header(a)->family, is_marian ? "marian" : "m2m100",
           "%s: the artifact has the family of its architecture", name);
    ft_artifact_close(a);
    tiny_remove(&t);
}

static void test_variants(void)
{
    size_t i;
    json_t *variant;
    json_array_foreach(variants, i, variant) test_variant(variant);
}

/* ---- Embeddings ---------------------------------------------------------------------------- */

static void test_words(void)
{
    static const char *const names[] = { ENCODER, DECODER };
    tiny t;
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        make(&t, "m2m");
        translator_copy_words(&t, names[i]);
        tiny_drop(&t, "model.shared.weight");
        ft_artifact *a = converted(&t, &keep);
        ok(a != NULL && converted_same(a, "embed.word", &t, names[i]) && is_tied(a),
           "word embeddings stored only as %s are converted", names[i]);
        ft_artifact_close(a);
        tiny_remove(&t);
    }
    make(&t, "m2m");
    translator_copy_words(&t, ENCODER);
    float *value = translator_copy_words(&t, DECODER)->data;
    value[97 * 64 - 1] += 1.0f;
    ok(converted(&t, &keep) == NULL, "a decoder with separate embeddings is refused");
    has(converted_problem(0),
        DECODER ": differs from model.shared.weight; separate embeddings of encoder and decoder "
                "are not supported",
        "the error names the separate decoder embeddings");
    tiny_drop(&t, "model.shared.weight");
    ok(converted(&t, &keep) == NULL, "separate embeddings are refused without a shared table");
    has(converted_problem(0), DECODER ": differs from " ENCODER, "the error names both embeddings");
    tiny_drop(&t, DECODER);
    tiny_add(&t, DECODER, FT_F32, 96, 64);
    ok(converted(&t, &keep) == NULL, "decoder embeddings of a different shape are refused");
    tiny_drop(&t, DECODER);
    tiny_drop(&t, ENCODER);
    ok(converted(&t, &keep) == NULL, "a model without word embeddings is refused");
    has(converted_problem(0), "model.shared.weight (embed.word): missing, expected shape [97, 64]",
        "the error names the shared word embeddings");
    tiny_remove(&t);
}

static void test_head(void)
{
    tiny t;
    make(&t, "m2m");
    float *value = translator_copy_words(&t, "lm_head.weight")->data;
    value[5] += 1.0f;
    ft_artifact *a = converted(&t, &keep);
    ok(a != NULL && !is_tied(a) && converted_same(a, "head.weight", &t, "lm_head.weight"),
       "a head that differs from the embeddings is stored as an untied head, despite "
       "tie_word_embeddings");
    ft_artifact_close(a);
    tiny_remove(&t);

    make(&t, "marian");
    tiny_drop(&t, "final_logits_bias");
    a = converted(&t, &keep);
    ok(a != NULL && ft_artifact_find(a, "head.bias") == NULL &&
           json_object_get(config_of(a), "head_bias") == NULL,
       "a Marian model without final_logits_bias is converted without a bias");
    ft_artifact_close(a);
    tiny_add(&t, "final_logits_bias", FT_F32, 2, 97);
    ok(converted(&t, &keep) == NULL, "a final_logits_bias of two rows is refused");
    has(converted_problem(0), "final_logits_bias (head.bias): shape [2, 97], expected [97]",
        "the error of a final_logits_bias of two rows names both shapes");
    tiny_remove(&t);
}

/* ---- Positions ------------------------------------------------------------------------------ */

/* Marian's position embeddings, as a checkpoint may store them. */
static ft_tensor *add_positions(tiny *t, ft_dtype dtype)
{
    const ft_config config = {
        .hidden = 64, .positions = 40, .padding_id = -1, .sinusoids = FT_SINUSOIDS_MARIAN
    };
    make(t, "marian");
    ft_tensor *table = tiny_add(t, POSITIONS, FT_F32, 40, 64);
    ft_sinusoids_write(table->data, &config);
    tiny_cast(table, dtype);
    return table;
}

static void test_positions(void)
{
    static const ft_dtype dtypes[] = { FT_F64, FT_F32, FT_F16, FT_BF16 };
    tiny t;
    for (size_t i = 0; i < FT_COUNT(dtypes); i++) {
        add_positions(&t, dtypes[i]);
        tiny_write(&t);
        ft_conversion *conversion = converted_open(&t, &keep);
        ok(conversion != NULL && conversion->n_unused == 0,
           "stored position embeddings in %s that equal the sinusoids are skipped",
           ft_dtype_name(dtypes[i]));
        ft_conversion_close(conversion);
        tiny_remove(&t);
    }
    float *value = add_positions(&t, FT_F32)->data;
    value[39 * 64 + 33] += 0.01f;
    ok(converted(&t, &keep) == NULL,
       "position embeddings that differ from the sinusoids are refused");
    has(converted_problem(0), POSITIONS ": ", "the error names the position embeddings");
    has(converted_problem(0), " at [39, 33], expected the sinusoid ",
        "the error names the indices of the value that differs");
    tiny_drop(&t, POSITIONS);
    tiny_add(&t, POSITIONS, FT_F32, 41, 64);
    ok(converted(&t, &keep) == NULL, "position embeddings of a different size are refused");
    has(converted_problem(0), POSITIONS ": shape [41, 64], expected [40, 64]",
        "the error of position embeddings of a different size names both shapes");
    tiny_drop(&t, POSITIONS);
    tiny_add(&t, POSITIONS, FT_I32, 40, 64);
    ok(converted(&t, &keep) == NULL, "integer position embeddings are refused");
    has(converted_problem(0), POSITIONS ": dtype I32, expected F32",
        "the error of integer position embeddings names the dtype");
    tiny_remove(&t);

    make(&t, "m2m");
    tiny_add(&t, "model.encoder.embed_positions.weights", FT_F32, 3, 64);
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    ok(conversion != NULL && conversion->n_unused == 0,
       "stored position embeddings of M2M100, which the model does not read, are skipped");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

/* The sinusoidal table, which no file stores, is the last of a model's weights. */
static void test_bound(const char *variant, int32_t rows, int32_t cols)
{
    tiny t;
    ft_error err;
    make(&t, variant);
    ft_artifact *a = converted(&t, &keep);
    if (a == NULL)
        bail_out("%s", converted_problem(0));
    char path[] = "model.ft";
    ft_model model = { .path = path, .artifact = a };
    model.family = ft_family_find(ft_artifact_get_header(a)->family);
    if (ft_config_from_json(&model.config, config_of(a), FT_KIND_ENCODER_DECODER, path, &err) !=
            FT_OK ||
        ft_model_bind(&model, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    const ft_weight *last = &model.weight[model.nweight - 1];
    float *row = malloc((size_t) cols * sizeof *row);
    ft_sinusoids_write_rows(row, &model.config, rows - 1, 1);
    ok(strcmp(last->name, FT_SINUSOIDS_WEIGHT) == 0 && last->dtype == FT_F32 &&
           last->rows == (size_t) rows && last->cols == (size_t) cols &&
           memcmp((const float *) last->data + (rows - 1) * cols, row,
                  (size_t) cols * sizeof *row) == 0,
       "%s: the model has a sinusoidal table of %d positions and %d columns", variant, rows, cols);
    free(row);
    free(model.weight);
    free(model.quantizable);
    free(model.quantized);
    free(model.positions);
    ft_artifact_close(a);
    tiny_remove(&t);
}

/* ---- Copied files -------------------------------------------------------------------------- */

static const ft_convert_options ids_only = { .no_tokenizer = true };

static bool carries(const ft_artifact *artifact, const char *file)
{
    return artifact != NULL && ft_artifact_find_file(artifact, file) != NULL;
}

static void test_files(void)
{
    tiny t;
    make(&t, "m2m");
    tiny_write_file(&t, "generation_config.json",
                    "{\"decoder_start_token_id\": 7, \"forced_bos_token_id\": [9]}");
    tiny_write_file(&t, "vocab.json", "{\"one\": 0}");
    ft_artifact *a = converted(&t, &keep);
    ok(carries(a, "vocab.json") && carries(a, "generation_config.json"),
       "vocab.json and generation_config.json are copied into the artifact");
    ok(a != NULL && json_integer_value(json_object_get(config_of(a), "start_id")) == 7 &&
           json_integer_value(json_object_get(config_of(a), "first_id")) == 9,
       "the start tokens of generation_config.json are read");
    ft_artifact_close(a);
    tiny_write_file(&t, "sentencepiece.bpe.model", "");
    ok(converted(&t, &keep) == NULL,
       "a translator with a malformed SentencePiece model is refused");
    has(converted_problem(0), "found 0 pieces of type UNKNOWN in 0, expected one",
        "the error tells what is wrong with the SentencePiece model");
    a = converted(&t, &ids_only);
    ok(a != NULL && !carries(a, "vocab.json") && !carries(a, "tokenizer.json"),
       "with no_tokenizer neither vocab.json nor the SentencePiece model is read");
    ft_artifact_close(a);
    char *json = edited(tiny_bpe_json, "", "");
    tiny_write_file(&t, "tokenizer.json", json);
    free(json);
    a = converted(&t, &keep);
    ok(carries(a, "tokenizer.json") && !carries(a, "vocab.json"),
       "vocab.json is not copied beside tokenizer.json");
    ft_artifact_close(a);
    tiny_write_file(&t, "generation_config.json", "{\"decoder_start_token_id\": 97}");
    ok(converted(&t, &keep) == NULL, "a start token outside the vocabulary is refused");
    has(converted_problem(0),
        "generation_config.json: decoder_start_token_id: found 97, expected an integer from 0 to "
        "96",
        "the error of a wrong start token names generation_config.json");
    tiny_write_file(&t, "generation_config.json", "[]");
    ok(converted(&t, &keep) == NULL, "a generation_config.json that is not an object is refused");
    tiny_write_file(&t, "generation_config.json", "{}");
    tiny_write_file(&t, "modules.json", "[]");
    ok(converted(&t, &keep) == NULL,
       "sentence-transformers modules of an encoder-decoder are refused");
    has(converted_problem(0), "modules.json: embeddings of sentences",
        "the error names modules.json");
    tiny_remove(&t);
}

/* ---- Refused ------------------------------------------------------------------------------- */

/* Removes a tensor, or changes its shape, and converts. */
static void refused(const char *variant, const char *tensor, int rows, int cols, const char *why)
{
    tiny t;
    make(&t, variant);
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
    refused("m2m", "model.decoder.layer_norm.bias", 0, 0,
            "model.decoder.layer_norm.bias (decoder.norm.bias): missing, expected shape [64]");
    refused("m2m-uneven", "model.encoder.layers.0.fc1.weight", 100, 48,
            "fc1.weight (encoder.layer.0.ffn.up.weight): shape [100, 48], expected [36, 48]");
    refused("m2m-uneven", "model.decoder.layers.2.fc2.weight", 48, 36,
            "fc2.weight (decoder.layer.2.ffn.down.weight): shape [48, 36], expected [48, 100]");
    refused("m2m-untied", "lm_head.weight", 0, 0,
            "lm_head.weight (head.weight): missing, expected shape [97, 64]");
    refused("marian", "model.decoder.layers.1.encoder_attn.k_proj.bias", 0, 0,
            "k_proj.bias (decoder.layer.1.cross.k.bias): missing, expected shape [64]");
    refused("marian-uneven", "model.encoder.layers.1.final_layer_norm.weight", 32, 0,
            "norm.weight (encoder.layer.1.ffn.norm.weight): shape [32], expected [64]");
}

int main(void)
{
    variants = golden_json("translator-variants.json");
    test_variants();
    test_words();
    test_head();
    test_positions();
    test_bound("m2m", 42, 64);
    test_bound("m2m-uneven", 46, 48);
    test_bound("marian", 40, 64);
    test_files();
    test_refused();
    json_decref(variants);
    return done_testing();
}
