/*
 * conv.h - convolution problems for tests, and their expected results in double.
 *
 * A shape is a hand-picked edge case, or follows from a seed.  A problem is a shape with random
 * operands of one of the kinds that the operation supports; its results are computed by the
 * formula, window by window, and compared with the results of a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_CONV_H
#define FT_TESTS_LIB_OPS_CONV_H

#include "tests/lib/ops/oneop.h"

typedef struct conv_shape {
    const char *name; /* what the shape tests; NULL: random */
    size_t images, outputs;
    ft_conv conv;
    bool bias;
    ft_activation activation;
} conv_shape;

/* Hand-picked edge cases; the last entry has no images. */
extern const conv_shape conv_odd_shapes[];

/* A shape whose kernel fits, with at most 300,000 multiplications. */
conv_shape conv_random_shape(uint64_t seed);

/* "2 x 3 x 17 x 9 by 40 x 3 x 5, stride 1 2, padding 0 4, dilation 1 1, relu" */
enum { CONV_TEXT = 192 };
const char *conv_text(char text[CONV_TEXT], const conv_shape *shape);

/* The kind of weights and inputs. */
typedef struct conv_how {
    ft_dtype weight; /* F32, F16, BF16; U4, U8: group-wise; I8: int8, and x too */
    int32_t group;   /* group size */
    bool asymmetric; /* groups have zero points; int8 x has one */
    bool int8_activations;
    ft_dtype x, y; /* I8: quantized */
} conv_how;

const char *conv_how_text(char text[CONV_TEXT], const conv_how *how);

typedef struct conv_problem {
    conv_shape shape;
    conv_how how;
    ft_attr attr;             /* includes the zero point */
    size_t window, positions; /* elements of a window; windows of an image */
    size_t x_cols, y_cols;    /* of an image, and of its result */
    void *x;                  /* [images, x_cols] of how.x */
    float x_scale, y_scale;   /* of int8, else 0 */
    ft_weight weight, bias;   /* bias.data NULL: none */
    double *value;            /* [images, y_cols]: results before rounding, and */
    double *bound;            /* the error bounds of float sums */
    double *x_size;           /* the largest |x| of a group times the sum of its |w|, over groups */
} conv_problem;

conv_problem conv_make(const conv_shape *shape, const conv_how *how, uint64_t seed);
void conv_free(conv_problem *p);

/*
 * Runs the problem and returns the number of wrong results; GPUs may scale the bounds of float sums
 * by a factor. *y, unless NULL, receives the results.
 */
size_t conv_try(bench *on, const conv_problem *p, void **y, double factor);

#endif
