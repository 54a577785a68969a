/*
 * conv.c - the reference convolution: the formula in double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/conv.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- The formula -------------------------------------------------------------------------- */

/* Operands in double. */
typedef struct reals {
    double *x, *w, *bias; /* bias NULL: none */
} reals;

/* The window of one result: [kernel rows, kernel columns, channels], zeros beyond the image. */
static void fill_window(double *window, const double *image, const ft_conv *c, int32_t row,
                        int32_t col)
{
    for (int32_t i = 0; i < c->kernel[0]; i++)
        for (int32_t j = 0; j < c->kernel[1]; j++)
            for (int32_t channel = 0; channel < c->channels; channel++) {
                int32_t y = row * c->stride[0] - c->padding[0] + i * c->dilation[0];
                int32_t x = col * c->stride[1] - c->padding[1] + j * c->dilation[1];
                bool inside = y >= 0 && y < c->height && x >= 0 && x < c->width;
                int32_t pixel = y * c->width + x;
                *window++ = !inside ? 0.0
                            : c->in_layout == FT_IMAGE_NHWC
                                ? image[pixel * c->channels + channel]
                                : image[channel * c->height * c->width + pixel];
            }
}

/*
 * The error bound of a float result, as in ops-linear.c: no activation is steeper than 1.13, and
 * the worst of them adds six roundings and 1.6e-6.
 */
static double bound_of(const conv_shape *s, double roundings, double size)
{
    return (1.13 * roundings + 6) * 0x1p-24 * size + (s->activation == FT_ACT_NONE ? 0.0 : 1.6e-6);
}

/*
 * In any order a sum of k products and a bias has at most k + 1 roundings of its size.  Groups add
 * a rounding each, scales two.  Integer sums are exact: the roundings are those of the groups, and
 * of the conversion, scales and bias.
 */
static double roundings_of(const conv_problem *p)
{
    size_t groups = ft_groupwise_bits(p->how.weight) != 0
                        ? ft_groupwise_groups(&p->weight.groupwise, p->window)
                        : 1;
    bool exact = p->how.weight == FT_I8 || p->how.int8_activations;
    return (double) (exact ? groups + 4 : p->window + groups + 3);
}

/*
 * With group-wise weights, kernels may round each input by a fraction of the largest one of its
 * group. This is the error of the result divided by that fraction.
 */
static double x_size_of(const conv_problem *p, const double *window, const double *w)
{
    double size = 0.0;
    size_t group = p->how.group == 0 ? p->window : (size_t) p->how.group;
    if (ft_groupwise_bits(p->how.weight) == 0 || p->how.int8_activations)
        return 0.0;
    for (size_t first = 0; first < p->window; first += group) {
        double amax = 0.0, sum = 0.0;
        for (size_t i = first; i < ft_min_size(first + group, p->window); i++) {
            amax = fmax(amax, fabs(window[i]));
            sum += fabs(w[i]);
        }
        size += sum * amax;
    }
    return size;
}

static void compute_result(conv_problem *p, const reals *in, const double *window, size_t output,
                           size_t at)
{
    const conv_shape *s = &p->shape;
    const double *w = in->w + output * p->window;
    double sum = in->bias == NULL ? 0.0 : in->bias[output], size = fabs(sum);
    for (size_t i = 0; i < p->window; i++) {
        sum += window[i] * w[i];
        size += fabs(window[i] * w[i]);
    }
    sum = oracle_activation(ft_activation_name(s->activation), sum);
    if (s->conv.clamps)
        sum = fmin(fmax(sum, (double) s->conv.low), (double) s->conv.high);
    p->value[at] = sum;
    p->bound[at] = bound_of(s, roundings_of(p), size);
    p->x_size[at] = x_size_of(p, window, w);
}

/* The index of an output of a window in the result of its image. */
static size_t place_of(const conv_problem *p, size_t output, size_t position)
{
    return p->attr.conv.out_layout == FT_IMAGE_NHWC ? position * p->shape.outputs + output
                                                    : output * p->positions + position;
}

