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
enum { LINES = 16, PLACES = 64 };

static size_t tiles_of(size_t n, size_t tile)
{
    return (n + tile - 1) / tile;
}

/* ---- NCHW to NHWC --------------------------------------------------------------------------- */

/*
 * Transposes `n_pixels` pixels of `lines` neighbouring channels; rows of pixels are `stride` apart.
 */
static void turn_floats(const float *from, size_t stride, float *to, size_t channels, size_t lines,
                        size_t places)
{
    for (size_t place = 0; place < places; place++)
        for (size_t line = 0; line < lines; line++)
            to[place * channels + line] = from[line * stride + place];
}

static void turn_halves(const ft_args *args, const uint16_t *from, size_t stride, float *to,
                        size_t channels, size_t lines, size_t places)
{
    float tile[LINES][PLACES];
    for (size_t line = 0; line < lines; line++)
        args->rows->to_float(tile[line], from + line * stride, args->in[0].dtype, places);
    turn_floats(tile[0], PLACES, to, channels, lines, places);
}

/*
 * Swaps the off-diagonal squares of `distance` bytes; `mask` selects one of them.
 */
FT_INLINE void swap_squares(uint64_t line[8], int distance, uint64_t mask)
{
    FT_UNROLL
    for (int i = 0; i < 8; i++)
        if ((i & distance) == 0) {
            uint64_t differ = (line[i] >> 8 * distance ^ line[i + distance]) & mask;
            line[i + distance] ^= differ;
            line[i] ^= differ << 8 * distance;
        }
}

/* Transposes 8 x 8 bytes; the first byte of a line is its lowest. */
static void turn_square(const int8_t *from, size_t from_stride, int8_t *to, size_t to_stride)
{
    uint64_t line[8];
    FT_UNROLL
    for (size_t i = 0; i < 8; i++)
        memcpy(&line[i], from + i * from_stride, sizeof line[i]);
    swap_squares(line, 4, 0x00000000ffffffffu);
    swap_squares(line, 2, 0x0000ffff0000ffffu);
    swap_squares(line, 1, 0x00ff00ff00ff00ffu);
    FT_UNROLL
    for (size_t i = 0; i < 8; i++)
        memcpy(to + i * to_stride, &line[i], sizeof line[i]);
}

static void turn_codes(const int8_t *from, size_t stride, int8_t *to, size_t channels, size_t lines,
                       size_t places)
{
    size_t whole_lines = lines / 8 * 8, whole = places / 8 * 8;
    for (size_t line = 0; line < whole_lines; line += 8)
        for (size_t place = 0; place < whole; place += 8)
            turn_square(from + line * stride + place, stride, to + place * channels + line,
                        channels);
    for (size_t place = 0; place < places; place++)
        for (size_t line = place < whole ? whole_lines : 0; line < lines; line++)
            to[place * channels + line] = from[line * stride + place];
}

/*
 * Prefetches the next tile: hardware prefetchers do not follow this many channels at once.
 */
