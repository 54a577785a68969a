/*
 * conv_wgmma.cu - which convolutions the tensor-core kernels of sm_90a support, and their launch.
 *
 * FT_CUDA_CONV=simt selects conv_simt.cu instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Zero-point correction of int8 activations ---------------------------------------------- */

enum { EXCESS_THREADS = 128 };

/* zp_correction[output] = zero * the sum of its weights; one warp per output channel. */
static __global__ void __launch_bounds__(EXCESS_THREADS)
    excess_kernel(int32_t *zp_correction, const int8_t *w, int out_channels, int window, int zero)
{
    int output = (int) (blockIdx.x * EXCESS_THREADS + threadIdx.x) / 32, sum = 0;
    size_t padded_rows = ft_layout_rows(FT_COL4_4R2_8C, (size_t) out_channels);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (output >= out_channels)
        return;
    for (int col = (int) threadIdx.x % 32; col < window; col += 32)
        sum += w[ft_offset_col4((unsigned) output, (unsigned) col, padded_rows)];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (threadIdx.x % 32 == 0)
        zp_correction[output] = sum * zero;
}

/* ---- Supported problems --------------------------------------------------------------------- */

static bool has_operands(const conv_problem_args *t)
{
    if (t->x_dtype == FT_I8)
        return t->prepacked != NULL;
    if (t->x_dtype != FT_F16 && t->x_dtype != FT_BF16)
        return false;
    if (t->groupwise.scale != NULL)
        return !t->groupwise.int8_activations;
    return t->w_dtype == t->x_dtype && t->window % 8 == 0;
}

static bool forces_simt(void)
{
    const char *name = getenv("FT_CUDA_CONV");
    return name != NULL && strcmp(name, "simt") == 0;
}

bool ft_cuda_conv_wgmma_supports(const ft_cuda_device_props *props, const conv_problem_args *t)
{
    return props->has_wgmma && has_operands(t) &&
           ft_cuda_conv_input_layout_of(t).layout_kind != CONV_LAYOUT_NONE && !forces_simt();
}

/* Bytes of images in the input layout, without the zero-point correction. */
static size_t converted_bytes(const conv_problem_args *t, const conv_input_layout *layout)
{
    size_t bytes = (size_t) t->images * layout->image;
    return layout->converted ? (bytes + 255) / 256 * 256 : 0;
}

size_t ft_cuda_conv_wgmma_scratch(const conv_problem_args *t)
{
    conv_input_layout layout = ft_cuda_conv_input_layout_of(t);
    size_t zp_correction = t->conv.zero != 0 ? (size_t) t->out_channels * sizeof(int32_t) : 0;
    return converted_bytes(t, &layout) + zp_correction;
}

/* ---- Launch --------------------------------------------------------------------------------- */

static int map_weights(conv_gemm_params *p)
{
    const conv_problem_args *t = &p->t;
    unsigned rows = (unsigned) p->tile_outputs;
    if (t->groupwise.scale != NULL) {
        cuuint64_t bits = (cuuint64_t) ft_groupwise_bits(t->w_dtype);
        cuuint64_t lines = ((cuuint64_t) t->window + 31) / 32 * bits; /* of 128 bytes, per panel */
        cuuint64_t size[3] = { 128, lines, (cuuint64_t) p->padded_rows / 32 };
        cuuint64_t strides[2] = { 128, lines * 128 };
        cuuint32_t box[3] = { 128, (p->register_a ? 4u : 2u) * (cuuint32_t) bits, rows / 32 };
        return ft_tma_map_u8(&p->w, t->w, 3, size, strides, box);
    }
    if (p->interleaved)
        return ft_tma_map_interleaved(&p->w, t->w, (size_t) t->out_channels, 2 * (size_t) t->window,
                                      rows);
    if (t->x_dtype == FT_I8)
        return ft_tma_map_prepacked(&p->w, t->prepacked,
                                    (size_t) ft_ceil_div(t->out_channels, 32),
                                    (size_t) ft_ceil_div(t->window, CONV_K_BLOCK), rows);
    return ft_tma_map_2d(&p->w, t->w, (size_t) t->out_channels, 2 * (size_t) t->window, rows);
}

