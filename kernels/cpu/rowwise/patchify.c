/*
 * patchify.c - turns images into sequences: one row per patch, preceded by the rows of class
 * tokens.
 *
 * A convolution whose stride equals its kernel is a GEMM over patches: PATCHIFY copies them into
 * rows, LINEAR multiplies them, and ADD_CLASS_TOKEN adds class tokens and position embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"

#include <string.h>

/* A patch for each thread: an image may be thousands of times wider. */
ft_workspace ft_cpu_patchify_workspace(const ft_plan *plan, const ft_op *op,
                                       const ft_limits *limits)
{
    (void) plan;
    size_t bytes = (size_t) ft_conv_gemm_k(&op->attr.conv) * sizeof(float);
    return (ft_workspace){ .scratch = (size_t) limits->threads * ft_round_up(bytes, 64) };
}

/* Patch number `patch` of an image, in the order channel, row, column. */
static void extract_patch(float *out, const float *image, const ft_conv *conv, size_t patch)
{
    size_t height = (size_t) conv->height, width = (size_t) conv->width;
    size_t rows = (size_t) conv->kernel[0], cols = (size_t) conv->kernel[1];
    size_t patches_per_row = (size_t) ft_conv_out_size(conv, 1);
    const float *top_left =
        image + patch / patches_per_row * rows * width + patch % patches_per_row * cols;
    for (size_t channel = 0; channel < (size_t) conv->channels; channel++)
        for (size_t row = 0; row < rows; row++, out += cols)
            memcpy(out, top_left + (channel * height + row) * width, cols * sizeof *out);
}

/* Row `token` of the sequence of an image, in float. */
static void write_row(const ft_args *args, float *out, size_t image, size_t token)
{
    const ft_attr *attr = &args->op->attr;
    size_t leading = (size_t) attr->prefix_tokens;
    if (token < leading)
        memset(out, 0, (size_t) ft_conv_gemm_k(&attr->conv) * sizeof *out);
    else
        extract_patch(out, ft_row_f32(&args->in[0], image), &attr->conv, token - leading);
}

static void patchify_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    const ft_attr *attr = &args->op->attr;
    bool quantized = args->quantized.data != NULL;
    size_t length = (size_t) ft_patch_sequence_length(&attr->conv, attr->prefix_tokens);
    float *copy = ft_thread_scratch(args, thread);
    for (size_t row = first; row < end; row++) {
        float *out = quantized ? copy : ft_row_output(&args->out, row, copy);
        write_row(args, out, row / length, row % length);
        if (quantized)
            ft_row_quantize(args, &args->quantized, row, out);
        else
            ft_row_flush(args, &args->out, row, out);
    }
}

void ft_cpu_patchify(const ft_args *args)
{
    const ft_view *y = args->quantized.data != NULL ? &args->quantized : &args->out;
    ft_parallel_rows(args, y->rows, y->cols, patchify_rows);
}

static void add_class_token_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    const ft_weight *position = args->weight[0];
    size_t cols = args->out.cols, bytes = cols * ft_dtype_size(position->dtype);
    float *copy = ft_row_buffer(args, thread, 0), *embedding = ft_row_buffer(args, thread, 1);
    for (size_t row = first; row < end; row++) {
        size_t token = row % position->rows;
        float *y = ft_row_output(&args->out, row, copy);
        const float *x = token < (size_t) args->op->attr.prefix_tokens
                             ? args->weight[1 + token]->data
                             : ft_row_as_float(args, &args->in[0], row, copy);
        args->rows->to_float(embedding, (const char *) position->data + token * bytes,
                             position->dtype, cols);
        args->rows->add(y, x, embedding, cols);
        ft_row_flush(args, &args->out, row, y);
    }
}

void ft_cpu_add_class_token(const ft_args *args)
{
    ft_parallel_rows(args, args->out.rows, args->out.cols, add_class_token_rows);
}
