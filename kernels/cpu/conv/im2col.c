/*
 * im2col.c - NCHW to NHWC, im2col, and the output layout of convolutions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/conv/conv.h"

#include "kernels/cpu/base/simd.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <string.h>

/* A tile of a transposition: channels by pixels. */
enum { TILE_CHANNELS = 16, TILE_PIXELS = 64 };

static size_t n_tiles(size_t n, size_t tile)
{
    return (n + tile - 1) / tile;
}

/* ---- NCHW to NHWC --------------------------------------------------------------------------- */

/*
 * Transposes `n_pixels` pixels of `lines` neighbouring channels; rows of pixels are `stride` apart.
 */
static void transpose_f32(const float *from, size_t stride, float *to, size_t channels,
                          size_t lines, size_t n_pixels)
{
    for (size_t pixel_i = 0; pixel_i < n_pixels; pixel_i++)
        for (size_t line = 0; line < lines; line++)
            to[pixel_i * channels + line] = from[line * stride + pixel_i];
}

static void transpose_f16(const ft_args *args, const uint16_t *from, size_t stride, float *to,
                          size_t channels, size_t lines, size_t n_pixels)
{
    float tile[TILE_CHANNELS][TILE_PIXELS];
    for (size_t line = 0; line < lines; line++)
        args->rows->to_float(tile[line], from + line * stride, args->in[0].dtype, n_pixels);
    transpose_f32(tile[0], TILE_PIXELS, to, channels, lines, n_pixels);
}

/*
 * Swaps the off-diagonal squares of `distance` bytes; `mask` selects one of them.
 */
FT_INLINE void swap_off_diagonal(uint64_t line[8], int distance, uint64_t mask)
{
    FT_UNROLL
    for (int i = 0; i < 8; i++)
        if ((i & distance) == 0) {
            uint64_t diff = (line[i] >> 8 * distance ^ line[i + distance]) & mask;
            line[i + distance] ^= diff;
            line[i] ^= diff << 8 * distance;
        }
}

/* Transposes 8 x 8 bytes; the first byte of a line is its lowest. */
static void transpose_8x8(const int8_t *from, size_t from_stride, int8_t *to, size_t to_stride)
{
    uint64_t line[8];
    FT_UNROLL
    for (size_t i = 0; i < 8; i++)
        memcpy(&line[i], from + i * from_stride, sizeof line[i]);
    swap_off_diagonal(line, 4, 0x00000000ffffffffu);
    swap_off_diagonal(line, 2, 0x0000ffff0000ffffu);
    swap_off_diagonal(line, 1, 0x00ff00ff00ff00ffu);
    FT_UNROLL
    for (size_t i = 0; i < 8; i++)
        memcpy(to + i * to_stride, &line[i], sizeof line[i]);
}

static void transpose_i8(const int8_t *from, size_t stride, int8_t *to, size_t channels,
                         size_t lines, size_t n_pixels)
{
    size_t full_lines = lines / 8 * 8, full_pixels = n_pixels / 8 * 8;
    for (size_t line = 0; line < full_lines; line += 8)
        for (size_t pixel_i = 0; pixel_i < full_pixels; pixel_i += 8)
            transpose_8x8(from + line * stride + pixel_i, stride, to + pixel_i * channels + line,
                          channels);
    for (size_t pixel_i = 0; pixel_i < n_pixels; pixel_i++)
        for (size_t line = pixel_i < full_pixels ? full_lines : 0; line < lines; line++)
            to[pixel_i * channels + line] = from[line * stride + pixel_i];
}

/*
 * Prefetches the next tile: hardware prefetchers do not follow this many channels at once.
 */
