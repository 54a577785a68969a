/*
 * family_llama-t.c - Llama, Mistral, Qwen2: names and shapes of weights, JSON configurations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/models/family.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* All sizes differ, so that a test detects a wrong one: 6 heads of 4 columns, 2 KV heads. */
static ft_config decoder(void)
{
    return (ft_config){
        .kind = FT_KIND_DECODER,
        .layers = 1,
        .hidden = 20,
        .heads = 6,
        .ffn = 28,
        .vocabulary = 50,
        .positions = 300,
        .padding_id = -1,
        .eps = 1e-5f,
        .activation = FT_ACT_SILU,
        .kv_heads = 2,
        .head_size = 4,
        .rope = FT_ROPE_DEFAULT,
        .rope_theta = 500000,
    };
}

/* ---- Weights ------------------------------------------------------------------------------ */

static const char plain[] =
    "embed.word table [50, 20] ~embed_tokens.weight\n"
    "layer.0.attn.norm.weight vector [20] ~layers.0.input_layernorm.weight\n"
    "layer.0.attn.q.weight linear [24, 20] ~layers.0.self_attn.q_proj.weight\n"
    "layer.0.attn.k.weight linear [8, 20] ~layers.0.self_attn.k_proj.weight\n"
    "layer.0.attn.v.weight linear [8, 20] ~layers.0.self_attn.v_proj.weight\n"
    "layer.0.attn.out.weight linear [20, 24] ~layers.0.self_attn.o_proj.weight\n"
    "layer.0.ffn.norm.weight vector [20] ~layers.0.post_attention_layernorm.weight\n"
    "layer.0.ffn.gate.weight linear [28, 20] ~layers.0.mlp.gate_proj.weight\n"
    "layer.0.ffn.up.weight linear [28, 20] ~layers.0.mlp.up_proj.weight\n"
    "layer.0.ffn.down.weight linear [20, 28] ~layers.0.mlp.down_proj.weight\n"
    "norm.weight vector [20] ~norm.weight\n"
    "head.weight dense [50, 20] lm_head.weight\n";

static void test_names(void)
{
    static const ft_architecture *const kin[] = { &ft_architecture_llama, &ft_architecture_mistral,
                                                  &ft_architecture_qwen2 };
    ft_config config = decoder();
    for (size_t i = 0; i < 3; i++) {
        char *text = weights_text(&ft_family_llama, kin[i], &config);
        is_str(text, plain, "the weights of %s have separate numbers of query and KV heads",
               kin[i]->model_type);
        free(text);
    }
    config.qk_norm = true;
    char *normed = weights_text(&ft_family_llama, &ft_architecture_qwen3, &config);
    has(normed,
        "layer.0.attn.q_norm.weight vector [4] ~layers.0.self_attn.q_norm.weight\n"
        "layer.0.attn.k_norm.weight vector [4] ~layers.0.self_attn.k_norm.weight\n"
        "layer.0.attn.out.weight",
        "Qwen3 heads share the weights of their Q and K norms");
    free(normed);
    config.qk_norm = false;
    config.tied = true;
    char *text = weights_text(&ft_family_llama, &ft_architecture_llama, &config);
    ok(strstr(text, "head.weight") == NULL && strstr(text, "norm.weight vector [20] ~norm"),
       "a tied output head has no weight");
    free(text);
    config.layers = 3;
    text = weights_text(&ft_family_llama, &ft_architecture_llama, &config);
    const char *last = strstr(text, "layer.2.ffn.down.weight");
    ok(last != NULL && strstr(last, "layer.") == last && strstr(last + 1, "layer.") == NULL &&
           strstr(last, "norm.weight") != NULL,
       "layers are listed in order and the final norm follows them");
    free(text);
}

/* The number of biases of a part. */
static int biases(const char *text, const char *part)
{
    char wanted[64];
    int n = 0;
    snprintf(wanted, sizeof wanted, "layer.0.%s.bias vector ", part);
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
        n++;
    return n;
}

