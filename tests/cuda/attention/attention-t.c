/*
 * attention-t.c - attention on the GPU: int8 against the CPU's bytes, floats against double
 * precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attention.h"

#include "kernels/cpu/attention/attention_i8.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

static ft_isa cpu;

static int8_t draw_code(void)
{
    return (int8_t) ((int) (draw() % 255) - 127);
}

/* Scales of a layer; `spread` is the deviation of the exponents. */
typedef struct scales {
    float q, k, v, softmax, y;
} scales;

static scales scales_of(const batch *b, float spread)
{
    float deviation = 73.3f * 73.3f * sqrtf((float) b->head_size);
    scales s = { .q = 0.021f, .k = 0.017f, .v = 0.03f };
    s.softmax = spread / (deviation * s.q * s.k);
    s.y = s.v * 0.7f;
    return s;
}

static int8_t *make_quantized(size_t n)
{
    int8_t *quantized = must_have(n);
    for (size_t i = 0; i < n; i++)
        quantized[i] = draw_code();
    return quantized;
}

/* The CPU's result: int8 or float. */
static void *expected_of(const batch *b, int8_t *const code[3], const scales *s, bool to_quantized)
{
    int threads = 4;
    size_t bytes = b->tokens * b->cols * (to_quantized ? 1 : sizeof(float));
    ft_attention_i8 a = { .isa = cpu,
                          .threads = threads,
                          .sequences = b->sequences,
                          .heads = (size_t) b->heads,
                          .head_size = (size_t) b->head_size,
                          .starts = b->start,
                          .q = code[0],
                          .k = code[1],
                          .v = code[2],
                          .q_stride = b->cols,
                          .k_stride = b->cols,
                          .v_stride = b->cols,
                          .score_scale = s->q * s->k * s->softmax,
                          .value_scale = s->v,
                          .out_inverse = to_quantized ? ft_inverse_scale(s->y) : 0.0f,
                          .y_stride = b->cols };
    a.y = must_have(bytes);
    a.scratch_bytes = ft_attention_i8_scratch(b->longest, (size_t) b->head_size, threads);
    a.scratch = ft_calloc_aligned(a.scratch_bytes);
    if (a.scratch == NULL)
        bail_out("out of memory: the CPU's scratch");
    ft_attention_i8_run(&a);
    free(a.scratch);
    return a.y;
}

/* Runs the operation as a plan does: int8 or fake-quantized. */
static int run_int8(const batch *b, void *const x[3], void *y, const scales *s, ft_dtype dtype,
                    bool to_quantized)
{
    ft_op op = { .kind = FT_OP_ATTENTION,
                 .second = -1,
                 .state = { -1, -1, -1, -1 },
                 .attr = { .heads = b->heads, .softmax_scale = s->softmax } };
    const ft_cuda_batch on_device = { .tokens = b->tokens,
                                      .sequences = b->sequences,
                                      .start = b->device_start,
                                      .blocks = b->device_blocks,
                                      .n_query_tiles = b->n_query_tiles };
    const float scale[3] = { s->q, s->k, s->v };
    ft_cuda_args args = { .props = &props, .op = &op, .batch = &on_device };
    for (int i = 0; i < 3; i++)
        args.in[i] = (ft_view){
            .data = x[i], .rows = b->tokens, .cols = b->cols, .dtype = dtype, .scale = scale[i]
        };
    if (to_quantized)
        args.quantized = (ft_view){
            .data = y, .rows = b->tokens, .cols = b->cols, .dtype = dtype, .scale = s->y
        };
    else
        args.out = (ft_view){
            .data = y, .rows = b->tokens, .cols = b->cols, .dtype = FT_F32, .scale = 0.0f
        };
    ft_value value = { .dtype = dtype, .cols = (int32_t) b->cols, .scale = s->q };
    ft_plan plan = { .value = &value, .nvalue = 1 };
    ft_limits limits = { .tokens = b->tokens };
    args.scratch_bytes = ft_cuda_attention_workspace(args.props, &plan, &op, &limits).scratch;
    args.scratch = upload(NULL, args.scratch_bytes);
    int status = ft_cuda_attention(&args);
    must(cudaDeviceSynchronize(), "attention");
    cudaFree(args.scratch);
    return status;
}

/* The number of bytes that differ from the expected ones, or from the poison after them. */
static size_t wrong_bytes(const void *device, const void *expected, size_t bytes)
{
    size_t wrong = 0;
    uint8_t *found = download(device, bytes + GUARD);
    for (size_t i = 0; i < bytes; i++)
        wrong += found[i] != ((const uint8_t *) expected)[i];
    for (size_t i = 0; i < GUARD; i++)
        wrong += found[bytes + i] != POISON;
    free(found);
    return wrong;
}

/* The kernels that the device properties select, by whether a batch is small for the device. */
typedef struct way {
    const char *name;
    bool wgmma;
    int sm_count;
} way;

