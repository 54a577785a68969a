/*
 * graph.h - builds the graph of a model: each call appends one operation.
 *
 * A graph is a plan before lowering: float operations without fusion.  Functions that append an
 * operation return the index of its result, and -1 after an error.  Errors are sticky: the graph
 * keeps the first one, later calls do nothing, and ft_graph_finish() reports it.  Build functions
 * therefore need no error handling.
 *
 * `name` is the name of the result and of its weights, prefixed with the current scope.  Shapes
 * are [rows, columns]; rows are the tokens of the batch (T), its sequences (S) or the selected
 * tokens (R).
 *
 * The builder marks calibration points: the inputs of linears whose weights may become int8, and
 * queries, keys, values and probabilities of bidirectional attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_GRAPH_H
#define FT_RUNTIME_GRAPH_GRAPH_H

#include "kernels/op.h"

typedef struct ft_graph {
    ft_plan plan;
    char scope[FT_NAME / 2]; /* "layer.3." or empty */
    const bool *quantizable; /* [nweight]: whether the weight may become int8 */
    ft_status status;
    ft_error err;
} ft_graph;

/*
 * Start a graph over `count` weights.  `weights` and `quantizable` are borrowed; quantizable[i]
 * says whether weight i may become int8.
 */
void ft_graph_init(ft_graph *graph, const ft_weight *weights, const bool *quantizable, int count);
void ft_graph_fini(ft_graph *graph);

/*
 * The first error of all calls, or FT_OK.  FT_EFORMAT: a weight is missing; FT_ELIMIT: a name is
 * too long or there are too many outputs; FT_ENOMEM: out of memory.
 */
FT_MUST_USE ft_status ft_graph_finish(const ft_graph *graph, ft_error *err);

