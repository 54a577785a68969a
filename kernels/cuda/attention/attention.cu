/*
 * attention.cu - softmax(q . k^T) . v: selects the kernel by dtype and maps the fake-quantized form
 * onto the int8 kernel.
 *
 * Fake-quantized plans hold int8 values in float. The CPU sums their products in double precision,
 * which checks its int8 kernels independently. The GPU converts them back to int8, so that the
 * results have the same bits at int8 speed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/attention.cuh"
#include "kernels/quant.h"
#include "kernels/softmax.h"

enum { ALIGNMENT = 256 };

static size_t quantized_bytes(size_t rows, size_t cols)
{
    return (rows * cols + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int attention_f16(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_attention_args *a)
{
    int status = ft_cuda_attention_f16_wgmma(props, stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    return ft_cuda_attention_f16(props, stream, a);
}

extern "C" int ft_cuda_attention_launch(const ft_cuda_device_props *props, void *stream,
                                        const ft_cuda_attention_args *a)
{
    if (a->head_size > FT_ATTENTION_MAX_HEAD)
        return (int) cudaErrorNotSupported;
    if (a->n_query_tiles == 0)
        return (int) cudaSuccess;
    switch (a->dtype) {
    case FT_I8:
        return ft_cuda_attention_i8(props, stream, a);
    case FT_F32:
        return ft_cuda_attention_f32(props, stream, a);
    case FT_F16:
    case FT_BF16:
        return attention_f16(props, stream, a);
    default:
        return (int) cudaErrorNotSupported;
    }
}

/* Parameters common to all kernels. The scales are combined in the CPU's order. */
static ft_cuda_attention_args attention_params(const ft_cuda_args *args)
{
    const ft_view *q = &args->in[0], *k = &args->in[1], *v = &args->in[2];
    ft_cuda_attention_args a = {};
    a.blocks = args->batch->blocks;
    a.n_query_tiles = args->batch->n_query_tiles;
    a.heads = args->op->attr.heads;
    a.head_size = (int) (q->cols / (size_t) a.heads);
    a.dtype = q->dtype;
    a.tokens = q->rows;
    a.sequences = args->batch->sequences;
    a.q = q->data;
    a.k = k->data;
    a.v = v->data;
    a.y = args->quantized.data != NULL ? args->quantized.data : args->out.data;
    a.score_scale = args->op->attr.softmax_scale;
    if (q->scale > 0.0f) {
        a.score_scale = ft_score_scale(q->scale, k->scale, args->op->attr.softmax_scale);
        a.value_scale = v->scale;
        a.y_inv_scale = ft_inverse_scale(args->quantized.scale);
    }
    a.counts = args->counts;
    return a;
}

/*
 * Fake-quantized inputs: int8 values held in float. The scratch buffer holds q, k, v and y as int8.
 */
static int attend_fake_quantized(const ft_cuda_args *args)
{
    size_t n = args->in[0].rows * args->in[0].cols;
    size_t matrix_bytes = quantized_bytes(args->in[0].rows, args->in[0].cols);
    ft_cuda_attention_args a = attention_params(args);
    int8_t *quantized[4];
    if (args->scratch_bytes < 4 * matrix_bytes)
        return (int) cudaErrorInvalidValue;
    for (size_t i = 0; i < 4; i++)
        quantized[i] = (int8_t *) args->scratch + i * matrix_bytes;
    for (int i = 0; i < 3; i++) {
        int status = ft_cuda_quantize_array(args->stream, quantized[i],
                                            (const float *) args->in[i].data, 1.0f, n);
        if (status != 0)
            return status;
    }
    a.dtype = FT_I8;
    a.q = quantized[0];
    a.k = quantized[1];
    a.v = quantized[2];
    a.counts = NULL;
    if (args->quantized.data != NULL)
        a.y = quantized[3];
    int status = ft_cuda_attention_launch(args->props, args->stream, &a);
    if (status != 0 || args->quantized.data == NULL)
        return status;
    return ft_cuda_dequantize_array(args->stream, (float *) args->quantized.data, quantized[3],
                                    1.0f, n);
}

extern "C" int ft_cuda_attention(const ft_cuda_args *args)
{
    if (args->in[0].dtype == FT_F32 && args->in[0].scale > 0.0f)
        return attend_fake_quantized(args);
    ft_cuda_attention_args a = attention_params(args);
    return ft_cuda_attention_launch(args->props, args->stream, &a);
}

extern "C" ft_workspace ft_cuda_attention_workspace(const ft_cuda_device_props *,
                                                    const ft_plan *plan, const ft_op *op,
                                                    const ft_limits *limits)
{
    const ft_value *q = &plan->value[op->in[0]];
    ft_workspace need = {};
    if (q->dtype == FT_F32 && q->scale > 0.0f) /* fake-quantized */
        need.scratch = 4 * quantized_bytes(limits->tokens, (size_t) q->cols);
    return need;
}
