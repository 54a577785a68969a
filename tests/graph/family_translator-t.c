/*
 * family_translator-t.c - M2M100 and Marian: names and shapes of weights, JSON configurations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"
#include "runtime/mem.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/models/family.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* All sizes differ, so that a test detects a wrong one. */
static ft_config translator(void)
{
    return (ft_config){
        .kind = FT_KIND_ENCODER_DECODER,
        .layers = 1,
        .hidden = 24,
        .heads = 6,
        .ffn = 28,
        .vocabulary = 50,
        .positions = 302,
        .position_offset = 2,
        .padding_id = 1,
        .eps = 1e-5f,
        .activation = FT_ACT_RELU,
        .kv_heads = 6,
        .head_size = 4,
        .sinusoids = FT_SINUSOIDS_M2M100,
        .encoder_layers = 2,
        .encoder_heads = 3,
        .encoder_ffn = 36,
        .decoder_start_id = 2,
        .pad_id = 1,
        .forced_bos_id = -1,
        .forced_eos_id = -1,
        .tied = true,
    };
}

/* ---- Weights ------------------------------------------------------------------------------ */

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void test_names(void)
{
    static const char *const expected[] = {
        "embed.word table [50, 24] model.shared.weight\n",
        "encoder.layer.0.attn.q.weight linear [24, 24] model.encoder.layers.0.self_attn.q_proj."
        "weight\n",
        "encoder.layer.1.attn.out.bias vector [24] "
        "model.encoder.layers.1.self_attn.out_proj.bias\n",
        "encoder.layer.1.ffn.up.weight linear [36, 24] model.encoder.layers.1.fc1.weight\n",
        "encoder.layer.1.ffn.down.weight linear [24, 36] model.encoder.layers.1.fc2.weight\n",
        "encoder.layer.1.ffn.norm.bias vector [24] model.encoder.layers.1.final_layer_norm.bias\n",
        "decoder.layer.0.attn.norm.weight vector [24] model.decoder.layers.0.self_attn_layer_norm."
        "weight\n",
        "decoder.layer.0.cross.k.weight linear [24, 24] model.decoder.layers.0.encoder_attn.k_proj."
        "weight\n",
        "decoder.layer.0.cross.norm.weight vector [24] "
        "model.decoder.layers.0.encoder_attn_layer_norm.weight\n",
        "decoder.layer.0.ffn.up.weight linear [28, 24] model.decoder.layers.0.fc1.weight\n",
    };
    static const ft_architecture *const kin[] = { &ft_architecture_m2m100,
                                                  &ft_architecture_marian };
    ft_config config = translator();
    for (size_t f = 0; f < FT_COUNT(kin); f++) {
        char *text = weights_text(kin[f]->family, kin[f], &config), *at = text;
        for (size_t i = 0; i < FT_COUNT(expected) && at != NULL; i++)
            at = strstr(at, expected[i]);
        ok(at != NULL, "%s: encoder and decoder weights are listed in execution order",
           kin[f]->model_type);
        is_int(lines_of(text), 1 + 2 * 16 + 26 + (f == 0 ? 4 : 0),
               "%s: encoder and decoder have separate numbers of layers", kin[f]->model_type);
        ok((strstr(text, "encoder.norm.") != NULL) == (f == 0), "%s: only m2m100 has final norms",
           kin[f]->model_type);
        free(text);
    }
    config.tied = false;
    config.head_bias = true;
    char *text = weights_text(&ft_family_marian, &ft_architecture_marian, &config);
    has(text,
        "head.weight dense [50, 24] lm_head.weight\nhead.bias vector [50] final_logits_bias\n",
        "an untied head has a weight and that of Marian also a bias");
    free(text);
    text = weights_text(&ft_family_m2m100, &ft_architecture_m2m100, &config);
    ok(strstr(text, "head.bias") == NULL, "the head of M2M100 has no bias");
    free(text);
}

