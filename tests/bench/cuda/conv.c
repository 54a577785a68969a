/*
 * conv.c - speed of convolutions on the device, for 32 images.
 *
 *     tests/bench/cuda/conv [tiles | once | all] [pixels | planes | all] [KIND]
 *
 * Times are of the complete operation, with input and output both in NHWC (pixels) or both in NCHW
 * (planes).  Operands rotate, so that they come from memory.  tiles: also with every tile.  once:
 * one launch of each without times, for a profiler.  tests/bench/python/vs-cudnn.py compares with
 * cuDNN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/layout.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/bench/cuda/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 32, POOL = 8 << 20, COLD = 300 << 20 };

typedef struct shape {
    const char *name;
    size_t outputs;
    ft_conv conv;
} shape;

/* clang-format off */
static const shape shapes[] = {
    { "vit-patches", 768, { .channels = 3, 224, 224, { 16, 16 }, { 16, 16 }, { 0, 0 }, { 1, 1 } } },
    { "3x3-64@56", 64, { .channels = 64, 56, 56, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3x3-128@28", 128, { .channels = 128, 28, 28, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3x3-256@14", 256, { .channels = 256, 14, 14, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3x3-512@7", 512, { .channels = 512, 7, 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "1x1-64-256@56", 256, { .channels = 64, 56, 56, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1x1-256-64@56", 64, { .channels = 256, 56, 56, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1x1-512-128@28", 128, { .channels = 512, 28, 28, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1x1-1024-256@14", 256, { .channels = 1024, 14, 14, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1x1-2048-512@7", 512, { .channels = 2048, 7, 7, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "sound-80-384", 384, { .channels = 80, 1, 3000, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } } },
    { "sound-384-384", 384, { .channels = 384, 1, 3000, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } } },
};
/* clang-format on */

typedef struct kind {
    const char *name;
    ft_dtype weight, x;
    int32_t group;
} kind;

static const kind kinds[] = {
    { "w8a8", FT_I8, FT_I8, 0 },
    { "f16", FT_F16, FT_F16, 0 },
    { "w4a16-g128", FT_U4, FT_F16, 128 },
    { "w4a16-g32", FT_U4, FT_F16, 32 },
};

/* The tile names that FT_CUDA_CONV accepts for each layout; the first is the default choice. */
enum { TILES = 14 };
static const char *const tiles[2][TILES] = {
    [FT_IMAGE_NCHW] = { "", "96", "64", "96x2", "64x2", "192a", "128a", "96a", "64a", "128x2a",
                        "96x2a", "64x2a", "ra64", "ra96" },
    [FT_IMAGE_NHWC] = { "", "128x64", "128x128", "128x64t", "128x128t", "256x64", "64x128t", "ra48",
                        "ra64", "ra96", "ra128", "ra104/2", "ra128/1" },
};
static const char *const orders[2] = { "planes", "pixels" };

/* ---- Operands ------------------------------------------------------------------------------- */

typedef enum content { CODES, HALVES, FLOATS } content;

/* Random int8 values, f16 of 2^-3 .. 1 of either sign, or f32 of 2^-7 .. 2^-6. */
static void *random_memory(size_t bytes, content what)
{
    static uint32_t *pool[3];
    for (int c = 0; c < 3 && pool[2] == NULL; c++) {
        uint32_t *words = malloc(POOL);
        for (size_t i = 0; i < POOL / 4; i++) {
            uint32_t r = (uint32_t) rand() * 2654435761u ^ (uint32_t) rand();
            words[i] = c == CODES    ? r
                       : c == HALVES ? (r & 0x8fff8fff) | 0x30003000
                                     : (r & 0x7fffff) | 0x3c000000;
        }
        pool[c] = words;
    }
    char *memory;
    must((int) cudaMalloc((void **) &memory, bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += POOL)
        must((int) cudaMemcpy(memory + at, pool[what], ft_min_size(POOL, bytes - at),
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

typedef struct setting {
    ft_cuda_args set[LAUNCHES];
    size_t sets;
    ft_op op;
    ft_weight weight, bias;
} setting;

static void make_weight(setting *s, const shape *sh, const kind *k)
{
    const ft_conv *c = &sh->conv;
    ft_weight *w = &s->weight;
    *w = (ft_weight){ .rows = sh->outputs, .cols = (size_t) ft_conv_gemm_k(c), .dtype = k->weight };
    if (k->weight == FT_I8) {
        w->layout = FT_COL4_4R2_8C;
        w->scale = random_memory(w->rows * sizeof(float), FLOATS);
        w->data = random_memory(ft_layout_bytes(w->layout, w->rows, w->cols), CODES);
        void *made = random_memory(ft_cuda_prepacked_bytes(w->rows, w->cols), CODES);
        must(ft_cuda_prepack(NULL, made, w->data, w->rows, w->cols), "tiles");
        w->prepacked = made;
    } else if (k->weight == FT_F16) {
        w->data = random_memory(w->rows * w->cols * 2, HALVES);
    } else {
        w->layout = FT_PANEL32;
        w->groupwise.group = k->group;
        w->data =
            random_memory(ft_panel_bytes(w->rows, w->cols, ft_groupwise_bits(k->weight)), CODES);
        w->groupwise.scale =
            random_memory(2 * ft_groupwise_scale_count(&w->groupwise, w->rows, w->cols), HALVES);
    }
    s->bias = (ft_weight){ .rows = 1, .cols = w->rows, .dtype = FT_F32 };
    s->bias.data = random_memory(w->rows * sizeof(float), FLOATS);
}

static void setting_init(setting *s, const ft_cuda_device_props *props, const shape *sh,
                         const kind *k, ft_image_layout order)
{
    size_t size = ft_dtype_size(k->x), x_cols = (size_t) ft_conv_image_size(&sh->conv);
    size_t positions =
        (size_t) ft_conv_out_size(&sh->conv, 0) * (size_t) ft_conv_out_size(&sh->conv, 1);
    size_t x_bytes = IMAGES * x_cols * size, y_bytes = IMAGES * positions * sh->outputs * size;
    content what = k->x == FT_I8 ? CODES : HALVES;
    make_weight(s, sh, k);
    s->op = (ft_op){ .kind = FT_OP_CONV, .weight = { 0, 1, -1 } };
    s->op.attr.conv = sh->conv;
    s->op.attr.conv.in_layout = s->op.attr.conv.out_layout = order;
    ft_value value = { .dtype = k->x };
    ft_plan plan = { .value = &value, .weight = &s->weight };
    ft_limits limits = { .sequences = IMAGES };
    size_t scratch = ft_cuda_conv_workspace(props, &plan, &s->op, &limits).scratch;
    void *memory = random_memory(scratch + 256, CODES);
    s->sets = ft_min_size(LAUNCHES, COLD / (x_bytes + y_bytes) + 1);
    for (size_t i = 0; i < s->sets; i++) {
        ft_cuda_args *a = &s->set[i];
        ft_view y = { random_memory(y_bytes, what), IMAGES, positions * sh->outputs, k->x,
                      k->x == FT_I8 ? 0.02f : 0.0f, NULL };
        *a = (ft_cuda_args){ .props = props, .op = &s->op, .scratch = memory };
        a->scratch_bytes = scratch;
        a->in[0] = (ft_view){ random_memory(x_bytes, what), IMAGES, x_cols, k->x, 0.02f, NULL };
        *(k->x == FT_I8 ? &a->quantized : &a->out) = y;
        a->weight[0] = &s->weight;
        a->weight[1] = &s->bias;
    }
}

static void setting_fini(setting *s)
{
    for (size_t i = 0; i < s->sets; i++) {
        cudaFree(s->set[i].in[0].data);
        cudaFree(s->set[i].out.data);
        cudaFree(s->set[i].quantized.data);
    }
    cudaFree(s->set[0].scratch);
    cudaFree((void *) (uintptr_t) s->weight.data);
    cudaFree((void *) (uintptr_t) s->weight.prepacked);
    cudaFree((void *) (uintptr_t) s->weight.scale);
    cudaFree((void *) (uintptr_t) s->weight.groupwise.scale);
    cudaFree((void *) (uintptr_t) s->bias.data);
}

/* ------------------------------------------------------------------------------------------- */

static int run(cudaStream_t stream, size_t i, void *data)
{
    setting *s = data;
    ft_cuda_args *args = &s->set[i % s->sets];
    args->stream = stream;
    return ft_cuda_conv(args);
}

/* One launch, for a profiler. */
static void run_once(const ft_cuda_device_props *props, const shape *sh, const kind *k,
                     ft_image_layout order)
{
    setting s = { .sets = 0 };
    setting_init(&s, props, sh, k, order);
    must(run(NULL, 0, &s), "convolution");
    must((int) cudaDeviceSynchronize(), "convolution");
    setting_fini(&s);
}

static void measure(const ft_cuda_device_props *props, const shape *sh, const kind *k,
                    ft_image_layout order, size_t count)
{
    setting s = { .sets = 0 };
    setting_init(&s, props, sh, k, order);
    double products = 2e-6 * IMAGES * (double) sh->outputs * (double) s.weight.cols *
                      ft_conv_out_size(&sh->conv, 0) * ft_conv_out_size(&sh->conv, 1);
    for (size_t i = 0; i < count && tiles[order][i] != NULL; i++) {
        setenv("FT_CUDA_CONV", tiles[order][i], 1);
        double us = replay(run, &s);
        if (i == 0)
            printf("%-16s %s %-11s %8.2f us %7.1f TOPS", sh->name, orders[order], k->name, us,
                   products / us);
        else
            printf(" %s:%.2f", tiles[order][i], us);
    }
    printf("\n");
    fflush(stdout);
    setting_fini(&s);
}

int main(int argc, char **argv)
{
    ft_cuda_device_props props = open_gpu();
    bool all = argc > 1 && strcmp(argv[1], "tiles") == 0;
    bool once = argc > 1 && strcmp(argv[1], "once") == 0;
    const char *only = argc > 2 ? argv[2] : "all", *of = argc > 3 ? argv[3] : "";
    for (size_t i = 0; i < 2 * FT_COUNT(shapes) * FT_COUNT(kinds); i++) {
        ft_image_layout order = i % 2 == 0 ? FT_IMAGE_NHWC : FT_IMAGE_NCHW;
        const kind *k = &kinds[i / 2 % FT_COUNT(kinds)];
        const shape *sh = &shapes[i / 2 / FT_COUNT(kinds)];
        if ((strcmp(only, "all") != 0 && strcmp(only, orders[order]) != 0) ||
            strncmp(k->name, of, strlen(of)) != 0)
            continue;
        if (once)
            run_once(&props, sh, k, order);
        else
            measure(&props, sh, k, order, all ? TILES : 1);
    }
    return 0;
}
