/*
 * gemm_int8-t.c - int8 GEMM: every instruction set against a naive reference, byte for byte.
 *
 * The reference uses the layout formula, kernels/quant.h and kernels/activation.h, but no panels or
 * vectors.  Instruction sets that this machine lacks are skipped by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/activation.h"
#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };

static uint32_t random_state = 1;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static float random_float(float low, float high)
{
    return low + (high - low) * (float) (random_bits() >> 8) * 0x1p-24f;
}

/* ---- One GEMM, its operands and its exact sums --------------------------------------------- */

typedef enum data_kind { RANDOM, RANDOM_PADS, EXTREME, DATA_KINDS } data_kind;

typedef struct problem {
    size_t m, n, k, x_stride, y_stride;
    int8_t *x, *w;
    float *w_scale, *x_scales, *bias, *residual;
    int32_t *sums, *totals; /* [m, n], and [n] of the weights alone */
    void *scratch;
    size_t scratch_bytes;
} problem;

static int8_t random_weight(data_kind kind)
{
    if (kind == EXTREME)
        return random_bits() & 1 ? -128 : 127;
    return (int8_t) random_bits();
}

static int8_t random_code(data_kind kind)
{
    if (kind == EXTREME)
        return random_bits() & 1 ? -127 : 127;
    return (int8_t) ((int) (random_bits() % 255) - 127);
}

static void fill_weights(problem *p, data_kind kind)
{
    size_t rows = ft_layout_rows(FT_COL4_4R2_8C, p->n), cols = ft_layout_cols(FT_COL4_4R2_8C, p->k);
    p->w = ft_calloc_aligned(rows * cols);
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++)
            if (kind != RANDOM || (row < p->n && col < p->k))
                p->w[ft_offset_col4(row, col, rows)] = random_weight(kind);
}

static void sum_products(problem *p)
{
    size_t rows = ft_layout_rows(FT_COL4_4R2_8C, p->n);
    int8_t *row = malloc(p->k);
    for (size_t c = 0; c < p->n; c++) {
        p->totals[c] = 0;
        for (size_t i = 0; i < p->k; i++)
            p->totals[c] += row[i] = p->w[ft_offset_col4(c, i, rows)];
        for (size_t r = 0; r < p->m; r++) {
            int32_t sum = 0;
            for (size_t i = 0; i < p->k; i++)
                sum += p->x[r * p->x_stride + i] * row[i];
            p->sums[r * p->n + c] = sum;
        }
    }
    free(row);
}

/* x ends exactly after its last row, and has garbage between its rows. */
static problem problem_new(size_t m, size_t n, size_t k, data_kind kind)
{
    problem p = { .m = m, .n = n, .k = k, .x_stride = k + (m + n) % 2 * 5, .y_stride = n + n % 3 };
    size_t x_bytes = (m - 1) * p.x_stride + k;
    p.x = malloc(x_bytes);
    for (size_t i = 0; i < x_bytes; i++)
        p.x[i] = random_code(kind);
    fill_weights(&p, kind);
    p.w_scale = malloc(n * sizeof *p.w_scale);
    p.bias = malloc(n * sizeof *p.bias);
    for (size_t i = 0; i < n; i++) {
        p.w_scale[i] = random_float(0.5f, 1.0f) / (64.0f * 64.0f * sqrtf((float) k));
        p.bias[i] = random_float(-1.0f, 1.0f);
    }
    p.x_scales = malloc(m * sizeof *p.x_scales);
    for (size_t i = 0; i < m; i++)
        p.x_scales[i] = i % 5 == 3 ? 0.0f : random_float(0.01f, 2.0f); /* 0: a row of zeros */
    p.residual = malloc(m * p.y_stride * sizeof *p.residual);
    for (size_t i = 0; i < m * p.y_stride; i++)
        p.residual[i] = random_float(-2.0f, 2.0f);
    p.sums = malloc(m * n * sizeof *p.sums);
    p.totals = malloc(n * sizeof *p.totals);
    sum_products(&p);
    p.scratch_bytes = ft_gemm_i8_scratch(m, n, k, 2);
    p.scratch = ft_calloc_aligned(p.scratch_bytes);
    return p;
}

static void problem_free(problem *p)
{
    free(p->x);
    free(p->w);
    free(p->w_scale);
    free(p->x_scales);
    free(p->bias);
    free(p->residual);
    free(p->sums);
    free(p->totals);
    free(p->scratch);
}

/* ---- Epilogues --------------------------------------------------------------------------------
 */

