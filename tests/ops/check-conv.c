/*
 * check-conv.c - operands that convolutions accept and refuse.
 *
 * Images are 2 channels of 3 x 4, windows 2 x 2, so that results are 4 outputs of 2 x 3.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/check.h"

#include <math.h>

#define IMAGE_SIZE .channels = 2, .height = 3, .width = 4
#define WINDOW .kernel = { 2, 2 }, .stride = { 1, 1 }, .dilation = { 1, 1 }

static const ft_conv usual = { IMAGE_SIZE, WINDOW };
static const ft_conv pixel = { .channels = 65537, 1, 1, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
static const ft_conv no_channels = { .channels = 0, .height = 3, .width = 4, WINDOW };
static const ft_conv no_rows = { .channels = 2, .height = -3, .width = 4, WINDOW };
static const ft_conv many_columns = { .channels = 2, .height = 3, .width = 16777217, WINDOW };
static const ft_conv other_image = { .channels = 2, .height = 3, .width = 5, WINDOW };
static const ft_conv huge_image = { .channels = 1 << 24, 1 << 24, 1 << 24, WINDOW };
static const ft_conv no_kernel = { IMAGE_SIZE, { 2, 0 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
static const ft_conv long_kernel = { IMAGE_SIZE, { 32768, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
static const ft_conv no_stride = { IMAGE_SIZE, { 2, 2 }, { 0, 1 }, { 0, 0 }, { 1, 1 } };
static const ft_conv long_stride = { IMAGE_SIZE, { 2, 2 }, { 1, 32768 }, { 0, 0 }, { 1, 1 } };
static const ft_conv less_padding = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { -1, 0 }, { 1, 1 } };
static const ft_conv more_padding = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { 0, 32768 }, { 1, 1 } };
static const ft_conv no_dilation = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 0 } };
static const ft_conv long_dilation = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { 0, 0 }, { 32768, 1 } };
static const ft_conv tall_window = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { 0, 0 }, { 3, 1 } };
static const ft_conv wide_window = { IMAGE_SIZE, { 2, 2 }, { 1, 1 }, { 0, 0 }, { 1, 32767 } };
static const ft_conv strided = { IMAGE_SIZE, { 2, 2 }, { 2, 1 }, { 0, 0 }, { 1, 1 } };
static const ft_conv shifted = { IMAGE_SIZE, WINDOW, .zero = -127 };
static const ft_conv shifted_low = { IMAGE_SIZE, WINDOW, .zero = -128 };
static const ft_conv shifted_high = { IMAGE_SIZE, WINDOW, .zero = 128 };
static const ft_conv relu6 = { IMAGE_SIZE, WINDOW, .clamps = true, .high = 6.0f };
static const ft_conv empty = { IMAGE_SIZE, WINDOW, .clamps = true, .low = 1.0f };
static const ft_conv no_number = { IMAGE_SIZE, WINDOW, .clamps = true, .high = NAN };

static const ft_conv pixels = { IMAGE_SIZE, WINDOW, .in_layout = FT_IMAGE_NHWC,
                                .out_layout = FT_IMAGE_NHWC };
static const ft_conv other_input = { IMAGE_SIZE, WINDOW, .in_layout = (ft_image_layout) 2 };
static const ft_conv other_output = { IMAGE_SIZE, WINDOW, .out_layout = (ft_image_layout) 77 };

#define SIZES "channels, height and width of the image must be from 1 to 16777216"
#define LENGTHS "kernel, stride and dilation must be from 1 to 32767, padding from 0"
#define FITS "the kernel is larger than the padded image"
#define INPUT "the input is not one image of this size per sequence"
#define KINDS "input and weight must both be float or both be int8"
#define DEPTH "K is above 65536, so that int32 sums could overflow"
#define ZERO "the zero point is outside -127..127, or the input is not quantized"
#define ORDER "the image layout is neither NCHW nor NHWC"
#define RANGE "the clamp range is empty"

/* clang-format off */
const a_case check_conv_cases[] = {
#define OP .conv = &usual, .kind = FT_OP_CONV
    { OP, { IMAGE }, RESULT, 0, 0, { K, V4 }, 0, "f32 input with an f32 weight", NULL },
    { OP, { IMAGE_H }, RESULT_H, 0, 0, { K_BF16 }, 0, "f16 input with a bf16 weight and no bias",
      NULL },
    { OP, { IMAGE }, RESULT, 0, 0, { K_U4, V4 }, 0, "f32 input with group-wise 4-bit weights",
      NULL },
    { OP, { IMAGE_H }, RESULT_H, 0, 0, { K_U8 }, 0,
      "f16 input with 8-bit weights and int8 activations", NULL },
    { OP, { IMAGE_CODES }, RESULT, 0, 0, { K_INT8, V4 }, 0, "int8 input with f32 output", NULL },
    { OP, { IMAGE_CODES }, RESULT_H, 0, 0, { K_INT8 }, 0, "int8 input with f16 output", NULL },
    { OP, { IMAGE_CODES }, 0, RESULT_CODES, 0, { K_INT8 }, 0, "int8 input with int8 output", NULL },
    { OP, { 0 }, RESULT, 0, 0, { K }, 0, "a missing input", INPUT },
    { OP, { IMAGE_T }, RESULT, 0, 0, { K }, 0, "one image for each token", INPUT },
    { OP, { IMAGE }, RESULT, 0, 0, { 0 }, 0, "a missing weight",
      "K of the weight is not kernel height * kernel width * channels" },
    { OP, { IMAGE }, RESULT, 0, 0, { K_10 }, 0, "a weight with too many columns",
      "K of the weight is not kernel height * kernel width * channels" },
    { OP, { IMAGE }, RESULT, 0, 0, { K, V8 }, 0, "a bias that is too long",
      "the bias must be a float vector with one element per output" },
    { OP, { IMAGE_CODES }, RESULT, 0, 0, { K }, 0, "int8 input with an f32 weight", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_INT8 }, 0, "f32 input with an int8 weight", KINDS },
    { OP, { IMAGE_DYNAMIC }, RESULT, 0, 0, { K_INT8 }, 0, "int8 images with dynamic scales",
      KINDS },
    { OP, { IMAGE_FAKE }, RESULT, 0, 0, { K_FAKE }, 0, "fake-quantized input and weight", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_FAKE }, 0, "f32 input with a fake-quantized weight", KINDS },
    { OP, { IMAGE_CODES }, RESULT, 0, 0, { K_INT8_ROW }, 0, "a row-major int8 weight", KINDS },
    { OP, { IMAGE_CODES }, RESULT, 0, 0, { K_U8 }, 0, "int8 input with group-wise weights", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_U8_ROW }, 0, "row-major group-wise weights", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_U8_48 }, 0, "a group size of 48", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_U8_BARE }, 0, "group-wise weights without scales", KINDS },
    { OP, { IMAGE }, RESULT, 0, 0, { K_MANY }, 0, "a result larger than the address space",
      "the size of the result overflows size_t" },
    { OP, { IMAGE }, 0, 0, 0, { K }, 0, "a missing result", "has no result" },
    { OP, { IMAGE }, RESULT_T, 0, 0, { K }, 0, "a result with one row for each token",
      "the float result has the wrong shape or dtype" },
    { OP, { IMAGE }, 0, RESULT_CODES, 0, { K }, 0, "f32 input with int8 output",
      "cannot write a quantized result" },
    { OP, { IMAGE_H }, RESULT, 0, 0, { K }, 0, "f16 input with f32 output",
      "input and float result differ in precision" },
    { OP, { IMAGE_CODES }, RESULT_B, 0, 0, { K_INT8 }, 0, "int8 input with bf16 output",
      "cannot write a float result of this precision" },
    { OP, { IMAGE_CODES }, RESULT, RESULT_CODES, 0, { K_INT8 }, 0,
      "both a float and a quantized result",
      "cannot write both a float and a quantized result" },
    { OP, { IMAGE_CODES }, 0, RESULT_DYNAMIC, 0, { K_INT8 }, 0, "int8 output with dynamic scales",
      "cannot write a result with row scales" },