static int map_im2col(conv_gemm_params *p, const conv_input_layout *layout, const void *x,
                      unsigned windows)
{
    const ft_conv *c = &p->t.conv;
    ft_im2col_desc desc = {};
    desc.data = x;
    desc.count = (size_t) p->t.images;
    desc.height = (size_t) layout->height, desc.width = (size_t) layout->width;
    desc.pixel = layout->line;
    for (int i = 0; i < 2; i++) {
        desc.padding[i] = p->padding[i];
        desc.reach[i] = c->dilation[i] * (c->kernel[i] - 1);
        desc.stride[i] = c->stride[i];
    }
    desc.line = (unsigned) p->line;
    desc.windows = windows;
    return ft_tma_map_im2col(&p->x, &desc);
}

static int map_windows(conv_gemm_params *p, const conv_input_layout *layout, const void *x)
{
    const ft_conv *c = &p->t.conv;
    size_t size = p->t.x_dtype == FT_I8 ? 1 : 2,
           segments = (size_t) (p->t.images * p->t.out_pixels) / (size_t) p->segment;
    cuuint32_t windows = (cuuint32_t) p->x_bytes / CONV_K_BLOCK;
    if (p->layout_kind == CONV_LAYOUT_NHWC)
        return map_im2col(p, layout, x, windows);
    if (p->layout_kind == CONV_LAYOUT_NCHW) {
        cuuint64_t plane = (cuuint64_t) p->t.out_pixels * 2, channels = (cuuint64_t) c->channels;
        cuuint64_t extent[3] = { plane, channels, segments },
                   strides[2] = { plane, plane * channels };
        cuuint32_t box[3] = { CONV_K_BLOCK, 64, 1 };
        return ft_tma_map_u8(&p->x, x, 3, extent, strides, box);
    }
    cuuint64_t row =
        layout->line * (p->layout_kind == CONV_LAYOUT_ROWS ? (cuuint64_t) c->stride[1] : 1);
    cuuint64_t extent[3] = { (cuuint64_t) p->t.window * size, (cuuint64_t) p->segment, segments };
    cuuint64_t strides[2] = { row, segments > 1 ? layout->image : row * (cuuint64_t) p->segment };
    cuuint32_t box[3] = { CONV_K_BLOCK, windows, 1 };
    return ft_tma_map_u8(&p->x, x, 3, extent, strides, box);
}

/* Whether segments are images. Otherwise all images form one segment of consecutive windows. */
static bool segments_are_images(const conv_gemm_params *p)
{
    const ft_conv &c = p->t.conv;
    return p->layout_kind == CONV_LAYOUT_NCHW ||
           (p->layout_kind == CONV_LAYOUT_ROWS &&
            (c.kernel[1] != 1 || c.stride[1] != 1 || c.padding[1] != 0 || c.stride[0] != 1));
}

/* Consecutive results of a channel that are one vector store. */
static int store_width(const conv_problem_args *t)
{
    int size = t->y_dtype == FT_I8 ? 1 : t->y_dtype == FT_F32 ? 4 : 2;
    bool aligned = (uintptr_t) t->y % 16 == 0;
    return aligned && t->out_pixels * size % 16 == 0 ? 16 / size
           : aligned && t->out_pixels % 4 == 0       ? 4
                                                     : 1;
}

/*
 * Whether eight consecutive channels of a pixel are one store; ft_tma_map_interleaved() gives lanes
 * such channels.
 */
static bool stores_x8(const conv_problem_args *t)
{
    bool quantized = t->x_dtype == FT_I8 || t->groupwise.scale != NULL;
    return (uintptr_t) t->y % 32 == 0 && t->out_channels % (quantized ? 8 : 32) == 0;
}

/* Folds a clamping activation into the range. */
static void set_range(conv_gemm_params *p)
{
    const ft_conv &c = p->t.conv;
    bool relu = p->t.activation == FT_ACT_RELU;
    p->has_activation = !relu && p->t.activation != FT_ACT_NONE;
    p->clamps_output = relu || c.clamps;
    p->low = !c.clamps ? 0.0f : relu && c.low < 0.0f ? 0.0f : c.low;
    p->high = c.clamps ? c.high : INFINITY;
    p->q_min = !p->clamps_output ? 1 : 128 + ft_quantize(p->low, p->t.y_inv_scale);
    p->q_max = !c.clamps ? 255 : 128 + ft_quantize(p->high, p->t.y_inv_scale);
}

