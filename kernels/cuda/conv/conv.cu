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
enum { MOST_SCRATCH = 512 << 20, MOST_IMAGES = 32768, MOST_WINDOWS = 1 << 30 };

static conv_task task_of(const ft_conv *conv, const ft_weight *weight, ft_dtype x_dtype)
{
    conv_task t = {};
    t.conv = *conv;
    t.across = ft_conv_size(conv, 1);
    t.positions = ft_conv_size(conv, 0) * t.across;
    t.outputs = (int) weight->rows;
    t.window = (int) weight->cols;
    t.x_dtype = x_dtype;
    t.w_dtype = weight->dtype;
    t.w = weight->data;
    t.tiles = weight->tiles;
    t.w_scale = weight->scale;
    t.blocks = weight->blocks;
    return t;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Images per chunk, of `images` in total. */
static size_t images_of_part(conv_task *t, size_t images)
{
    t->images = 1;
    size_t most = MOST_SCRATCH / (ft_cuda_conv_wgmma_scratch(t) + 1);
    most = least(least(most, MOST_IMAGES), (size_t) (MOST_WINDOWS / t->positions));
    return least(images, most == 0 ? 1 : most);
}

size_t ft_cuda_conv_scratch(const ft_cuda_chip *chip, const ft_plan *plan, const ft_op *op,
                            size_t images)
{
    const ft_value *x = &plan->value[op->in[0]];
    conv_task t = task_of(&op->attr.conv, &plan->weight[op->weight[0]], x->dtype);
    if (!ft_cuda_conv_wgmma_takes(chip, &t))
        return 0;
    t.images = (int) images_of_part(&t, images);
    return ft_cuda_conv_wgmma_scratch(&t);
}

static int run(const ft_cuda_args *args, conv_task *t, size_t images)
{
    size_t x_bytes = args->in[0].cols * ft_dtype_size(t->x_dtype);
    size_t y_bytes = (size_t) t->outputs * (size_t) t->positions * ft_dtype_size(t->y_dtype);
    bool fast = ft_cuda_conv_wgmma_takes(args->chip, t);
    size_t part = images_of_part(t, images);
    int status = 0;
    for (size_t first = 0; first < images && status == 0; first += part) {
        size_t count = images - first < part ? images - first : part;
        conv_task some = *t;
        some.images = (int) count;
        some.x = (char *) t->x + first * x_bytes;
        some.y = (char *) t->y + first * y_bytes;
        if (fast && args->scratch_bytes < ft_cuda_conv_wgmma_scratch(&some))
            return (int) cudaErrorInvalidValue;
        status = fast ? ft_cuda_conv_wgmma(args->chip, args->stream, &some, args->scratch)
                      : ft_cuda_conv_plain(args->chip, args->stream, &some);
    }
    return status;
}

extern "C" int ft_cuda_conv(const ft_cuda_args *args)
{
    const ft_cuda_view *y = args->codes.data != NULL ? &args->codes : &args->out;
    conv_task t = task_of(&args->op->attr.conv, args->weight[0], args->in[0].dtype);
    t.x = args->in[0].data;
    t.x_scale = args->in[0].scale;
    t.y = y->data;
    t.y_dtype = y->dtype;
    t.y_inverse = ft_inverse_scale(args->codes.scale);
    t.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    t.activation = args->op->attr.activation;
    if (args->weight[0]->cols > INT32_MAX)
        return (int) cudaErrorNotSupported;
    return run(args, &t, args->in[0].rows);
}
