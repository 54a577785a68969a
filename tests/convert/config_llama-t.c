/*
 * config_llama-t.c - config.json of Llama, Mistral, Qwen2 and Qwen3, in our own terms.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/op.h"
#include "runtime/mem.h"
#include "tests/lib/models/origin.h"
#include "tests/tap/tap.h"

/* All fields of a decoder configuration on one line. */
static const char *describe(const ft_hf_model *origin)
{
    static char text[400];
    const ft_config *c = &origin->config;
    int used =
        snprintf(text, sizeof text, "%s L%d H%d A%d/%dx%d F%d V%d P%d %g %s, %s %.9g",
                 origin->architecture->model_type, c->layers, c->hidden, c->heads, c->kv_heads,
                 c->head_size, c->ffn, c->vocabulary, c->positions, (double) c->eps,
                 ft_activation_name(c->activation), ft_rope_name(c->rope), c->rope_theta);
    if (ft_rope_uses(c->rope).factor)
        used += snprintf(text + used, sizeof text - (size_t) used, " x%.9g", c->rope_factor);
    if (ft_rope_uses(c->rope).band)
        used += snprintf(text + used, sizeof text - (size_t) used, " %.9g..%.9g", c->rope_low,
                         c->rope_high);
    if (ft_rope_uses(c->rope).positions)
        used += snprintf(text + used, sizeof text - (size_t) used, " at %d", c->rope_positions);
    if (c->window > 0)
        used += snprintf(text + used, sizeof text - (size_t) used, ", window %d from %d", c->window,
                         c->window_first_layer);
    snprintf(text + used, sizeof text - (size_t) used, "%s%s%s%s%s", c->qk_norm ? ", normed" : "",
             c->qkv_bias ? ", qkv" : "", c->out_bias ? ", out" : "", c->ffn_bias ? ", ffn" : "",
             c->tied ? ", tied" : "");
    return text;
}

/* ---- Accepted ------------------------------------------------------------------------------ */

static const char llama[] = "llama-transformers-5", meta[] = "llama-3.2-1b",
                  mistral[] = "mistral-7b", qwen2[] = "qwen2-window";