static void compute_results(conv_problem *p, const reals *in)
{
    const ft_conv *c = &p->shape.conv;
    int32_t rows = ft_conv_out_size(c, 0), cols = ft_conv_out_size(c, 1);
    double *window = must_have(p->window, sizeof *window);
    for (size_t image = 0; image < p->shape.images; image++)
        for (int32_t row = 0; row < rows; row++)
            for (int32_t col = 0; col < cols; col++) {
                fill_window(window, in->x + image * p->x_cols, c, row, col);
                if (p->how.int8_activations)
                    round_to_int8_groups(window, p->window, p->how.group);
                for (size_t output = 0; output < p->shape.outputs; output++)
                    compute_result(p, in, window, output,
                                   image * p->y_cols +
                                       place_of(p, output, (size_t) (row * cols + col)));
            }
    free(window);
}

/* ---- Operands ----------------------------------------------------------------------------- */

static double *make_x(conv_problem *p, uint64_t seed)
{
    size_t n = p->shape.images * p->x_cols;
    double *value = must_have(n, sizeof *value);
    if (p->how.x == FT_I8) {
        int8_t *quantized = random_int8(seed, n);
        p->x = quantized;
        p->x_scale = 0.013f;
        for (size_t i = 0; i < n; i++)
            value[i] = (double) p->x_scale * (quantized[i] - p->attr.conv.zero);
        return value;
    }
    float *floats = random_floats(seed, n, 1.0);
    p->x = must_have(n, ft_dtype_size(p->how.x));
    for (size_t i = 0; i < n; i++) {
        if (p->how.x == FT_F16)
            ((uint16_t *) p->x)[i] = ft_f16_from_float(floats[i]);
        else if (p->how.x == FT_BF16)
            ((uint16_t *) p->x)[i] = ft_bf16_from_float(floats[i]);
        else
            ((float *) p->x)[i] = floats[i];
        value[i] = number_of(p->x, p->how.x, i);
    }
    free(floats);
    return value;
}

static double *make_quantized(conv_problem *p, uint64_t seed)
{
    size_t n = p->shape.outputs, k = p->window;
    rng r = { seed };
    int8_t *quantized = random_int8(seed + 1, n * k);
    int8_t *col4 = must_have(oracle_col4(NULL, NULL, n, k, 0), 1);
    float *scale = must_have(n, sizeof *scale);
    double *value = must_have(n * k, sizeof *value);
    oracle_col4(col4, quantized, n, k, 77); /* padding may hold any value */
    for (size_t row = 0; row < n; row++) {
        scale[row] = (float) (rng_uniform(&r, 0.5, 1.5) / (73 * sqrt((double) k)));
        for (size_t i = row * k; i < (row + 1) * k; i++)
            value[i] = (double) scale[row] * quantized[i];
    }
    free(quantized);
    p->weight = (ft_weight){
        .rows = n, .cols = k, .dtype = FT_I8, .layout = FT_COL4_4R2_8C, .scale = scale, .data = col4
    };
    return value;
}

static double *make_weight(conv_problem *p, uint64_t seed)
{
    const conv_how *how = &p->how;
    double *value;
    if (how->weight == FT_I8)
        return make_quantized(p, seed);
    if (ft_groupwise_bits(how->weight) == 0)
        p->weight = random_weight(seed, p->shape.outputs, p->window, how->weight, &value);
    else
        p->weight = random_blocked(
            seed, p->shape.outputs, p->window,
            &(blocked_how){ how->weight, how->group, how->asymmetric, how->int8_activations },
            &value);
    return value;
}

static double *make_bias(conv_problem *p, uint64_t seed)
{
    if (!p->shape.bias)
        return NULL;
    float *bias = random_floats(seed, p->shape.outputs, 1.0);
    p->bias = (ft_weight){ .rows = 1, .cols = p->shape.outputs, .dtype = FT_F32, .data = bias };
    return doubles_of(bias, p->shape.outputs);
}

