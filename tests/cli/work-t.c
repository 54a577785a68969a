/*
 * work-t.c - ft_op_cost_of(): the arithmetic and memory traffic of convolutions with float,
 * group-wise and int8 weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/bench.h"
#include "tests/tap/tap.h"

enum { IMAGE, CODES, RESULT, VALUES };
enum { FLOATS, BLOCKS, BY_CODES, INT8, BIAS, WEIGHTS };

static const uint16_t scale[64] = { 0 };
static const uint8_t zero[64] = { 0 };

/* 3 input channels of 8 x 10, windows of 3 x 5, 5 output channels of 6 x 4. */
static const ft_conv conv = { .channels = 3,
                              .height = 8,
                              .width = 10,
                              .kernel = { 3, 5 },
                              .stride = { 1, 2 },
                              .padding = { 0, 1 },
                              .dilation = { 1, 1 } };
enum { IMAGES = 7, PIXELS = 3 * 8 * 10, POSITIONS = 6 * 4, WINDOW = 3 * 5 * 3, OUTPUTS = 5 };

static ft_value value[VALUES] = {
    [IMAGE] = { .rows = FT_SEQUENCES, .cols = PIXELS, .dtype = FT_F32 },
    [CODES] = { .rows = FT_SEQUENCES, .cols = PIXELS, .dtype = FT_I8, .scale = 1.0f },
    [RESULT] = { .rows = FT_SEQUENCES, .cols = OUTPUTS * POSITIONS, .dtype = FT_F16 },
};
static const ft_weight weight[WEIGHTS] = {
    [FLOATS] = { .rows = OUTPUTS, .cols = WINDOW, .dtype = FT_BF16 },
    [BLOCKS] = { .rows = OUTPUTS,
                 .cols = WINDOW,
                 .dtype = FT_U4,
                 .layout = FT_PANEL32,
                 .groupwise = { .group = 32, .scale = scale, .zero = zero } },
    [BY_CODES] = { .rows = OUTPUTS,
                   .cols = WINDOW,
                   .dtype = FT_U8,
                   .layout = FT_PANEL32,
                   .groupwise = { .int8_activations = true, .scale = scale } },
    [INT8] = { .rows = OUTPUTS, .cols = WINDOW, .dtype = FT_I8, .layout = FT_COL4_4R2_8C },
    [BIAS] = { .rows = 1, .cols = OUTPUTS, .dtype = FT_F32 },
};

static void test_work(const char *what, int in, int matrix, bool int8, double weight_bytes)
{
    ft_plan plan = { .value = value, .weight = weight, .nvalue = VALUES, .nweight = WEIGHTS };
    ft_op op = { .kind = FT_OP_CONV,
                 .in = { (int16_t) in, -1, -1 },
                 .out = RESULT,
                 .quantized = -1,
                 .inner = -1,
                 .second = -1,
                 .state = { -1, -1, -1, -1, -1 },
                 .weight = { (int16_t) matrix, BIAS, -1 },
                 .attr.conv = conv };
    ft_batch batch = { .tokens = 100, .sequences = IMAGES };
    ft_op_cost work = ft_op_cost_of(&plan, &op, &batch);
    double products = 2.0 * IMAGES * POSITIONS * OUTPUTS * WINDOW;
    double image = (double) IMAGES * PIXELS * (in == CODES ? 1 : 4);
    double result = (double) IMAGES * POSITIONS * OUTPUTS * 2;
    near(int8 ? work.int8_ops : work.float_flops, products, 0.0,
         "%s: a convolution multiplies every window by all output channels", what);
    near(int8 ? work.float_flops : work.int8_ops, 0.0, 0.0,
         "%s: a convolution has operations of one kind only", what);
    near(work.bytes, image + weight_bytes + OUTPUTS * 4 + result, 0.0,
         "%s: images, weights and results move once", what);
}

int main(void)
{
    test_work("float weights", IMAGE, FLOATS, false, OUTPUTS * WINDOW * 2);
    /* 32 rows of 64 values; 2 groups of 32 scales and zero points, 3 bytes together. */
    test_work("group-wise U4 weights", IMAGE, BLOCKS, false, 32 * 64 / 2 + 2 * 32 * 3);
    test_work("group-wise U8 weights with int8 activations", IMAGE, BY_CODES, true,
              32 * 64 + 32 * 2);
    test_work("int8 weights", CODES, INT8, true, OUTPUTS * WINDOW);
    return done_testing();
}