static const struct {
    const char *file, *patch, *expected;
} good[] = {
    /* Unchanged files */
    { "llama-2-7b", "{}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, default 10000" },
    { meta, "{}",
      "llama L16 H2048 A32/8x64 F8192 V128256 P131072 1e-05 silu, llama3 500000 x32 1..4 at 8192, "
      "tied" },
    { llama, "{}",
      "llama L6 H256 A4/1x96 F704 V2048 P1024 1e-05 gelu_tanh, linear 20000 x2.5, qkv, out, ffn" },
    { "llama-smallest", "{}", "llama L2 H64 A4/4x16 F96 V100 P32 1e-06 silu, default 10000" },
    { mistral, "{}",
      "mistral L32 H4096 A32/8x128 F14336 V32000 P32768 1e-05 silu, default 10000, window 4096 "
      "from 0" },
    { "mistral-nemo", "{}",
      "mistral L40 H5120 A32/8x128 F14336 V131072 P131072 1e-05 silu, default 1000000" },
    { "qwen2.5-0.5b", "{}",
      "qwen2 L24 H896 A14/2x64 F4864 V151936 P32768 1e-06 silu, default 1000000, qkv, tied" },
    { qwen2, "{}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, window 128 "
      "from 3, qkv" },

    /* Absent or null keys */
    { "llama-smallest", "{\"num_key_value_heads\": null, \"head_dim\": null}",
      "llama L2 H64 A4/4x16 F96 V100 P32 1e-06 silu, default 10000" },
    { "llama-smallest",
      "{\"model_type\": \"mistral\", \"num_attention_heads\": 16, \"sliding_window\": null}",
      "mistral L2 H64 A16/8x4 F96 V100 P32 1e-06 silu, default 10000" },
    { "llama-smallest", "{\"model_type\": \"mistral\", \"num_key_value_heads\": 2}",
      "mistral L2 H64 A4/2x16 F96 V100 P32 1e-06 silu, default 10000, window 4096 from 0" },
    { "llama-smallest", "{\"model_type\": \"qwen2\", \"num_attention_heads\": 32}",
      "qwen2 L2 H64 A32/32x2 F96 V100 P32 1e-06 silu, default 10000, qkv" },
    { meta, "{\"architectures\": null, \"rope_scaling\": {}}",
      "llama L16 H2048 A32/8x64 F8192 V128256 P131072 1e-05 silu, default 500000, tied" },
    { meta, "{\"hidden_size\": 100, \"head_dim\": 8}",
      "llama L16 H100 A32/8x8 F8192 V128256 P131072 1e-05 silu, llama3 500000 x32 1..4 at 8192, "
      "tied" },
    { meta, "{\"hidden_act\": \"relu\", \"is_decoder\": false, \"partial_rotary_factor\": 1}",
      "llama L16 H2048 A32/8x64 F8192 V128256 P131072 1e-05 relu, llama3 500000 x32 1..4 at 8192, "
      "tied" },

    { meta,
      "{\"is_llama_config\": true, \"rope_interleaved\": false, \"max_sequence_length\": 8192,"
      " \"unsloth_version\": \"2024.9\", \"pad_token_id\": 128004, \"is_decoder\": false}",
      "llama L16 H2048 A32/8x64 F8192 V128256 P131072 1e-05 silu, llama3 500000 x32 1..4 at 8192, "
      "tied" },

    /* Qwen3: heads of a size of their own, biases only by their key, windows as Qwen2's */
    { "llama-smallest", "{\"model_type\": \"qwen3\", \"num_attention_heads\": 32}",
      "qwen3 L2 H64 A32/32x128 F96 V100 P32 1e-06 silu, default 10000, normed" },
    { "llama-smallest",
      "{\"model_type\": \"qwen3\", \"num_key_value_heads\": null, \"head_dim\": 24,"
      " \"attention_bias\": true, \"tie_word_embeddings\": true, \"mlp_bias\": false}",
      "qwen3 L2 H64 A4/4x24 F96 V100 P32 1e-06 silu, default 10000, normed, qkv, out, tied" },
    { qwen2,
      "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"],"
      " \"head_dim\": 128, \"layer_types\": null}",
      "qwen3 L5 H256 A4/4x128 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, window 128 "
      "from 3, normed" },
    { qwen2,
      "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"],"
      " \"layer_types\": null, \"use_sliding_window\": false, \"sliding_window\": null}",
      "qwen3 L5 H256 A4/4x128 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, normed" },

    /* How scaling is spelt */
    { "llama-2-7b", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 8}, \"rope_theta\": 7}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, linear 7 x8" },
    { "llama-2-7b", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, dynamic 10000 x2 at 4096" },
    { "llama-2-7b",
      "{\"rope_scaling\": {\"type\": \"yarn\", \"rope_type\": \"linear\", \"factor\": 3}}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, linear 10000 x3" },
    { "llama-2-7b", "{\"rope_parameters\": {\"rope_theta\": 25, \"partial_rotary_factor\": 1.0}}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, default 25" },
    { "llama-2-7b",
      "{\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 25, \"factor\": 2,"
      " \"low_freq_factor\": 0.5, \"high_freq_factor\": 2}, \"rope_theta\": 25.0}",
      "llama L32 H4096 A32/32x128 F11008 V32000 P4096 1e-05 silu, llama3 25 x2 0.5..2 at 4096" },

    /* Layers with a sliding window */
    { qwen2, "{\"layer_types\": null}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, window 128 "
      "from 3, qkv" },
    { qwen2, "{\"layer_types\": null, \"max_window_layers\": 0, \"sliding_window\": \"REMOVE\"}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, window 4096 "
      "from 0, qkv" },
    { qwen2, "{\"layer_types\": null, \"max_window_layers\": \"REMOVE\"}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, qkv" },
    { qwen2, "{\"layer_types\": null, \"use_sliding_window\": false, \"sliding_window\": 0}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, qkv" },
    { qwen2, "{\"layer_types\": null, \"sliding_window\": null}",
      "qwen2 L5 H256 A4/4x64 F704 V2048 P1024 1e-06 silu, dynamic 1000000 x4 at 1024, qkv" },
};

