/*
 * encoder_decoder.c - the graph of encoder-decoder models for translation.
 *
 * The encoder reads the source.  Each decoder layer projects the encoder output to its own
 * cross-attention keys and values, which are stored once per source.  Each sublayer
 * (self-attention, cross-attention, feed-forward) has a residual connection, with a norm before the
 * sublayer (pre-norm) or after the sum (post-norm).
 *
 * Source: Vaswani et al. 2017; Xiong et al. 2020 for pre-norm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/encoder_decoder.h"

#include "runtime/graph/sinusoids.h"

#include "runtime/mem.h"

#include <math.h>

/* ---- Checkpoints -------------------------------------------------------------------------- */

#define ENCODER(source) "model.encoder.layers.#." source
#define DECODER(source) "model.decoder.layers.*." source

static const ft_weight_source sources[] = {
    { "embed.word", "model.shared.weight" },
    { "encoder.layer.#.attn.q", ENCODER("self_attn.q_proj") },
    { "encoder.layer.#.attn.k", ENCODER("self_attn.k_proj") },
    { "encoder.layer.#.attn.v", ENCODER("self_attn.v_proj") },
    { "encoder.layer.#.attn.out", ENCODER("self_attn.out_proj") },
    { "encoder.layer.#.attn.norm", ENCODER("self_attn_layer_norm") },
    { "encoder.layer.#.ffn.up", ENCODER("fc1") },
    { "encoder.layer.#.ffn.down", ENCODER("fc2") },
    { "encoder.layer.#.ffn.norm", ENCODER("final_layer_norm") },
    { "decoder.layer.*.attn.q", DECODER("self_attn.q_proj") },
    { "decoder.layer.*.attn.k", DECODER("self_attn.k_proj") },
    { "decoder.layer.*.attn.v", DECODER("self_attn.v_proj") },
    { "decoder.layer.*.attn.out", DECODER("self_attn.out_proj") },
    { "decoder.layer.*.attn.norm", DECODER("self_attn_layer_norm") },
    { "decoder.layer.*.cross.q", DECODER("encoder_attn.q_proj") },
    { "decoder.layer.*.cross.k", DECODER("encoder_attn.k_proj") },
    { "decoder.layer.*.cross.v", DECODER("encoder_attn.v_proj") },
    { "decoder.layer.*.cross.out", DECODER("encoder_attn.out_proj") },
    { "decoder.layer.*.cross.norm", DECODER("encoder_attn_layer_norm") },
    { "decoder.layer.*.ffn.up", DECODER("fc1") },
    { "decoder.layer.*.ffn.down", DECODER("fc2") },
    { "decoder.layer.*.ffn.norm", DECODER("final_layer_norm") },
    { "head.weight", "lm_head.weight" },
};

const ft_architecture ft_encoder_decoder = {
    .source = sources,
    .nsource = FT_COUNT(sources),
};

/* ---- Layers ------------------------------------------------------------------------------- */

/* The context of all sublayers. */
typedef struct builder {
    ft_graph *graph;
    const ft_config *config;
    bool norm_first;
} builder;

/* The name "SUBLAYER.NAME". */
static const char *sublayer_name(char out[FT_NAME], const char *sublayer, const char *name)
{
    snprintf(out, FT_NAME, "%s.%s", sublayer, name);
    return out;
}

/* The input of a sublayer: the residual x, normalized with pre-norm. */
static int sublayer_begin(const builder *b, const char *sublayer, int x)
{
    char name[FT_NAME];
    return b->norm_first
               ? ft_layer_norm(b->graph, sublayer_name(name, sublayer, "norm"), x, b->config->eps)
               : x;
}

/* The output of a sublayer: y + x, normalized with post-norm. */
static int sublayer_end(const builder *b, const char *sublayer, int y, int x)
{
    char name[FT_NAME];
    int sum = ft_add_residual(b->graph, sublayer_name(name, sublayer, "sum"), y, x);
    return b->norm_first ? sum
                         : ft_layer_norm(b->graph, sublayer_name(name, sublayer, "norm"), sum,
                                         b->config->eps);
}

static int build_ffn(const builder *b, int x)
{
    ft_graph *g = b->graph;
    int up = ft_linear(g, "ffn.up", sublayer_begin(b, "ffn", x));
    int y = ft_linear(g, "ffn.down", ft_apply_activation(g, "ffn.act", up, b->config->activation));
    return sublayer_end(b, "ffn", y, x);
}