static conv_gemm_params gemm_params_of(const conv_problem_args *t, const conv_input_layout *layout)
{
    conv_gemm_params p = {};
    int size = t->x_dtype == FT_I8 ? 1 : 2;
    p.t = *t;
    p.layout_kind = layout->layout_kind;
    p.segment = segments_are_images(&p) ? t->out_pixels : t->images * t->out_pixels;
    p.k_blocks = ft_ceil_div(t->window * size, CONV_K_BLOCK);
    p.pixel = (int) layout->line;
    p.line = p.layout_kind != CONV_LAYOUT_NHWC || p.pixel % 128 == 0 ? 128
             : p.pixel % 64 == 0                                     ? 64
                                                                     : 32;
    for (int i = 0; i < 2; i++)
        p.padding[i] = t->conv.padding[i] - layout->border[i];
    p.group = conv_divider_of(t->groupwise.group == 0 ? INT32_MAX : t->groupwise.group);
    p.group_k_blocks = t->groupwise.group == 0        ? p.k_blocks
                       : t->groupwise.group % 64 == 0 ? t->groupwise.group / 64
                                                      : 0;
    p.group_k_tiles = t->groupwise.group == 0         ? ft_ceil_div(p.k_blocks, 2)
                      : t->groupwise.group % 128 == 0 ? t->groupwise.group / 128
                                                      : 0;
    p.padded_rows = (int) ft_layout_rows(FT_PANEL32, (size_t) t->out_channels);
    p.store_width = store_width(t);
    p.stores_x8 = stores_x8(t);
    set_range(&p);
    p.out_pixels = conv_divider_of(t->out_pixels);
    p.per_row = conv_divider_of(t->per_row);
    return p;
}

static int map_operands(conv_gemm_params *p, const conv_input_layout *layout, const void *x)
{
    int status = map_weights(p);
    return status != 0 ? status : map_windows(p, layout, x);
}

static int launch_nhwc(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                       const conv_input_layout *layout, const void *x)
{
    const conv_nhwc_tile *tile = ft_cuda_conv_select_nhwc_tile(props, p);
    int status = map_operands(p, layout, x);
    if (status != 0)
        return status;
    if (p->register_a)
        return ft_cuda_conv_register_a(props, stream, p);
    conv_nhwc_launcher *launch = p->t.x_dtype == FT_I8          ? ft_cuda_conv_nhwc_int8
                                 : p->t.groupwise.scale != NULL ? ft_cuda_conv_nhwc_groupwise
                                                                : ft_cuda_conv_nhwc_f16;
    return launch(props, stream, p, tile);
}

static int launch_gemm(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                       const conv_input_layout *layout, const void *x)
{
    if (p->t.conv.out_layout == FT_IMAGE_NHWC)
        return launch_nhwc(props, stream, p, layout, x);
    int n = ft_cuda_conv_select_nchw_tile(props, p);
    int status = map_operands(p, layout, x);
    if (status != 0)
        return status;
    if (p->register_a)
        return ft_cuda_conv_register_a(props, stream, p);
    conv_nchw_launcher *launch = p->t.x_dtype == FT_I8          ? ft_cuda_conv_nchw_int8
                                 : p->t.groupwise.scale != NULL ? ft_cuda_conv_nchw_groupwise
                                                                : ft_cuda_conv_nchw_f16;
    return launch(props, stream, p, n);
}

int ft_cuda_conv_wgmma(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t,
                       void *scratch)
{
    conv_input_layout layout = ft_cuda_conv_input_layout_of(t);
    conv_gemm_params p = gemm_params_of(t, &layout);
    int32_t *zp_correction = (int32_t *) ((char *) scratch + converted_bytes(t, &layout));
    int status = 0;
    if (t->conv.zero != 0) {
        p.zp_correction = zp_correction;
        status =
            ft_launch(excess_kernel, ft_ceil_div((size_t) t->out_channels * 32, EXCESS_THREADS),
                      EXCESS_THREADS, 0, stream, props->has_pdl, 1, zp_correction,
                      (const int8_t *) t->w, t->out_channels, t->window, t->conv.zero);
    }
    if (status == 0 && layout.converted)
        status = ft_cuda_conv_convert_input(props, stream, t, &layout, scratch);
    return status != 0 ? status
                       : launch_gemm(props, stream, &p, &layout, layout.converted ? scratch : t->x);
}
