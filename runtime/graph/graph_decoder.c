/*
 * graph_decoder.c - the builder calls of decoders: attention with a KV cache, sampling and beam
 * search.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/graph_private.h"

#include "kernels/beam_search.h"
#include "runtime/graph/plan.h"

#include <math.h>
#include <string.h>

/* ---- Attention with a KV cache --------------------------------------------------------------- */

/* Set the states NAME.keys and NAME.values: rows of the KV cache or of the cross-attention KV. */
static void set_kv_states(ft_graph *graph, ft_op *op, const char *name, int32_t width)
{
    ft_rows rows = op->attr.cross_kv ? FT_CROSS_KV : FT_KV_CACHE;
    op->state[FT_STATE_KEYS] = ft_graph_state(graph, name, ".keys", rows, width, FT_F32);
    op->state[FT_STATE_VALUES] = ft_graph_state(graph, name, ".values", rows, width, FT_F32);
}

/* Append the STORE_KV operation `op` for k and v. */
static void append_store_kv(ft_graph *graph, const char *name, ft_op *op, int k, int v)
{
    op->in[1] = (int16_t) k;
    op->in[2] = (int16_t) v;
    set_kv_states(graph, op, name, ft_graph_value(graph, k)->cols);
    ft_graph_append(graph, name, op);
}

/* Append STORE_KV with RoPE: rotates q and k, stores k and v; returns the rotated q. */
static int store_rotated(ft_graph *graph, const char *name, int q, int k, int v,
                         const ft_attention_params *params)
{
    ft_op op = ft_op_init(FT_OP_STORE_KV);
    op.in[0] = (int16_t) q;
    op.attr.heads = params->heads;
    op.attr.kv_heads = params->kv_heads;
    op.attr.rope_positions = params->rope_positions;
    op.attr.rope_theta = params->rope_theta;
    op.attr.rope_factor = params->rope_factor;
    op.weight[0] = (int16_t) ft_plan_find_weight(&graph->plan, params->frequencies);
    op.out = (int16_t) ft_graph_result(graph, name, ".rotated", FT_TOKENS,
                                       ft_graph_value(graph, q)->cols);
    append_store_kv(graph, name, &op, k, v);
    return op.out;
}

/* Append the ATTEND_KV operation `op` over NAME.keys and NAME.values of `width` columns. */
static int append_attend_kv(ft_graph *graph, const char *name, ft_op *op, int q, int32_t width)
{
    if (graph->status != FT_OK)
        return -1;
    int32_t cols = ft_graph_value(graph, q)->cols;
    op->in[0] = (int16_t) q;
    op->attr.softmax_scale = 1.0f / sqrtf((float) (cols / op->attr.heads));
    set_kv_states(graph, op, name, width);
    op->out = (int16_t) ft_graph_result(graph, name, ".context", FT_TOKENS, cols);
    return ft_graph_append(graph, name, op);
}

int ft_cached_attention(ft_graph *graph, const char *name, int q, int k, int v,
                        const ft_attention_params *params)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op store = ft_op_init(FT_OP_STORE_KV), op = ft_op_init(FT_OP_ATTEND_KV);
    store.attr.heads = op.attr.heads = params->heads;
    store.attr.kv_heads = op.attr.kv_heads = params->kv_heads;
    op.attr.window = params->window;
    if (params->frequencies != NULL)
        q = store_rotated(graph, name, q, k, v, params);
    else
        append_store_kv(graph, name, &store, k, v);
    return append_attend_kv(graph, name, &op, q, ft_graph_value(graph, k)->cols);
}

void ft_store_cross_kv(ft_graph *graph, const char *name, int k, int v, int heads)
{
    if (graph->status != FT_OK)
        return;
    ft_op op = ft_op_init(FT_OP_STORE_KV);
    op.attr.cross_kv = true;
    op.attr.heads = op.attr.kv_heads = heads;
    append_store_kv(graph, name, &op, k, v);
}