typedef struct epilogue {
    const char *name;
    ft_activation activation;
    bool bias, residual;
    ft_dtype y;
    float out_inverse;
    bool scaled_rows; /* each row of x has its own scale */
    int8_t zero;      /* the zero point of x */
} epilogue;

static const epilogue epilogues[] = {
    { "float", FT_ACT_NONE, false, false, FT_F32, 0.0f, false, 0 },
    { "f32 output, bias, residual", FT_ACT_NONE, true, true, FT_F32, 0.0f, false, 0 },
    { "int8 output, bias", FT_ACT_NONE, true, false, FT_I8, 40.0f, false, 0 },
    { "int8 output, bias, residual", FT_ACT_NONE, true, true, FT_I8, 30.0f, false, 0 },
    { "int8 output, bias, gelu", FT_ACT_GELU, true, false, FT_I8, 50.0f, false, 0 },
    { "f32 output, bias, gelu", FT_ACT_GELU, true, false, FT_F32, 0.0f, false, 0 },
    { "int8 output, bias, approximate gelu", FT_ACT_GELU_APPROX, true, false, FT_I8, 50.0f, false,
      0 },
    { "int8 output, bias, tanh gelu", FT_ACT_GELU_TANH, true, false, FT_I8, 50.0f, false, 0 },
    { "f32 output, bias, tanh", FT_ACT_TANH, true, false, FT_F32, 0.0f, false, 0 },
    { "int8 output, silu", FT_ACT_SILU, false, false, FT_I8, 50.0f, false, 0 },
    { "f32 output, bias, relu", FT_ACT_RELU, true, false, FT_F32, 0.0f, false, 0 },
    { "f16 output, bias", FT_ACT_NONE, true, false, FT_F16, 0.0f, false, 0 },
    { "f16 output, residual", FT_ACT_NONE, false, true, FT_F16, 0.0f, false, 0 },
    { "f16 output, bias, gelu", FT_ACT_GELU, true, false, FT_F16, 0.0f, false, 0 },
    { "f16 output, bias, relu", FT_ACT_RELU, true, false, FT_F16, 0.0f, false, 0 },
    { "f32 output, one scale per row", FT_ACT_NONE, false, false, FT_F32, 0.0f, true, 0 },
    { "int8 output, bias, silu, one scale per row", FT_ACT_SILU, true, false, FT_I8, 50.0f, true,
      0 },
    { "f16 output, bias, residual, one scale per row", FT_ACT_NONE, true, true, FT_F16, 0.0f, true,
      0 },
    { "f32 output, zero point -127", FT_ACT_NONE, false, false, FT_F32, 0.0f, false, -127 },
    { "int8 output, bias, relu, zero point 127", FT_ACT_RELU, true, false, FT_I8, 40.0f, false,
      127 },
    { "f16 output, bias, residual, zero point -3, one scale per row", FT_ACT_NONE, true, true,
      FT_F16, 0.0f, true, -3 },
};

static size_t element_bytes(const epilogue *e)
{
    return ft_dtype_size(e->y);
}

/* The reference: bytes between the rows keep their values. */
static void expect(const problem *p, const epilogue *e, void *y)
{
    for (size_t row = 0; row < p->m; row++)
        for (size_t col = 0; col < p->n; col++) {
            float scale = (e->scaled_rows ? p->x_scales[row] : 0.75f) * p->w_scale[col];
            int32_t sum = p->sums[row * p->n + col] - e->zero * p->totals[col];
            float v = ft_dequantize(sum, scale, e->bias ? p->bias[col] : 0.0f);
            v = ft_activate(e->activation, v);
            if (e->residual)
                v += p->residual[row * p->y_stride + col];
            size_t at = row * p->y_stride + col;
            if (e->y == FT_I8)
                ((int8_t *) y)[at] = ft_quantize(v, e->out_inverse);
            else if (e->y == FT_F16)
                ((uint16_t *) y)[at] = ft_f16_from_float(v);
            else
                ((float *) y)[at] = v;
        }
}

static void multiply(const problem *p, const epilogue *e, ft_isa isa, int threads, void *y)
{
    ft_gemm_i8_run(&(ft_gemm_i8){
        .isa = isa,
        .threads = threads,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .x = p->x,
        .x_stride = p->x_stride,
        .x_zero = e->zero,
        .w = p->w,
        .x_scale = e->scaled_rows ? 0.0f : 0.75f,
        .x_scales = e->scaled_rows ? p->x_scales : NULL,
        .w_scale = p->w_scale,
        .bias = e->bias ? p->bias : NULL,
        .activation = e->activation,
        .residual = e->residual ? p->residual : NULL,
        .residual_stride = p->y_stride,
        .y_dtype = e->y,
        .out_inverse = e->out_inverse,
        .y = y,
        .y_stride = p->y_stride,
        .scratch = p->scratch,
        .scratch_bytes = p->scratch_bytes,
    });
}

