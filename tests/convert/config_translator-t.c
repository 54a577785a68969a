/*
 * config_translator-t.c - config.json and generation_config.json of M2M100 and Marian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/hf_config.h"
#include "convert/config/generation.h"
#include "kernels/op.h"
#include "runtime/mem.h"
#include "tests/lib/patched.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static ft_messages *fresh(void)
{
    static ft_messages problems;
    memset(&problems, 0, sizeof problems);
    return &problems;
}

static const char m2m[] = "m2m100-418m", nllb[] = "nllb-200-600m", opus[] = "opus-mt-en-de";

/* All fields of an encoder-decoder configuration on one line. */
static const char *describe(const ft_hf_model *origin)
{
    static char text[400];
    const ft_config *c = &origin->config;
    int used =
        snprintf(text, sizeof text,
                 "%s L%d+%d H%d A%d+%d/%dx%d F%d+%d V%d P%d from %d %g %s, %s, start %d, pad "
                 "%d/%d, first %d, last %d%s%s",
                 origin->architecture->model_type, c->encoder_layers, c->layers, c->hidden,
                 c->encoder_heads, c->heads, c->kv_heads, c->head_size, c->encoder_ffn, c->ffn,
                 c->vocabulary, c->positions, c->position_offset, (double) c->eps,
                 ft_activation_name(c->activation), ft_sinusoids_name(c->sinusoids),
                 c->decoder_start_id, c->pad_id, c->padding_id, c->forced_bos_id, c->forced_eos_id,
                 c->scale_embeddings ? ", scaled" : "", c->tied ? ", tied" : "");
    for (int i = 0; i < c->num_banned; i++)
        used += snprintf(text + used, sizeof text - (size_t) used, ", not %d", c->banned[i]);
    return text;
}

/* Reads both files as the converter does; NULL for `generation` means that the file is missing. */
static const char *read_both(ft_hf_model *origin, const char *file, const char *patch,
                             const char *generation, const char *const *ignored,
                             ft_messages *problems)
{
    char *text = config_patched(file, patch);
    ft_text_source config = { "config.json", text, strlen(text) };
    ft_text_source other = { "generation_config.json", generation,
                             generation == NULL ? 0 : strlen(generation) };
    if (ft_hf_model_read(origin, text, config.bytes, config.name, ignored, problems) == FT_OK)
        ft_generation_config_read(origin, &config, generation == NULL ? NULL : &other, ignored,
                                  problems);
    free(text);
    return problems->count == 0 ? describe(origin) : problems->message[0].text;
}

/* ---- Accepted ------------------------------------------------------------------------------ */

#define M2M_SIZES                                                                                  \
    "m2m_100 L12+12 H1024 A16+16/16x64 F4096+4096 V128112 P1026 from 2 1e-05 relu, closed, "
#define OPUS_SIZES "marian L6+6 H512 A8+8/8x64 F2048+2048 V58101 P512 from 0 1e-05 silu, open, "

