/*
 * graph.c - the builder calls: each appends one operation and its result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/graph_private.h"

#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void ft_graph_init(ft_graph *graph, const ft_weight *weights, const bool *quantizable, int count)
{
    memset(graph, 0, sizeof *graph);
    graph->plan.weight = weights;
    graph->plan.nweight = count;
    graph->quantizable = quantizable;
}

void ft_graph_fini(ft_graph *graph)
{
    ft_plan_fini(&graph->plan);
}

ft_status ft_graph_finish(const ft_graph *graph, ft_error *err)
{
    if (graph->status != FT_OK && err != NULL)
        *err = graph->err;
    return graph->status;
}

int ft_graph_fail(ft_graph *graph, ft_status status, const char *name, const char *reason)
{
    if (graph->status == FT_OK)
        graph->status = ft_fail(&graph->err, status, "%s%s: %s", graph->scope, name, reason);
    return -1;
}

void ft_graph_scope(ft_graph *graph, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(graph->scope, sizeof graph->scope - 1, format, args);
    va_end(args);
    if (length > 0 && (size_t) length < sizeof graph->scope - 1)
        strcat(graph->scope, ".");
    else if (length != 0)
        ft_graph_fail(graph, FT_ELIMIT, "", "the scope is too long");
}

void ft_end_encoder(ft_graph *graph)
{
    graph->plan.encoder_ops = graph->plan.nop;
}

static bool scoped_name(const ft_graph *graph, const char *name, const char *suffix,
                        char out[FT_NAME])
{
    int length = snprintf(out, FT_NAME, "%s%s%s", graph->scope, name, suffix);
    return length > 0 && length < FT_NAME;
}

int ft_graph_result(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                    int32_t cols)
{
    ft_value value = { .rows = rows, .cols = cols, .dtype = FT_F32 };
    if (!scoped_name(graph, name, suffix, value.name) ||
        strlen(value.name) + sizeof ".smooth" > sizeof value.name) /* lowering appends a suffix */
        return ft_graph_fail(graph, FT_ELIMIT, name, "the name is too long");
    int index = ft_plan_add_value(&graph->plan, &value);
    return index >= 0 ? index
                      : ft_graph_fail(graph, FT_ENOMEM, name, "no memory for another value");
}

int ft_graph_append(ft_graph *graph, const char *name, const ft_op *op)
{
    if (graph->status == FT_OK && ft_plan_add_op(&graph->plan, op) < 0)
        return ft_graph_fail(graph, FT_ENOMEM, name, "no memory for another operation");
    return op->out;
}

static int16_t weight(ft_graph *graph, const char *name, const char *suffix)
{
    char full[FT_NAME];
    int index =
        scoped_name(graph, name, suffix, full) ? ft_plan_find_weight(&graph->plan, full) : -1;
    if (index < 0)
        ft_graph_fail(graph, FT_EFORMAT, name, "the model has no such weight");
    return (int16_t) index;
}

/* A weight by its full name, without the scope. */
static int16_t unscoped_weight(ft_graph *graph, const char *name)
{
    int index = ft_plan_find_weight(&graph->plan, name);
    if (index < 0)
        ft_graph_fail(graph, FT_EFORMAT, name, "the model has no such weight");
    return (int16_t) index;
}

const ft_value *ft_graph_value(const ft_graph *graph, int index)
{
    return &graph->plan.value[index];
}

static const ft_weight *weight_at(const ft_graph *graph, int index)
{
    return &graph->plan.weight[index];
}

void ft_calibration_point(ft_graph *graph, int x)
{
    if (graph->status == FT_OK)
        graph->plan.value[x].point = true;
}

int ft_graph_input(ft_graph *graph, const char *name, ft_batch_input input)
{
    if (graph->status != FT_OK)
        return -1;
    int index = ft_graph_result(graph, name, "", FT_TOKENS, 1);
    if (index >= 0) {
        graph->plan.value[index].dtype = FT_I32;
        graph->plan.value[index].input = input;
    }
    return index;
}

