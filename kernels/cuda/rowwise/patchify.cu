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
enum { ACROSS = 64, ROWS = 4 };

static dim3 grid_of(size_t rows, size_t cols, int n)
{
    return dim3(ft_cover(rows, ROWS), ft_cover(cols, (unsigned) (ACROSS * n)));
}

/* ---- PATCHIFY ------------------------------------------------------------------------------ */

typedef struct cutting {
    ft_cuda_view images, y;
    unsigned length, leading; /* rows of an image; and those before its patches */
    unsigned across;          /* patches per row of patches */
    unsigned height, width;
    unsigned rows, cols; /* of a patch */
    bool codes;
    float inverse;
} cutting;

/* Offset of element `col` of a patch in its image. */
__device__ __forceinline__ size_t pixel_of(const cutting &c, unsigned patch, unsigned col)
{
    unsigned line = col / c.cols, channel = line / c.rows;
    unsigned y = patch / c.across * c.rows + line % c.rows;
    unsigned x = patch % c.across * c.cols + col % c.cols;
    return ((size_t) channel * c.height + y) * c.width + x;
}

/* Copies N consecutive elements, which are consecutive in the image too. */
template <int N>
static __global__ void __launch_bounds__(ACROSS *ROWS) patches_kernel(const cutting c)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * ACROSS + threadIdx.x) * N;
    size_t image = row / c.length;
    unsigned row_in_image = (unsigned) (row % c.length);
    float v[N] = {};
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (row >= c.y.rows || col >= c.y.cols)
        return;
    if (row_in_image >= c.leading && image < c.images.rows)
        ft_load<N>(v, c.images.data, FT_F32,
                   image * c.images.cols + pixel_of(c, row_in_image - c.leading, (unsigned) col));
    if (c.codes)
        ft_store_codes<N>(c.y.data, c.y.dtype, row * c.y.cols + col, v, c.inverse);
    else
        ft_store<N>(c.y.data, c.y.dtype, row * c.y.cols + col, v);
}

template <int N> static int cut(const ft_cuda_args *args, const cutting &c)
{
    return ft_launch(patches_kernel<N>, grid_of(c.y.rows, c.y.cols, N), dim3(ACROSS, ROWS), 0,
                     args->stream, args->chip->overlaps, 1, c);
}

extern "C" int ft_cuda_patches(const ft_cuda_args *args)
{
    const ft_conv *conv = &args->op->attr.conv;
    cutting c = {};
    c.images = args->in[0];
    c.codes = args->codes.data != NULL;
    c.y = c.codes ? args->codes : args->out;
    c.length = (unsigned) ft_patch_rows(conv, args->op->attr.leading);
    c.leading = (unsigned) args->op->attr.leading;
    c.across = (unsigned) ft_conv_size(conv, 1);
    c.height = (unsigned) conv->height, c.width = (unsigned) conv->width;
    c.rows = (unsigned) conv->kernel[0], c.cols = (unsigned) conv->kernel[1];
    c.inverse = ft_inverse_scale(args->codes.scale);
    if (c.y.rows == 0)
        return (int) cudaSuccess;
    return c.cols % 4 == 0 && c.width % 4 == 0 ? cut<4>(args, c) : cut<1>(args, c);
}

/* ---- ADD_CLASS_TOKEN ----------------------------------------------------------------------- */

enum { MOST_LEADING = 2 };

typedef struct placing {
    ft_cuda_view x, y;
    const void *lead[MOST_LEADING]; /* F32 */
    const void *position;
    ft_dtype dtype; /* of position embeddings */
    unsigned length, leading;
} placing;

template <int N>
static __global__ void __launch_bounds__(ACROSS *ROWS) place_kernel(const placing p)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * ACROSS + threadIdx.x) * N;
    unsigned row_in_image = (unsigned) (row % p.length);
    ft_bits<N> bits, at;
    float x[N], position[N];
    bool inside = row < p.y.rows && col < p.y.cols, leads = row_in_image < p.leading;
    if (inside)
        ft_fetch<N>(at, (void *) p.position, p.dtype, row_in_image * p.y.cols + col);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (!inside)
        return;
    if (leads)
        ft_fetch_as<FT_F32, N>(bits, (void *) (row_in_image == 0 ? p.lead[0] : p.lead[1]), col);
    else
        ft_fetch<N>(bits, p.x.data, p.x.dtype, row * p.x.cols + col);
    ft_unpack<N>(x, bits, leads ? FT_F32 : p.x.dtype);
    ft_unpack<N>(position, at, p.dtype);
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] += position[i];
    ft_store<N>(p.y.data, p.y.dtype, row * p.y.cols + col, x);
}

template <int N> static int launch_add_class_token(const ft_cuda_args *args, const placing &p)
{
    return ft_launch(place_kernel<N>, grid_of(p.y.rows, p.y.cols, N), dim3(ACROSS, ROWS), 0,
                     args->stream, args->chip->overlaps, 1, p);
}

extern "C" int ft_cuda_place(const ft_cuda_args *args)
{
    placing p = {};
    p.x = args->in[0], p.y = args->out;
    p.position = args->weight[0]->data, p.dtype = args->weight[0]->dtype;
    p.length = (unsigned) args->weight[0]->rows;
    p.leading = (unsigned) args->op->attr.leading;
    for (int i = 0; i < MOST_LEADING; i++)
        if (args->weight[1 + i] != NULL)
            p.lead[i] = args->weight[1 + i]->data;
    if (p.y.rows == 0)
        return (int) cudaSuccess;
    return p.y.cols % 4 == 0 ? launch_add_class_token<4>(args, p)
                             : launch_add_class_token<1>(args, p);
}
