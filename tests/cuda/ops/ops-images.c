/*
 * ops-images.c - operations that turn images into sequences, on the device against the CPU:
 * patchify, add_class_token.  The device has more rows than there are images, as in a padded batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

static const ft_dtype reals[] = { FT_F32, FT_F16, FT_BF16 };

static size_t patches_case(const ft_conv *conv, int32_t leading, size_t images, ft_dtype dtype,
                           float scale)
{
    both b;
    size_t rows = images * (size_t) ft_patch_sequence_length(conv, leading);
    size_t cols = (size_t) ft_conv_gemm_k(conv);
    begin_case();
    begin(&b, FT_OP_PATCHIFY, ft_cpu_patchify, ft_cuda_patchify);
    b.op.attr.conv = *conv;
    b.op.attr.prefix_tokens = leading;
    b.in[0] = random_matrix(images, (size_t) ft_conv_image_size(conv), FT_F32, 0.0f);
    if (scale > 0.0f)
        b.quantized = result_of(rows, cols, dtype, scale);
    else
        b.out = result_of(rows, cols, dtype, 0.0f);
    return run_both(&b);
}

/* Widths and kernels that are multiples of four, and others that are not. */
static void test_patches(ft_dtype dtype, float scale)
{
    static const ft_conv grids[] = {
        { 3, 224, 224, { 16, 16 }, { 16, 16 }, .dilation = { 1, 1 } },
        { 3, 32, 32, { 4, 4 }, { 4, 4 }, .dilation = { 1, 1 } },
        { 1, 28, 30, { 7, 4 }, { 7, 4 }, .dilation = { 1, 1 } },
        { 3, 42, 56, { 14, 14 }, { 14, 14 }, .dilation = { 1, 1 } },
        { 5, 11, 24, { 1, 8 }, { 1, 8 }, .dilation = { 1, 1 } },
        { 2, 9, 7, { 3, 2 }, { 3, 2 }, .dilation = { 1, 1 } },
    };
    size_t wrong = 0;
    for (size_t g = 0; g < FT_COUNT(grids); g++)
        for (int32_t leading = 0; leading <= 2; leading++)
            wrong += patches_case(&grids[g], leading, 1 + (g + (size_t) leading) % 5, dtype, scale);
    is_int((long long) wrong, 0, "patchify: images to %s%s have the CPU's bits",
           scale > 0.0f ? "quantized " : "", ft_dtype_name(dtype));
}

static size_t place_case(size_t cols, int32_t leading, ft_dtype x, ft_dtype table, ft_dtype out)
{
    enum { LENGTH = 37, IMAGES = 5 };
    both b;
    begin_case();
    begin(&b, FT_OP_ADD_CLASS_TOKEN, ft_cpu_add_class_token, ft_cuda_add_class_token);
    b.op.attr.prefix_tokens = leading;
    b.in[0] = random_matrix((size_t) IMAGES * LENGTH, cols, x, 0.0f);
    add_weight(&b, 0, LENGTH, cols, table);
    for (int i = 0; i < leading; i++)
        add_weight(&b, 1 + i, 1, cols, FT_F32);
    b.out = result_of((size_t) IMAGES * LENGTH, cols, out, 0.0f);
    return run_both(&b);
}

static void test_place(void)
{
    static const size_t widths[] = { 1, 33, 48, 128, 500, 768, 1026 };
    for (size_t x = 0; x < FT_COUNT(reals); x++) {
        size_t wrong = 0;
        for (size_t i = 0; i < FT_COUNT(widths) * FT_COUNT(reals) * FT_COUNT(reals); i++)
            wrong += place_case(widths[i / 9], 1 + (int32_t) (i % 2), reals[x], reals[i / 3 % 3],
                                reals[i % 3]);
        is_int((long long) wrong, 0,
               "add_class_token: rows of %s with one and two prefix tokens have the CPU's bits",
               ft_dtype_name(reals[x]));
    }
}

void test_images(void)
{
    for (size_t i = 0; i < FT_COUNT(reals); i++)
        test_patches(reals[i], 0.0f);
    test_patches(FT_I8, 0.02f);
    test_patches(FT_F32, 0.02f);
    test_place();
}

#else

typedef int ft_nothing_without_cuda;

#endif
