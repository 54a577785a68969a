/*
 * conv.h - convolutions to test with, and what they must give, in double.
 *
 * A shape is one of the odd ones by hand, or follows from a seed.  A problem is a shape with random
 * operands of one of the kinds that the operation takes; its results are computed by the formula,
 * window by window, and compared with what a device wrote.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_CONV_H
#define FT_TESTS_LIB_OPS_CONV_H

#include "tests/lib/ops/oneop.h"

typedef struct conv_shape {
    const char *name; /* what is odd about it; NULL: random */
    size_t images, outputs;
    ft_conv conv;
    bool bias;
    ft_activation activation;
} conv_shape;

/* By hand; the last has no images. */
extern const conv_shape conv_odd_shapes[];

/* A shape whose kernel fits, and whose results take at most some 300,000 products. */
conv_shape conv_random_shape(uint64_t seed);

/* "2 x 3 x 17 x 9 by 40 x 3 x 5, stride 1 2, padding 0 4, dilation 1 1, relu" */
enum { CONV_TEXT = 192 };
const char *conv_text(char text[CONV_TEXT], const conv_shape *shape);

/* What weights and inputs are. */
typedef struct conv_how {
    ft_dtype weight; /* F32, F16, BF16: rows; U4, U8: blocks; I8: codes, and x too */
    int32_t group;   /* of blocks */
    bool asymmetric; /* blocks have zeros of their own; codes of x have one */
    bool int8_activations;
    ft_dtype x, y; /* I8: codes */
} conv_how;

const char *conv_how_text(char text[CONV_TEXT], const conv_how *how);

typedef struct conv_problem {
    conv_shape shape;
    conv_how how;
    ft_attr attr;             /* the zero of codes among it */
    size_t window, positions; /* elements of a window; windows of an image */
    size_t x_cols, y_cols;    /* of an image, and of its result */
    void *x;                  /* [images, x_cols] of how.x */
    float x_scale, y_scale;   /* of codes, else 0 */
    ft_weight weight, bias;   /* bias.data NULL: none */
    double *value, *bound;    /* [images, y_cols]: results before they are rounded, and how
                                 far sums in float may lie from them */
} conv_problem;

conv_problem conv_make(const conv_shape *shape, const conv_how *how, uint64_t seed);
void conv_free(conv_problem *p);

/* Results of how.y that are not what the oracle says.  GPUs may need a factor of the bound. */
size_t conv_wrong(const conv_problem *p, const void *y, double factor);

/* Run it: conv_wrong() of what the device gives, and *y, unless NULL, receives that. */
size_t conv_try(bench *on, const conv_problem *p, void **y, double factor);

#endif