static void test_biases(void)
{
    static const struct {
        const char *what, *parts[4];
        size_t field;
    } switches[] = {
        { "queries, keys and values",
          { "attn.q", "attn.k", "attn.v" },
          offsetof(ft_config, qkv_bias) },
        { "the output of attention", { "attn.out" }, offsetof(ft_config, out_bias) },
        { "the feed-forward", { "ffn.gate", "ffn.up", "ffn.down" }, offsetof(ft_config, ffn_bias) },
    };
    for (size_t i = 0; i < 3; i++) {
        ft_config config = decoder();
        int found = 0, expected = 0, all = 0;
        *(bool *) (void *) ((char *) &config + switches[i].field) = true;
        char *text = weights_text(&ft_family_llama, &ft_architecture_llama, &config);
        for (const char *const *part = switches[i].parts; *part != NULL; part++, expected++)
            found += biases(text, *part);
        for (const char *at = text; (at = strstr(at, ".bias vector")) != NULL; at++)
            all++;
        ok(found == expected && all == expected,
           "a bias option adds biases to %s and to nothing else", switches[i].what);
        free(text);
    }
    ft_config config = decoder();
    config.qkv_bias = true;
    char *text = weights_text(&ft_family_llama, &ft_architecture_qwen2, &config);
    has(text, "layer.0.attn.k.bias vector [8] ~layers.0.self_attn.k_proj.bias\n",
        "a bias has as many elements as its matrix has rows");
    free(text);
}

static void test_sizes(void)
{
    static const char *const products[] = { "heads*head_size", "kv_heads*head_size", "qkv_bias",
                                            "out_bias",        "ffn_bias",           "untied" };
    ft_config config = decoder();
    char found[256] = "";
    config.out_bias = true;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        sprintf(found + strlen(found), "%s=%lld ", products[i],
                (long long) ft_config_size(&config, products[i]));
    is_str(found,
           "heads*head_size=24 kv_heads*head_size=8 qkv_bias=0 out_bias=1 ffn_bias=0 untied=1 ",
           "ft_config_size() maps names to the sizes of a decoder");
}

/* Sizes that the family needs and the configuration lacks give weights without elements. */
static void test_wrong_family(void)
{
    ft_config encoder = test_bert_config(8, 2, 12);
    ft_weight_spec *spec;
    size_t count;
    ft_error err;
    is_int(ft_family_weights(&ft_family_llama, NULL, &encoder, &spec, &count, &err), FT_EFORMAT,
           "ft_family_weights() refuses an encoder configuration for llama");
    has(err.text, "llama: layer.0.attn.k.weight would have no elements",
        "the error names the weight that would have no elements");
    ok(spec == NULL && count == 0, "ft_family_weights() returns no weights when it fails");
}

/* ---- Configurations as JSON --------------------------------------------------------------- */

/* Every kind of scaling, and each of 6 flags and a window on and off. */
static ft_config variant(ft_rope rope, unsigned bits)
{
    ft_config config = decoder();
    ft_rope_use use = ft_rope_uses(rope);
    config.layers = 7;
    config.rope = rope;
    config.rope_theta = 1e6 / 3.0;
    config.rope_factor = use.factor ? 8.1 : 0.0;
    config.rope_low = use.band ? 1.1 : 0.0;
    config.rope_high = use.band ? 4.3 : 0.0;
    config.rope_positions = use.positions ? 8192 : 0;
    config.qkv_bias = bits & 1;
    config.out_bias = bits & 2;
    config.ffn_bias = bits & 4;
    config.tied = bits & 8;
    config.window = bits & 16 ? 11 : 0;
    config.window_first_layer = bits & 16 ? (int32_t) (bits % 7) : 0;
    config.qk_norm = bits & 32;
    config.rotated = bits & 64;
    return config;
}

static void test_round_trip(void)
{
    int lost = 0;
    for (int rope = FT_ROPE_DEFAULT; rope <= FT_ROPE_DYNAMIC; rope++)
        for (unsigned bits = 0; bits < 128; bits++) {
            ft_config config = variant((ft_rope) rope, bits);
            lost += !config_survives(&config);
        }
    is_int(lost, 0, "every field of a decoder configuration survives a JSON round trip");

    ft_config encoder = test_bert_config(8, 2, 12);
    json_t *json = ft_config_to_json(&encoder);
    is_int((long long) json_object_size(json), 17,
           "the JSON of an encoder configuration has no decoder members");
    json_decref(json);
}

static void refused(const char *patch, const char *why)
{
    ft_config config = variant(FT_ROPE_LLAMA3, 16);
    config_refused(&config, patch, why);
}

