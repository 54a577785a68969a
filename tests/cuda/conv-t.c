/*
 * conv-t.c - convolutions on the device: odd shapes by hand and hundreds of random ones, by
 * every kind of weights, against the formula in double; and by every tile of the tensor cores.
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
 * Tensor cores cut sums where others round, and align what they add up to the largest: a step of 16
 * products costs up to a unit, 2^-23, where the oracle's bound has half of one for each product.
 */
static const double FACTOR = 2.0;

static bench device, host;

/* Names of tiles that FT_CUDA_CONV knows; the first is the device's own choice. */
enum { TILES = 14 };
static const char *const tiles[2][TILES] = {
    [FT_IMAGE_NCHW] = { "", "96", "64", "96x2", "64x2", "192a", "128a", "96a", "64a", "128x2a",
                        "96x2a", "64x2a", "held64", "held96" },
    [FT_IMAGE_NHWC] = { "", "128x64", "128x128", "128x64t", "128x128t", "256x64", "64x128t",
                        "general", "held48", "held64", "held96", "held128", "held104s",
                        "held128h" },
};

/* From what to what: first those with kernels of their own, then what is turned on the way. */
enum { OWN_ORDERS = 2, FEW_IMAGES = 10 /* the oracle takes its time: many in own orders only */ };
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

/* Codes on the device are the bits of the host: sums of whole numbers, and one formula each. */
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
        diag("%zu of %zu wrong: %s", wrong, bytes, conv_text(text, shape));
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
    is_int((long long) wrong, 0, "%s: %d random shapes", text, RANDOM_SHAPES);
    if (is_exact(how))
        is_int((long long) different, 0, "%s: ... and the bits of the CPU", text);
    wrong = different = 0;
    for (const conv_shape *shape = conv_odd_shapes; shape->images > 0; shape++)
        for (size_t i = 0; i < FT_COUNT(orders); i++) {
            conv_shape s = in_orders(shape, i);
            wrong += try_shape(&s, how, 5, &different);
        }
    is_int((long long) (wrong + different), 0, "%s: odd shapes", text);
}

/* ---- Shapes for the tensor cores ------------------------------------------------------------ */

