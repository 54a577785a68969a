/*
 * conv.cu - the operation CONV: act(im2col windows . w^T + b), clamped to a range, by the fastest
 * kernel that supports the problem.
 *
 * Images are processed in chunks that fit the scratch buffer. The kernel depends on shapes and
 * types only, and no sum depends on the number of images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv.cuh"

/*
 * Limits of a chunk: scratch bytes of images in another layout (a chunk has at least one image),
 * images, windows.
 */
enum { MAX_SCRATCH = 512 << 20, MAX_IMAGES = 32768, MAX_WINDOWS = 1 << 30 };

static conv_problem_args problem_args_of(const ft_conv *conv, const ft_weight *weight,
                                         ft_dtype x_dtype)
{
    conv_problem_args t = {};
    t.conv = *conv;
    t.per_row = ft_conv_out_size(conv, 1);
    t.out_pixels = ft_conv_out_size(conv, 0) * t.per_row;
    t.out_channels = (int) weight->rows;
    t.window = (int) weight->cols;
    t.x_dtype = x_dtype;
    t.w_dtype = weight->dtype;
    t.w = weight->data;
    t.prepacked = weight->prepacked;
    t.w_scale = weight->scale;
    t.groupwise = weight->groupwise;
    return t;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Images per chunk, of `images` in total. */
static size_t images_per_chunk(conv_problem_args *t, size_t images)
{
    t->images = 1;
    size_t max_images = MAX_SCRATCH / (ft_cuda_conv_wgmma_scratch(t) + 1);
    max_images = min_size(min_size(max_images, MAX_IMAGES), (size_t) (MAX_WINDOWS / t->out_pixels));
    return min_size(images, max_images == 0 ? 1 : max_images);
}

extern "C" ft_workspace ft_cuda_conv_workspace(const ft_cuda_device_props *props,
                                               const ft_plan *plan, const ft_op *op,
                                               const ft_limits *limits)
{
    const ft_value *x = &plan->value[op->in[0]];
    conv_problem_args t = problem_args_of(&op->attr.conv, &plan->weight[op->weight[0]], x->dtype);
    ft_workspace need = {};
    if (ft_cuda_conv_wgmma_supports(props, &t)) {
        t.images = (int) images_per_chunk(&t, limits->sequences);
        need.scratch = ft_cuda_conv_wgmma_scratch(&t);
    }
    return need;
}

static int run_chunks(const ft_cuda_args *args, conv_problem_args *t, size_t images)
{
    size_t x_bytes = args->in[0].cols * ft_dtype_size(t->x_dtype);
    size_t y_bytes = (size_t) t->out_channels * (size_t) t->out_pixels * ft_dtype_size(t->y_dtype);
    bool use_wgmma = ft_cuda_conv_wgmma_supports(args->props, t);
    size_t chunk = images_per_chunk(t, images);
    int status = 0;
    for (size_t first = 0; first < images && status == 0; first += chunk) {
        size_t count = images - first < chunk ? images - first : chunk;
        conv_problem_args sub_batch = *t;
        sub_batch.images = (int) count;
        sub_batch.x = (char *) t->x + first * x_bytes;
        sub_batch.y = (char *) t->y + first * y_bytes;
        if (use_wgmma && args->scratch_bytes < ft_cuda_conv_wgmma_scratch(&sub_batch))
            return (int) cudaErrorInvalidValue;
        status = use_wgmma
                     ? ft_cuda_conv_wgmma(args->props, args->stream, &sub_batch, args->scratch)
                     : ft_cuda_conv_simt(args->props, args->stream, &sub_batch);
    }
    return status;
}

extern "C" int ft_cuda_conv(const ft_cuda_args *args)
{
    const ft_view *y = args->quantized.data != NULL ? &args->quantized : &args->out;
    conv_problem_args t = problem_args_of(&args->op->attr.conv, args->weight[0], args->in[0].dtype);
    t.x = args->in[0].data;
    t.x_scale = args->in[0].scale;
    t.y = y->data;
    t.y_dtype = y->dtype;
    t.y_inv_scale = ft_inverse_scale(args->quantized.scale);
    t.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    t.activation = args->op->attr.activation;
    if (args->weight[0]->cols > INT32_MAX)
        return (int) cudaErrorNotSupported;
    return run_chunks(args, &t, args->in[0].rows);
}
