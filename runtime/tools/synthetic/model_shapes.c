/*
 * model_shapes.c - names of the schemes, and the named model shapes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/synthetic/synthetic.h"

#include "runtime/mem.h"

#include <string.h>

/* ---- Schemes ------------------------------------------------------------------------------ */

static const char *const schemes[FT_NUM_SYNTHETIC_SCHEMES] = {
    [FT_SYNTHETIC_FLOAT] = "float",
    [FT_SYNTHETIC_F16] = "f16",
    [FT_SYNTHETIC_BF16] = "bf16",
    [FT_SYNTHETIC_INT8] = "int8",
    [FT_SYNTHETIC_INT8_RESIDUAL] = "int8-residual",
    [FT_SYNTHETIC_W8A8_DYNAMIC] = "w8a8-dynamic",
    [FT_SYNTHETIC_W4A16] = "w4a16",
    [FT_SYNTHETIC_W8A16] = "w8a16",
    [FT_SYNTHETIC_W8A8_BLOCK] = "w8a8-block",
};

const char *ft_synthetic_scheme_name(ft_synthetic_scheme scheme)
{
    return (unsigned) scheme < FT_NUM_SYNTHETIC_SCHEMES ? schemes[scheme] : "unknown";
}

bool ft_synthetic_scheme_is_groupwise(ft_synthetic_scheme scheme)
{
    return scheme == FT_SYNTHETIC_W4A16 || scheme == FT_SYNTHETIC_W8A16 ||
           scheme == FT_SYNTHETIC_W8A8_BLOCK;
}

bool ft_synthetic_scheme_parse(const char *name, ft_synthetic_scheme *out)
{
    for (size_t i = 0; i < FT_NUM_SYNTHETIC_SCHEMES; i++)
        if (strcmp(schemes[i], name) == 0) {
            *out = (ft_synthetic_scheme) i;
            return true;
        }
    return false;
}

/* ---- Shapes ------------------------------------------------------------------------------- */

#define BERT                                                                                       \
    .vocabulary = 30522, .positions = 512, .types = 2, .padding_id = -1, .eps = 1e-12f,            \
    .activation = FT_ACT_GELU

#define LLAMA                                                                                      \
    .kind = FT_KIND_DECODER, .padding_id = -1, .eps = 1e-5f, .activation = FT_ACT_SILU,            \
    .rope = FT_ROPE_DEFAULT

#define ENCODER_DECODER                                                                            \
    .kind = FT_KIND_ENCODER_DECODER, .position_offset = 2, .padding_id = 1, .pad_id = 1,           \
    .decoder_start_id = 2, .forced_bos_id = -1, .forced_eos_id = -1, .eps = 1e-5f,                 \
    .activation = FT_ACT_RELU, .sinusoids = FT_SINUSOIDS_M2M100, .scale_embeddings = true,         \
    .tied = true

/*
 * BERT base and large of google-research, all-MiniLM-L6-v2, and ViT-B/16 with the 1000 ImageNet
 * classes; Llama 2 7B, Llama 3 8B, the layers of Llama 3.2 1B with Llama 2's vocabulary, and Llama
 * 3.2 1B.
 * Encoder-decoders: the decoding benchmark model of FasterTransformer 2.0, and
 * nllb-200-distilled-600M.
 */
static const struct {
    const char *name;
    ft_config config;
} shapes[] = {
    { "bert-base",
      { .layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .pooler = true, BERT } },
    { "bert-large",
      { .layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096, .pooler = true, BERT } },
    { "minilm",
      { .layers = 6,
        .hidden = 384,
        .heads = 12,
        .ffn = 1536,
        .embedding = FT_EMBEDDING_MEAN,
        .normalize = true,
        BERT } },
    { "vit-base",
      { .kind = FT_KIND_VISION,
        .layers = 12,
        .hidden = 768,
        .heads = 12,
        .ffn = 3072,
        .positions = 197,
        .padding_id = -1,
        .eps = 1e-12f,
        .activation = FT_ACT_GELU,
        .labels = 1000,
        .head = FT_HEAD_FIRST,
        .qkv_bias = true,
        .channels = 3,
        .image_height = 224,
        .image_width = 224,
        .patch_height = 16,
        .patch_width = 16,
        .prefix_tokens = 1 } },
    { "llama-2-7b",
      { .layers = 32,
        .hidden = 4096,
        .heads = 32,
        .kv_heads = 32,
        .head_size = 128,
        .ffn = 11008,
        .vocabulary = 32000,
        .positions = 4096,
        .rope_theta = 1e4,
        LLAMA } },
    { "llama-3-8b",
      { .layers = 32,
        .hidden = 4096,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 128,
        .ffn = 14336,
        .vocabulary = 128256,
        .positions = 8192,
        .rope_theta = 5e5,
        LLAMA } },
    { "llama-1b",
      { .layers = 16,
        .hidden = 2048,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 64,
        .ffn = 8192,
        .vocabulary = 32000,
        .positions = 4096,
        .rope_theta = 5e5,
        LLAMA } },
    { "llama-3.2-1b",
      { .layers = 16,
        .hidden = 2048,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 64,
        .ffn = 8192,
        .vocabulary = 128256,
        .positions = 131072,
        .rope_theta = 5e5,
        .tied = true,
        LLAMA } },
    { "ft-decoding",
      { .layers = 6,
        .encoder_layers = 6,
        .hidden = 512,
        .heads = 8,
        .kv_heads = 8,
        .encoder_heads = 8,
        .head_size = 64,
        .ffn = 2048,
        .encoder_ffn = 2048,
        .vocabulary = 30000,
        .positions = 514,
        ENCODER_DECODER } },
    { "nllb-600m",
      { .layers = 12,
        .encoder_layers = 12,
        .hidden = 1024,
        .heads = 16,
        .kv_heads = 16,
        .encoder_heads = 16,
        .head_size = 64,
        .ffn = 4096,
        .encoder_ffn = 4096,
        .vocabulary = 256206,
        .positions = 1026,
        ENCODER_DECODER } },
};

const char *ft_shape_name(size_t index)
{
    return index < FT_COUNT(shapes) ? shapes[index].name : NULL;
}

bool ft_shape_parse(const char *name, ft_config *out)
{
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0) {
            *out = shapes[i].config;
            return true;
        }
    return false;
}