int ft_embed(ft_graph *graph, const char *name, int ids, int positions, int types)
{
    ft_op op = ft_op_init(FT_OP_EMBED);
    if (graph->status == FT_OK) {
        op.weight[0] = weight(graph, name, ".word");
        op.weight[1] = weight(graph, name, ".position");
        if (types >= 0)
            op.weight[2] = weight(graph, name, ".type");
    }
    if (graph->status != FT_OK)
        return -1;
    op.in[0] = (int16_t) ids;
    op.in[1] = (int16_t) positions;
    op.in[2] = (int16_t) types;
    int32_t cols = (int32_t) weight_at(graph, op.weight[0])->cols;
    op.out = (int16_t) ft_graph_result(graph, name, "", FT_TOKENS, cols);
    return ft_graph_append(graph, name, &op);
}

int ft_graph_input_images(ft_graph *graph, const char *name, const ft_conv *conv)
{
    return graph->status != FT_OK
               ? -1
               : ft_graph_result(graph, name, "", FT_SEQUENCES, (int32_t) ft_conv_image_size(conv));
}

int ft_patchify(ft_graph *graph, const char *name, int images, const ft_conv *conv,
                int32_t prefix_tokens)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op op = ft_op_init(FT_OP_PATCHIFY);
    op.in[0] = (int16_t) images;
    op.attr.conv = *conv;
    op.attr.prefix_tokens = prefix_tokens;
    op.out = (int16_t) ft_graph_result(graph, name, "", FT_TOKENS, (int32_t) ft_conv_gemm_k(conv));
    return ft_graph_append(graph, name, &op);
}

int ft_add_class_token(ft_graph *graph, const char *name, int x)
{
    ft_op op = ft_op_init(FT_OP_ADD_CLASS_TOKEN);
    char second[FT_NAME];
    if (graph->status == FT_OK) {
        op.weight[0] = weight(graph, name, ".position");
        op.weight[1] = weight(graph, name, ".class");
        if (scoped_name(graph, name, ".distillation", second))
            op.weight[2] = (int16_t) ft_plan_find_weight(&graph->plan, second);
    }
    if (graph->status != FT_OK)
        return -1;
    op.in[0] = (int16_t) x;
    op.attr.prefix_tokens = op.weight[2] < 0 ? 1 : 2;
    op.out = (int16_t) ft_graph_result(graph, name, "", FT_TOKENS, ft_graph_value(graph, x)->cols);
    return ft_graph_append(graph, name, &op);
}

int16_t ft_graph_state(ft_graph *graph, const char *name, const char *suffix, ft_rows rows,
                       int32_t cols, ft_dtype dtype)
{
    char full[FT_NAME];
    int index = scoped_name(graph, name, suffix, full) ? ft_plan_find(&graph->plan, full) : -1;
    if (index >= 0)
        return (int16_t) index;
    index = ft_graph_result(graph, name, suffix, rows, cols);
    if (index >= 0) {
        graph->plan.value[index].dtype = dtype;
        graph->plan.value[index].state = true;
    }
    return (int16_t) index;
}

int ft_embed_tokens(ft_graph *graph, const char *name, int ids)
{
    ft_op op = ft_op_init(FT_OP_EMBED);
    if (graph->status == FT_OK) {
        op.weight[0] = weight(graph, name, ".word");
        op.state[FT_STATE_LAST_TOKEN] =
            ft_graph_state(graph, "chosen", ".last", FT_SLOTS, 1, FT_I32);
    }
    if (graph->status != FT_OK)
        return -1;
    op.in[0] = (int16_t) ids;
    int32_t cols = (int32_t) weight_at(graph, op.weight[0])->cols;
    op.out = (int16_t) ft_graph_result(graph, name, "", FT_TOKENS, cols);
    return ft_graph_append(graph, name, &op);
}

