/*
 * check_image.c - the rules of operations on images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_private.h"

#include "runtime/mem.h"

/* ---- Convolutions ------------------------------------------------------------------------- */

/* Lengths are where ft_conv_size() computes safely, and there is a result. */
static ft_status check_window(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const int32_t size[3] = { conv->channels, conv->height, conv->width };
    for (int i = 0; i < 3; i++)
        if (size[i] < 1 || size[i] > FT_CONV_LARGEST_SIZE)
            return refuse(c, "channels, rows and columns of an image must be from 1 to 16777216");
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] < 1 || conv->kernel[i] > FT_CONV_LARGEST || conv->stride[i] < 1 ||
            conv->stride[i] > FT_CONV_LARGEST || conv->dilation[i] < 1 ||
            conv->dilation[i] > FT_CONV_LARGEST || conv->padding[i] < 0 ||
            conv->padding[i] > FT_CONV_LARGEST)
            return refuse(c, "kernel, stride and dilation must be from 1 to 32767, padding from 0");
    if (ft_conv_size(conv, 0) < 1 || ft_conv_size(conv, 1) < 1)
        return refuse(c, "the kernel is larger than the image with its padding");
    return FT_OK;
}

static ft_status check_conv_weight(const checker *c, const ft_value *x, const ft_weight *w)
{
    const ft_conv *conv = &c->op->attr.conv;
    size_t window = (size_t) conv->kernel[0] * (size_t) conv->kernel[1] * (size_t) conv->channels;
    if (w == NULL || w->cols != window)
        return refuse(c, "the weight is not as deep as a window of the image");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_real(x);
    bool blocks = is_block_matrix(w) && is_real(x);
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_codes(x) && x->dtype == FT_I8 && !x->dynamic;
    if (!plain && !blocks && !int8)
        return refuse(c, "input and weight are not both float or both int8");
    if (!plain)
        FT_TRY(ft_check_depth(c, w));
    if (int8 ? conv->zero < -127 || conv->zero > 127 : conv->zero != 0)
        return refuse(c, "the code that stands for 0 is none, or there are no codes");
    return FT_OK;
}

static bool is_image_order(ft_image_order order)
{
    return order == FT_IMAGE_PLANES || order == FT_IMAGE_PIXELS;
}

ft_status ft_check_conv(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *w = weight_at(c, 0), *bias = weight_at(c, 1);
    FT_TRY(check_window(c));
    size_t height = (size_t) conv->height, width = (size_t) conv->width;
    size_t down = (size_t) ft_conv_size(conv, 0), across = (size_t) ft_conv_size(conv, 1), cols;
    if (x == NULL || !ft_mul((size_t) conv->channels, height * width, &cols) ||
        !has_shape(x, FT_SEQUENCES, cols))
        return refuse(c, "the input is not an image a sequence, of so many channels");
    FT_TRY(check_conv_weight(c, x, w));
    if (bias != NULL && !is_vector(bias, w->rows))
        return refuse(c, "the bias must be a float vector, one value an output");
    if (!is_image_order(conv->in_order) || !is_image_order(conv->out_order))
        return refuse(c, "images are neither planes nor pixels");
    if (conv->clamps && !(conv->low <= conv->high))
        return refuse(c, "the range that results are cut to is empty");
    if (!ft_mul(w->rows, down * across, &cols))
        return refuse(c, "the result is larger than memory can be");
    return ft_check_product(c, x, cols, 1u << FT_F32 | 1u << FT_F16);
}

/* ---- Images ------------------------------------------------------------------------------- */

/* A grid of patches that do not overlap: at least one. */
static bool is_patch_grid(const ft_conv *conv)
{
    bool fine = conv->channels > 0 && conv->height > 0 && conv->width > 0;
    for (int i = 0; i < 2; i++)
        fine = fine && conv->kernel[i] > 0 && conv->stride[i] == conv->kernel[i] &&
               conv->padding[i] == 0 && conv->dilation[i] == 1 && ft_conv_size(conv, i) > 0;
    return fine;
}

ft_status ft_check_patches(const checker *c)
{
    const ft_conv *conv = &c->op->attr.conv;
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_patch_grid(conv) || c->op->attr.leading < 0)
        return refuse(c, "the image has no whole patch, or patches overlap");
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SEQUENCES ||
        x->cols != ft_conv_pixels(conv))
        return refuse(c, "reads something that is not an image of float32 for each sequence");
    return ft_check_results(c, FT_TOKENS, (size_t) ft_conv_depth(conv), FLOATS | CODES);
}

/* Leading rows have vectors of their own: one or two. */
ft_status ft_check_place(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *position = weight_at(c, 0), *first = weight_at(c, 1),
                    *second = weight_at(c, 2);
    if (!is_real(x) || x->rows != FT_TOKENS)
        return refuse(c, "reads something that is not float or not per token");
    size_t cols = (size_t) x->cols;
    if (!is_float_matrix(position) || position->cols != cols)
        return refuse(c, "the positions are not a float matrix as wide as the input");
    if (!is_vector(first, cols) || (second != NULL && !is_vector(second, cols)) ||
        c->op->attr.leading != 1 + (second != NULL))
        return refuse(c, "the leading rows are not float vectors as wide as the input");
    if (position->rows <= (size_t) c->op->attr.leading)
        return refuse(c, "there are no positions behind those of the leading rows");
    return ft_check_results(c, FT_TOKENS, cols, FLOATS);
}