static void test_sizes(void)
{
    ft_config config = translator();
    is_int(ft_config_size(&config, "encoder_layers") * 100 + ft_config_size(&config, "encoder_ffn"),
           236, "ft_config_size() maps names to the sizes of the encoder");
    is_int(ft_config_size(&config, "encoder_heads*encoder_head_size"), 24,
           "ft_config_size() multiplies the number and the size of encoder heads");
    is_int(ft_config_size(&config, "head_bias"), 0, "an absent bias of the logits has the size 0");
    ok(ft_config_is_decoder(&config) && ft_config_is_encoder_decoder(&config),
       "a translator configuration is a decoder and an encoder-decoder");
    config = test_bert_config(8, 2, 12);
    ok(!ft_config_is_decoder(&config) && !ft_config_is_encoder_decoder(&config),
       "an encoder configuration is neither a decoder nor an encoder-decoder");
    config.kind = FT_KIND_DECODER;
    ok(ft_config_is_decoder(&config) && !ft_config_is_encoder_decoder(&config),
       "a decoder configuration is a decoder but not an encoder-decoder");
}

/* Each half has heads of a size of its own. */
static void test_head_size(void)
{
    ft_config config = translator();
    config.encoder_heads = 5;
    config.encoder_head_size = 3;
    config.heads = config.kv_heads = 7;
    char *text = weights_text(&ft_family_m2m100, NULL, &config);
    has(text, "encoder.layer.0.attn.out.weight linear [24, 15]\n",
        "encoder heads have a separate size");
    has(text, "decoder.layer.0.attn.k.weight linear [28, 24]\n",
        "decoder heads have a separate size");
    has(text, "decoder.layer.0.cross.v.weight linear [28, 24]\n",
        "cross-attention heads have the size of decoder heads");
    free(text);
    ok(config_survives(&config), "the head sizes of encoder and decoder survive a JSON round trip");
}

static void test_wrong_family(void)
{
    ft_config encoder = test_bert_config(8, 2, 12);
    ft_weight_spec *spec;
    size_t count;
    ft_error err;
    is_int(ft_family_weights(&ft_family_m2m100, NULL, &encoder, &spec, &count, &err), FT_EFORMAT,
           "ft_family_weights() refuses an encoder configuration for m2m100");
    has(err.text, "m2m100: encoder.layer.#.attn.q would have no layers",
        "the error names the weight that would have no layers");
    ok(spec == NULL && count == 0, "ft_family_weights() returns no weights when it fails");
}

/* ---- Configurations as JSON --------------------------------------------------------------- */

static ft_config variant(unsigned bits)
{
    ft_config config = translator();
    config.sinusoids = bits & 1 ? FT_SINUSOIDS_MARIAN : FT_SINUSOIDS_M2M100;
    config.padding_id = bits & 1 ? -1 : 1;
    config.position_offset = config.padding_id + 1;
    config.scale_embeddings = bits & 2;
    config.head_bias = bits & 4;
    config.tied = bits & 8;
    config.decoder_start_id = bits & 16 ? 0 : 49;
    config.forced_bos_id = bits & 32 ? 0 : -1;
    config.forced_eos_id = bits & 64 ? 31 : -1;
    config.num_banned = (int32_t) (bits % (FT_MAX_BANNED + 1));
    for (int i = 0; i < config.num_banned; i++)
        config.banned[i] = 49 - i * 7;
    return config;
}

static void test_round_trip(void)
{
    int lost = 0;
    for (unsigned bits = 0; bits < 128; bits++) {
        ft_config config = variant(bits);
        lost += !config_survives(&config);
    }
    is_int(lost, 0, "every field of an encoder-decoder configuration survives a JSON round trip");
}

static void refused(const char *patch, const char *why)
{
    ft_config config = variant(8 + 2);
    config_refused(&config, patch, why);
}