int ft_embed_with_positions(ft_graph *graph, const char *name, int ids, int positions,
                            const ft_embed_params *params)
{
    ft_op op = ft_op_init(FT_OP_EMBED);
    if (graph->status == FT_OK) {
        op.weight[0] = unscoped_weight(graph, params->word);
        op.weight[1] = unscoped_weight(graph, params->position);
        if (positions < 0)
            op.state[FT_STATE_LAST_TOKEN] =
                ft_graph_state(graph, "chosen", ".last", FT_SLOTS, 1, FT_I32);
    }
    if (graph->status != FT_OK)
        return -1;
    op.in[0] = (int16_t) ids;
    op.in[1] = (int16_t) positions;
    op.attr.embed_scale = params->scale;
    op.attr.position_offset = params->offset;
    int32_t cols = (int32_t) weight_at(graph, op.weight[0])->cols;
    op.out = (int16_t) ft_graph_result(graph, name, "", FT_TOKENS, cols);
    return ft_graph_append(graph, name, &op);
}

static int norm(ft_graph *graph, const char *name, int x, float eps, ft_norm_kind kind)
{
    ft_op op = ft_op_init(FT_OP_NORM);
    if (graph->status == FT_OK) {
        op.weight[0] = weight(graph, name, ".weight");
        if (kind == FT_NORM_LAYER)
            op.weight[1] = weight(graph, name, ".bias");
    }
    if (graph->status != FT_OK)
        return -1;
    op.in[0] = (int16_t) x;
    op.attr.eps = eps;
    op.attr.norm = kind;
    op.out = (int16_t) ft_graph_result(graph, name, "", ft_graph_value(graph, x)->rows,
                                       ft_graph_value(graph, x)->cols);
    return ft_graph_append(graph, name, &op);
}

int ft_layer_norm(ft_graph *graph, const char *name, int x, float eps)
{
    return norm(graph, name, x, eps, FT_NORM_LAYER);
}

int ft_rms_norm(ft_graph *graph, const char *name, int x, float eps)
{
    return norm(graph, name, x, eps, FT_NORM_RMS);
}

/* x . weight^T, + bias unless it is -1. */
static int linear(ft_graph *graph, const char *name, int x, int16_t weight, int16_t bias)
{
    ft_op op = ft_op_init(FT_OP_LINEAR);
    if (graph->status != FT_OK)
        return -1;
    if (graph->quantizable[weight])
        ft_calibration_point(graph, x);
    op.in[0] = (int16_t) x;
    op.weight[0] = weight;
    op.weight[1] = bias;
    int32_t cols = (int32_t) weight_at(graph, weight)->rows;
    op.out = (int16_t) ft_graph_result(graph, name, "", ft_graph_value(graph, x)->rows, cols);
    return ft_graph_append(graph, name, &op);
}

int ft_linear(ft_graph *graph, const char *name, int x)
{
    char full[FT_NAME];
    if (graph->status != FT_OK)
        return -1;
    int16_t w = weight(graph, name, ".weight");
    int bias =
        scoped_name(graph, name, ".bias", full) ? ft_plan_find_weight(&graph->plan, full) : -1;
    return linear(graph, name, x, w, (int16_t) bias);
}

int ft_linear_shared_weight(ft_graph *graph, const char *name, int x, const char *weight_name)
{
    char full[FT_NAME];
    if (graph->status != FT_OK)
        return -1;
    int16_t w = unscoped_weight(graph, weight_name);
    int bias =
        scoped_name(graph, name, ".bias", full) ? ft_plan_find_weight(&graph->plan, full) : -1;
    return linear(graph, name, x, w, (int16_t) bias);
}

/* Append an operation on `x` (and `other`, unless it is -1) whose result has the shape of `x`. */
static int append_elementwise(ft_graph *graph, ft_op *op, const char *name, int x, int other)
{
    if (graph->status != FT_OK)
        return -1;
    op->in[0] = (int16_t) x;
    op->in[1] = (int16_t) other;
    op->out = (int16_t) ft_graph_result(graph, name, "", ft_graph_value(graph, x)->rows,
                                        ft_graph_value(graph, x)->cols);
    return ft_graph_append(graph, name, op);
}

