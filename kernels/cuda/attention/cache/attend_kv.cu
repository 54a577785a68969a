/*
 * attend_kv.cu - attention over the KV cache: selects the kernel by phase (decode or prefill) and
 * by dtype.
 *
 * Decode and prefill use different kernels, so the same row may differ in its last bits between the
 * two. No row can take both paths: prompt tokens always go through prefill, and generated tokens
 * always go through decode.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/fused_kernels.h"

ft_attend_kv_params ft_attend_kv_params_of(const ft_cuda_args *args)
{
    const ft_attr *attr = &args->op->attr;
    const ft_cuda_batch *batch = args->batch;
    const ft_view *state = args->state;
    ft_attend_kv_params a = {};
    a.q = args->in[0].data;
    a.tokens = args->in[0].rows;
    a.y = args->out.data;
    a.keys = state[FT_STATE_KEYS].data;
    a.values = state[FT_STATE_VALUES].data;
    a.key_scales = (const float *) state[FT_STATE_KEY_SCALES].data;
    a.value_scales = (const float *) state[FT_STATE_VALUE_SCALES].data;
    a.q_dtype = args->in[0].dtype;
    a.y_dtype = args->out.dtype;
    a.cache_dtype = state[FT_STATE_KEYS].dtype;
    a.heads = attr->heads;
    a.kv_heads = attr->kv_heads;
    a.group = attr->heads / attr->kv_heads;
    a.head_size = (int) (args->in[0].cols / (size_t) attr->heads);
    a.window = attr->window;
    a.score_scale = attr->softmax_scale * FT_LOG2_E;
    a.cached_rows = state[FT_STATE_KEYS].rows * (size_t) attr->kv_heads;
    a.sequences = batch->sequences;
    a.start = batch->start;
    a.non_causal = attr->cross_kv;
    a.sequences_per_kv = attr->cross_kv && batch->beam_width > 1 ? (int) batch->beam_width : 1;
    a.n_past = attr->cross_kv ? batch->cross_kv_last : batch->n_past;
    a.pages = attr->cross_kv ? batch->cross_kv_pages : batch->pages;
    a.max_pages = attr->cross_kv ? batch->max_cross_kv_pages : batch->max_pages;
    a.context = attr->cross_kv ? batch->cross_kv : batch->context;
    if (batch->beam_width > 1 && !attr->cross_kv) {
        a.cache_indirection = (const int32_t *) state[FT_STATE_CACHE_INDIRECTION].data;
        a.slot = batch->slot;
        a.beam_width = batch->beam_width;
        a.capacity = batch->capacity;
    }
    a.blocks = batch->decode_step ? NULL : batch->blocks;
    a.n_query_tiles = batch->n_query_tiles;
    a.partial = (float *) args->scratch;
    a.split_counters = args->counters;
    return a;
}

static int decode(const ft_cuda_args *args, const ft_attend_kv_params *a)
{
    size_t needed =
        ft_cuda_attend_kv_decode_scratch(a->sequences, a->context, a->heads, a->head_size);
    if (args->scratch_bytes < needed || a->split_counters == NULL)
        return (int) cudaErrorInvalidValue;
    int status = ft_cuda_attend_kv_decode_int8(args->props, args->stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    status = ft_cuda_attend_kv_decode_short(args->props, args->stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    return ft_cuda_attend_kv_decode(args->props, args->stream, a);
}

static int prefill(const ft_cuda_args *args, const ft_attend_kv_params *a)
{
    int status = ft_cuda_attend_kv_prefill_wgmma(args->props, args->stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    if (args->batch->few_kv_pages)
        status = ft_cuda_attend_kv_prefill_dequantized(args->props, args->stream, a, args->scratch,
                                                       args->scratch_bytes);
    if (status != (int) cudaErrorNotSupported)
        return status;
    status = ft_cuda_attend_kv_prefill_int8(args->props, args->stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    return ft_cuda_attend_kv_prefill_mma(args->props, args->stream, a);
}

extern "C" int ft_cuda_attend_kv(const ft_cuda_args *args)
{
    ft_attend_kv_params a = ft_attend_kv_params_of(args);
    if (a.head_size % 8 != 0 || a.head_size > FT_CUDA_MAX_HEAD_SIZE ||
        args->state[FT_STATE_VALUES].dtype != a.cache_dtype)
        return (int) cudaErrorNotSupported;
    if (args->batch->decode_step ? a.sequences == 0 : a.n_query_tiles == 0)
        return (int) cudaSuccess;
    int status = args->batch->decode_step ? decode(args, &a) : prefill(args, &a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    return ft_cuda_attend_kv_f32(args->props, args->stream, &a);
}

/* Of a prompt over an int8 cache. */
static size_t prefill_scratch(const ft_cuda_device_props *props, const ft_plan *plan,
                              const ft_op *op, const ft_limits *limits)
{
    int head_size = plan->value[op->in[0]].cols / op->attr.heads, keys = op->state[FT_STATE_KEYS];
    bool copies = props->has_wgmma && head_size <= 128 && !op->attr.cross_kv && keys >= 0 &&
                  plan->value[keys].dtype == FT_I8;
    return copies ? ft_cuda_attend_kv_prefill_scratch(limits, op->attr.kv_heads, head_size) : 0;
}

extern "C" ft_workspace ft_cuda_attend_kv_workspace(const ft_cuda_device_props *props,
                                                    const ft_plan *plan, const ft_op *op,
                                                    const ft_limits *limits)
{
    int heads = op->attr.heads, head_size = plan->value[op->in[0]].cols / heads;
    size_t sequences = limits->sequences,
           context = op->attr.cross_kv ? limits->cross_kv : limits->context;
    size_t step = ft_cuda_attend_kv_decode_scratch(sequences, context, heads, head_size);
    size_t store = ft_cuda_store_attend_scratch(sequences, context, heads, head_size);
    size_t prompt = prefill_scratch(props, plan, op, limits);
    ft_workspace need = {};
    need.scratch = step > store ? step : store;
    need.scratch = prompt > need.scratch ? prompt : need.scratch;
    need.counters = ft_cuda_attend_kv_decode_counters(sequences, heads, op->attr.kv_heads);
    return need;
}
