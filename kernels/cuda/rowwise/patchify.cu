/*
 * patchify.cu - images as sequences: PATCHIFY makes one row per patch, ADD_CLASS_TOKEN adds class
 * token and position embeddings.
 *
 * Padding rows of a batch bucket belong to no image, or to one of an earlier pass. They are
 * computed like all others and never read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

/* A CTA processes 64 vectors of columns of 4 rows, in both kernels. */
enum { COL_THREADS = 64, ROWS = 4 };

static dim3 launch_grid(size_t rows, size_t cols, int n)
{
    return dim3(ft_ceil_div(rows, ROWS), ft_ceil_div(cols, (unsigned) (COL_THREADS * n)));
}

/* ---- PATCHIFY ------------------------------------------------------------------------------ */

typedef struct patchify_args {
    ft_view images, y;
    unsigned rows_per_image, prefix_tokens; /* rows of an image; and those before its patches */
    unsigned patches_per_row;               /* patches per row of patches */
    unsigned height, width;
    unsigned rows, cols; /* of a patch */
    bool quantized;
    float inverse;
} patchify_args;

/* Offset of element `col` of a patch in its image. */
__device__ __forceinline__ size_t pixel_offset(const patchify_args &c, unsigned patch, unsigned col)
{
    unsigned line = col / c.cols, channel = line / c.rows;
    unsigned y = patch / c.patches_per_row * c.rows + line % c.rows;
    unsigned x = patch % c.patches_per_row * c.cols + col % c.cols;
    return ((size_t) channel * c.height + y) * c.width + x;
}

/* Copies N consecutive elements, which are consecutive in the image too. */
template <int N>
static __global__ void __launch_bounds__(COL_THREADS *ROWS) patchify_kernel(const patchify_args c)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * COL_THREADS + threadIdx.x) * N;
    size_t image = row / c.rows_per_image;
    unsigned row_in_image = (unsigned) (row % c.rows_per_image);
    float v[N] = {};
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (row >= c.y.rows || col >= c.y.cols)
        return;
    if (row_in_image >= c.prefix_tokens && image < c.images.rows)
        ft_load<N>(v, c.images.data, FT_F32,
                   image * c.images.cols +
                       pixel_offset(c, row_in_image - c.prefix_tokens, (unsigned) col));
    if (c.quantized)
        ft_store_quantized<N>(c.y.data, c.y.dtype, row * c.y.cols + col, v, c.inverse);
    else
        ft_store<N>(c.y.data, c.y.dtype, row * c.y.cols + col, v);
}

template <int N> static int launch_patchify(const ft_cuda_args *args, const patchify_args &c)
{
    return ft_launch(patchify_kernel<N>, launch_grid(c.y.rows, c.y.cols, N),
                     dim3(COL_THREADS, ROWS), 0, args->stream, args->props->has_pdl, 1, c);
}

extern "C" int ft_cuda_patchify(const ft_cuda_args *args)
{
    const ft_conv *conv = &args->op->attr.conv;
    patchify_args c = {};
    c.images = args->in[0];
    c.quantized = args->quantized.data != NULL;
    c.y = c.quantized ? args->quantized : args->out;
    c.rows_per_image = (unsigned) ft_patch_sequence_length(conv, args->op->attr.prefix_tokens);
    c.prefix_tokens = (unsigned) args->op->attr.prefix_tokens;
    c.patches_per_row = (unsigned) ft_conv_out_size(conv, 1);
    c.height = (unsigned) conv->height, c.width = (unsigned) conv->width;
    c.rows = (unsigned) conv->kernel[0], c.cols = (unsigned) conv->kernel[1];
    c.inverse = ft_inverse_scale(args->quantized.scale);
    if (c.y.rows == 0)
        return (int) cudaSuccess;
    return c.cols % 4 == 0 && c.width % 4 == 0 ? launch_patchify<4>(args, c)
                                               : launch_patchify<1>(args, c);
}

/* ---- ADD_CLASS_TOKEN ----------------------------------------------------------------------- */

enum { MAX_PREFIX_TOKENS = 2 };

typedef struct class_token_args {
    ft_view x, y;
    const void *prefix[MAX_PREFIX_TOKENS]; /* F32 */
    const void *position;
    ft_dtype dtype; /* of position embeddings */
    unsigned rows_per_image, prefix_tokens;
} class_token_args;

template <int N>
static __global__ void __launch_bounds__(COL_THREADS *ROWS)
    add_class_token_kernel(const class_token_args p)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * COL_THREADS + threadIdx.x) * N;
    unsigned row_in_image = (unsigned) (row % p.rows_per_image);
    ft_raw_vec<N> bits, position_bits;
    float x[N], position[N];
    bool inside = row < p.y.rows && col < p.y.cols, is_prefix = row_in_image < p.prefix_tokens;
    if (inside)
        ft_load_raw<N>(position_bits, (void *) p.position, p.dtype, row_in_image * p.y.cols + col);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (!inside)
        return;
    if (is_prefix)
        ft_load_raw_as<FT_F32, N>(bits, (void *) (row_in_image == 0 ? p.prefix[0] : p.prefix[1]),
                                  col);
    else
        ft_load_raw<N>(bits, p.x.data, p.x.dtype, row * p.x.cols + col);
    ft_unpack<N>(x, bits, is_prefix ? FT_F32 : p.x.dtype);
    ft_unpack<N>(position, position_bits, p.dtype);
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] += position[i];
    ft_store<N>(p.y.data, p.y.dtype, row * p.y.cols + col, x);
}

template <int N>
static int launch_add_class_token(const ft_cuda_args *args, const class_token_args &p)
{
    return ft_launch(add_class_token_kernel<N>, launch_grid(p.y.rows, p.y.cols, N),
                     dim3(COL_THREADS, ROWS), 0, args->stream, args->props->has_pdl, 1, p);
}

extern "C" int ft_cuda_add_class_token(const ft_cuda_args *args)
{
    class_token_args p = {};
    p.x = args->in[0], p.y = args->out;
    p.position = args->weight[0]->data, p.dtype = args->weight[0]->dtype;
    p.rows_per_image = (unsigned) args->weight[0]->rows;
    p.prefix_tokens = (unsigned) args->op->attr.prefix_tokens;
    for (int i = 0; i < MAX_PREFIX_TOKENS; i++)
        if (args->weight[1 + i] != NULL)
            p.prefix[i] = args->weight[1 + i]->data;
    if (p.y.rows == 0)
        return (int) cudaSuccess;
    return p.y.cols % 4 == 0 ? launch_add_class_token<4>(args, p)
                             : launch_add_class_token<1>(args, p);
}