int ft_head_norm(ft_graph *graph, const char *name, int x, int heads, float eps)
{
    ft_op op = ft_op_init(FT_OP_HEAD_NORM);
    if (graph->status == FT_OK)
        op.weight[0] = weight(graph, name, ".weight");
    op.attr.heads = heads;
    op.attr.eps = eps;
    return append_elementwise(graph, &op, name, x, -1);
}

int ft_apply_activation(ft_graph *graph, const char *name, int x, ft_activation activation)
{
    ft_op op = ft_op_init(FT_OP_ACTIVATE);
    op.attr.activation = activation;
    return append_elementwise(graph, &op, name, x, -1);
}

int ft_add_residual(ft_graph *graph, const char *name, int x, int residual)
{
    ft_op op = ft_op_init(FT_OP_ADD);
    return append_elementwise(graph, &op, name, x, residual);
}

int ft_l2_normalize(ft_graph *graph, const char *name, int x)
{
    ft_op op = ft_op_init(FT_OP_L2_NORMALIZE);
    return append_elementwise(graph, &op, name, x, -1);
}

int ft_attention(ft_graph *graph, const char *name, int q, int k, int v, int heads)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op op = ft_op_init(FT_OP_ATTENTION);
    int in[FT_MAX_IN] = { q, k, v };
    for (int i = 0; i < FT_MAX_IN; i++) {
        op.in[i] = (int16_t) in[i];
        ft_calibration_point(graph, in[i]);
    }
    int32_t cols = ft_graph_value(graph, q)->cols;
    op.attr.heads = heads;
    op.attr.softmax_scale = 1.0f / sqrtf((float) (cols / heads));
    op.inner = (int16_t) ft_graph_result(graph, name, ".probs", FT_TOKENS, 1);
    op.out = (int16_t) ft_graph_result(graph, name, ".context", FT_TOKENS, cols);
    if (graph->status != FT_OK)
        return -1;
    graph->plan.value[op.inner].point = true;
    graph->plan.value[op.inner].inner = true;
    return ft_graph_append(graph, name, &op);
}

int ft_gated_activation(ft_graph *graph, const char *name, int x, int y, ft_activation activation)
{
    ft_op op = ft_op_init(FT_OP_GATE);
    op.attr.activation = activation;
    return append_elementwise(graph, &op, name, x, y);
}

int ft_pool(ft_graph *graph, const char *name, int x, ft_pooling pooling)
{
    if (graph->status != FT_OK)
        return -1;
    ft_op op = ft_op_init(FT_OP_POOL);
    op.in[0] = (int16_t) x;
    op.attr.pooling = pooling;
    op.out =
        (int16_t) ft_graph_result(graph, name, "", FT_SEQUENCES, ft_graph_value(graph, x)->cols);
    return ft_graph_append(graph, name, &op);
}

/* The next output; NULL after an error. */
static ft_output *add_output(ft_graph *graph, const char *name, int x)
{
    if (graph->status != FT_OK)
        return NULL;
    ft_plan *plan = &graph->plan;
    if (plan->noutput == FT_MAX_OUTPUTS) {
        ft_graph_fail(graph, FT_ELIMIT, name, "too many outputs");
        return NULL;
    }
    ft_output *output = &plan->output[plan->noutput++];
    snprintf(output->name, sizeof output->name, "%s", name);
    output->value = x;
    return output;
}

void ft_graph_output(ft_graph *graph, const char *name, int x)
{
    (void) add_output(graph, name, x);
}

void ft_graph_output_column(ft_graph *graph, const char *name, int x, int column)
{
    ft_output *output = add_output(graph, name, x);
    if (output == NULL)
        return;
    output->one_column = true;
    output->column = column;
}