static void prefetch_lines(const char *from, size_t stride, size_t lines, size_t bytes)
{
    for (size_t line = 0; line < lines; line++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(from + line * stride + at);
}

/* All channels of neighbouring pixels of one image; x points to channel 0 of the first one. */
static void transpose_pixels(const ft_args *args, const ft_conv_tiling *tiling, const char *x,
                             size_t n_pixels, char *to)
{
    size_t stride = tiling->pixels, channels = tiling->channels;
    size_t size = ft_dtype_size(args->in[0].dtype);
    for (size_t channel = 0; channel < channels; channel += TILE_CHANNELS) {
        size_t lines = ft_min_size(TILE_CHANNELS, channels - channel);
        const void *from = x + channel * stride * size;
        void *dst = to + channel * tiling->size;
        prefetch_lines((const char *) from + TILE_PIXELS * size, stride * size, lines,
                       TILE_PIXELS * size);
        if (args->in[0].dtype == FT_I8)
            transpose_i8(from, stride, dst, channels, lines, n_pixels);
        else if (args->in[0].dtype == FT_F32)
            transpose_f32(from, stride, dst, channels, lines, n_pixels);
        else
            transpose_f16(args, from, stride, dst, channels, lines, n_pixels);
    }
}

/*
 * Shared by all threads: `count` pixels or windows, starting with number `first` of the batch.
 */
typedef struct job {
    const ft_args *args;
    const ft_conv_tiling *tiling;
    size_t first, count;
    const void *from;
    void *to;
} job;

/* NHWC images in F16 or BF16 are only converted to float. */
static void convert_tiles(const void *arg, int thread, size_t tile, size_t end_tile)
{
    const job *j = arg;
    size_t begin = tile * TILE_PIXELS, end = ft_min_size(j->count, end_tile * TILE_PIXELS);
    size_t channels = j->tiling->channels;
    (void) thread;
    j->args->rows->to_float((float *) j->to + begin * channels,
                            (const uint16_t *) j->args->in[0].data + (j->first + begin) * channels,
                            j->args->in[0].dtype, (end - begin) * channels);
}

static void transpose_tiles(const void *arg, int thread, size_t tile, size_t end_tile)
{
    const job *j = arg;
    const ft_view *x = &j->args->in[0];
    size_t pixels = j->tiling->pixels, size = ft_dtype_size(x->dtype), n_pixels;
    size_t end = ft_min_size(j->count, end_tile * TILE_PIXELS);
    (void) thread;
    for (size_t i = tile * TILE_PIXELS; i < end; i += n_pixels) {
        size_t image = (j->first + i) / pixels, pixel = (j->first + i) % pixels;
        n_pixels = ft_min_size(ft_min_size(end - i, TILE_PIXELS - i % TILE_PIXELS), pixels - pixel);
        transpose_pixels(j->args, j->tiling,
                         (const char *) x->data + (image * x->cols + pixel) * size, n_pixels,
                         (char *) j->to + i * j->tiling->channels * j->tiling->size);
    }
}

/* Team size for this many elements. */
static int team_size(const ft_args *args, size_t chunks, size_t elements)
{
    return ft_team_size(args->threads, chunks, (double) elements);
}

void ft_conv_nchw_to_nhwc(const ft_args *args, const ft_conv_tiling *tiling, size_t first,
                          size_t count, void *pixels)
{
    const job j = { .args = args, .tiling = tiling, .first = first, .count = count, .to = pixels };
    size_t tiles = n_tiles(count, TILE_PIXELS);
    bool is_nchw = args->op->attr.conv.in_layout == FT_IMAGE_NCHW;
    ft_parallel_for(team_size(args, tiles, count * tiling->channels), tiles,
                    is_nchw ? transpose_tiles : convert_tiles, &j);
}

/* ---- im2col --------------------------------------------------------------------------------- */

/*
 * The kernel columns first .. end - 1 that are inside the image; `left` is the image column of
 * kernel column 0.
 */
static void kernel_cols_inside(const ft_conv *c, int32_t left, int32_t *first, int32_t *end)
{
    int32_t dilation_x = c->dilation[1];
    *first = left >= 0 ? 0 : (-left + dilation_x - 1) / dilation_x;
    *end = left >= c->width ? 0 : (c->width - left + dilation_x - 1) / dilation_x;
    *end = *end < c->kernel[1] ? *end : c->kernel[1];
    *first = *first < *end ? *first : *end;
}

/*
 * Gathers the pixels under one row of the kernel, from an image row that starts at `pixels`; NULL:
 * a row outside the image. Padding is `zero` in every byte.
 */
static void im2col_row(char *to, const char *pixels, const ft_conv *c, int32_t left, size_t pixel,
                       int zero)
{
    int32_t first = 0, end = 0, dilation_x = c->dilation[1];
    if (pixels != NULL)
        kernel_cols_inside(c, left, &first, &end);
    memset(to, zero, (size_t) first * pixel);
    memset(to + (size_t) end * pixel, zero, (size_t) (c->kernel[1] - end) * pixel);
    if (dilation_x == 1 && first < end)
        memcpy(to + (size_t) first * pixel, pixels + (size_t) (left + first) * pixel,
               (size_t) (end - first) * pixel);
    else
        for (int32_t i = first; i < end; i++)
            memcpy(to + (size_t) i * pixel, pixels + (size_t) (left + i * dilation_x) * pixel,
                   pixel);
}

static void im2col_window(char *to, const char *image, const ft_conv *c, size_t position,
                          size_t pixel)
{
    int32_t out_width = ft_conv_out_size(c, 1);
    int32_t top = (int32_t) (position / (size_t) out_width) * c->stride[0] - c->padding[0];
    int32_t left = (int32_t) (position % (size_t) out_width) * c->stride[1] - c->padding[1];
    for (int32_t i = 0; i < c->kernel[0]; i++, to += (size_t) c->kernel[1] * pixel) {
        int32_t row = top + i * c->dilation[0];
        bool is_inside = row >= 0 && row < c->height;
        im2col_row(to, is_inside ? image + (size_t) row * (size_t) c->width * pixel : NULL, c, left,
                   pixel, c->zero);
    }
}

static void im2col_windows(const void *arg, int thread, size_t begin, size_t end)
{
    const job *j = arg;
    const ft_conv_tiling *tiling = j->tiling;
    size_t pixel = tiling->channels * tiling->size;
    (void) thread;
    for (size_t i = begin; i < end; i++) {
        size_t image = (j->first + i) / tiling->positions,
               position = (j->first + i) % tiling->positions;
        im2col_window((char *) j->to + i * tiling->window_size * tiling->size,
                      (const char *) j->from + image * tiling->pixels * pixel,
                      &j->args->op->attr.conv, position, pixel);
    }
}

void ft_conv_im2col(const ft_args *args, const ft_conv_tiling *tiling, const void *pixels,
                    size_t first, size_t count, void *rows)
{
    const job j = { args, tiling, first, count, pixels, rows };
    ft_parallel_for(team_size(args, count, count * tiling->window_size), count, im2col_windows, &j);
}

/* ---- Output --------------------------------------------------------------------------------- */

/* Stores neighbouring elements, the first of them element `at` of the output. */
static void store_line(const ft_args *args, float *line, size_t at, size_t n_pixels)
{
    const ft_conv *c = &args->op->attr.conv;
    for (size_t i = 0; i < n_pixels && c->clamps; i++) {
        line[i] = line[i] > c->low ? line[i] : c->low;
        line[i] = line[i] < c->high ? line[i] : c->high;
    }
    if (args->quantized.data != NULL)
        args->rows->quantize_i8((int8_t *) args->quantized.data + at, line,
                                ft_inverse_scale(args->quantized.scale), n_pixels);
    else
        args->rows->from_float((char *) args->out.data + at * ft_dtype_size(args->out.dtype), line,
                               args->out.dtype, n_pixels);
}

/* All channels of `n_pixels` output pixels of one image, the first of them at `position`. */
static void store_pixels(const ft_args *args, const ft_conv_tiling *tiling, size_t image,
                         size_t position, size_t n_pixels, const float *outputs)
{
    float tile[TILE_CHANNELS][TILE_PIXELS];
    for (size_t out_channel = 0; out_channel < tiling->out_channels; out_channel += TILE_CHANNELS) {
        size_t lines = ft_min_size(TILE_CHANNELS, tiling->out_channels - out_channel);
        for (size_t pixel_i = 0; pixel_i < n_pixels; pixel_i++)
            for (size_t line = 0; line < lines; line++)
                tile[line][pixel_i] = outputs[pixel_i * tiling->out_channels + out_channel + line];
        for (size_t line = 0; line < lines; line++)
            store_line(args, tile[line],
                       (image * tiling->out_channels + out_channel + line) * tiling->positions +
                           position,
                       n_pixels);
    }
}

/* NHWC outputs keep the order of the GEMM. */
static void store_nhwc_tiles(const void *arg, int thread, size_t tile, size_t end_tile)
{
    const job *j = arg;
    float line[TILE_PIXELS * TILE_CHANNELS];
    size_t outputs = j->tiling->out_channels, count,
           end = ft_min_size(j->count, end_tile * TILE_PIXELS);
    (void) thread;
    for (size_t i = tile * TILE_PIXELS * outputs; i < end * outputs; i += count) {
        count = ft_min_size(end * outputs - i, TILE_PIXELS * TILE_CHANNELS);
        memcpy(line, (const float *) j->from + i, count * sizeof *line);
        store_line(j->args, line, j->first * outputs + i, count);
    }
}

static void store_nchw_tiles(const void *arg, int thread, size_t tile, size_t end_tile)
{
    const job *j = arg;
    size_t positions = j->tiling->positions, n_pixels;
    size_t end = ft_min_size(j->count, end_tile * TILE_PIXELS);
    (void) thread;
    for (size_t i = tile * TILE_PIXELS; i < end; i += n_pixels) {
        size_t image = (j->first + i) / positions, position = (j->first + i) % positions;
        n_pixels =
            ft_min_size(ft_min_size(end - i, TILE_PIXELS - i % TILE_PIXELS), positions - position);
        store_pixels(j->args, j->tiling, image, position, n_pixels,
                     (const float *) j->from + i * j->tiling->out_channels);
    }
}

void ft_conv_store_output(const ft_args *args, const ft_conv_tiling *tiling, size_t first,
                          size_t count, const float *outputs)
{
    const job j = { args, tiling, first, count, outputs, NULL };
    size_t tiles = n_tiles(count, TILE_PIXELS);
    bool is_nchw = args->op->attr.conv.out_layout == FT_IMAGE_NCHW;
    ft_parallel_for(team_size(args, tiles, count * tiling->out_channels), tiles,
                    is_nchw ? store_nchw_tiles : store_nhwc_tiles, &j);
}