#undef OP
#define OP .kind = FT_OP_CONV, { IMAGE }, RESULT, 0, 0, { K }, 0
    { OP, "zero channels", SIZES, .conv = &no_channels },
    { OP, "a negative height", SIZES, .conv = &no_rows },
    { OP, "a width that is too large", SIZES, .conv = &many_columns },
    { OP, "an image of another size", INPUT, .conv = &other_image },
    { OP, "an image larger than the address space", INPUT, .conv = &huge_image },
    { OP, "a kernel size of 0", LENGTHS, .conv = &no_kernel },
    { OP, "a kernel that is too large", LENGTHS, .conv = &long_kernel },
    { OP, "a stride of 0", LENGTHS, .conv = &no_stride },
    { OP, "a stride that is too large", LENGTHS, .conv = &long_stride },
    { OP, "negative padding", LENGTHS, .conv = &less_padding },
    { OP, "too much padding", LENGTHS, .conv = &more_padding },
    { OP, "a dilation of 0", LENGTHS, .conv = &no_dilation },
    { OP, "a dilation that is too large", LENGTHS, .conv = &long_dilation },
    { OP, "a window that is higher than the image", FITS, .conv = &tall_window },
    { OP, "a window that is far wider than the image", FITS, .conv = &wide_window },
    { OP, "a result whose size belongs to another stride",
      "the float result has the wrong shape or dtype",
      .conv = &strided },
    { OP, "a zero point for f32 input", ZERO, .conv = &shifted },
    { OP, "NHWC images", NULL, .conv = &pixels },
    { OP, "input images of an unknown layout", ORDER, .conv = &other_input },
    { OP, "output images of an unknown layout", ORDER, .conv = &other_output },
    { OP, "ReLU6", NULL, .conv = &relu6 },
    { OP, "an empty clamp range", RANGE, .conv = &empty },
    { OP, "a NaN clamp range", RANGE, .conv = &no_number },
#undef OP
#define OP .kind = FT_OP_CONV, { IMAGE_CODES }, RESULT, 0, 0, { K_INT8 }, 0
    { OP, "a zero point for int8 input", NULL, .conv = &shifted },
    { OP, "a zero point that is too low", ZERO, .conv = &shifted_low },
    { OP, "a zero point that is too high", ZERO, .conv = &shifted_high },
#undef OP
#define OP .conv = &pixel, .kind = FT_OP_CONV
    { OP, { LARGE }, RESULT, 0, 0, { K_DEEP_U8 }, 0, "65537 columns in groups of 32", NULL },
    { OP, { LARGE }, RESULT, 0, 0, { K_DEEP_U8_ROW }, 0, "65537 columns in one group", DEPTH },
    { OP, { LARGE }, RESULT, 0, 0, { K_DEEP_U8_LONG }, 0, "a group size above 65536", DEPTH },
    { OP, { LARGE }, RESULT, 0, 0, { K_DEEP_CODES }, 0, "65537 columns with int8 activations",
      DEPTH },
    { OP, { LARGE_CODES }, RESULT, 0, 0, { K_DEEP }, 0,
      "more int8 columns than int32 can accumulate", DEPTH },
#undef OP
    { .sentence = NULL },
};
/* clang-format on */
