/*
 * conv-t.c - convolutions on the CPU: hand-picked and hundreds of random shapes, with every kind of
 * weights and every instruction set, against the formula in double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/isa.h"
#include "runtime/model/devices.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/conv.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_SHAPES = 300 };

static const conv_how kinds[] = {
    { .weight = FT_F32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_F16, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_BF16, .x = FT_BF16, .y = FT_BF16 },
    { .weight = FT_F16, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 128, .asymmetric = true, .x = FT_F16, .y = FT_F16 },
    { .weight = FT_U8, .group = 0, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U8, .group = 64, .asymmetric = true, .x = FT_BF16, .y = FT_BF16 },
    { .weight = FT_U8, .group = 32, .int8_activations = true, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U8, .group = 64, .asymmetric = true, .int8_activations = true, FT_F16, FT_F16 },
    { .weight = FT_U8, .group = 0, .int8_activations = true, .x = FT_F32, .y = FT_F32 },
    { .weight = FT_U4, .group = 32, .asymmetric = true, .int8_activations = true, FT_F32, FT_F32 },
    { .weight = FT_I8, .x = FT_I8, .y = FT_F32 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_F32 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_F16 },
    { .weight = FT_I8, .x = FT_I8, .y = FT_I8 },
    { .weight = FT_I8, .asymmetric = true, .x = FT_I8, .y = FT_I8 },
};

/* ---- Devices: the CPU with each instruction set that this machine supports ---------------- */

static bench devices[FT_ISA_COUNT];
static int ndevice;

static void open_devices(void)
{
    ft_error err;
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        if (!ft_isa_supported((ft_isa) isa))
            continue;
        bench *on = &devices[ndevice++];
        setenv("FT_CPU", ft_isa_name((ft_isa) isa), 1);
        snprintf(on->name, sizeof on->name, "cpu %s", ft_isa_name((ft_isa) isa));
        if (ft_device_open(&on->backend, &on->device, "cpu", &err) != FT_OK)
            bail_out("%s", err.text);
    }
    unsetenv("FT_CPU");
}

/* ------------------------------------------------------------------------------------------- */

/* The wrong results of all devices, and results whose bits differ from the first device's. */
typedef struct tally {
    size_t wrong, different;
} tally;

static void try_shape(const conv_shape *shape, const conv_how *how, uint64_t seed, tally *all)
{
    char text[CONV_TEXT];
    void *first = NULL;
    conv_problem p = conv_make(shape, how, seed);
    for (int i = 0; i < ndevice; i++) {
        void *y;
        size_t wrong = conv_try(&devices[i], &p, &y, 1.0);
        if (wrong > 0 && all->wrong == 0)
            diag("%s: %zu of %zu values are wrong: %s", devices[i].name, wrong,
                 shape->images * p.y_cols, conv_text(text, shape));
        all->wrong += wrong;
        if (first == NULL)
            first = y;
        else {
            size_t bytes = shape->images * p.y_cols * ft_dtype_size(how->y);
            all->different += memcmp(first, y, bytes) != 0;
            free(y);
        }
    }
    free(first);
    conv_free(&p);
}

static void test_kind(const conv_how *how)
{
    char text[CONV_TEXT];
    conv_how_text(text, how);
    tally random = { 0 };
    for (uint64_t seed = 0; seed < RANDOM_SHAPES; seed++) {
        conv_shape shape = conv_random_shape(seed);
        try_shape(&shape, how, 10 * seed, &random);
    }
    is_int((long long) random.wrong, 0, "%s: %d random shapes match the reference convolution",
           text, RANDOM_SHAPES);
    is_int((long long) random.different, 0, "%s: all instruction sets compute the same bits", text);
    for (const conv_shape *shape = conv_odd_shapes; shape->images > 0; shape++) {
        tally odd = { 0 };
        for (int i = 0; i < 4; i++) { /* NCHW or NHWC, to NCHW or NHWC */
            conv_shape s = *shape;
            s.conv.in_layout = i % 2 == 0 ? FT_IMAGE_NCHW : FT_IMAGE_NHWC;
            s.conv.out_layout = i / 2 == 0 ? FT_IMAGE_NCHW : FT_IMAGE_NHWC;
            try_shape(&s, how, 5, &odd);
        }
        is_int((long long) (odd.wrong + odd.different), 0,
               "%s: %s: all layouts match the reference convolution", text, shape->name);
    }
}

/* Runs each image of a problem alone; returns how many have other bits than in the batch. */
static size_t different_alone(bench *on, const conv_problem *p)
{
    void *all, *one;
    size_t bytes = p->y_cols * ft_dtype_size(p->how.y), different = 0;
    (void) conv_try(on, p, &all, 1.0);
    for (size_t image = 0; image < p->shape.images; image++) {
        conv_problem alone = *p;
        alone.shape.images = 1;
        alone.x = (char *) p->x + image * p->x_cols * ft_dtype_size(p->how.x);
        alone.value += image * p->y_cols;
        alone.bound += image * p->y_cols;
        alone.x_size += image * p->y_cols;
        (void) conv_try(on, &alone, &one, 1.0);
        different += memcmp((char *) all + image * bytes, one, bytes) != 0;
        free(one);
    }
    free(all);
    return different;
}

/* More windows than a tile, and fewer: an image's result does not depend on the batch. */
static void test_alone(const conv_how *how)
{
    char text[CONV_TEXT];
    conv_shape large = { .images = 3, .outputs = 21, .activation = FT_ACT_GELU };
    large.conv = (ft_conv){ .channels = 5, 26, 24, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
    conv_shape small = large, pixels = large;
    small.images = 11;
    small.conv.height = small.conv.width = 3;
    pixels.images = 7;
    pixels.conv = (ft_conv){ .channels = 37, 9, 11, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
    conv_shape turned = large, direct = pixels;
    turned.conv.in_layout = turned.conv.out_layout = FT_IMAGE_NHWC;
    direct.conv.in_layout = direct.conv.out_layout = FT_IMAGE_NHWC;
    const conv_shape *shapes[] = { &large, &small, &pixels, &turned, &direct };
    size_t different = 0;
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        conv_problem p = conv_make(shapes[i], how, 77 + i);
        for (int d = 0; d < ndevice; d++)
            different += different_alone(&devices[d], &p);
        conv_free(&p);
    }
    is_int((long long) different, 0, "%s: an image has the same bits alone and in a batch",
           conv_how_text(text, how));
}

int main(void)
{
    open_devices();
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        test_kind(&kinds[i]);
        test_alone(&kinds[i]);
    }
    for (int i = 0; i < ndevice; i++) {
        is_int(devices[i].thread_differences, 0, "%s: two threads compute the bits of one",
               devices[i].name);
        is_int(devices[i].overwritten, 0, "%s: the kernel writes only inside its results",
               devices[i].name);
        devices[i].backend->close(devices[i].device);
    }
    return done_testing();
}