/* clang-format off */
static const conv_shape wide_shapes[] = {
    { "taps of one line", 2, 130,
      { .channels = 64, .height = 9, .width = 11, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "taps of some lines, in strides", 3, 70,
      { .channels = 256, .height = 7, .width = 6, { 3, 2 }, { 2, 1 }, { 1, 2 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "taps of half a line, far apart", 5, 65,
      { .channels = 32, .height = 10, .width = 9, { 2, 3 }, { 1, 3 }, { 3, 2 }, { 3, 2 } },
      false, FT_ACT_NONE, },
    { "three fourths of a line", 2, 40,
      { .channels = 96, .height = 8, .width = 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "one pixel, planes of 16 bytes", 3, 150,
      { .channels = 100, .height = 8, .width = 20, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_SILU },
    { "one pixel, planes of 7 x 7", 6, 200,
      { .channels = 144, .height = 7, .width = 7, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "one pixel in strides", 4, 64,
      { .channels = 64, .height = 14, .width = 14, { 1, 1 }, { 2, 2 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "sound of 80 channels", 2, 96,
      { .channels = 80, .height = 1, .width = 150, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_GELU },
    { "every second frame of 128 channels", 3, 33,
      { .channels = 128, .height = 1, .width = 99, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "every second frame of 80 channels, one image", 1, 64,
      { .channels = 80, .height = 1, .width = 131, { 1, 5 }, { 1, 2 }, { 0, 2 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "patches of 16", 2, 192,
      { .channels = 3, .height = 48, .width = 64, { 16, 16 }, { 16, 16 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "patches of odd channels that leave a rest", 3, 50,
      { .channels = 8, .height = 19, .width = 23, { 3, 5 }, { 3, 5 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE, },
    { "relu6 over more than a wave", 40, 64,
      { .channels = 64, .height = 28, .width = 28, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      true, FT_ACT_NONE },
    { "taps over more than a wave", 24, 32,
      { .channels = 32, .height = 30, .width = 30, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "one pixel of many channels", 3, 160,
      { .channels = 320, .height = 7, .width = 9, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "many outputs, taps of one line", 3, 392,
      { .channels = 64, .height = 9, .width = 11, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "many outputs, taps of half a line", 7, 328,
      { .channels = 32, .height = 9, .width = 8, { 2, 3 }, { 1, 1 }, { 2, 2 }, { 3, 2 } },
      true, FT_ACT_NONE },
    { "many outputs, taps of fourths of a line, relu6", 5, 264,
      { .channels = 48, .height = 8, .width = 9, { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      false, FT_ACT_NONE },
    { "few positions, 27 steps", 3, 136,
      { .channels = 192, .height = 7, .width = 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      true, FT_ACT_RELU },
    { "few positions, 30 steps of fourths of a line, relu6", 2, 72,
      { .channels = 208, .height = 6, .width = 7, { 3, 3 }, { 1, 1 }, { 1, 2 }, { 1, 2 },
        .clamps = true, .low = 0.0f, .high = 6.0f },
      true, FT_ACT_NONE },
    { "few positions, 32 steps of halves of a line", 2, 72,
      { .channels = 224, .height = 8, .width = 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
      false, FT_ACT_NONE },
    { "few positions, one pixel of 25 steps", 5, 200,
      { .channels = 1600, .height = 5, .width = 6, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { "three steps over more than a wave", 72, 72,
      { .channels = 144, .height = 14, .width = 14, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
      true, FT_ACT_NONE },
    { .images = 0 },
};
/* clang-format on */

/* Of weights whose groups are held, to pixels: whole sums, and those of two halves. */
static size_t sums_of(const conv_shape *shape, const conv_how *how)
{
    bool blocks = how->weight == FT_U4 || how->weight == FT_U8;
    bool held = blocks && !how->int8_activations && how->group % 128 == 0 && how->x != FT_F32;
    return held && shape->conv.out_layout == FT_IMAGE_NHWC ? 2 : 1;
}

/* Tiles of halves: where one of them is possible, both are. */
static bool has_halves(const char *tile)
{
    return strcmp(tile, "held104s") == 0 || strcmp(tile, "held128h") == 0;
}

/* What tiles gave: the device's own choice, and the first of each kind of sums; NULL: none yet. */
typedef struct outcomes {
    void *own, *whole, *halves;
} outcomes;

/*
 * Whether tiles of one kind give the same bits; a whole one that is not possible stands for the
 * device's own choice.  Then `y` is kept or freed.
 */
static bool agrees(outcomes *o, void *y, size_t bytes, const char *tile)
{
    void **same = tile[0] == '\0' ? &o->own : has_halves(tile) ? &o->halves : &o->whole;
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

/* The device's own choice is one of both kinds, and they are one where sums have no halves. */
static bool are_settled(const outcomes *o, size_t bytes, size_t sums)
{
    bool like_halves = o->halves == NULL || memcmp(o->own, o->halves, bytes) == 0;
    return (o->whole == NULL || like_halves) && (sums > 1 || (o->whole == NULL && like_halves));
}

/* The first `count` tiles, each on its own, give the right numbers; all give the same bits. */
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
            diag("tile %s: %zu wrong: %s", tile[i], found, conv_text(text, shape));
        wrong += found;
        if (!agrees(&given, y, bytes, tile[i])) {
            diag("tile %s: other bits: %s", tile[i], conv_text(text, shape));
            different++;
        }
    }
    different += !are_settled(&given, bytes, sums_of(shape, how));
    conv_how_text(kind, how);
    is_int((long long) wrong, 0, "%s: %s", kind, conv_text(text, shape));
    if (count > 1)
        is_int((long long) different, 0, "%s: %s: every tile gives the same bits%s", kind,
               shape->name, sums_of(shape, how) > 1 ? ", of one sum or of two halves" : "");
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

/* Whether the last image gets other bits alone than among the others. */
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
    is_int((long long) different, 0, "%s: an image gets the same bits alone",
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
    ask_for("plain");
    for (size_t i = 0; i < FT_COUNT(kinds) && argc < 2; i++)
        test_kind(&kinds[i]);
    is_int(device.thread_differences, 0, "two runs give the same bits");
    is_int(device.overwritten, 0, "nothing but the results is written");
    device.backend->close(device.device);
    host.backend->close(host.device);
    return done_testing();
}

#else

int main(void)
{
    skip_all("built without CUDA");
}

#endif