static void fetch_lines(const char *from, size_t stride, size_t lines, size_t bytes)
{
    for (size_t line = 0; line < lines; line++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(from + line * stride + at);
}

/* All channels of neighbouring pixels of one image; x points to channel 0 of the first one. */
static void turn_places(const ft_args *args, const ft_conv_cut *cut, const char *x, size_t places,
                        char *to)
{
    size_t stride = cut->pixels, channels = cut->channels;
    size_t size = ft_dtype_size(args->in[0].dtype);
    for (size_t channel = 0; channel < channels; channel += LINES) {
        size_t lines = ft_min_size(LINES, channels - channel);
        const void *from = x + channel * stride * size;
        void *lines_to = to + channel * cut->size;
        fetch_lines((const char *) from + PLACES * size, stride * size, lines, PLACES * size);
        if (args->in[0].dtype == FT_I8)
            turn_codes(from, stride, lines_to, channels, lines, places);
        else if (args->in[0].dtype == FT_F32)
            turn_floats(from, stride, lines_to, channels, lines, places);
        else
            turn_halves(args, from, stride, lines_to, channels, lines, places);
    }
}

/*
 * Shared by all threads: `count` pixels or windows, starting with number `first` of the batch.
 */
typedef struct job {
    const ft_args *args;
    const ft_conv_cut *cut;
    size_t first, count;
    const void *from;
    void *to;
} job;

/* NHWC images in F16 or BF16 are only converted to float. */
static void widen_tiles(const void *of, int thread, size_t tile, size_t end_tile)
{
    const job *j = of;
    size_t begin = tile * PLACES, end = ft_min_size(j->count, end_tile * PLACES);
    size_t channels = j->cut->channels;
    (void) thread;
    j->args->rows->to_float((float *) j->to + begin * channels,
                            (const uint16_t *) j->args->in[0].data + (j->first + begin) * channels,
                            j->args->in[0].dtype, (end - begin) * channels);
}

static void turn_tiles(const void *of, int thread, size_t tile, size_t end_tile)
{
    const job *j = of;
    const ft_view *x = &j->args->in[0];
    size_t pixels = j->cut->pixels, size = ft_dtype_size(x->dtype), places;
    size_t end = ft_min_size(j->count, end_tile * PLACES);
    (void) thread;
    for (size_t i = tile * PLACES; i < end; i += places) {
        size_t image = (j->first + i) / pixels, pixel = (j->first + i) % pixels;
        places = ft_min_size(ft_min_size(end - i, PLACES - i % PLACES), pixels - pixel);
        turn_places(j->args, j->cut, (const char *) x->data + (image * x->cols + pixel) * size,
                    places, (char *) j->to + i * j->cut->channels * j->cut->size);
    }
}

/* Team size for this many elements. */
static int team_for(const ft_args *args, size_t pieces, size_t numbers)
{
    return ft_team_size(args->threads, pieces, (double) numbers);
}

void ft_conv_turn(const ft_args *args, const ft_conv_cut *cut, size_t first, size_t count,
                  void *pixels)
{
    const job j = { .args = args, .cut = cut, .first = first, .count = count, .to = pixels };
    size_t tiles = tiles_of(count, PLACES);
    bool planes = args->op->attr.conv.in_order == FT_IMAGE_PLANES;
    ft_team_share(team_for(args, tiles, count * cut->channels), tiles,
                  planes ? turn_tiles : widen_tiles, &j);
}

/* ---- im2col --------------------------------------------------------------------------------- */

/*
 * The kernel columns first .. end - 1 that are inside the image; `left` is the image column of
 * kernel column 0.
 */
static void inside(const ft_conv *c, int32_t left, int32_t *first, int32_t *end)
{
    int32_t step = c->dilation[1];
    *first = left >= 0 ? 0 : (-left + step - 1) / step;
    *end = left >= c->width ? 0 : (c->width - left + step - 1) / step;
    *end = *end < c->kernel[1] ? *end : c->kernel[1];
    *first = *first < *end ? *first : *end;
}

/*
 * Gathers the pixels under one row of the kernel, from an image row that starts at `pixels`; NULL:
 * a row outside the image. Padding is `zero` in every byte.
 */
static void gather_row(char *to, const char *pixels, const ft_conv *c, int32_t left, size_t pixel,
                       int zero)
{
    int32_t first = 0, end = 0, step = c->dilation[1];
    if (pixels != NULL)
        inside(c, left, &first, &end);
    memset(to, zero, (size_t) first * pixel);
    memset(to + (size_t) end * pixel, zero, (size_t) (c->kernel[1] - end) * pixel);
    if (step == 1 && first < end)
        memcpy(to + (size_t) first * pixel, pixels + (size_t) (left + first) * pixel,
               (size_t) (end - first) * pixel);
    else
        for (int32_t i = first; i < end; i++)
            memcpy(to + (size_t) i * pixel, pixels + (size_t) (left + i * step) * pixel, pixel);
}

static void gather_window(char *to, const char *image, const ft_conv *c, size_t position,
                          size_t pixel)
{
    int32_t across = ft_conv_size(c, 1);
    int32_t top = (int32_t) (position / (size_t) across) * c->stride[0] - c->padding[0];
    int32_t left = (int32_t) (position % (size_t) across) * c->stride[1] - c->padding[1];
    for (int32_t i = 0; i < c->kernel[0]; i++, to += (size_t) c->kernel[1] * pixel) {
        int32_t row = top + i * c->dilation[0];
        bool there = row >= 0 && row < c->height;
        gather_row(to, there ? image + (size_t) row * (size_t) c->width * pixel : NULL, c, left,
                   pixel, c->zero);
    }
}

static void gather_windows(const void *of, int thread, size_t begin, size_t end)
{
    const job *j = of;
    const ft_conv_cut *cut = j->cut;
    size_t pixel = cut->channels * cut->size;
    (void) thread;
    for (size_t i = begin; i < end; i++) {
        size_t image = (j->first + i) / cut->positions, position = (j->first + i) % cut->positions;
        gather_window((char *) j->to + i * cut->window * cut->size,
                      (const char *) j->from + image * cut->pixels * pixel, &j->args->op->attr.conv,
                      position, pixel);
    }
}

void ft_conv_gather(const ft_args *args, const ft_conv_cut *cut, const void *pixels, size_t first,
                    size_t count, void *rows)
{
    const job j = { args, cut, first, count, pixels, rows };
    ft_team_share(team_for(args, count, count * cut->window), count, gather_windows, &j);
}

/* ---- Output --------------------------------------------------------------------------------- */

/* Stores neighbouring elements, the first of them element `at` of the output. */
static void write_line(const ft_args *args, float *line, size_t at, size_t places)
{
    const ft_conv *c = &args->op->attr.conv;
    for (size_t i = 0; i < places && c->clamps; i++) {
        line[i] = line[i] > c->low ? line[i] : c->low;
        line[i] = line[i] < c->high ? line[i] : c->high;
    }
    if (args->codes.data != NULL)
        args->rows->quantize_i8((int8_t *) args->codes.data + at, line,
                                ft_inverse_scale(args->codes.scale), places);
    else
        args->rows->from_float((char *) args->out.data + at * ft_dtype_size(args->out.dtype), line,
                               args->out.dtype, places);
}

/* All channels of `n_pixels` output pixels of one image, the first of them at `position`. */
static void lay_out_places(const ft_args *args, const ft_conv_cut *cut, size_t image,
                           size_t position, size_t places, const float *results)
{
    float tile[LINES][PLACES];
    for (size_t output = 0; output < cut->outputs; output += LINES) {
        size_t lines = ft_min_size(LINES, cut->outputs - output);
        for (size_t place = 0; place < places; place++)
            for (size_t line = 0; line < lines; line++)
                tile[line][place] = results[place * cut->outputs + output + line];
        for (size_t line = 0; line < lines; line++)
            write_line(args, tile[line],
                       (image * cut->outputs + output + line) * cut->positions + position, places);
    }
}

/* NHWC outputs keep the order of the GEMM. */
static void round_tiles(const void *of, int thread, size_t tile, size_t end_tile)
{
    const job *j = of;
    float line[PLACES * LINES];
    size_t outputs = j->cut->outputs, count, end = ft_min_size(j->count, end_tile * PLACES);
    (void) thread;
    for (size_t i = tile * PLACES * outputs; i < end * outputs; i += count) {
        count = ft_min_size(end * outputs - i, PLACES * LINES);
        memcpy(line, (const float *) j->from + i, count * sizeof *line);
        write_line(j->args, line, j->first * outputs + i, count);
    }
}

static void lay_out_tiles(const void *of, int thread, size_t tile, size_t end_tile)
{
    const job *j = of;
    size_t positions = j->cut->positions, places;
    size_t end = ft_min_size(j->count, end_tile * PLACES);
    (void) thread;
    for (size_t i = tile * PLACES; i < end; i += places) {
        size_t image = (j->first + i) / positions, position = (j->first + i) % positions;
        places = ft_min_size(ft_min_size(end - i, PLACES - i % PLACES), positions - position);
        lay_out_places(j->args, j->cut, image, position, places,
                       (const float *) j->from + i * j->cut->outputs);
    }
}

void ft_conv_lay_out(const ft_args *args, const ft_conv_cut *cut, size_t first, size_t count,
                     const float *results)
{
    const job j = { args, cut, first, count, results, NULL };
    size_t tiles = tiles_of(count, PLACES);
    bool planes = args->op->attr.conv.out_order == FT_IMAGE_PLANES;
    ft_team_share(team_for(args, tiles, count * cut->outputs), tiles,
                  planes ? lay_out_tiles : round_tiles, &j);
}