conv_problem conv_make(const conv_shape *shape, const conv_how *how, uint64_t seed)
{
    const ft_conv *c = &shape->conv;
    rng r = { seed };
    conv_problem p = { .shape = *shape, .how = *how };
    p.attr.conv = *c;
    p.attr.activation = shape->activation;
    if (how->x == FT_I8 && how->asymmetric)
        p.attr.conv.zero = (int32_t) rng_below(&r, 255) - 127;
    p.window = (size_t) c->kernel[0] * (size_t) c->kernel[1] * (size_t) c->channels;
    p.positions = (size_t) ft_conv_out_size(c, 0) * (size_t) ft_conv_out_size(c, 1);
    p.x_cols = (size_t) c->channels * (size_t) c->height * (size_t) c->width;
    p.y_cols = shape->outputs * p.positions;
    p.value = must_have(shape->images * p.y_cols, sizeof *p.value);
    p.bound = must_have(shape->images * p.y_cols, sizeof *p.bound);
    p.x_size = must_have(shape->images * p.y_cols, sizeof *p.x_size);
    reals in = { make_x(&p, seed + 1), make_weight(&p, seed + 2), make_bias(&p, seed + 4) };
    compute_results(&p, &in);
    double amax = 0.0;
    for (size_t i = 0; i < shape->images * p.y_cols; i++)
        amax = fmax(amax, fabs(p.value[i]));
    if (how->y == FT_I8) /* the largest saturate */
        p.y_scale = amax > 0.0 ? (float) (0.9 * amax / 127) : 1.0f;
    free(in.x);
    free(in.w);
    free(in.bias);
    return p;
}

void conv_free(conv_problem *p)
{
    free(p->x);
    free(p->value);
    free(p->bound);
    free(p->x_size);
    free((void *) (uintptr_t) p->bias.data);
    free((void *) (uintptr_t) p->weight.scale);
    free_blocked(&p->weight);
}

/* ---- Results ------------------------------------------------------------------------------ */

/* Quantizing multiplies by an inverse: two roundings move a value of up to 127 by this much. */
#define CODE_SLACK (127 * 2 * 0x1p-24)

/* The number of wrong results of dtype how.y. */
static size_t count_wrong(const bench *on, const conv_problem *p, const void *y, double factor)
{
    size_t wrong = 0, n = p->shape.images * p->y_cols;
    for (size_t i = 0; i < n; i++) {
        double found = number_of(y, p->how.y, i), value = p->value[i];
        double bound = factor * p->bound[i] + 1.13 * groupwise_rounding(on) * p->x_size[i];
        if (p->how.y == FT_I8) {
            double scale = (double) p->y_scale;
            value = fmin(fmax(value / scale, -127.0), 127.0);
            bound = 0.5 + bound / scale + CODE_SLACK;
        } else if (p->how.y != FT_F32) { /* subnormal F16 are 2^-24 apart */
            bound += rounding_in(p->how.y) * (fabs(value) + bound) + 0x1p-25;
        }
        wrong += is_far(found, value, bound);
    }
    return wrong;
}

size_t conv_try(bench *on, const conv_problem *p, void **y, double factor)
{
    size_t images = p->shape.images;
    int32_t *start = must_have(images + 1, sizeof *start);
    for (size_t i = 0; i <= images; i++)
        start[i] = (int32_t) i;
    ft_batch batch = { .tokens = images, .sequences = images, .longest = 1, .start = start };
    void *found = must_have(images * p->y_cols, ft_dtype_size(p->how.y));
    bool to_quantized = p->how.y == FT_I8;
    oneop t;
    oneop_begin(&t, on, FT_OP_CONV, &batch);
    t.op.attr = p->attr;
    oneop_in(&t, 0, FT_SEQUENCES, (int32_t) p->x_cols, p->how.x, p->x_scale, p->x);
    oneop_weight(&t, 0, p->weight);
    if (p->bias.data != NULL)
        oneop_weight(&t, 1, p->bias);
    if (to_quantized)
        oneop_quantized(&t, FT_SEQUENCES, (int32_t) p->y_cols, FT_I8, p->y_scale);
    else
        oneop_out_as(&t, FT_SEQUENCES, (int32_t) p->y_cols, p->how.y);
    oneop_run(&t, to_quantized ? NULL : found, to_quantized ? found : NULL);
    oneop_end(&t);
    free(start);
    size_t wrong = count_wrong(on, p, found, factor);
    if (y != NULL)
        *y = found;
    else
        free(found);
    return wrong;
}