int ft_attend_cross(ft_graph *graph, const char *name, int q, int heads)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op op = ft_op_init(FT_OP_ATTEND_KV);
    op.attr.cross_kv = true;
    op.attr.heads = op.attr.kv_heads = heads;
    return append_attend_kv(graph, name, &op, q, ft_graph_value(graph, q)->cols);
}

/* ---- Sampling and beam search ---------------------------------------------------------------- */

int ft_gather_rows(ft_graph *graph, const char *name, int x)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op op = ft_op_init(FT_OP_GATHER_ROWS);
    op.in[0] = (int16_t) x;
    op.out =
        (int16_t) ft_graph_result(graph, name, "", FT_SELECTED, ft_graph_value(graph, x)->cols);
    return ft_graph_append(graph, name, &op);
}

int ft_sample(ft_graph *graph, const char *name, int logits, int ids)
{
    if (graph->status != FT_OK)
        return -1;
    int32_t vocabulary = ft_graph_value(graph, logits)->cols;
    ft_op record = ft_op_init(FT_OP_RECORD_TOKENS), sample = ft_op_init(FT_OP_SAMPLE);
    record.state[FT_STATE_HISTORY] =
        ft_graph_state(graph, "chosen", ".history", FT_SLOT_POSITIONS, 1, FT_I32);
    record.state[FT_STATE_TOKEN_COUNTS] =
        ft_graph_state(graph, "chosen", ".seen", FT_SLOTS, vocabulary, FT_I32);
    memcpy(sample.state, record.state, sizeof record.state);
    sample.state[FT_STATE_LAST_TOKEN] =
        ft_graph_state(graph, "chosen", ".last", FT_SLOTS, 1, FT_I32);
    record.in[0] = (int16_t) ids;
    sample.in[0] = (int16_t) logits;
    sample.out = (int16_t) ft_graph_result(graph, name, "", FT_SELECTED, 1);
    sample.second = (int16_t) ft_graph_result(graph, name, ".logprob", FT_SELECTED, 1);
    if (graph->status != FT_OK)
        return -1;
    graph->plan.value[sample.out].dtype = FT_I32;
    ft_graph_append(graph, name, &record);
    return ft_graph_append(graph, name, &sample);
}

/* Let self-attention read the KV cache through the cache indirection: beams share the cached tokens
 * of their parents. */
static void share_cache_indirection(ft_graph *graph, int16_t cache_indirection)
{
    for (int i = 0; i < graph->plan.nop; i++) {
        ft_op *op = &graph->plan.op[i];
        if (ft_op_info_of(op->kind)->work == FT_WORK_CACHE_READ && !op->attr.cross_kv)
            op->state[FT_STATE_CACHE_INDIRECTION] = cache_indirection;
    }
}

void ft_graph_beam_search(ft_graph *graph, const char *name, int logits)
{
    if (graph->status != FT_OK)
        return;
    ft_op op = ft_op_init(FT_OP_BEAM_SEARCH);
    op.in[0] = (int16_t) logits;
    op.state[FT_STATE_LAST_TOKEN] = ft_graph_state(graph, "chosen", ".last", FT_SLOTS, 1, FT_I32);
    op.state[FT_STATE_HISTORY] =
        ft_graph_state(graph, "chosen", ".history", FT_SLOT_POSITIONS, 1, FT_I32);
    op.state[FT_STATE_BEAMS] =
        ft_graph_state(graph, name, ".beams", FT_SLOTS, FT_BEAM_WORDS, FT_I32);
    op.state[FT_STATE_FINISHED] =
        ft_graph_state(graph, name, ".finished", FT_SLOT_POSITIONS, 1, FT_I32);
    op.state[FT_STATE_CACHE_INDIRECTION] =
        ft_graph_state(graph, name, ".cache_indirection", FT_SLOT_POSITIONS, 1, FT_I32);
    if (graph->status != FT_OK)
        return;
    share_cache_indirection(graph, op.state[FT_STATE_CACHE_INDIRECTION]);
    ft_graph_append(graph, name, &op);
}
