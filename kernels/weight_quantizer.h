/*
 * weight_quantizer.h - group-wise quantization by GPTQ and GPTAQ on a device: one table of
 * functions.
 *
 * The device adds up the second moments of the inputs of a linear, factorizes them once, and then
 * quantizes all matrices that read these inputs. calibrate/weights/ has the same methods for the
 * CPU: exact_sums.h (sums), correction.h (M), gptq.h (rounding), groupwise.h (grids). The order of
 * floating-point sums differs, and the device has no descent over whole groups (group_descent.h).
 * The same calls give the same bytes on every run on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_WEIGHT_QUANTIZER_H
#define FT_KERNELS_WEIGHT_QUANTIZER_H

#include "runtime/ft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ft_device ft_device;
typedef struct ft_exec ft_exec;
typedef struct ft_quantizer ft_quantizer; /* sums, factors and work memory on one device */

/* A float matrix [rows, cols] in host memory, row-major: a row for each output of a linear. */
typedef struct ft_quantizer_matrix {
    const char *name;  /* for errors; borrowed */
    ft_dtype dtype;    /* FT_F32, FT_F16 or FT_BF16 */
    const void *data;  /* borrowed, for example from a mapped file: any alignment */
    size_t rows, cols; /* cols: those of the sums */

    /* [rows], [cols]; NULL: all 1. Stored values are multiplied by both when they are read. */
    const float *row_factor, *col_factor;
} ft_quantizer_matrix;

enum { FT_QUANTIZER_SWEEPS = 8 }; /* of coordinate descent, as on the CPU */

typedef struct ft_quantizer_options {
    int bits;        /* 4 or 8 */
    int32_t group;   /* group size, as in ft_groupwise */
    bool asymmetric; /* each group has its own zero point; else it is 8 or 128 */
    bool clip;       /* search for the clipping ratio of each group's range */

    /* [cols] in host memory: weights of the square errors when grids are chosen. NULL: equal. */
    const float *importance;

    bool gptq;  /* round by GPTQ; else to nearest */
    int sweeps; /* sweeps of coordinate descent behind GPTQ; 0: none, and scales stay */

    /* [rows, cols] of the matrix's dtype in device memory: the dequantized values. NULL: none. */
    void *dequantized;
} ft_quantizer_options;

/* Sums of squares of the weights, of their errors, and the same for the outputs. */
typedef struct ft_quantizer_error {
    double signal, noise, out_signal, out_noise;
} ft_quantizer_error;

typedef struct ft_weight_quantizer {
    /* The device is borrowed. FT_ENOMEM, FT_EDEVICE. close() accepts NULL. */
    ft_status (*open)(ft_quantizer **out, ft_device *device, ft_error *err);
    void (*close)(ft_quantizer *quantizer);

    /*
     * Starts the sums of an input with `cols` columns: all are 0. `cross`: also those of GPTAQ.
     * Memory is kept for later inputs with as many columns or fewer. FT_ENOMEM, FT_EDEVICE.
     */
    ft_status (*begin)(ft_quantizer *quantizer, size_t cols, bool cross, ft_error *err);

    /*
     * Sets the unit of the moments to 2^-20 of the mean square of the first `rows` rows of a value,
     * rounded to a power of two. Once for each input, before the first sample.
     */
    ft_status (*choose_unit)(ft_quantizer *quantizer, const ft_exec *exec, int value, size_t rows,
                             ft_error *err);

    /*
     * Adds one sample: the first `rows` rows of a float value of the last forward pass of `exec`,
     * X. With `cross`, `original` is the same model before quantization, and original / factor - X
     * is the difference of the inputs; factor [cols] is in host memory, or NULL for all 1.
     *
     * The contribution of a sample is computed in float32 and rounded to multiples of the unit, so
     * sums do not depend on the order of samples. Returns before the sums are complete; `exec` and
     * `original` wait for them before their next forward pass.
     */
    ft_status (*add)(ft_quantizer *quantizer, const ft_exec *exec, int value,
                     const ft_exec *original, int original_value, size_t rows, const float *factor,
                     ft_error *err);

    /*
     * Completes the sums and prepares for matrices with these inputs: rounding order, U, and with
     * `cross` the correction M. FT_EFORMAT, with `name`, if the samples had inputs that are not
     * finite or too large, or if the moments are not positive definite.
     */
    ft_status (*factorize)(ft_quantizer *quantizer, const char *name, ft_error *err);

    /* Sums over all samples of |x| and x * x, [cols] each. After factorize(). */
    void (*columns)(const ft_quantizer *quantizer, double *magnitude, double *square);

    /*
     * Quantizes a matrix; with `cross`, W + W M. `bytes` receives the values in FT_PANEL32, then
     * the float16 scales, then the zero points of asymmetric grids: the three sections of
     * kernels/groupwise.h, one behind the other. FT_EFORMAT for a NaN, an infinity or a magnitude
     * that no float16 scale can represent.
     */
    ft_status (*quantize)(ft_quantizer *quantizer, const ft_quantizer_matrix *matrix,
                          const ft_quantizer_options *options, void *bytes,
                          ft_quantizer_error *error, ft_error *err);
} ft_weight_quantizer;

#endif