static const way ways[] = {
    { "small-batch", false, 1 << 20 },
    { "large-batch", false, 0 },
    { "small-batch wgmma", true, 1 << 20 },
    { "one-wave wgmma", true, 4 },
    { "wgmma", true, 1 },
};

static void each_kernel(const batch *b, int8_t *const code[3], const scales *s, bool to_quantized,
                        const char *what)
{
    bool has_wgmma = props.has_wgmma;
    size_t n = b->tokens * b->cols, bytes = n * (to_quantized ? 1 : sizeof(float)), zeros = 0;
    void *expected = expected_of(b, code, s, to_quantized), *x[3];
    for (size_t i = 0; i < bytes; i++)
        zeros += ((const uint8_t *) expected)[i] == 0;
    for (int i = 0; i < 3; i++)
        x[i] = upload(code[i], n);
    for (size_t i = 0; i < FT_COUNT(ways); i++) {
        if (ways[i].wgmma && !has_wgmma)
            continue;
        props.has_wgmma = ways[i].wgmma;
        props.sm_count = ways[i].sm_count;
        void *y = upload(NULL, bytes);
        int status = run_int8(b, x, y, s, FT_I8, to_quantized);
        size_t wrong = wrong_bytes(y, expected, bytes);
        ok(status == 0 && wrong == 0 && zeros < bytes,
           "int8 attention to %s with %s gives the CPU's bytes with the %s kernel",
           to_quantized ? "int8" : "f32", what, ways[i].name);
        if (status != 0 || wrong > 0)
            diag("status %d; %zu of %zu bytes differ", status, wrong, bytes);
        cudaFree(y);
    }
    props.has_wgmma = has_wgmma;
    free(expected);
    for (int i = 0; i < 3; i++)
        cudaFree(x[i]);
}

static void test_quantized(const shape *s, float spread, const char *note)
{
    batch b;
    int8_t *code[3];
    char what[192];
    batch_init(&b, s);
    scales scale = scales_of(&b, spread);
    snprintf(what, sizeof what, "%s%s", name_of(s), note);
    for (int i = 0; i < 3; i++)
        code[i] = make_quantized(b.tokens * b.cols);
    each_kernel(&b, code, &scale, true, what);
    each_kernel(&b, code, &scale, false, what);
    for (int i = 0; i < 3; i++)
        free(code[i]);
    batch_fini(&b);
}

/* Fake-quantized attention, to fake-quantized or float values, against the CPU's int8 attention. */
static void test_fake_quantized(const shape *s, bool to_quantized)
{
    batch b;
    int8_t *code[3];
    void *x[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols;
    scales scale = scales_of(&b, 2.0f);
    float *wide = must_have(n * sizeof *wide);
    for (int i = 0; i < 3; i++) {
        code[i] = make_quantized(n);
        for (size_t j = 0; j < n; j++)
            wide[j] = code[i][j];
        x[i] = upload(wide, n * sizeof *wide);
    }
    void *expected = expected_of(&b, code, &scale, to_quantized);
    for (size_t j = 0; to_quantized && j < n; j++)
        wide[j] = ((int8_t *) expected)[j];
    void *y = upload(NULL, n * sizeof *wide);
    int status = run_int8(&b, x, y, &scale, FT_F32, to_quantized);
    size_t wrong = wrong_bytes(y, to_quantized ? wide : expected, n * sizeof *wide);
    ok(status == 0 && wrong == 0,
       "fake-quantized attention to %s with %s gives the values of int8 attention",
       to_quantized ? "quantized values" : "f32", name_of(s));
    free(expected);
    free(wide);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        cudaFree(x[i]);
        free(code[i]);
    }
    batch_fini(&b);
}

int main(void)
{
    ft_error error;
    props = need_gpu();
    if (ft_cpu_isa(&cpu, &error) != FT_OK)
        bail_out("%s", error.text);

    for (size_t i = 0; i < width_count; i++)
        test_quantized(&widths[i], 2.0f, "");
    test_quantized(&(shape) SHAPE(2, 64, 100, 350), 60.0f, ", exponents below exp's range");
    test_quantized(&(shape) SHAPE(2, 64, 100, 350, 700), 0.01f, ", equal probabilities");
    test_quantized(&(shape) SHAPE(1, 64, 2048, 1000), 2.0f, "");
    test_quantized(&(shape){ .heads = 1, .head_size = 16, .length = LENGTHS(2, 1), .times = 20000 },
                   2.0f, ", 20000 times");
    test_quantized(&(shape) SHAPE(1, 64, 8192), 4.0f, "");
    for (size_t i = 0; i < width_count; i += 4) {
        test_fake_quantized(&widths[i], true);
        test_fake_quantized(&widths[i], false);
    }
    test_floats_and_counts();
    test_sequences_alone();
    is_int(ft_cuda_attention_launch(
               &props, NULL,
               &(ft_cuda_attention_args){ .heads = 1, .head_size = 264, .dtype = FT_I8 }),
           cudaErrorNotSupported,
           "ft_cuda_attention_launch() does not support a head of 264 elements");
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