static const struct {
    const char *file, *patch, *generation, *expected;
} good[] = {
    { m2m, "{}", NULL, M2M_SIZES "start 2, pad 1/1, first -1, last -1, scaled, tied" },
    { nllb, "{}",
      "{\"bos_token_id\": 0, \"decoder_start_token_id\": 2, \"eos_token_id\": 2,"
      " \"max_length\": 200, \"pad_token_id\": 1, \"transformers_version\": \"4.27.0\"}",
      "m2m_100 L12+12 H1024 A16+16/16x64 F4096+4096 V256206 P1026 from 2 1e-05 relu, closed, start "
      "2, pad 1/1, first -1, last -1, scaled, tied" },
    { opus, "{}", NULL,
      OPUS_SIZES "start 58100, pad 58100/-1, first -1, last 0, scaled, tied, not 58100" },

    /* Different encoder and decoder, and absent keys */
    { m2m,
      "{\"encoder_layers\": 3, \"num_hidden_layers\": 3, \"decoder_layers\": 5, \"d_model\": 96,"
      " \"encoder_attention_heads\": 6, \"decoder_attention_heads\": 3, \"encoder_ffn_dim\": 7,"
      " \"pad_token_id\": 9, \"activation_function\": \"gelu\", \"scale_embedding\": false,"
      " \"tie_word_embeddings\": false, \"num_attention_heads\": 6, \"hidden_size\": 96}",
      NULL,
      "m2m_100 L3+5 H96 A6+3/3x32 F7+4096 V128112 P1034 from 10 1e-05 gelu, closed, start 2, pad "
      "9/9, first -1, last -1" },
    { m2m,
      "{\"architectures\": null, \"activation_function\": \"REMOVE\", \"pad_token_id\": \"REMOVE\","
      " \"decoder_start_token_id\": \"REMOVE\", \"scale_embedding\": \"REMOVE\","
      " \"num_hidden_layers\": null, \"is_encoder_decoder\": \"REMOVE\"}",
      NULL, M2M_SIZES "start 2, pad 1/1, first -1, last -1, scaled, tied" },
    { opus,
      "{\"activation_function\": \"REMOVE\", \"scale_embedding\": \"REMOVE\", \"bad_words_ids\":"
      " null, \"forced_eos_token_id\": \"REMOVE\", \"pad_token_id\": \"REMOVE\","
      " \"decoder_start_token_id\": \"REMOVE\", \"decoder_vocab_size\": null}",
      NULL,
      "marian L6+6 H512 A8+8/8x64 F2048+2048 V58101 P512 from 0 1e-05 gelu, open, start 58100, pad "
      "58100/-1, first -1, last 0, tied" },

    /* Start and end tokens in either file */
    { m2m, "{\"forced_bos_token_id\": 77, \"forced_eos_token_id\": [2]}", NULL,
      M2M_SIZES "start 2, pad 1/1, first 77, last 2, scaled, tied" },
    { m2m, "{\"forced_bos_token_id\": 77, \"bad_words_ids\": [[4]]}",
      "{\"decoder_start_token_id\": 5, \"pad_token_id\": 3, \"forced_eos_token_id\": 6}",
      M2M_SIZES "start 5, pad 3/1, first -1, last 6, scaled, tied" },
    { m2m, "{}", "{\"bos_token_id\": 8}",
      M2M_SIZES "start 8, pad 1/1, first -1, last -1, scaled, tied" },
    { m2m, "{}", "{}", M2M_SIZES "start 2, pad 1/1, first -1, last -1, scaled, tied" },
    { opus, "{}",
      "{\"bad_words_ids\": [[58100], [0], [7], [58100]], \"suppress_tokens\": [9, 7],"
      " \"eos_token_id\": [5, 0], \"num_beams\": 6, \"encoder_repetition_penalty\": 1.0}",
      OPUS_SIZES "start 58100, pad 58100/-1, first -1, last -1, scaled, tied, not 58100, not 7, "
                 "not 9" },
    { opus, "{\"eos_token_id\": null}", "{\"eos_token_id\": 3}",
      OPUS_SIZES "start 58100, pad 58100/-1, first -1, last -1, scaled, tied" },
};

static void test_good(void)
{
    for (size_t i = 0; i < FT_COUNT(good); i++) {
        ft_hf_model origin;
        const char *found =
            read_both(&origin, good[i].file, good[i].patch, good[i].generation, NULL, fresh());
        is_str(found, good[i].expected, "%s with %s and %s is accepted", good[i].file,
               good[i].patch, good[i].generation == NULL ? "no other file" : good[i].generation);
    }
}

/* ---- Refused ------------------------------------------------------------------------------- */

