/*
 * conv.c - speed of convolutions on the CPU, against the GEMM alone on precomputed im2col windows.
 *
 *     tests/bench/conv [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN]
 *
 * They are interleaved, see compare.h; options are those of gemm_int8.c.  The GEMM alone reads all
 * windows from memory, so the ratio shows the cost of transposing images, gathering windows and
 * writing results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/bench/compare.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct shape {
    const char *name;
    size_t images, outputs;
    ft_conv conv;
} shape;

/* clang-format off */
static const shape shapes[] = {
    { "patches of ViT-B/16", 4, 768, { .channels = 3, 224, 224, { 16, 16 }, { 16, 16 }, { 0, 0 }, { 1, 1 } } },
    { "3 x 3, 64 at 56", 2, 64, { .channels = 64, 56, 56, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3 x 3, 128 at 28", 4, 128, { .channels = 128, 28, 28, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3 x 3, 256 at 14", 8, 256, { .channels = 256, 14, 14, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3 x 3, 512 at 7", 8, 512, { .channels = 512, 7, 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "3 x 3, 512 at 7, one", 1, 512, { .channels = 512, 7, 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } },
    { "1 x 1, 64 to 256 at 56", 2, 256, { .channels = 64, 56, 56, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1 x 1, 256 to 64 at 56", 2, 64, { .channels = 256, 56, 56, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1 x 1, 1024 to 256 at 14", 8, 256, { .channels = 1024, 14, 14, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1 x 1, 2048 to 512 at 7", 8, 512, { .channels = 2048, 7, 7, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } } },
    { "1-d, 80 to 384", 1, 384, { .channels = 80, 1, 3000, { 1, 3 }, { 1, 1 }, { 0, 1 }, { 1, 1 } } },
    { "1-d, 384, stride 2", 1, 384, { .channels = 384, 1, 3000, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } } },
};
/* clang-format on */

/* The dtypes of weights and inputs; group-wise weights have groups of 32. */
typedef struct kind {
    const char *name;
    ft_dtype weight, x;
    bool int8_activations;
} kind;

static const kind kinds[] = {
    { "f32", FT_F32, FT_F32, false },
    { "int8", FT_I8, FT_I8, false },
    { "w4", FT_U4, FT_F32, false },
    { "w8a8", FT_U8, FT_F32, true },
};

typedef struct setting {
    ft_plan plan;
    ft_value value[2];
    ft_weight weight;
    ft_op op;
    ft_args args;
    ft_limits limits;
    size_t windows;
    ft_op linear; /* the GEMM alone */
    ft_args product;
    float *scale;
    uint16_t *block_scale;
} setting;

static void *random_bytes(size_t count, ft_dtype dtype)
{
    void *values = ft_calloc_aligned(count * ft_dtype_size(dtype));
    if (values == NULL)
        fail("out of memory");
    for (size_t i = 0; i < count; i++)
        if (dtype == FT_I8)
            ((int8_t *) values)[i] = (int8_t) (rand() % 255 - 127);
        else
            ((float *) values)[i] = (float) (rand() % 2001 - 1000) / 1024.0f;
    return values;
}

static ft_view view_of(const ft_value *value, size_t rows, void *data)
{
    return (ft_view){ .data = data,
                      .rows = rows,
                      .cols = (size_t) value->cols,
                      .dtype = value->dtype,
                      .scale = value->scale };
}

/* The operation as in a plan. */
static void make_op(setting *s, const shape *row, ft_dtype dtype)
{
    const ft_conv *c = &row->conv;
    size_t positions = (size_t) ft_conv_out_size(c, 0) * (size_t) ft_conv_out_size(c, 1);
    s->windows = row->images * positions;
    s->value[0] = (ft_value){ .rows = FT_SEQUENCES,
                              .cols = c->channels * c->height * c->width,
                              .dtype = dtype,
                              .scale = dtype == FT_I8 ? 0.01f : 0.0f };
    s->value[1] = s->value[0];
    s->value[1].cols = (int32_t) (row->outputs * positions);
    s->op = (ft_op){ .kind = FT_OP_CONV,
                     .in = { 0, -1, -1 },
                     .out = (int16_t) (dtype == FT_I8 ? -1 : 1),
                     .quantized = (int16_t) (dtype == FT_I8 ? 1 : -1),
                     .weight = { 0, -1, -1 },
                     .attr = { .conv = *c, .activation = FT_ACT_RELU } };
    s->plan = (ft_plan){
        .value = s->value, .weight = &s->weight, .op = &s->op, .nvalue = 2, .nweight = 1, .nop = 1
    };
}

/* All scales are 1/64: the values do not affect the time. */
static uint16_t *block_scales(size_t count)
{
    uint16_t *scales = ft_calloc_aligned(count * sizeof *scales);
    if (scales == NULL)
        fail("out of memory");
    for (size_t i = 0; i < count; i++)
        scales[i] = 0x2400;
    return scales;
}

static void make_weight(setting *s, const kind *what, size_t n, size_t k)
{
    bool quantized = what->weight == FT_I8, blocks = ft_groupwise_bits(what->weight) != 0;
    s->scale = random_bytes(n, FT_F32);
    s->weight = (ft_weight){ .rows = n,
                             .cols = k,
                             .dtype = what->weight,
                             .layout = quantized ? FT_COL4_4R2_8C
                                       : blocks  ? FT_PANEL32
                                                 : FT_ROW,
                             .scale = quantized ? s->scale : NULL };
    s->weight.data = what->weight == FT_F32 ? random_bytes(n * k, FT_F32)
                                            : random_bytes(ft_weight_bytes(&s->weight), FT_I8);
    if (!blocks)
        return;
    s->weight.groupwise = (ft_groupwise){ .group = 32, .int8_activations = what->int8_activations };
    s->block_scale = block_scales(ft_groupwise_scale_count(&s->weight.groupwise, n, k));
    s->weight.groupwise.scale = s->block_scale;
}

/* The GEMM alone: LINEAR on windows that are already gathered. */
static void make_gemm(setting *s, const kind *what)
{
    size_t n = s->weight.rows, k = s->weight.cols;
    ft_value gathered = { .rows = FT_TOKENS, .cols = (int32_t) k, .dtype = what->x };
    ft_plan plan = {
        .value = &gathered, .weight = &s->weight, .nvalue = 1, .batch_invariant = true
    };
    ft_limits limits = { .tokens = s->windows, .threads = s->args.threads };
    s->linear = (ft_op){ .kind = FT_OP_LINEAR, .attr = { .activation = FT_ACT_RELU } };
    gathered.scale = s->value[0].scale;
    ft_args *product = &s->product;
    *product = s->args;
    product->op = &s->linear;
    product->in[0] = view_of(&gathered, s->windows, random_bytes(s->windows * k, what->x));
    ft_view *y = what->x == FT_I8 ? &product->quantized : &product->out;
    y->data = ft_calloc_aligned(s->windows * n * sizeof(float));
    y->rows = s->windows;
    y->cols = n;
    product->scratch_bytes = ft_cpu_linear_workspace(&plan, &s->linear, &limits).scratch;
    product->scratch = ft_calloc_aligned(product->scratch_bytes);
}

static void setting_init(setting *s, const shape *row, const kind *what, ft_isa isa, int threads)
{
    *s = (setting){ .limits = { .sequences = row->images, .threads = threads } };
    make_op(s, row, what->x);
    size_t n = row->outputs;
    size_t k = (size_t) (row->conv.kernel[0] * row->conv.kernel[1] * row->conv.channels);
    make_weight(s, what, n, k);
    s->args = (ft_args){ .isa = isa,
                         .rows = ft_row_kernels_for(isa),
                         .op = &s->op,
                         .weight = { &s->weight },
                         .limits = &s->limits,
                         .threads = threads };
    void *x = random_bytes(row->images * (size_t) s->value[0].cols, what->x);
    s->args.in[0] = view_of(&s->value[0], row->images, x);
    ft_view y =
        view_of(&s->value[1], row->images, ft_calloc_aligned(s->windows * n * sizeof(float)));
    *(what->x == FT_I8 ? &s->args.quantized : &s->args.out) = y;
    s->args.scratch_bytes = ft_cpu_conv_workspace(&s->plan, &s->op, &s->limits).scratch;
    s->args.scratch = ft_calloc_aligned(s->args.scratch_bytes);
    make_gemm(s, what);
}

static void setting_fini(setting *s)
{
    free(s->args.in[0].data);
    free(s->args.quantized.data);
    free(s->args.out.data);
    free(s->args.scratch);
    free((void *) (uintptr_t) s->weight.data);
    free(s->product.in[0].data);
    free(s->product.quantized.data);
    free(s->product.out.data);
    free(s->product.scratch);
    free(s->scale);
    free(s->block_scale);
}

static double our_time(void *data, size_t turn)
{
    (void) turn;
    setting *s = data;
    double start = seconds_by(s->args.threads);
    ft_cpu_conv(&s->args);
    return seconds_by(s->args.threads) - start;
}

static double gemm_time(void *data, size_t turn)
{
    (void) turn;
    const setting *s = data;
    double start = seconds_by(s->args.threads);
    ft_cpu_linear(&s->product);
    return seconds_by(s->args.threads) - start;
}

/* This benchmark does not use the processor's peak. */
static double no_peak(ft_isa isa, int threads)
{
    (void) isa, (void) threads;
    return 1.0;
}

static void measure(const shape *row, const kind *what, int threads, const benchmark_options *o)
{
    setting s;
    setting_init(&s, row, what, o->isa, threads);
    double operations = 2.0 * (double) s.windows * (double) s.weight.rows * (double) s.weight.cols;
    benchmark_times t = benchmark_run(&(benchmark){ .setting = &s,
                                                    .ours = our_time,
                                                    .theirs = gemm_time,
                                                    .peak = no_peak,
                                                    .sets = 1,
                                                    .bytes = ft_weight_bytes(&s.weight),
                                                    .operations = operations },
                                      o, threads);
    printf("%-26s %-11s %d %10.1f %8.1f", row->name, what->name, threads, 1e6 * t.ours,
           1e-9 * operations / t.ours);
    print_ratio(t.theirs / t.ours);
    printf(" %5zu\n", t.rounds);
    fflush(stdout);
    setting_fini(&s);
}

int main(int argc, char **argv)
{
    benchmark_options o = benchmark_options_of(argc, argv);
    printf("%s\nconvolution, weights, threads                     us     Gop/s  / GEMM   rounds\n",
           ft_isa_name(o.isa));
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (size_t d = 0; d < FT_COUNT(kinds); d++)
            for (int threads = 1; threads <= 2; threads++)
                if (benchmark_wants(&o, shapes[i].name, threads))
                    measure(&shapes[i], &kinds[d], threads, &o);
    return 0;
}