static void test_refused(void)
{
    refused("{\"sinusoids\": \"learned\"}",
            "sinusoids: found \"learned\", expected a name that this version knows");
    refused("{\"sinusoids\": null, \"kv_heads\": null, \"head_size\": null, \"tied\": null}",
            "an encoder-decoder without sinusoids");
    refused("{\"sinusoids\": \"none\"}", "an encoder-decoder without sinusoids");
    refused("{\"rope\": \"default\", \"rope_theta\": 10000}", "both sinusoids and rope");
    refused("{\"rope_theta\": 10000}", "an encoder-decoder with members of rotary decoders");
    refused("{\"qkv_bias\": true}", "an encoder-decoder with members of rotary decoders");
    refused("{\"encoder_layers\": null}",
            "encoder_layers: found nothing, expected an integer from 1 to 1000");
    refused("{\"encoder_layers\": 0}",
            "encoder_layers: found 0, expected an integer from 1 to 1000");
    refused("{\"encoder_heads\": 65537}",
            "encoder_heads: found 65537, expected an integer from 1 to 65536");
    refused("{\"encoder_heads\": 5}", "5 heads do not divide 24 columns");
    refused("{\"encoder_ffn\": 2.0}",
            "encoder_ffn: found 2.0, expected an integer from 1 to 65536");
    refused("{\"kv_heads\": 3}", "3 key/value heads of 4 columns, expected 6 of 4");
    refused("{\"head_size\": null}", "6 key/value heads of 0 columns, expected 6 of 4");
    refused("{\"heads\": 7}", "6 key/value heads of 4 columns, expected 7 of 4");
    refused("{\"heads\": 7, \"head_size\": null}", "7 heads do not divide 24 columns");
    refused(
        "{\"hidden\": 9, \"heads\": 1, \"encoder_heads\": 1, \"kv_heads\": 1, \"head_size\": 9}",
        "9 columns for sinusoids, expected an even number of at least 4");
    refused("{\"positions\": 16777216}",
            "sinusoids of 16777216 positions and 24 columns, at most 268435456 elements");
    refused("{\"start_id\": null}",
            "start_id: found nothing, expected an integer from 0 to 16777216");
    refused("{\"start_id\": -1}", "start_id: found -1, expected an integer from 0 to 16777216");
    refused("{\"start_id\": 50}", "start_id 50 is not below the vocabulary size 50");
    refused("{\"start_id\": 1}",
            "the decoder start token is 1, which is also the padding token that positions skip");
    refused("{\"pad_id\": 50}", "pad_id 50 is not below the vocabulary size 50");
    refused("{\"first_id\": 50}", "first_id 50 is not below the vocabulary size 50");
    refused("{\"last_id\": -2}", "last_id: found -2, expected an integer from -1 to 16777216");
    refused("{\"banned\": [1, 50]}", "banned: found 50, expected an integer from 0 to 49");
    refused("{\"banned\": [\"1\"]}", "banned: found \"1\", expected an integer from 0 to 49");
    refused("{\"banned\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "banned: 9 ids, expected at most 8");
    refused("{\"banned\": 1}", "banned: found 1, expected an array");
    refused("{\"scale_words\": 1}", "scale_words: found 1, expected true or false");
    refused("{\"head_bias\": \"yes\"}", "head_bias: found \"yes\", expected true or false");
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
    ft_config config = translator();
    test_words(&config,
               "2 + 1 layers, hidden 24, 3 + 6 heads, ffn 36 + 28, vocabulary 50, 300 positions, "
               "sinusoids closed, start 2, pad 1, tied head",
               "ft_config_write() describes an encoder-decoder");
    config = variant(1 + 2 + 4 + 8 + 16 + 32 + 64);
    config.encoder_heads = config.heads;
    config.encoder_ffn = config.ffn;
    config.banned[config.num_banned++] = 42;
    test_words(
        &config,
        "2 + 1 layers, hidden 24, 6 heads, ffn 28, vocabulary 50, 302 positions, sinusoids "
        "open, scaled embeddings, start 0, pad 1, forced bos 0, forced eos 31, banned 49, and "
        "42, tied head with bias",
        "ft_config_write() describes every option of an encoder-decoder");
}

int main(void)
{
    test_names();
    test_sizes();
    test_head_size();
    test_wrong_family();
    test_round_trip();
    test_refused();
    test_text();
    return done_testing();
}
