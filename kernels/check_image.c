/*
 * check_image.c - the rules of operations on images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

#include "kernels/quant.h"
#include "runtime/mem.h"

/* ---- Convolutions ------------------------------------------------------------------------- */

/* The sizes are in the range that ft_conv_out_size() supports, and the result is not empty. */
static ft_status check_conv_shape(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const int32_t size[3] = { conv->channels, conv->height, conv->width };
    for (int i = 0; i < 3; i++)
        if (size[i] < 1 || size[i] > FT_CONV_MAX_SIZE)
            return fail_check(c,
                              "channels, height and width of the image must be from 1 to 16777216");
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] < 1 || conv->kernel[i] > FT_CONV_MAX_WINDOW || conv->stride[i] < 1 ||
            conv->stride[i] > FT_CONV_MAX_WINDOW || conv->dilation[i] < 1 ||
            conv->dilation[i] > FT_CONV_MAX_WINDOW || conv->padding[i] < 0 ||
            conv->padding[i] > FT_CONV_MAX_WINDOW)
            return fail_check(
                c, "kernel, stride and dilation must be from 1 to 32767, padding from 0");
    if (ft_conv_out_size(conv, 0) < 1 || ft_conv_out_size(conv, 1) < 1)
        return fail_check(c, "the kernel is larger than the padded image");
    return FT_OK;
}

static ft_status check_conv_weight(const checker *c, const ft_value *x, const ft_weight *w)
{
    const ft_conv *conv = &c->op->attr.conv;
    size_t window = (size_t) conv->kernel[0] * (size_t) conv->kernel[1] * (size_t) conv->channels;
    if (w == NULL || w->cols != window)
        return fail_check(c, "K of the weight is not kernel height * kernel width * channels");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_float_value(x);
    bool blocks = is_groupwise_matrix(w) && is_float_value(x);
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_quantized_value(x) && x->dtype == FT_I8 && !x->dynamic;
    if (!plain && !blocks && !int8)
        return fail_check(c, "input and weight must both be float or both be int8");
    if (!plain)
        FT_TRY(ft_check_accumulator_depth(c, w));
    if (int8 ? conv->zero < -FT_QUANT_MAX || conv->zero > FT_QUANT_MAX : conv->zero != 0)
        return fail_check(c, "the zero point is outside -127..127, or the input is not quantized");
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
        return fail_check(c, "the input is not one image of this size per sequence");
    FT_TRY(check_conv_weight(c, x, w));
    if (bias != NULL && !is_vector(bias, w->rows))
        return fail_check(c, "the bias must be a float vector with one element per output");
    if (!is_image_order(conv->in_layout) || !is_image_order(conv->out_layout))
        return fail_check(c, "the image layout is neither NCHW nor NHWC");
    if (conv->clamps && !(conv->low <= conv->high))
        return fail_check(c, "the clamp range is empty");
    if (!ft_checked_mul(w->rows, out_height * out_width, &cols))
        return fail_check(c, "the size of the result overflows size_t");
    return ft_check_gemm_results(c, x, cols, 1u << FT_F32 | 1u << FT_F16);
}

/* ---- Images ------------------------------------------------------------------------------- */

/* At least one patch, and patches do not overlap. */
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
        return fail_check(c, "the image has no complete patch, or patches overlap");
    if (!is_float_value(x) || x->dtype != FT_F32 || x->rows != FT_SEQUENCES ||
        x->cols != ft_conv_image_size(conv))
        return fail_check(c, "the input is not one float32 image per sequence");
    return ft_check_results(c, FT_TOKENS, (size_t) ft_conv_gemm_k(conv));
}

/* One or two prefix tokens, each with a learned vector. */
ft_status ft_check_add_class_token(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_weight *position = get_weight(c, 0), *first = get_weight(c, 1),
                    *second = get_weight(c, 2);
    if (!is_float_value(x) || x->rows != FT_TOKENS)
        return fail_check(c, "the input is not float or not one row per token");
    size_t cols = (size_t) x->cols;
    if (!is_float_matrix(position) || position->cols != cols)
        return fail_check(c, "the position table must be a float matrix as wide as the input");
    if (!is_vector(first, cols) || (second != NULL && !is_vector(second, cols)) ||
        c->op->attr.prefix_tokens != 1 + (second != NULL))
        return fail_check(c,
                          "the prefix tokens must be float vectors as long as the input is wide");
    if (position->rows <= (size_t) c->op->attr.prefix_tokens)
        return fail_check(c, "the position table has no rows for patches");
    return ft_check_results(c, FT_TOKENS, cols);
}
