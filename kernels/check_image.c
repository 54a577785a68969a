/*
 * check_image.c - the rules of operations on images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

#include "runtime/mem.h"

/* ---- Convolutions ------------------------------------------------------------------------- */

/* Lengths are where ft_conv_out_size() computes safely, and there is a result. */
static ft_status check_conv_shape(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const int32_t size[3] = { conv->channels, conv->height, conv->width };
    for (int i = 0; i < 3; i++)
        if (size[i] < 1 || size[i] > FT_CONV_MAX_SIZE)
            return fail_check(c,
                              "channels, rows and columns of an image must be from 1 to 16777216");
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] < 1 || conv->kernel[i] > FT_CONV_MAX_WINDOW || conv->stride[i] < 1 ||
            conv->stride[i] > FT_CONV_MAX_WINDOW || conv->dilation[i] < 1 ||
            conv->dilation[i] > FT_CONV_MAX_WINDOW || conv->padding[i] < 0 ||
            conv->padding[i] > FT_CONV_MAX_WINDOW)
            return fail_check(
                c, "kernel, stride and dilation must be from 1 to 32767, padding from 0");
    if (ft_conv_out_size(conv, 0) < 1 || ft_conv_out_size(conv, 1) < 1)
        return fail_check(c, "the kernel is larger than the image with its padding");
    return FT_OK;
}

static ft_status check_conv_weight(const checker *c, const ft_value *x, const ft_weight *w)
{
    const ft_conv *conv = &c->op->attr.conv;
    size_t window = (size_t) conv->kernel[0] * (size_t) conv->kernel[1] * (size_t) conv->channels;
    if (w == NULL || w->cols != window)
        return fail_check(c, "the weight is not as deep as a window of the image");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_float_value(x);
    bool blocks = is_groupwise_matrix(w) && is_float_value(x);
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_quantized_value(x) && x->dtype == FT_I8 && !x->dynamic;
    if (!plain && !blocks && !int8)
        return fail_check(c, "input and weight are not both float or both int8");
    if (!plain)
        FT_TRY(ft_check_accumulator_depth(c, w));
    if (int8 ? conv->zero < -127 || conv->zero > 127 : conv->zero != 0)
        return fail_check(c, "the code that stands for 0 is none, or there are no codes");
    return FT_OK;
}

static bool is_image_order(ft_image_layout order)
{
    return order == FT_IMAGE_NCHW || order == FT_IMAGE_NHWC;
}

ft_status ft_check_conv(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_weight *w = get_weight(c, 0), *bias = get_weight(c, 1);
    FT_TRY(check_conv_shape(c));
    size_t height = (size_t) conv->height, width = (size_t) conv->width;
    size_t out_height = (size_t) ft_conv_out_size(conv, 0),
           out_width = (size_t) ft_conv_out_size(conv, 1), cols;
    if (x == NULL || !ft_checked_mul((size_t) conv->channels, height * width, &cols) ||
        !has_shape(x, FT_SEQUENCES, cols))
        return fail_check(c, "the input is not an image a sequence, of so many channels");
    FT_TRY(check_conv_weight(c, x, w));
    if (bias != NULL && !is_vector(bias, w->rows))
        return fail_check(c, "the bias must be a float vector, one value an output");
    if (!is_image_order(conv->in_layout) || !is_image_order(conv->out_layout))
        return fail_check(c, "images are neither planes nor pixels");
    if (conv->clamps && !(conv->low <= conv->high))
        return fail_check(c, "the range that results are cut to is empty");
    if (!ft_checked_mul(w->rows, out_height * out_width, &cols))
        return fail_check(c, "the result is larger than memory can be");
    return ft_check_gemm_results(c, x, cols, 1u << FT_F32 | 1u << FT_F16);
}

/* ---- Images ------------------------------------------------------------------------------- */

/* A grid of patches that do not overlap: at least one. */
static bool is_patch_grid(const ft_conv *conv)
{
    bool valid = conv->channels > 0 && conv->height > 0 && conv->width > 0;
    for (int i = 0; i < 2; i++)
        valid = valid && conv->kernel[i] > 0 && conv->stride[i] == conv->kernel[i] &&
                conv->padding[i] == 0 && conv->dilation[i] == 1 && ft_conv_out_size(conv, i) > 0;
    return valid;
}

ft_status ft_check_patchify(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_patch_grid(conv) || c->op->attr.prefix_tokens < 0)
        return fail_check(c, "the image has no whole patch, or patches overlap");
    if (!is_float_value(x) || x->dtype != FT_F32 || x->rows != FT_SEQUENCES ||
        x->cols != ft_conv_image_size(conv))
        return fail_check(c, "reads something that is not an image of float32 for each sequence");
    return ft_check_results(c, FT_TOKENS, (size_t) ft_conv_gemm_k(conv));
}

/* Leading rows have vectors of their own: one or two. */
ft_status ft_check_add_class_token(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_weight *position = get_weight(c, 0), *first = get_weight(c, 1),
                    *second = get_weight(c, 2);
    if (!is_float_value(x) || x->rows != FT_TOKENS)
        return fail_check(c, "reads something that is not float or not per token");
    size_t cols = (size_t) x->cols;
    if (!is_float_matrix(position) || position->cols != cols)
        return fail_check(c, "the positions are not a float matrix as wide as the input");
    if (!is_vector(first, cols) || (second != NULL && !is_vector(second, cols)) ||
        c->op->attr.prefix_tokens != 1 + (second != NULL))
        return fail_check(c, "the leading rows are not float vectors as wide as the input");
    if (position->rows <= (size_t) c->op->attr.prefix_tokens)
        return fail_check(c, "there are no positions behind those of the leading rows");
    return ft_check_results(c, FT_TOKENS, cols);
}
