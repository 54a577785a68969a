/*
 * conv-t.c - convolutions on the device: hand-picked and hundreds of random shapes, with every
 * kind of weights, against the formula in double; and with every tensor-core tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "runtime/model/devices.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/conv.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_SHAPES = 200 };

static const conv_how kinds[] = {
    { .weight = FT_F32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_F16, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_BF16, .x = FT_BF16, .y = FT_BF16 },
    { .weight = FT_F16, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U4, .group = 96, .asymmetric = true, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U4, .group = 128, .asymmetric = true, .x = FT_BF16, .y = FT_BF16 },
    { .weight = FT_U4, .group = 256, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U8, .group = 0, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U8, .group = 0, .asymmetric = true, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U8, .group = 64, .asymmetric = true, .x = FT_BF16, .y = FT_BF16 },
    { .weight = FT_U8, .group = 32, .int8_activations = true, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U8, .group = 64, .asymmetric = true, .int8_activations = true, FT_F16, FT_F16 },
    { .weight = FT_U8, .group = 0, .int8_activations = true, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .asymmetric = true, .int8_activations = true, FT_F32, FT_F32 },
    { .weight = FT_I8, .x = FT_I8, .y = FT_F32 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_F16 },
    { .weight = FT_I8, .x = FT_I8, .y = FT_I8 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_I8 },
};

/*
 * Tensor cores truncate sums instead of rounding, and align the addends to the largest: a k step of
 * 16 products costs up to a unit, 2^-23, where the oracle's bound has half a unit for each product.
 */
static const double FACTOR = 2.0;

static bench device, host;

/* The tile names that FT_CUDA_CONV accepts; the first is the device's own choice. */
enum { TILES = 14 };
static const char *const tiles[2][TILES] = {
    [FT_IMAGE_NCHW] = { "", "96", "64", "96x2", "64x2", "192a", "128a", "96a", "64a", "128x2a",
                        "96x2a", "64x2a", "ra64", "ra96" },
    [FT_IMAGE_NHWC] = { "", "128x64", "128x128", "128x64t", "128x128t", "256x64", "64x128t",
                        "general", "ra48", "ra64", "ra96", "ra128", "ra104/2", "ra128/1" },
};

/* Input and output layouts: first those with native kernels, then those that need a transpose. */
enum {
    OWN_ORDERS = 2,
    FEW_IMAGES = 10 /* the oracle is slow: more images in native layouts only */
};
static const ft_image_layout orders[][2] = {
    { FT_IMAGE_NCHW, FT_IMAGE_NCHW },
    { FT_IMAGE_NHWC, FT_IMAGE_NHWC },
    { FT_IMAGE_NHWC, FT_IMAGE_NCHW },
    { FT_IMAGE_NCHW, FT_IMAGE_NHWC },
};

static conv_shape in_orders(const conv_shape *shape, size_t which)
{
    conv_shape s = *shape;
    s.conv.in_layout = orders[which][0];
    s.conv.out_layout = orders[which][1];
    return s;
}

static void ask_for(const char *tile)
{
    setenv("FT_CUDA_CONV", tile, 1);
}

/* ---- Small shapes --------------------------------------------------------------------------- */

/* Quantized convolutions have the host's bits: integer sums and the same epilogue formula. */
static bool is_exact(const conv_how *how)
{
    return how->weight == FT_I8 || how->int8_activations;
}

static size_t try_shape(const conv_shape *shape, const conv_how *how, uint64_t seed,
                        size_t *different)
{
    char text[CONV_TEXT];
    void *y, *expected;
    conv_problem p = conv_make(shape, how, seed);
    size_t wrong = conv_try(&device, &p, &y, FACTOR), bytes = shape->images * p.y_cols;
    if (wrong > 0)
        diag("%zu of %zu values are wrong: %s", wrong, bytes, conv_text(text, shape));
    if (is_exact(how)) {
        (void) conv_try(&host, &p, &expected, 1.0);
        *different += memcmp(expected, y, bytes * ft_dtype_size(how->y)) != 0;
        free(expected);
    }
    free(y);
    conv_free(&p);
    return wrong;
}

static void test_kind(const conv_how *how)
{
    char text[CONV_TEXT];
    size_t wrong = 0, different = 0;
    conv_how_text(text, how);
    for (uint64_t seed = 0; seed < RANDOM_SHAPES && wrong == 0; seed++) {
        conv_shape shape = conv_random_shape(seed);
        wrong += try_shape(&shape, how, 10 * seed, &different);
    }
    is_int((long long) wrong, 0, "%s: %d random shapes match the reference convolution", text,
           RANDOM_SHAPES);
    if (is_exact(how))
        is_int((long long) different, 0, "%s: random shapes have the bits of the CPU", text);
    wrong = different = 0;
    for (const conv_shape *shape = conv_odd_shapes; shape->images > 0; shape++)
        for (size_t i = 0; i < FT_COUNT(orders); i++) {
            conv_shape s = in_orders(shape, i);
            wrong += try_shape(&s, how, 5, &different);
        }
    is_int((long long) (wrong + different), 0,
           "%s: hand-picked edge cases match the reference convolution", text);
}