static const struct {
    const char *file, *patch, *generation;
    ft_status status;
    const char *problem;
} bad[] = {
    /* Architecture */
    { m2m, "{\"architectures\": [\"M2M100Model\"]}", NULL, FT_EUNSUPPORTED,
      "config.json: architectures is M2M100Model, which has no language modeling head; save it as "
      "M2M100ForConditionalGeneration" },
    { opus, "{\"architectures\": [\"MarianModel\"]}", NULL, FT_EUNSUPPORTED,
      "config.json: architectures is MarianModel, which has no language modeling head; save it as "
      "MarianMTModel" },
    { opus, "{\"architectures\": [\"MarianForCausalLM\"]}", NULL, FT_EUNSUPPORTED,
      "config.json: architectures [\"MarianForCausalLM\"] is not supported; marian "
      "supports MarianMTModel" },
    { m2m, "{\"is_encoder_decoder\": false}", NULL, FT_EUNSUPPORTED,
      "config.json: is_encoder_decoder is false, only true is supported" },
    { opus, "{\"is_decoder\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: is_decoder is true, only false is supported" },

    /* Variants of Marian */
    { opus, "{\"share_encoder_decoder_embeddings\": false}", NULL, FT_EUNSUPPORTED,
      "config.json: share_encoder_decoder_embeddings is false, only true is supported" },
    { opus, "{\"decoder_vocab_size\": 58000}", NULL, FT_EUNSUPPORTED,
      "config.json: decoder_vocab_size is 58000, but vocab_size is 58101" },
    { opus, "{\"normalize_before\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: normalize_before is true, only false is supported" },
    { opus, "{\"normalize_embedding\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: normalize_embedding is true, only false is supported" },
    { opus, "{\"add_final_layer_norm\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: add_final_layer_norm is true, only false is supported" },
    { opus, "{\"add_bias_logits\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: add_bias_logits is true, only false is supported" },
    { opus, "{\"static_position_embeddings\": false}", NULL, FT_EUNSUPPORTED,
      "config.json: static_position_embeddings is false, only true is supported" },

    /* Sizes */
    { m2m, "{\"encoder_layers\": \"REMOVE\", \"num_hidden_layers\": null}", NULL, FT_EFORMAT,
      "config.json: no encoder_layers, which a m2m_100 needs" },
    { m2m, "{\"encoder_layers\": 0, \"num_hidden_layers\": null}", NULL, FT_EFORMAT,
      "config.json: encoder_layers: found 0, expected an integer from 1 to 1000" },
    { m2m, "{\"num_hidden_layers\": 6}", NULL, FT_EUNSUPPORTED,
      "config.json: num_hidden_layers is 6, but encoder_layers is 12" },
    { m2m, "{\"hidden_size\": \"1024\"}", NULL, FT_EUNSUPPORTED,
      "config.json: hidden_size is \"1024\", but d_model is 1024" },
    { m2m, "{\"encoder_attention_heads\": 10}", NULL, FT_EFORMAT,
      "config.json: config: 10 heads do not divide 1024 columns" },
    { m2m, "{\"decoder_attention_heads\": 3}", NULL, FT_EFORMAT,
      "config.json: config: 3 heads do not divide 1024 columns" },
    { opus, "{\"d_model\": 9, \"encoder_attention_heads\": 1, \"decoder_attention_heads\": 1}",
      NULL, FT_EFORMAT,
      "config.json: config: 9 columns for sinusoids, expected an even number of at least 4" },
    { m2m, "{\"d_model\": 2, \"encoder_attention_heads\": 1, \"decoder_attention_heads\": 1}", NULL,
      FT_EFORMAT,
      "config.json: config: 2 columns for sinusoids, expected an even number of at least 4" },
    { m2m, "{\"max_position_embeddings\": 262143}", NULL, FT_EFORMAT,
      "config.json: config: sinusoids of 262145 positions and 1024 columns, at most 268435456 "
      "elements" },
    { opus, "{\"activation_function\": \"mish\"}", NULL, FT_EUNSUPPORTED,
      "config.json: activation_function \"mish\" is not supported; supported are gelu, "
      "gelu_python, "
      "gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu, swish" },
    { opus, "{\"layer_norm_eps\": 1e-6}", NULL, FT_EUNSUPPORTED,
      "config.json: layer_norm_eps is 1e-6, only 1e-5 is supported" },
    { m2m, "{\"scale_embedding\": 1}", NULL, FT_EFORMAT,
      "config.json: scale_embedding: found 1, expected true or false" },
    { m2m, "{\"classifier_bias\": true}", NULL, FT_EUNSUPPORTED,
      "config.json: classifier_bias is true, which may change the result; pass --ignore-key "
      "classifier_bias if it does not" },

    /* Token ids */
    { opus, "{\"pad_token_id\": null}", NULL, FT_EFORMAT,
      "config.json: pad_token_id: found null, expected an integer from 0 to 16777216" },
    { m2m, "{\"pad_token_id\": 128112}", NULL, FT_EFORMAT,
      "config.json: config: pad_id 128112 is not below the vocabulary size 128112" },
    { m2m, "{\"decoder_start_token_id\": 128112}", NULL, FT_EFORMAT,
      "config.json: config: start_id 128112 is not below the vocabulary size 128112" },
    { m2m, "{\"decoder_start_token_id\": 1}", NULL, FT_EFORMAT,
      "config.json: config: the decoder start token is 1, which is also the padding token that "
      "positions skip" },
    { m2m, "{}", "{\"decoder_start_token_id\": 1}", FT_EFORMAT,
      "generation_config.json: config: the decoder start token is 1, which is also the padding "
      "token that positions skip" },
    { m2m, "{\"forced_bos_token_id\": -1}", NULL, FT_EFORMAT,
      "config.json: forced_bos_token_id: found -1, expected an integer from 0 to 128111" },
    { m2m, "{}", "{\"forced_eos_token_id\": [2, 3]}", FT_EFORMAT,
      "generation_config.json: forced_eos_token_id: found [2, 3], expected an integer from 0 to "
      "128111" },
    { m2m, "{}", "{\"pad_token_id\": \"1\"}", FT_EFORMAT,
      "generation_config.json: pad_token_id: found \"1\", expected an integer from 0 to 128111" },
    { m2m, "{\"eos_token_id\": null}", NULL, FT_EFORMAT,
      "config.json: no eos_token_id, which a m2m_100 needs" },
    { m2m, "{}", "no JSON", FT_EFORMAT, NULL },

    /* Banned tokens */
    { opus, "{\"bad_words_ids\": [[1, 2]]}", NULL, FT_EUNSUPPORTED,
      "config.json: bad_words_ids: word 0 has 2 tokens, only 1 is supported" },
    { opus, "{\"bad_words_ids\": [58100]}", NULL, FT_EFORMAT,
      "config.json: bad_words_ids: found [58100], expected a list of lists of ids" },
    { opus, "{\"bad_words_ids\": 58100}", NULL, FT_EFORMAT,
      "config.json: bad_words_ids: found 58100, expected a list of lists of ids" },
    { opus, "{\"bad_words_ids\": [[58101]]}", NULL, FT_EFORMAT,
      "config.json: bad_words_ids: found 58101, expected an integer from 0 to 58100" },
    { opus, "{}", "{\"suppress_tokens\": 3}", FT_EFORMAT,
      "generation_config.json: suppress_tokens: found 3, expected a list of ids" },
    { opus, "{}", "{\"suppress_tokens\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", FT_ELIMIT,
      "generation_config.json: suppress_tokens: more than 8 banned tokens" },
    { opus, "{\"encoder_no_repeat_ngram_size\": 3}", NULL, FT_EUNSUPPORTED,
      "config.json: encoder_no_repeat_ngram_size is 3, only 0 is supported" },
    { opus, "{}", "{\"guidance_scale\": 1.5}", FT_EUNSUPPORTED,
      "generation_config.json: guidance_scale is 1.5, only 1 is supported" },
    { opus, "{}", "{\"begin_suppress_tokens\": [4]}", FT_EUNSUPPORTED,
      "generation_config.json: begin_suppress_tokens is [4], only null is supported" },
};

static void test_bad(void)
{
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        ft_hf_model origin;
        ft_messages *problems = fresh();
        const char *found =
            read_both(&origin, bad[i].file, bad[i].patch, bad[i].generation, NULL, problems);
        const char *with = bad[i].generation == NULL ? "no other file" : bad[i].generation;
        if (bad[i].problem != NULL)
            is_str(found, bad[i].problem, "%s with %s and %s is refused", bad[i].file, bad[i].patch,
                   with);
        ok(problems->count == 1 && problems->message[0].code == bad[i].status,
           "%s with %s and %s reports exactly one problem", bad[i].file, bad[i].patch, with);
    }
}

static void test_ignored(void)
{
    static const char *const ignored[] = { "guidance_scale", "bad_words_ids", NULL };
    ft_hf_model origin;
    const char *found =
        read_both(&origin, opus, "{}", "{\"guidance_scale\": 1.5, \"bad_words_ids\": [[1, 2]]}",
                  ignored, fresh());
    is_str(found, OPUS_SIZES "start 58100, pad 58100/-1, first -1, last -1, scaled, tied",
           "--ignore-key ignores keys of config.json and generation_config.json");
}

int main(void)
{
    test_good();
    test_bad();
    test_ignored();
    return done_testing();
}