/* Set the prefix of all following names: "layer.%d", or "" for none. */
void ft_graph_scope(ft_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * End the encoder of an encoder-decoder model: the operations so far form its encoder, which runs
 * in forward passes of its own.  The decoder sees only the cross-attention KV that they store.
 */
void ft_end_encoder(ft_graph *graph);

/* An int32 input [T, 1]: "input_ids", "positions", "token_type_ids", and its array in ft_batch. */
int ft_graph_input(ft_graph *graph, const char *name, ft_batch_input input);

/* A float input [S, channels * height * width] that the session sets: one image per sequence. */
int ft_graph_input_images(ft_graph *graph, const char *name, const ft_conv *conv);

/*
 * Cut images [S, channels * height * width] into patches of conv->kernel.  The result is [T,
 * channels * patch height * patch width]: per sequence `prefix_tokens` rows of zeros, then one row
 * per patch in row-major order.  The columns are in the order channel, row, column.
 */
int ft_patchify(ft_graph *graph, const char *name, int images, const ft_conv *conv,
                int32_t prefix_tokens);

/*
 * Add the class token and the positions to patch embeddings x [T, hidden].  The first row of each
 * sequence becomes NAME.class and, if the model has NAME.distillation, the second row becomes
 * that.  Then NAME.position [positions, hidden] is added to all rows.
 */
int ft_add_class_token(ft_graph *graph, const char *name, int x);

/* NAME.word[ids] + NAME.position[positions], + NAME.type[types] unless `types` is -1. */
int ft_embed(ft_graph *graph, const char *name, int ids, int positions, int types);

/*
 * NAME.word[ids], for decoders.  A negative id -1 - SLOT stands for the token that ft_sample() or
 * beam search last chose for that slot.
 */
int ft_embed_tokens(ft_graph *graph, const char *name, int ids);

/*
 * WORD[ids] * scale + POSITION[p], where `word` and `position` are full weight names without the
 * scope.  p is taken from `positions` or, if that is -1, is `offset` + the position of the token
 * in its sequence; in that case ids may be negative as in ft_embed_tokens().
 */
typedef struct ft_embed_params {
    const char *word, *position;
    float scale;
    int32_t offset;
} ft_embed_params;
int ft_embed_with_positions(ft_graph *graph, const char *name, int ids, int positions,
                            const ft_embed_params *params);

/* Layer norm with NAME.weight and NAME.bias; RMS norm with NAME.weight. */
int ft_layer_norm(ft_graph *graph, const char *name, int x, float eps);
int ft_rms_norm(ft_graph *graph, const char *name, int x, float eps);

/* RMS norm of each of `heads` heads of x [T, heads * head_size]; all share NAME.weight. */
int ft_head_norm(ft_graph *graph, const char *name, int x, int heads, float eps);

/* x . NAME.weight^T, + NAME.bias if the model has one: [rows of x, rows of the weight]. */
int ft_linear(ft_graph *graph, const char *name, int x);

/*
 * x . WEIGHT^T, + NAME.bias if the model has one.  WEIGHT is a full weight name without the scope,
 * which other operations use as well (a tied embedding).
 */
int ft_linear_shared_weight(ft_graph *graph, const char *name, int x, const char *weight);

int ft_apply_activation(ft_graph *graph, const char *name, int x, ft_activation activation);

/* activation(x) * y, elementwise. */
int ft_gated_activation(ft_graph *graph, const char *name, int x, int y, ft_activation activation);

/* x + residual.  An int8 residual stream reads the operand `residual` as quantized values. */
int ft_add_residual(ft_graph *graph, const char *name, int x, int residual);

/*
 * Bidirectional attention within each sequence; q, k and v are [T, heads * head_size].  Its
 * probabilities are the calibration point NAME.probs.
 */
int ft_attention(ft_graph *graph, const char *name, int q, int k, int v, int heads);

/* Parameters of causal attention; head_size follows from the widths of q and k. */
typedef struct ft_attention_params {
    int heads, kv_heads;
    int window;              /* tokens that a token attends to, itself included; 0: all */
    const char *frequencies; /* weight [1, head_size / 2] of RoPE frequencies; NULL: no RoPE */
    int rope_positions;      /* dynamic RoPE scaling, as in ft_attr; 0: none */
    float rope_theta, rope_factor;
} ft_attention_params;

/*
 * Causal attention with a KV cache: applies RoPE to q and k, appends k and v to the caches
 * NAME.keys and NAME.values, and attends from each token to the cached tokens up to itself.  q is
 * [T, heads * head_size], k and v are [T, kv_heads * head_size].
 */
int ft_cached_attention(ft_graph *graph, const char *name, int q, int k, int v,
                        const ft_attention_params *params);

/*
 * Cross-attention.  The encoder stores keys and values of the source tokens as cross-attention KV
 * under NAME.keys and NAME.values; each target token attends to all of them.
 */
void ft_store_cross_kv(ft_graph *graph, const char *name, int k, int v, int heads);
int ft_attend_cross(ft_graph *graph, const char *name, int q, int heads);

/* The selected rows of x, those that the caller wants results for: [R, columns of x]. */
int ft_gather_rows(ft_graph *graph, const char *name, int x);

/*
 * Sample one token per row of `logits` [R, vocabulary].  Appends RECORD_TOKENS, which adds `ids`,
 * the tokens of this forward pass, to the token history that penalties and n-gram bans read, and
 * SAMPLE.  The results are the int32 NAME [R, 1] and its log-probability NAME.logprob [R, 1].
 */
int ft_sample(ft_graph *graph, const char *name, int logits, int ids);

/*
 * One beam search step over the rows of `logits` [R, vocabulary].  A forward pass runs either this
 * or ft_sample(); call that one first, because it records the prompts.  The search state is in the
 * values NAME.cache_indirection, NAME.beams and NAME.finished: kernels/beam_search.h.
 */
void ft_graph_beam_search(ft_graph *graph, const char *name, int logits);

/* Pool the tokens of each sequence: [S, columns of x]. */
int ft_pool(ft_graph *graph, const char *name, int x, ft_pooling pooling);

/* Scale each row of x to unit L2 norm. */
int ft_l2_normalize(ft_graph *graph, const char *name, int x);

/* Mark x as a calibration point, even if no quantized operation reads it. */
void ft_calibration_point(ft_graph *graph, int x);

/* Make x, or one of its columns, an output of the model under the given name, without the scope. */
void ft_graph_output(ft_graph *graph, const char *name, int x);
void ft_graph_output_column(ft_graph *graph, const char *name, int x, int column);

#endif
