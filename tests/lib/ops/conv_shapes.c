/*
 * conv_shapes.c - convolution shapes for tests: hand-picked edge cases, and random ones by seed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/conv.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/random.h"

/* clang-format off */
const conv_shape conv_odd_shapes[] = {
    /*            channels, rows, columns   kernel    stride    padding   dilation */
    { "kernel larger than the image", 2, 9,
      { .channels = 3, .height = 2, .width = 3, { 5, 5 }, { 1, 1 }, { 2, 2 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "kernel that fits once due to padding", 3, 5,
      { .channels = 2, .height = 1, .width = 2, { 7, 6 }, { 1, 1 }, { 3, 2 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "dilation past the edge", 2, 11,
      { .channels = 4, .height = 5, .width = 5, { 3, 3 }, { 1, 1 }, { 4, 4 }, { 4, 4 } },
      true, FT_ACT_NONE },
    { "dilation past the edge with only outer and center elements inside", 1, 6,
      { .channels = 7, .height = 3, .width = 4, { 3, 3 }, { 2, 1 }, { 6, 5 }, { 6, 5 } },
      false, FT_ACT_NONE },
    { "one channel", 2, 33,
      { .channels = 1, .height = 9, .width = 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "1 x 1 output", 5, 40,
      { .channels = 17, .height = 4, .width = 3, { 4, 3 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "odd channels", 2, 31,
      { .channels = 13, .height = 6, .width = 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU, },
    { "1 x 1", 3, 34,
      { .channels = 32, .height = 5, .width = 7, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "1 x 1 of odd channels", 2, 7,
      { .channels = 19, .height = 4, .width = 5, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "strided 1 x 1", 2, 24,
      { .channels = 16, .height = 9, .width = 8, { 1, 1 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "1 x 1 with padding", 1, 10,
      { .channels = 5, .height = 2, .width = 2, { 1, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "relu6", 2, 35,
      { .channels = 8, .height = 6, .width = 6, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      true, FT_ACT_NONE },
    { "gelu, then clamped", 1, 12,
      { .channels = 6, .height = 5, .width = 5, { 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 },
        .clamps = true, .low = -0.05f, .high = 1.5f },
      true, FT_ACT_GELU_TANH },
    { "1-d convolution", 2, 48,
      { .channels = 20, .height = 1, .width = 50, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "1-d convolution of stride 2", 2, 48,
      { .channels = 24, .height = 1, .width = 50, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "patch embedding", 2, 40,
      { .channels = 3, .height = 16, .width = 24, { 8, 8 }, { 8, 8 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "patch embedding with a remainder", 1, 17,
      { .channels = 3, .height = 11, .width = 14, { 4, 4 }, { 4, 4 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "stride larger than the kernel", 2, 8,
      { .channels = 9, .height = 11, .width = 13, { 2, 1 }, { 5, 3 }, { 1, 2 }, { 1, 1 } },
      true, FT_ACT_SILU },
    { "padding larger than the image", 1, 4,
      { .channels = 2, .height = 1, .width = 1, { 2, 2 }, { 1, 1 }, { 4, 3 }, { 1, 1 } },
      true, FT_ACT_TANH },
    { "all sizes 1", 1, 1,
      { .channels = 1, .height = 1, .width = 1, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "more windows than a tile of rows", 3, 3,
      { .channels = 2, .height = 23, .width = 29, { 3, 2 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "more outputs than a tile of columns", 2, 131,
      { .channels = 35, .height = 3, .width = 3, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "window longer than a k tile", 1, 20,
      { .channels = 67, .height = 4, .width = 4, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { .images = 0 },
};
/* clang-format on */

static size_t products_of(const conv_shape *s)
{
    const ft_conv *c = &s->conv;
    return s->images * s->outputs * (size_t) ft_conv_out_size(c, 0) *
           (size_t) ft_conv_out_size(c, 1) * (size_t) c->kernel[0] * (size_t) c->kernel[1] *
           (size_t) c->channels;
}

static int32_t between(rng *r, int32_t low, int32_t high)
{
    return low + (int32_t) rng_below(r, (uint32_t) (high - low + 1));
}

static conv_shape any_shape(rng *r)
{
    static const int32_t channels[] = { 1, 2, 3, 4, 8, 16, 24, 32, 33 };
    static const ft_activation activations[] = { FT_ACT_NONE, FT_ACT_NONE,      FT_ACT_RELU,
                                                 FT_ACT_GELU, FT_ACT_GELU_TANH, FT_ACT_SILU };
    conv_shape s = { .images = rng_below(r, 3) + 1, .outputs = rng_below(r, 70) + 1 };
    ft_conv *c = &s.conv;
    c->channels = rng_below(r, 2) ? channels[rng_below(r, FT_COUNT(channels))] : between(r, 1, 40);
    c->height = rng_below(r, 5) == 0 ? 1 : between(r, 1, 17);
    c->width = between(r, 1, 21);
    for (int i = 0; i < 2; i++) {
        c->kernel[i] = between(r, 1, i == 0 && c->height == 1 ? 2 : 5);
        c->stride[i] = between(r, 1, 3);
        c->padding[i] = between(r, 0, 3);
        c->dilation[i] = rng_below(r, 3) == 0 ? between(r, 2, 4) : 1;
    }
    c->clamps = rng_below(r, 4) == 0;
    c->low = c->clamps ? (float) rng_uniform(r, -3.0, 0.0) : 0.0f;
    c->high = c->clamps ? (float) rng_uniform(r, 0.0, 6.0) : 0.0f;
    s.bias = rng_below(r, 4) != 0;
    s.activation = activations[rng_below(r, FT_COUNT(activations))];
    c->in_layout = rng_below(r, 2) ? FT_IMAGE_NHWC : FT_IMAGE_NCHW;
    c->out_layout = rng_below(r, 2) ? FT_IMAGE_NHWC : FT_IMAGE_NCHW;
    return s;
}

conv_shape conv_random_shape(uint64_t seed)
{
    rng r = { seed };
    for (;;) {
        conv_shape s = any_shape(&r);
        if (ft_conv_out_size(&s.conv, 0) > 0 && ft_conv_out_size(&s.conv, 1) > 0 &&
            products_of(&s) <= 300000)
            return s;
    }
}

static const char *order_name(ft_image_layout order)
{
    return order == FT_IMAGE_NHWC ? "nhwc" : "nchw";
}

const char *conv_text(char text[CONV_TEXT], const conv_shape *s)
{
    const ft_conv *c = &s->conv;
    snprintf(text, CONV_TEXT,
             "%zu x %d x %d x %d by %zu x %d x %d, stride %d %d, padding %d %d, dilation %d %d, "
             "%s%s%s, %s to %s",
             s->images, c->channels, c->height, c->width, s->outputs, c->kernel[0], c->kernel[1],
             c->stride[0], c->stride[1], c->padding[0], c->padding[1], c->dilation[0],
             c->dilation[1], ft_activation_name(s->activation), c->clamps ? ", clamped" : "",
             s->bias ? "" : ", no bias", order_name(c->in_layout), order_name(c->out_layout));
    return text;
}

const char *conv_how_text(char text[CONV_TEXT], const conv_how *how)
{
    char group[32] = "";
    if (ft_groupwise_bits(how->weight) != 0)
        snprintf(group, sizeof group, " in groups of %d", how->group);
    snprintf(text, CONV_TEXT, "%s%s%s%s, %s to %s", ft_dtype_name(how->weight), group,
             how->asymmetric ? " with zero points" : "",
             how->int8_activations ? " and int8 activations" : "", ft_dtype_name(how->x),
             ft_dtype_name(how->y));
    return text;
}