static ft_embed_params embedding(const ft_config *c)
{
    return (ft_embed_params){
        .word = "embed.word",
        .position = FT_SINUSOIDS_WEIGHT,
        .scale = c->scale_embeddings ? sqrtf((float) c->hidden) : 1.0f,
        .offset = c->position_offset,
    };
}

/* ---- Encoder ------------------------------------------------------------------------------ */

static int build_encoder_layer(const builder *b, int x)
{
    ft_graph *g = b->graph;
    int input = sublayer_begin(b, "attn", x);
    int q = ft_linear(g, "attn.q", input);
    int k = ft_linear(g, "attn.k", input);
    int v = ft_linear(g, "attn.v", input);
    int y = ft_linear(g, "attn.out", ft_attention(g, "attn", q, k, v, b->config->encoder_heads));
    return build_ffn(b, sublayer_end(b, "attn", y, x));
}

static void build_encoder(const builder *b)
{
    ft_graph *g = b->graph;
    const ft_config *c = b->config;
    ft_embed_params params = embedding(c);
    int ids = ft_graph_input(g, "input_ids", FT_BATCH_IDS),
        positions = ft_graph_input(g, "positions", FT_BATCH_POSITIONS);
    int x = ft_embed_with_positions(g, "encoder.embed", ids, positions, &params);
    for (int i = 0; i < c->encoder_layers; i++) {
        ft_graph_scope(g, "encoder.layer.%d", i);
        x = build_encoder_layer(b, x);
    }
    ft_graph_scope(g, "%s", "");
    if (b->norm_first)
        x = ft_layer_norm(g, "encoder.norm", x, c->eps);
    ft_graph_output(g, "encoder_last_hidden_state", x);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "decoder.layer.%d", i);
        int k = ft_linear(g, "cross.k", x);
        int v = ft_linear(g, "cross.v", x);
        ft_store_cross_kv(g, "cross", k, v, c->heads);
    }
    ft_graph_scope(g, "%s", "");
    ft_end_encoder(g);
}

/* ---- Decoder ------------------------------------------------------------------------------ */

static int build_self_attention(const builder *b, int x)
{
    ft_graph *g = b->graph;
    const ft_attention_params heads = { .heads = b->config->heads, .kv_heads = b->config->heads };
    int input = sublayer_begin(b, "attn", x);
    int q = ft_linear(g, "attn.q", input);
    int k = ft_linear(g, "attn.k", input);
    int v = ft_linear(g, "attn.v", input);
    int y = ft_linear(g, "attn.out", ft_cached_attention(g, "attn", q, k, v, &heads));
    return sublayer_end(b, "attn", y, x);
}

static int build_cross_attention(const builder *b, int x)
{
    ft_graph *g = b->graph;
    int q = ft_linear(g, "cross.q", sublayer_begin(b, "cross", x));
    int y = ft_linear(g, "cross.out", ft_attend_cross(g, "cross", q, b->config->heads));
    return sublayer_end(b, "cross", y, x);
}

static void build_decoder(const builder *b)
{
    ft_graph *g = b->graph;
    const ft_config *c = b->config;
    ft_embed_params params = embedding(c);
    int ids = ft_graph_input(g, "decoder_input_ids", FT_BATCH_IDS);
    int x = ft_embed_with_positions(g, "decoder.embed", ids, -1, &params);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "decoder.layer.%d", i);
        x = build_ffn(b, build_cross_attention(b, build_self_attention(b, x)));
    }
    ft_graph_scope(g, "%s", "");
    if (b->norm_first)
        x = ft_layer_norm(g, "decoder.norm", x, c->eps);
    ft_graph_output(g, "last_hidden_state", x);
    x = ft_gather_rows(g, "selected", x);
    x = c->tied ? ft_linear_shared_weight(g, "head", x, "embed.word") : ft_linear(g, "head", x);
    ft_graph_output(g, "logits", x);
    ft_sample(g, "token", x, ids);
    ft_graph_beam_search(g, "beam", x);
}

void ft_build_encoder_decoder(ft_graph *graph, const ft_config *config, bool norm_first)
{
    const builder b = { graph, config, norm_first };
    build_encoder(&b);
    build_decoder(&b);
}