/* ---- Shapes for the tensor cores ------------------------------------------------------------ */

/* clang-format off */
static const conv_shape wide_shapes[] = {
    { "window of one cache line", 2, 130,
      { .channels = 64, .height = 9, .width = 11, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "strided window of several cache lines", 3, 70,
      { .channels = 256, .height = 7, .width = 6, { 3, 2 }, { 2, 1 }, { 1, 2 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "dilated window of half a cache line", 5, 65,
      { .channels = 32, .height = 10, .width = 9, { 2, 3 }, { 1, 3 }, { 3, 2 }, { 3, 2 } },
      false, FT_ACT_NONE, },
    { "window of three quarters of a cache line", 2, 40,
      { .channels = 96, .height = 8, .width = 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "1 x 1, channel planes aligned to 16 bytes", 3, 150,
      { .channels = 100, .height = 8, .width = 20, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_SILU },
    { "1 x 1, channel planes of 7 x 7", 6, 200,
      { .channels = 144, .height = 7, .width = 7, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "strided 1 x 1", 4, 64,
      { .channels = 64, .height = 14, .width = 14, { 1, 1 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "1-d convolution of 80 channels", 2, 96,
      { .channels = 80, .height = 1, .width = 150, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "1-d convolution of 128 channels, stride 2", 3, 33,
      { .channels = 128, .height = 1, .width = 99, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "1-d convolution of 80 channels, stride 2, one image", 1, 64,
      { .channels = 80, .height = 1, .width = 131, { 1, 5 }, { 1, 2 }, { 0, 2 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "patch embedding of 16 x 16", 2, 192,
      { .channels = 3, .height = 48, .width = 64, { 16, 16 }, { 16, 16 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "patch embedding with a remainder", 3, 50,
      { .channels = 8, .height = 19, .width = 23, { 3, 5 }, { 3, 5 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE, },
    { "relu6 over more than one wave", 40, 64,
      { .channels = 64, .height = 28, .width = 28, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      true, FT_ACT_NONE },
    { "3 x 3 window over more than one wave", 24, 32,
      { .channels = 32, .height = 30, .width = 30, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "1 x 1 of many channels", 3, 160,
      { .channels = 320, .height = 7, .width = 9, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "many outputs, window of one cache line", 3, 392,
      { .channels = 64, .height = 9, .width = 11, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "many outputs, window of half a cache line", 7, 328,
      { .channels = 32, .height = 9, .width = 8, { 2, 3 }, { 1, 1 }, { 2, 2 }, { 3, 2 } },
      true, FT_ACT_NONE },
    { "many outputs, window of quarters of a cache line, relu6", 5, 264,
      { .channels = 48, .height = 8, .width = 9, { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      false, FT_ACT_NONE },
    { "few positions, 27 k tiles", 3, 136,
      { .channels = 192, .height = 7, .width = 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "few positions, 30 k tiles of quarters of a cache line, relu6", 2, 72,
      { .channels = 208, .height = 6, .width = 7, { 3, 3 }, { 1, 1 }, { 1, 2 }, { 1, 2 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      true, FT_ACT_NONE },
    { "few positions, 32 k tiles of halves of a cache line", 2, 72,
      { .channels = 224, .height = 8, .width = 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "few positions, 1 x 1 of 25 k tiles", 5, 200,
      { .channels = 1600, .height = 5, .width = 6, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "three k tiles over more than one wave", 72, 72,
      { .channels = 144, .height = 14, .width = 14, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { .images = 0 },
};
/* clang-format on */

/* Weights whose groups stay in registers, to NHWC: unsplit sums, and sums split in two along k. */
static size_t sums_of(const conv_shape *shape, const conv_how *how)
{
    bool blocks = how->weight == FT_U4 || how->weight == FT_U8;
    bool held = blocks && !how->int8_activations && how->group % 128 == 0 && how->x != FT_F32;
    return held && shape->conv.out_layout == FT_IMAGE_NHWC ? 2 : 1;
}

/* Tiles that split k in two: where one of them is supported, both are. */
static bool has_f16(const char *tile)
{
    return strcmp(tile, "ra104/2") == 0 || strcmp(tile, "ra128/1") == 0;
}

/* Results by tile: the device's own choice, and the first of each kind of sums; NULL: none yet. */
typedef struct outcomes {
    void *own, *whole, *halves;
} outcomes;

/*
 * Whether tiles of one kind give the same bits; an unsplit tile that is not supported falls back to
 * the device's own choice.  Then `y` is kept or freed.
 */
static bool agrees(outcomes *o, void *y, size_t bytes, const char *tile)
{
    void **same = tile[0] == '\0' ? &o->own : has_f16(tile) ? &o->halves : &o->whole;
    bool agreed = *same == NULL || memcmp(*same, y, bytes) == 0;
    if (same == &o->whole && memcmp(o->own, y, bytes) == 0)
        agreed = true;
    else if (*same == NULL) {
        *same = y;
        return true;
    }
    free(y);
    return agreed;
}

/* The device's own choice is of one kind, and there is only one kind where sums are not split. */
static bool are_settled(const outcomes *o, size_t bytes, size_t sums)
{
    bool like_f16 = o->halves == NULL || memcmp(o->own, o->halves, bytes) == 0;
    return (o->whole == NULL || like_f16) && (sums > 1 || (o->whole == NULL && like_f16));
}

/* Each of the first `count` tiles is within the bound, and all give the same bits. */
static void test_tiles(const conv_shape *shape, const conv_how *how, size_t count)
{
    char text[CONV_TEXT], kind[CONV_TEXT];
    conv_problem p = conv_make(shape, how, 31);
    size_t wrong = 0, different = 0, bytes = shape->images * p.y_cols * ft_dtype_size(how->y);
    const char *const *tile = tiles[shape->conv.out_layout];
    outcomes given = { NULL, NULL, NULL };
    for (size_t i = 0; i < count && tile[i] != NULL; i++) {
        void *y;
        ask_for(tile[i]);
        size_t found = conv_try(&device, &p, &y, FACTOR);
        if (found > 0)
            diag("tile %s: %zu values are wrong: %s", tile[i], found, conv_text(text, shape));
        wrong += found;
        if (!agrees(&given, y, bytes, tile[i])) {
            diag("tile %s: the bits differ: %s", tile[i], conv_text(text, shape));
            different++;
        }
    }
    different += !are_settled(&given, bytes, sums_of(shape, how));
    conv_how_text(kind, how);
    is_int((long long) wrong, 0, "%s: every tile matches the reference convolution of %s", kind,
           conv_text(text, shape));
    if (count > 1)
        is_int((long long) different, 0, "%s: %s: every tile gives the same bits%s", kind,
               shape->name, sums_of(shape, how) > 1 ? " among tiles with the same split of k" : "");
    free(given.own);
    free(given.whole);
    free(given.halves);
    conv_free(&p);
}

static void test_wide(const conv_how *how)
{
    for (const conv_shape *shape = wide_shapes; shape->images > 0; shape++)
        for (size_t i = 0; i < FT_COUNT(orders); i++) {
            conv_shape s = in_orders(shape, i);
            if (i >= OWN_ORDERS && shape->images > FEW_IMAGES)
                continue;
            test_tiles(&s, how, i < OWN_ORDERS ? TILES : 1);
        }
    ask_for("");
}

/* Whether the last image has other bits alone than in a batch. */
static bool is_different_alone(const conv_shape *shape, const conv_how *how)
{
    conv_problem p = conv_make(shape, how, 77), last = p;
    size_t bytes = p.y_cols * ft_dtype_size(how->y), before = shape->images - 1;
    void *all, *one;
    (void) conv_try(&device, &p, &all, FACTOR);
    last.shape.images = 1;
    last.x = (char *) p.x + before * p.x_cols * ft_dtype_size(how->x);
    last.value += before * p.y_cols;
    last.bound += before * p.y_cols;
    last.x_size += before * p.y_cols;
    (void) conv_try(&device, &last, &one, FACTOR);
    bool different = memcmp((char *) all + before * bytes, one, bytes) != 0;
    free(all);
    free(one);
    conv_free(&p);
    return different;
}

static void test_alone(const conv_how *how)
{
    char text[CONV_TEXT];
    size_t different = 0;
    for (const conv_shape *shape = wide_shapes; shape->images > 0; shape++)
        for (size_t i = 0; i < OWN_ORDERS; i++) {
            conv_shape s = in_orders(shape, i);
            different += is_different_alone(&s, how);
        }
    is_int((long long) different, 0, "%s: an image has the same bits alone and in a batch",
           conv_how_text(text, how));
}

/* ------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    ft_error err;
    snprintf(device.name, sizeof device.name, "cuda");
    snprintf(host.name, sizeof host.name, "cpu");
    if (ft_device_open(&device.backend, &device.device, "cuda", &err) != FT_OK)
        skip_all("%s", err.text);
    if (ft_device_open(&host.backend, &host.device, "cpu", &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        if (argc > 1 && strtoul(argv[1], NULL, 10) != i)
            continue;
        test_kind(&kinds[i]);
        test_wide(&kinds[i]);
        test_alone(&kinds[i]);
    }
    ask_for("simt");
    for (size_t i = 0; i < FT_COUNT(kinds) && argc < 2; i++)
        test_kind(&kinds[i]);
    is_int(device.thread_differences, 0, "two runs of a convolution give the same bits");
    is_int(device.overwritten, 0, "convolution kernels write only inside their results");
    device.backend->close(device.device);
    host.backend->close(host.device);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