static void test_good(void)
{
    for (size_t i = 0; i < FT_COUNT(good); i++)
        is_origin(good[i].file, good[i].patch, describe, good[i].expected);
}

/* ---- Refused ------------------------------------------------------------------------------- */

#define SCALING(members) "{\"rope_scaling\": {" members "}}"

static const bad_origin bad[] = {
    /* Architecture */
    { qwen2, "{\"model_type\": \"qwen3\", \"architectures\": null, \"mlp_bias\": true}",
      FT_EUNSUPPORTED, "mlp_bias is true, only false is supported" },
    { llama, "{\"architectures\": [\"LlamaForSequenceClassification\"]}", FT_EUNSUPPORTED,
      "llama supports LlamaForCausalLM" },
    { llama, "{\"architectures\": [\"MistralForCausalLM\"]}", FT_EUNSUPPORTED,
      "[\"MistralForCausalLM\"] is not supported" },
    { llama, "{\"model_type\": \"llama4\"}", FT_EUNSUPPORTED,
      "supported are bert, roberta, distilbert, llama, mistral, qwen2, qwen3" },

    /* Sizes */
    { llama, "{\"num_attention_heads\": \"REMOVE\"}", FT_EFORMAT,
      "no num_attention_heads, which a" },
    { llama, "{\"num_key_value_heads\": 3}", FT_EFORMAT,
      "3 key/value heads do not divide 4 heads" },
    { llama, "{\"num_key_value_heads\": 0}", FT_EFORMAT,
      "num_key_value_heads: found 0, expected an integer from 1 to 65536" },
    { llama, "{\"num_key_value_heads\": \"4\"}", FT_EFORMAT, "num_key_value_heads: found \"4\"" },
    { llama, "{\"head_dim\": 0}", FT_EFORMAT, "head_dim: found 0, expected an integer from 1" },
    { llama, "{\"head_dim\": 7}", FT_EFORMAT,
      "heads of 7 columns, which rope linear cannot rotate" },
    { llama, "{\"head_dim\": 65536}", FT_EFORMAT, "4 heads of 65536 columns, at most 65536" },
    { llama, "{\"max_position_embeddings\": null}", FT_EFORMAT,
      "max_position_embeddings: found null" },
    { llama, "{\"intermediate_size\": -1}", FT_EFORMAT, "intermediate_size: found -1" },

    /* Arithmetic */
    { llama, "{\"rms_norm_eps\": 0}", FT_EFORMAT, "rms_norm_eps: found 0, expected a positive" },
    { llama, "{\"hidden_act\": \"mish\"}", FT_EUNSUPPORTED,
      "hidden_act \"mish\" is not supported" },
    { llama, "{\"attention_bias\": 1}", FT_EFORMAT,
      "attention_bias: found 1, expected true or false" },
    { llama, "{\"mlp_bias\": null}", FT_EFORMAT, "mlp_bias: found null, expected true or false" },
    { llama, "{\"tie_word_embeddings\": \"no\"}", FT_EFORMAT, "tie_word_embeddings: found \"no\"" },
    { mistral, "{\"attention_bias\": true}", FT_EUNSUPPORTED,
      "attention_bias is true, only false is supported" },
    { mistral, "{\"mlp_bias\": true}", FT_EUNSUPPORTED, "mlp_bias is true, only false" },
    { qwen2, "{\"attention_bias\": false}", FT_EUNSUPPORTED, "attention_bias is false, only true" },
    { qwen2, "{\"mlp_bias\": true}", FT_EUNSUPPORTED, "mlp_bias is true, only false" },
    { llama, "{\"quantization_config\": {\"quant_method\": \"gptq\"}}", FT_EUNSUPPORTED,
      "weights quantized by GPTQ are not supported; convert the float checkpoint" },
    { llama, "{\"add_cross_attention\": true}", FT_EUNSUPPORTED, "add_cross_attention is true" },
    { llama, "{\"is_encoder_decoder\": true}", FT_EUNSUPPORTED, "is_encoder_decoder is true" },

    /* RoPE scaling */
    { meta, SCALING("\"rope_type\": \"yarn\", \"factor\": 4"), FT_EUNSUPPORTED,
      "rope_scaling.rope_type is \"yarn\"; supported are default, linear, llama3, dynamic" },
    { meta, SCALING("\"type\": \"longrope\""), FT_EUNSUPPORTED,
      "rope_scaling.type is \"longrope\"" },
    { meta, SCALING("\"type\": \"su\""), FT_EUNSUPPORTED, "rope_scaling.type is \"su\"" },
    { meta, SCALING("\"type\": \"none\""), FT_EUNSUPPORTED, "rope_scaling.type is \"none\"" },
    { meta, SCALING("\"type\": 1"), FT_EUNSUPPORTED, "rope_scaling.type is 1" },
    { meta, SCALING("\"type\": \"linear\""), FT_EFORMAT,
      "no rope_scaling.factor, which rope type linear needs" },
    { meta, SCALING("\"type\": \"linear\", \"factor\": 0.5"), FT_EFORMAT,
      "rope_scaling.factor: found 0.5, expected a number from 1 to 1e+06" },
    { meta, SCALING("\"type\": \"linear\", \"factor\": \"2\""), FT_EFORMAT,
      "rope_scaling.factor: found \"2\"" },
    { meta, SCALING("\"type\": \"linear\", \"factor\": 2, \"low_freq_factor\": 1"), FT_EUNSUPPORTED,
      "rope_scaling.low_freq_factor is 1, which may change the result; pass --ignore-key "
      "rope_scaling.low_freq_factor if it does not" },
    { meta, SCALING("\"factor\": 2"), FT_EUNSUPPORTED, "rope_scaling.factor is 2, which may" },
    { meta,
      SCALING("\"type\": \"dynamic\", \"factor\": 2, \"original_max_position_embeddings\": 64"),
      FT_EUNSUPPORTED, "rope_scaling.original_max_position_embeddings is 64, which may" },
    { meta, SCALING("\"type\": \"linear\", \"factor\": 2, \"attention_factor\": 0.7"),
      FT_EUNSUPPORTED, "rope_scaling.attention_factor is 0.7, which may" },
    { meta, SCALING("\"full_attention\": {\"rope_type\": \"default\"}"), FT_EUNSUPPORTED,
      "rope_scaling.full_attention is {" },
    { meta,
      SCALING("\"type\": \"llama3\", \"factor\": 2, \"high_freq_factor\": 2,"
              " \"original_max_position_embeddings\": 64"),
      FT_EFORMAT, "no rope_scaling.low_freq_factor, which rope type llama3 needs" },
    { meta,
      SCALING("\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 2,"
              " \"high_freq_factor\": 2"),
      FT_EFORMAT, "rope_low 2 is not below rope_high 2" },
    { meta,
      SCALING("\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 1,"
              " \"high_freq_factor\": 2, \"original_max_position_embeddings\": 64.0"),
      FT_EFORMAT,
      "rope_scaling.original_max_position_embeddings: found 64.0, expected an integer from 1" },
    { meta, "{\"rope_scaling\": \"linear\"}", FT_EFORMAT,
      "rope_scaling: found \"linear\", expected an object" },
    { llama, "{\"rope_parameters\": [2]}", FT_EFORMAT,
      "rope_parameters: found [2], expected an object" },
    { llama, SCALING("\"type\": \"linear\", \"factor\": 2"), FT_EFORMAT,
      "rope_parameters and rope_scaling disagree" },
    { llama, "{\"rope_theta\": 10000.0}", FT_EFORMAT,
      "rope_theta is 10000.0, but rope_parameters.rope_theta says otherwise" },
    { meta, "{\"rope_theta\": 0}", FT_EFORMAT,
      "rope_theta: found 0, expected a number from 1 to 1e+12" },
    { meta, "{\"rope_theta\": \"500000\"}", FT_EFORMAT, "rope_theta: found \"500000\"" },
    { llama, "{\"partial_rotary_factor\": 0.5}", FT_EUNSUPPORTED,
      "partial_rotary_factor is 0.5, only 1 is supported" },
    { llama, "{\"rope_parameters\": {\"partial_rotary_factor\": 0.5}}", FT_EUNSUPPORTED,
      "rope_parameters.partial_rotary_factor is 0.5, only 1 is supported" },
    { llama, "{\"original_max_position_embeddings\": 512}", FT_EUNSUPPORTED,
      "original_max_position_embeddings is 512, which may change the result" },

    /* Sliding windows */
    { llama, "{\"sliding_window\": 64}", FT_EUNSUPPORTED, "sliding_window is 64, only null" },
    { llama, "{\"layer_types\": [\"full_attention\"]}", FT_EUNSUPPORTED,
      "layer_types is [\"full_" },
    { mistral, "{\"sliding_window\": 0}", FT_EFORMAT,
      "sliding_window: found 0, expected an integer from 1" },
    { mistral, "{\"sliding_window\": \"4096\"}", FT_EFORMAT, "sliding_window: found \"4096\"" },
    { mistral, "{\"layer_types\": [\"sliding_attention\"]}", FT_EUNSUPPORTED, "layer_types is [" },
    { qwen2, "{\"use_sliding_window\": 1}", FT_EFORMAT,
      "use_sliding_window: found 1, expected true" },
    { qwen2, "{\"sliding_window\": 0}", FT_EFORMAT,
      "sliding_window: found 0, expected an integer" },
    { qwen2, "{\"layer_types\": null, \"max_window_layers\": -1}", FT_EFORMAT,
      "max_window_layers: found -1, expected an integer from 0" },
    { qwen2, "{\"layer_types\": [\"full_attention\", \"sliding_attention\"]}", FT_EFORMAT,
      "layer_types: found [\"full_attention\", \"sliding_attention\"], expected 5 names, "
      "full_attention "
      "first" },
    { qwen2,
      "{\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\","
      " \"full_attention\", \"sliding_attention\"]}",
      FT_EFORMAT, "full_attention first and sliding_attention for all layers after those" },
    { qwen2, "{\"layer_types\": \"full_attention\"}", FT_EFORMAT,
      "layer_types: found \"full_attention\"" },
    { qwen2, "{\"use_sliding_window\": false}", FT_EFORMAT,
      "layer_types has sliding_attention, but there is no sliding_window" },

    /* Unknown keys */
    { llama, "{\"num_local_experts\": 8}", FT_EUNSUPPORTED, "num_local_experts is 8, which may" },
    { qwen2, "{\"use_mrope\": true}", FT_EUNSUPPORTED, "use_mrope is true, which may" },
    { llama, "{\"auto_map\": {\"AutoConfig\": \"x\"}}", FT_EUNSUPPORTED, "auto_map is {" },
    { llama, "{\"rope_interleaved\": true}", FT_EUNSUPPORTED,
      "rope_interleaved is true, which may" },
    { llama, "{\"logit_scale\": 0.5}", FT_EUNSUPPORTED, "logit_scale is 0.5, which may" },
};

static void test_bad(void)
{
    are_refused(bad, FT_COUNT(bad));
}

static void test_ignored(void)
{
    static const char *const ignored[] = { "rope_scaling.attention_factor", "logit_scale", NULL };
    ft_messages problems;
    ft_hf_model origin;
    is_int(origin_read(&origin, "llama-2-7b",
                       "{\"logit_scale\": 0.5, \"rope_scaling\": {\"type\": \"linear\","
                       " \"factor\": 2, \"attention_factor\": 0.7}}",
                       ignored, &problems),
           FT_OK, "--ignore-key ignores a member of rope_scaling by its path");
}

int main(void)
{
    test_good();
    test_bad();
    test_ignored();
    return done_testing();
}