static void test_refused(void)
{
    refused("{\"kv_heads\": 4}", "4 key/value heads do not divide 6 heads");
    refused("{\"kv_heads\": null}", "0 key/value heads of 4 columns, expected at least 1");
    refused("{\"head_size\": null}", "2 key/value heads of 0 columns, expected at least 1");
    refused("{\"kv_heads\": 65537}", "kv_heads: found 65537, expected an integer from 0 to 65536");
    refused("{\"kv_heads\": 2.0}", "kv_heads: found 2.0, expected an integer from 0 to 65536");
    refused("{\"head_size\": -4}", "head_size: found -4, expected an integer from 0 to 65536");
    refused("{\"head_size\": 20000}", "6 heads of 20000 columns, at most 65536 columns in total");
    refused("{\"head_size\": 5}", "heads of 5 columns, which rope llama3 cannot rotate");
    refused("{\"rope\": \"dynamic\", \"rope_low\": null, \"rope_high\": null, \"head_size\": 2}",
            "heads of 2 columns, which rope dynamic cannot rotate");
    refused("{\"window\": -1}", "window: found -1, expected an integer from 0 to 16777216");
    refused("{\"window_from\": 7}", "window_from is 7, but there are only 7 layers");
    refused("{\"window\": null, \"window_from\": 1}", "window_from is 1, but window is 0");
    refused("{\"rope\": \"yarn\"}",
            "rope: found \"yarn\", expected a name that this version knows");
    refused("{\"rope\": 3}", "rope: found 3, expected a name that this version knows");
    refused("{\"rope\": null}", "a decoder without rope");
    refused("{\"rope\": \"default\"}", "rope default with rope_factor");
    refused("{\"rope\": \"linear\"}", "rope linear with rope_low");
    refused("{\"rope_factor\": null}", "rope llama3 without rope_factor");
    refused("{\"rope_factor\": 0.5}", "rope_factor: found 0.5, expected a number from 1 to 1e+06");
    refused("{\"rope_factor\": \"8\"}",
            "rope_factor: found \"8\", expected a number from 1 to 1e+06");
    refused("{\"rope_theta\": null}", "rope llama3 without rope_theta");
    refused("{\"rope_theta\": 1e13}", "rope_theta: found 1e13, expected a number from 1 to 1e+12");
    refused("{\"rope_low\": null}", "rope llama3 without rope_low");
    refused("{\"rope_high\": null}", "rope llama3 without rope_high");
    refused("{\"rope_high\": 1.1}", "rope_low 1.1 is not below rope_high 1.1");
    refused("{\"rope_positions\": null}", "rope llama3 without rope_positions");
    refused("{\"rope_positions\": 16777217}",
            "rope_positions: found 16777217, expected an integer from 0 to 16777216");
    refused("{\"tied\": 1}", "tied: found 1, expected true or false");
    refused("{\"rotated\": 1}", "rotated: found 1, expected true or false");
    refused("{\"rotated\": true, \"embedding\": \"mean\"}",
            "an embedding of a rotated residual stream");
    refused("{\"qkv_bias\": \"yes\"}", "qkv_bias: found \"yes\", expected true or false");
}

/* ---- Descriptions ------------------------------------------------------------------------- */

static void test_words(const ft_config *config, const char *expected, const char *sentence)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    ft_config_write(config, file);
    if (file == NULL || fclose(file) != 0)
        bail_out("no memory for a text");
    is_str(text, expected, "%s", sentence);
    free(text);
}

static void test_text(void)
{
    ft_config config = decoder();
    test_words(&config,
               "1 layers, hidden 20, 6 heads of 4 (2 key/value heads), ffn 28, vocabulary 50, "
               "300 positions, rope theta 500000",
               "ft_config_write() describes a decoder");
    config = variant(FT_ROPE_LLAMA3, 8 + 16);
    test_words(&config,
               "7 layers, hidden 20, 6 heads of 4 (2 key/value heads), ffn 28, vocabulary 50, "
               "300 positions, rope theta 333333, scaled llama3 by 8.1 beyond 8192, window "
               "of 11 from layer 3 on, tied head",
               "ft_config_write() describes RoPE scaling, the sliding window and the tied head");
    config.rotated = true;
    config.tied = false;
    test_words(&config,
               "7 layers, hidden 20, 6 heads of 4 (2 key/value heads), ffn 28, vocabulary 50, "
               "300 positions, rope theta 333333, scaled llama3 by 8.1 beyond 8192, window "
               "of 11 from layer 3 on, rotated",
               "ft_config_write() says that the residual stream is rotated");
    config = test_bert_config(8, 2, 12);
    test_words(&config,
               "2 layers, hidden 8, 2 heads, ffn 12, vocabulary 50, 300 positions, 3 labels, "
               "single_label_classification, embedding by mean, normalized",
               "ft_config_write() describes an encoder");
}

int main(void)
{
    test_names();
    test_biases();
    test_sizes();
    test_wrong_family();
    test_round_trip();
    test_refused();
    test_text();
    return done_testing();
}
