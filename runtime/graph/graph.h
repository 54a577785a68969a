/*
 * graph.h - the calls with which a family writes down its model.
 *
 * A graph is a plan that has not been lowered: plain float operations, nothing fused.  Names are
 * prefixed with the scope, weights are found by name.  Errors are sticky: the first one is kept,
 * later calls do nothing, and ft_graph_finish() reports it; so build functions read like the paper.
 *
 * Points are marked here: the inputs of linears whose weight may be int8, and queries, keys, values
 * and probabilities of attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_GRAPH_H
#define FT_RUNTIME_GRAPH_GRAPH_H

#include "kernels/op.h"

typedef struct ft_graph {
    ft_plan plan;
    char scope[FT_NAME / 2]; /* "layer.3." or empty */
    const bool *quantizable; /* [nweight]: may become int8 */
    ft_status status;
    ft_error err;
} ft_graph;

/* Start a graph over `weights` (borrowed); quantizable[i] says that weight i may become int8. */
void ft_graph_init(ft_graph *graph, const ft_weight *weights, const bool *quantizable, int count);
void ft_graph_fini(ft_graph *graph);

/* The first error of any call, or FT_OK. */
FT_MUST_USE ft_status ft_graph_finish(const ft_graph *graph, ft_error *err);

/* Prefix of the names that follow: "layer.%d", or "" for none. */
void ft_graph_scope(ft_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * What has been written down so far reads the source text of an encoder-decoder, in runs of its
 * own; what it leaves behind is the memory.
 */
void ft_end_encoder(ft_graph *graph);

/* An int32 per token, set by the session: "input_ids", "positions", "token_type_ids". */
int ft_graph_input(ft_graph *graph, const char *name);

/* Images [channels, height, width] of floats, one a sequence, set by the session. */
int ft_graph_input_images(ft_graph *graph, const char *name, const ft_conv *conv);

/*
 * Images cut into patches of conv->kernel: a sequence is `leading` rows of zeros, then its patches
 * row by row, with columns in the order channel, row, column.
 */
int ft_patchify(ft_graph *graph, const char *name, int images, const ft_conv *conv,
                int32_t prefix_tokens);

/*
 * Rows of patches in their places: the first of each sequence become NAME.class and, where there is
 * one, NAME.distillation, and all are added to NAME.position.
 */
int ft_add_class_token(ft_graph *graph, const char *name, int x);

/* NAME.word[ids] + NAME.position[positions] (+ NAME.type[types] unless types is -1). */
int ft_embed(ft_graph *graph, const char *name, int ids, int positions, int types);

/*
 * NAME.word[ids], for decoders: an id below 0 names a seat, -1 - seat, and stands for the token
 * that ft_sample() chose there last.
 */
int ft_embed_tokens(ft_graph *graph, const char *name, int ids);

/*
 * WORD[ids] * scale + POSITION[place], two weights with names of their own.  Places are `positions`
 * or, where these are -1, `offset` + the place of the token in its text; then ids may name seats.
 */
typedef struct ft_embed_params {
    const char *word, *position;
    float scale;
    int32_t offset;
} ft_embed_params;
int ft_embed_with_positions(ft_graph *graph, const char *name, int ids, int positions,
                            const ft_embed_params *params);

/* Layer norm with NAME.weight and NAME.bias; rms norm with NAME.weight. */
int ft_layer_norm(ft_graph *graph, const char *name, int x, float eps);
int ft_rms_norm(ft_graph *graph, const char *name, int x, float eps);

/* Rms norm of the columns of each of `heads` heads with NAME.weight, which they share. */
int ft_head_norm(ft_graph *graph, const char *name, int x, int heads, float eps);

/* x . NAME.weight^T + NAME.bias; where the model has no such bias, without. */
int ft_linear(ft_graph *graph, const char *name, int x);

/* x . WEIGHT^T, a matrix that has a name and other uses of its own, + NAME.bias if there is one. */
int ft_linear_shared_weight(ft_graph *graph, const char *name, int x, const char *weight);

int ft_apply_activation(ft_graph *graph, const char *name, int x, ft_activation activation);

/* activation(x) * y. */
int ft_gated_activation(ft_graph *graph, const char *name, int x, int y, ft_activation activation);

/* `residual` is the operand that int8 residual streams read as codes. */
int ft_add_residual(ft_graph *graph, const char *name, int x, int residual);

/* Bidirectional attention inside each sequence; its probabilities are the point NAME.probs. */
int ft_attention(ft_graph *graph, const char *name, int q, int k, int v, int heads);

/* What attention over a cache must know, beside the widths of q, k, v. */
typedef struct ft_attention_params {
    int heads, kv_heads;
    int window;              /* 0: a token sees all before it */
    const char *frequencies; /* weight [1, head_size / 2] of the rotation; NULL: none */
    int rope_positions;      /* ft_attr */
    float rope_theta, rope_factor;
} ft_attention_params;

/*
 * Causal attention: q and k are rotated to their positions, k and v put into the cache NAME.keys,
 * NAME.values, and each token attends to what the cache holds up to it.
 */
int ft_cached_attention(ft_graph *graph, const char *name, int q, int k, int v,
                        const ft_attention_params *params);

/*
 * Attention to a source: keys and values of its tokens go into the memory NAME.keys, NAME.values,
 * in the source part; tokens of the target attend to all of them.
 */
void ft_store_cross_kv(ft_graph *graph, const char *name, int k, int v, int heads);
int ft_attend_cross(ft_graph *graph, const char *name, int q, int heads);

/* The rows that the caller wants results of. */
int ft_gather_rows(ft_graph *graph, const char *name, int x);

/*
 * Choose a token for each row of `logits`, in memory of what was given and chosen before: `ids`
 * are the tokens of this run.  NAME and its log-probability, NAME.logprob.
 */
int ft_sample(ft_graph *graph, const char *name, int logits, int ids);

/*
 * Let texts that are searched by beams take a step, by their rows of `logits`; a run chooses by
 * this or by ft_sample(), which comes before it: it notes the prompts.  What the search remembers
 * are the values NAME.origin, NAME.lanes and NAME.finished: kernels/beam_search.h.
 */
void ft_graph_beam_search(ft_graph *graph, const char *name, int logits);

int ft_pool(ft_graph *graph, const char *name, int x, ft_pooling pooling);
int ft_l2_normalize(ft_graph *graph, const char *name, int x);

/* Let calibration observe x although no quantized operation reads it. */
void ft_calibration_point(ft_graph *graph, int x);

/* Name a result for the caller. */
void ft_graph_output(ft_graph *graph, const char *name, int x);

#endif
