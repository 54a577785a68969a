/*
 * op.c - names and properties of operations, names of activations, sizes of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/op.h"

#include "runtime/mem.h"

#include <string.h>

static const ft_op_info infos[FT_NUM_OP_KINDS] = {
#define X(NAME, name, READS, WRITES, STORAGE, WORK, RUNS, ...)                                     \
    [FT_OP_##NAME] = { #name,          FT_READS_##READS, FT_WRITES_##WRITES, FT_STORAGE_##STORAGE, \
                       FT_WORK_##WORK, FT_RUNS_##RUNS },
#include "kernels/ops.def"
#undef X
};

static const char *const poolings[FT_NUM_POOLINGS] = {
    [FT_POOL_FIRST] = "first",
    [FT_POOL_MEAN] = "mean",
    [FT_POOL_LAST] = "last",
    [FT_POOL_MAX] = "max",
    [FT_POOL_MEAN_SQRT_LEN] = "mean_sqrt_len",
    [FT_POOL_WEIGHTED_MEAN] = "weighted_mean",
};

const char *ft_pooling_name(ft_pooling pooling)
{
    return (unsigned) pooling < FT_NUM_POOLINGS ? poolings[pooling] : "unknown";
}

const ft_op_info *ft_op_info_of(ft_op_kind kind)
{
    return &infos[kind];
}

const char *ft_op_name(ft_op_kind kind)
{
    return (unsigned) kind < FT_NUM_OP_KINDS ? infos[kind].name : "unknown";
}

bool ft_op_is_gemm(ft_op_kind kind)
{
    return infos[kind].work == FT_WORK_MATRIX;
}

bool ft_op_uses_cache(ft_op_kind kind)
{
    return infos[kind].work == FT_WORK_CACHE_WRITE || infos[kind].work == FT_WORK_CACHE_READ;
}

bool ft_op_has_heads(ft_op_kind kind)
{
    return infos[kind].work == FT_WORK_ATTENTION || ft_op_uses_cache(kind);
}

bool ft_op_is_idle(ft_op_kind kind, bool new_tokens, bool samples, bool searches)
{
    ft_runs_kind runs = infos[kind].runs;
    return (runs == FT_RUNS_NEW_TOKENS && !new_tokens) || (runs == FT_RUNS_SAMPLING && !samples) ||
           (runs == FT_RUNS_BEAM_SEARCH && !searches);
}

const char *ft_rows_name(ft_rows rows)
{
    static const char *const names[] = {
        [FT_TOKENS] = "T",
        [FT_SEQUENCES] = "S",
        [FT_SELECTED] = "R",
        [FT_SLOTS] = "slots",
        [FT_SLOT_POSITIONS] = "positions",
        [FT_KV_CACHE] = "cache",
        [FT_CROSS_KV] = "cross_kv",
    };
    return (unsigned) rows < FT_NUM_ROW_KINDS ? names[rows] : "?";
}

static const char *const activations[] = {
    [FT_ACT_NONE] = "none",           [FT_ACT_GELU] = "gelu", [FT_ACT_GELU_APPROX] = "gelu_approx",
    [FT_ACT_GELU_TANH] = "gelu_tanh", [FT_ACT_RELU] = "relu", [FT_ACT_TANH] = "tanh",
    [FT_ACT_SILU] = "silu",
};

const char *ft_activation_name(ft_activation activation)
{
    return (size_t) activation < FT_COUNT(activations) ? activations[activation] : "unknown";
}

bool ft_activation_parse(const char *name, ft_activation *out)
{
    if (strcmp(name, "gelu_codes") == 0)
        name = activations[FT_ACT_GELU_APPROX];
    for (size_t i = 0; i < FT_COUNT(activations); i++)
        if (strcmp(activations[i], name) == 0) {
            *out = (ft_activation) i;
            return true;
        }
    return false;
}

size_t ft_weight_bytes(const ft_weight *weight)
{
    switch (weight->layout) {
    case FT_ROW:
        break;
    case FT_PANEL32:
        return ft_panel_bytes(weight->rows, weight->cols, ft_groupwise_bits(weight->dtype));
    case FT_COL32:
    case FT_COL4_4R2_8C:
    case FT_COL32_2R_4R4:
        return ft_layout_bytes(weight->layout, weight->rows, weight->cols);
    }
    return weight->rows * weight->cols * ft_dtype_size(weight->dtype);
}