/* Whether all bytes are as expected, including those after the output and between its rows. */
static bool same_bytes(const problem *p, const epilogue *e, ft_isa isa, int threads)
{
    size_t bytes = p->m * p->y_stride * element_bytes(e) + GUARD;
    char *expected = malloc(bytes), *found = malloc(bytes);
    memset(expected, 0x5a, bytes);
    memset(found, 0x5a, bytes);
    expect(p, e, expected);
    multiply(p, e, isa, threads, found);
    bool same = memcmp(expected, found, bytes) == 0;
    if (!same) {
        size_t at = 0;
        while (expected[at] == found[at])
            at++;
        at /= element_bytes(e);
        diag("%zu x %zu x %zu, %s, %d threads: first difference at row %zu, column %zu", p->m, p->n,
             p->k, e->name, threads, at / p->y_stride, at % p->y_stride);
    }
    free(expected);
    free(found);
    return same;
}

/* ---- The checks -------------------------------------------------------------------------------
 */

static const size_t shapes[][3] = {
    { 1, 1, 1 },      { 1, 8, 32 },     { 1, 1001, 100 }, { 2, 9, 31 },     { 3, 17, 33 },
    { 4, 24, 64 },    { 5, 100, 4100 }, { 7, 312, 312 },  { 8, 65, 260 },   { 9, 64, 128 },
    { 10, 63, 27 },   { 12, 7, 1000 },  { 13, 129, 36 },  { 16, 40, 4096 }, { 17, 1000, 26 },
    { 19, 72, 2050 }, { 33, 96, 64 },   { 64, 312, 80 },  { 130, 200, 48 }, { 130, 56, 97 },
    { 70, 40, 900 },
};

static void test_shapes(ft_isa isa)
{
    bool same[DATA_KINDS][FT_COUNT(epilogues)];
    memset(same, 1, sizeof same);
    for (size_t s = 0; s < FT_COUNT(shapes); s++)
        for (int kind = 0; kind < DATA_KINDS; kind++) {
            problem p = problem_new(shapes[s][0], shapes[s][1], shapes[s][2], (data_kind) kind);
            for (size_t e = 0; e < FT_COUNT(epilogues); e++)
                for (int threads = 1; threads <= 2; threads++)
                    same[kind][e] &= same_bytes(&p, &epilogues[e], isa, threads);
            problem_free(&p);
        }
    static const char *const kinds[DATA_KINDS] = {
        "random values", "random padding", "weights -128 and 127, activations -127 and 127"
    };
    for (int kind = 0; kind < DATA_KINDS; kind++)
        for (size_t e = 0; e < FT_COUNT(epilogues); e++)
            ok(same[kind][e], "%s, %s: %s: %zu shapes have the bytes of the reference",
               ft_isa_name(isa), epilogues[e].name, kinds[kind], FT_COUNT(shapes));
}

/* y may alias its residual: the sum of a layer and its input. */
static void test_residual_in_place(ft_isa isa)
{
    static const epilogue e = {
        "f32 output, in-place residual", FT_ACT_NONE, true, true, FT_F32, 0.0f, false, 0
    };
    problem p = problem_new(37, 90, 64, RANDOM);
    size_t bytes = p.m * p.y_stride * sizeof(float);
    float *expected = malloc(bytes), *found = malloc(bytes);
    memcpy(expected, p.residual, bytes);
    memcpy(found, p.residual, bytes);
    expect(&p, &e, expected);
    free(p.residual);
    p.residual = found;
    multiply(&p, &e, isa, 2, found);
    ok(memcmp(expected, found, bytes) == 0, "%s: the output may alias its residual",
       ft_isa_name(isa));
    free(expected);
    problem_free(&p);
}

/* More threads than panels: the rows are split too. */
static void test_many_threads(ft_isa isa)
{
    problem p = problem_new(67, 70, 96, RANDOM_PADS);
    free(p.scratch);
    bool same = true;
    for (int threads = 3; threads <= 16; threads += 13) {
        p.scratch_bytes = ft_gemm_i8_scratch(p.m, p.n, p.k, threads);
        p.scratch = ft_calloc_aligned(p.scratch_bytes);
        same &= same_bytes(&p, &epilogues[4], isa, threads);
        free(p.scratch);
    }
    p.scratch = NULL;
    ok(same, "%s: 3 and 16 threads compute the same bytes", ft_isa_name(isa));
    problem_free(&p);
}

static void test_selection(void)
{
    ft_isa isa;
    ft_error err;
    unsetenv("FT_CPU");
    ok(ft_cpu_isa(&isa, &err) == FT_OK && ft_isa_supported(isa),
       "this machine supports at least one instruction set");
    setenv("FT_CPU", "generic", 1);
    ok(ft_cpu_isa(&isa, &err) == FT_OK && isa == FT_ISA_GENERIC,
       "FT_CPU=generic selects the generic kernels");
    setenv("FT_CPU", "sse9", 1);
    is_int(ft_cpu_isa(&isa, &err), FT_EARG, "FT_CPU=sse9 is refused");
    has(err.text, "FT_CPU=sse9: unknown instruction set",
        "the message names the unknown FT_CPU=sse9");
    for (int i = 0; i < FT_ISA_COUNT; i++) {
        setenv("FT_CPU", ft_isa_name((ft_isa) i), 1);
        ft_status expected = ft_isa_supported((ft_isa) i) ? FT_OK : FT_EUNSUPPORTED;
        is_int(ft_cpu_isa(&isa, &err), expected,
               "FT_CPU=%s is accepted where the machine supports it", ft_isa_name((ft_isa) i));
    }
    unsetenv("FT_CPU");
}

static double larger_error(double worst, float found, double expected)
{
    return fmax(worst, fabs((double) found - expected));
}

static void test_activations(void)
{
    double gelu = 0.0, gelu_approx = 0.0, gelu_tanh = 0.0, tanh_error = 0.0, silu = 0.0,
           exp_error = 0.0;
    for (int i = -120000; i <= 120000; i++) {
        float v = (float) i * 1e-4f, wide = 7.0f * v;
        double d = (double) v, inner = sqrt(M_2_PI) * (d + 0.044715 * d * d * d);
        gelu = larger_error(gelu, ft_gelu(v), 0.5 * d * erfc(-d * M_SQRT1_2));
        gelu_approx = larger_error(gelu_approx, ft_gelu_approx(v), 0.5 * d * erfc(-d * M_SQRT1_2));
        gelu_tanh = larger_error(gelu_tanh, ft_gelu_tanh(v), 0.5 * d * (1.0 + tanh(inner)));
        tanh_error = larger_error(tanh_error, ft_tanh(v), tanh(d));
        silu = larger_error(silu, ft_silu(v), d / (1.0 + exp(-d)));
        exp_error = fmax(exp_error, fabs((double) ft_exp(wide) / exp((double) wide) - 1.0));
    }
    near(gelu, 0.0, 1.5e-6, "gelu is within 1.5e-6 of the one by the error function");
    near(gelu_approx, 0.0, 1.1e-3, "approximate gelu is within 1.1e-3 of gelu");
    near(gelu_tanh, 0.0, 1e-6, "tanh gelu is within 1e-6 of its formula");
    near(tanh_error, 0.0, 2e-7, "tanh is within 2e-7 of libm's");
    near(silu, 0.0, 1.5e-6, "silu is within 1.5e-6 of its formula");
    near(exp_error, 0.0, 1e-7, "exp is within a relative 1e-7 over its range");
    ok(ft_gelu(1e30f) == 1e30f && ft_gelu(-1e30f) == 0.0f,
       "gelu is exactly v and 0 for large magnitudes");
    ok(ft_gelu_approx(1e30f) == 1e30f && ft_gelu_approx(-1e30f) == 0.0f &&
           ft_gelu_approx(3.6f) == 3.6f && ft_gelu_approx(-3.6f) == 0.0f,
       "approximate gelu is exactly v and 0 beyond 3.6");
}

static void test_isa(ft_isa isa)
{
    if (!ft_isa_supported(isa)) {
        skip(1, "this machine or this build has no %s", ft_isa_name(isa));
        return;
    }
    test_shapes(isa);
    test_residual_in_place(isa);
    test_many_threads(isa);
}

int main(void)
{
    test_selection();
    test_activations();
    for (int isa = 0; isa < FT_ISA_COUNT; isa++)
        test_isa((ft_isa) isa);
    return done_testing();
}
