/*
 * wgmma-t.c - the int8 wgmma GEMM of sm_90a against the CPU's: every byte, every tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "kernels/half.h"
#include "kernels/layout.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/gpu.h"
#include "tests/lib/ops/gemm_parts.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_M = 1111, MAX_N = 2304, MAX_K = 8208, GUARD = 4096, POISON = 0x5a };

static ft_cuda_device_props props;
static ft_isa isa;
static uint64_t state = 1;

static uint32_t draw(void)
{
    state = 6364136223846793005u * state + 1442695040888963407u;
    return (uint32_t) (state >> 33);
}

static float draw_float(float low, float high)
{
    return low + (high - low) * ((float) (draw() >> 7) / 16777216.0f);
}

/* ---- Operands, on host and device ----------------------------------------------------------- */

static struct {
    int8_t *x, *row_major, *w, *prepacked, *y;
    float *w_scale, *bias, *x_scales, *residual, *expected;
    uint16_t *residual16;
    void *scratch;
    size_t scratch_bytes;
} host;

static struct {
    int8_t *x, *w, *prepacked, *y;
    float *w_scale, *bias, *x_scales, *residual;
    uint16_t *residual16;
} device;

enum { Y_BYTES = MAX_M * MAX_N * 4 + 2 * GUARD };

static void make_operands(void)
{
    host.x = malloc(MAX_M * MAX_K);
    host.row_major = malloc(MAX_N * MAX_K);
    host.w = ft_calloc_aligned(MAX_N * MAX_K);
    host.prepacked = malloc(MAX_N * MAX_K);
    host.y = malloc(Y_BYTES);
    host.w_scale = malloc(MAX_N * sizeof(float));
    host.bias = malloc(MAX_N * sizeof(float));
    host.x_scales = malloc(MAX_M * sizeof(float));
    host.residual = malloc(MAX_M * MAX_N * sizeof(float));
    host.residual16 = malloc(MAX_M * MAX_N * sizeof(uint16_t));
    host.expected = malloc(MAX_M * MAX_N * sizeof(float));
    host.scratch_bytes = ft_gemm_i8_scratch(MAX_M, MAX_N, MAX_K, 1);
    host.scratch = ft_calloc_aligned(host.scratch_bytes);
    device.x = device_memory(MAX_M * MAX_K);
    device.w = device_memory(MAX_N * MAX_K);
    device.prepacked = device_memory(MAX_N * MAX_K);
    device.y = device_memory(Y_BYTES);
    device.w_scale = device_memory(MAX_N * sizeof(float));
    device.bias = device_memory(MAX_N * sizeof(float));
    device.x_scales = device_memory(MAX_M * sizeof(float));
    device.residual = device_memory(MAX_M * MAX_N * sizeof(float));
    device.residual16 = device_memory(MAX_M * MAX_N * sizeof(uint16_t));
}

/* Vectors and residuals, once for all shapes. */
static void fill_floats(void)
{
    for (int i = 0; i < MAX_N; i++) {
        host.w_scale[i] = draw_float(0.5f, 1.5f) / (64.0f * 30.0f);
        host.bias[i] = draw_float(-0.5f, 0.5f);
    }
    for (int i = 0; i < MAX_M; i++)
        host.x_scales[i] = draw_float(0.5f, 1.5f) / 64.0f;
    for (size_t i = 0; i < MAX_M * MAX_N; i++) {
        host.residual16[i] = ft_f16_from_float(draw_float(-3.0f, 3.0f));
        host.residual[i] = ft_float_from_f16(host.residual16[i]);
    }
    to_device(device.w_scale, host.w_scale, MAX_N * sizeof(float));
    to_device(device.bias, host.bias, MAX_N * sizeof(float));
    to_device(device.x_scales, host.x_scales, MAX_M * sizeof(float));
    to_device(device.residual, host.residual, MAX_M * MAX_N * sizeof(float));
    to_device(device.residual16, host.residual16, MAX_M * MAX_N * sizeof(uint16_t));
}

/* Fills int8 operands; whether the prepacked weights match the layout formula, with zero padding.
 */
static bool fill_int8(size_t m, size_t n, size_t k)
{
    size_t bytes = ft_cuda_prepacked_bytes(n, k), rows = ft_layout_rows(FT_COL4_4R2_8C, n);
    int8_t *expected = calloc(1, bytes);
    for (size_t i = 0; i < m * k; i++)
        host.x[i] = (int8_t) (draw() % 255) - 127;
    memset(host.w, 0, ft_layout_bytes(FT_COL4_4R2_8C, n, k));
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < k; c++) {
            int8_t code = (int8_t) (draw() % 255) - 127;
            host.w[ft_offset_col4(r, c, rows)] = code;
            expected[ft_cuda_prepacked_offset(r, c, n, k)] = code;
        }
    to_device(device.x, host.x, m * k);
    to_device(device.w, host.w, ft_layout_bytes(FT_COL4_4R2_8C, n, k));
    must(cudaMemset(device.prepacked, POISON, bytes), "memset");
    must(ft_cuda_prepack(NULL, device.prepacked, device.w, n, k), "tile");
    from_device(host.prepacked, device.prepacked, bytes);
    bool same = memcmp(host.prepacked, expected, bytes) == 0;
    free(expected);
    return same;
}

/* ---- One GEMM ------------------------------------------------------------------------------- */

typedef struct epilogue {
    const char *name;
    ft_dtype y;
    ft_activation activation;
    bool bias, residual, per_row;
    int n_outputs;
    bool uneven; /* the first output has half of all columns */
} epilogue;

static const epilogue epilogues[] = {
    { "int8", FT_I8, FT_ACT_NONE, true, false, false, 1, false },
    { "int8, three outputs", FT_I8, FT_ACT_NONE, true, false, false, 3, false },
    { "int8 after gelu", FT_I8, FT_ACT_GELU_APPROX, true, false, false, 1, false },
    { "int8, two outputs, no bias", FT_I8, FT_ACT_GELU_APPROX, false, false, false, 2, false },
    { "f32", FT_F32, FT_ACT_NONE, true, false, false, 1, false },
    { "f32 plus residual", FT_F32, FT_ACT_NONE, true, true, false, 1, false },
    { "f16", FT_F16, FT_ACT_NONE, false, false, false, 1, false },
    { "f16 plus residual", FT_F16, FT_ACT_NONE, true, true, false, 1, false },
    { "int8 after relu", FT_I8, FT_ACT_RELU, true, false, false, 1, false },
    { "int8, three outputs, row scales", FT_I8, FT_ACT_GELU_TANH, true, false, true, 3, false },
    { "int8, three outputs, row scales, no activation", FT_I8, FT_ACT_NONE, true, false, true, 3,
      false },
    { "int8 after gelu, row scales", FT_I8, FT_ACT_GELU_APPROX, true, false, true, 1, false },
    { "f16 after gelu", FT_F16, FT_ACT_GELU_APPROX, true, false, false, 1, false },
    { "f16 after gelu, row scales", FT_F16, FT_ACT_GELU_APPROX, true, false, true, 1, false },
    { "f32 after tanh plus residual, row scales", FT_F32, FT_ACT_TANH, true, true, true, 1, false },
    { "f16 after silu plus residual", FT_F16, FT_ACT_SILU, true, true, false, 1, false },
    { "f16, row scales", FT_F16, FT_ACT_NONE, false, false, true, 1, false },
    { "f16 plus residual, row scales", FT_F16, FT_ACT_NONE, true, true, true, 1, false },
    { "f32, no bias, row scales", FT_F32, FT_ACT_NONE, false, false, true, 1, false },
    { "f32 plus residual, row scales", FT_F32, FT_ACT_NONE, true, true, true, 1, false },
    { "f16 after relu, row scales", FT_F16, FT_ACT_RELU, true, false, true, 1, false },
    { "f16, three uneven outputs, row scales", FT_F16, FT_ACT_NONE, true, false, true, 3, true },
    { "int8, three uneven outputs", FT_I8, FT_ACT_NONE, true, false, false, 3, true },
};

static size_t y_size(const epilogue *e)
{
    return e->y == FT_I8 ? 1 : e->y == FT_F16 ? 2 : 4;
}

/* The CPU's result for the columns of one output. */
static void expect_part(const epilogue *e, size_t m, size_t n, size_t k, int part, float inverse)
{
    size_t width = part_width(n, e->n_outputs, e->uneven, part),
           first = part_first(n, e->n_outputs, e->uneven, part), step = e->per_row ? 1 : m;
    float *out = malloc(step * n * sizeof *out);
    for (size_t row = 0; row < m; row += step) {
        ft_gemm_i8_run(&(ft_gemm_i8){
            .isa = isa,
            .threads = 1,
            .m = step,
            .n = n,
            .k = k,
            .x = host.x + row * k,
            .x_stride = k,
            .w = host.w,
            .x_scale = e->per_row ? host.x_scales[row] : 1.0f / 64.0f,
            .w_scale = host.w_scale,
            .bias = e->bias ? host.bias : NULL,
            .activation = e->activation,
            .residual = e->residual ? host.residual + row * n : NULL,
            .residual_stride = n,
            .y_dtype = e->y,
            .out_inverse = e->y == FT_I8 ? inverse : 0.0f,
            .y = out,
            .y_stride = n,
            .scratch = host.scratch,
            .scratch_bytes = host.scratch_bytes,
        });
        for (size_t r = 0; r < step; r++)
            for (size_t c = 0; c < width; c++) {
                size_t to = m * first + (row + r) * width + c;
                size_t from = r * n + first + c;
                if (e->y == FT_I8)
                    ((int8_t *) host.expected)[to] = ((int8_t *) out)[from];
                else if (e->y == FT_F16)
                    ((uint16_t *) host.expected)[to] = ((uint16_t *) out)[from];
                else
                    host.expected[to] = out[from];
            }
    }
    free(out);
}

/* The number of wrong bytes in y and in the guards around it. */
static size_t count_wrong(size_t bytes)
{
    size_t wrong = 0;
    from_device(host.y, device.y, bytes + 2 * GUARD);
    for (size_t i = 0; i < bytes; i++)
        wrong += host.y[GUARD + i] != ((int8_t *) host.expected)[i];
    for (size_t i = 0; i < GUARD; i++)
        wrong += host.y[i] != POISON || host.y[GUARD + bytes + i] != POISON;
    return wrong;
}

static ft_cuda_gemm_args gemm_of(const epilogue *e, size_t m, size_t n, size_t k)
{
    ft_cuda_gemm_args p = {
        .m = m,
        .n = n,
        .k = k,
        .x = device.x,
        .w = device.w,
        .prepacked = device.prepacked,
        .x_scale = 1.0f / 64.0f,
        .x_scales = e->per_row ? device.x_scales : NULL,
        .w_scale = device.w_scale,
        .bias = e->bias ? device.bias : NULL,
        .activation = e->activation,
        .y_dtype = e->y,
        .n_outputs = e->n_outputs,
        .residual = !e->residual     ? NULL
                    : e->y == FT_F16 ? (void *) device.residual16
                                     : (void *) device.residual,
    };
    for (int i = 0; i < e->n_outputs; i++) {
        p.width[i] = part_width(n, e->n_outputs, e->uneven, i);
        p.y[i] = device.y + GUARD + m * part_first(n, e->n_outputs, e->uneven, i) * y_size(e);
        p.y_inv_scale[i] = 20.0f + 15.0f * (float) i;
    }
    return p;
}

static size_t test_epilogue(const epilogue *e, size_t m, size_t n, size_t k, int *runs)
{
    size_t bytes = m * n * y_size(e), total = 0;
    ft_cuda_gemm_args p = gemm_of(e, m, n, k);
    if (!ft_cuda_gemm_wgmma_supports(&props, &p)) {
        diag("%s is not supported", e->name);
        return 1;
    }
    for (int part = 0; part < e->n_outputs; part++)
        expect_part(e, m, n, k, part, p.y_inv_scale[part]);
    for (int tile = 0; tile < FT_CUDA_WGMMA_TILE_COUNT; tile++) {
        if (!ft_cuda_wgmma_tile_supports((ft_cuda_wgmma_tile) tile, &p))
            continue;
        ft_cuda_device_props narrow =
            props; /* a thread block computes several tiles, one or none */
        narrow.sm_count = 1 + (int) (draw() % (uint32_t) props.sm_count);
        must(cudaMemset(device.y, POISON, bytes + 2 * GUARD), "memset");
        must(ft_cuda_wgmma_launch((ft_cuda_wgmma_tile) tile, &narrow, NULL, &p), "launch");
        size_t wrong = count_wrong(bytes);
        if (wrong > 0)
            diag("%s, %s: %zu wrong bytes of %zu", e->name,
                 ft_cuda_wgmma_tile_name((ft_cuda_wgmma_tile) tile), wrong, bytes);
        total += wrong;
        ++*runs;
    }
    return total;
}

static void test_shape(size_t m, size_t n, size_t k)
{
    size_t wrong = 0;
    int runs = 0;
    bool tiled = fill_int8(m, n, k);
    for (size_t i = 0; i < FT_COUNT(epilogues); i++) {
        const epilogue *e = &epilogues[i];
        if (n % (e->uneven ? 4 : (size_t) e->n_outputs) == 0 && (!e->per_row || m <= 130))
            wrong += test_epilogue(e, m, n, k, &runs);
    }
    ok(tiled && wrong == 0 && runs > 0,
       "int8 wgmma GEMM %zu x %zu x %zu gives the CPU's bytes in %d combinations of tile and "
       "epilogue",
       m, n, k, runs);
}

/* ---- Dependent launches --------------------------------------------------------------------- */

/* Each reads what the previous one wrote, and begins before that one has ended. */
static void test_chain(void)
{
    enum { SIZE = 768, ROWS = 1111, LINKS = 40 };
    int8_t *y[2], *seen[2] = { malloc(ROWS * SIZE), malloc(ROWS * SIZE) };
    ft_cuda_device_props apart = props;
    apart.has_pdl = false;
    fill_int8(ROWS, SIZE, SIZE);
    for (int i = 0; i < 2; i++)
        y[i] = device_memory(ROWS * SIZE);
    for (int overlapping = 0; overlapping < 2; overlapping++) {
        ft_cuda_gemm_args p = gemm_of(&epilogues[0], ROWS, SIZE, SIZE);
        for (int i = 0; i < LINKS; i++) {
            p.x = i == 0 ? device.x : y[(i + 1) % 2];
            p.y[0] = y[i % 2];
            must(ft_cuda_gemm_wgmma(overlapping ? &props : &apart, NULL, &p), "launch");
            if (!overlapping)
                must(cudaDeviceSynchronize(), "GEMM");
        }
        from_device(seen[overlapping], y[(LINKS - 1) % 2], ROWS * SIZE);
    }
    ok(memcmp(seen[0], seen[1], ROWS * SIZE) == 0,
       "%d overlapping wgmma GEMMs give the bits of serialized ones", LINKS);
    for (int i = 0; i < 2; i++) {
        cudaFree(y[i]);
        free(seen[i]);
    }
}

static void test_refusals(void)
{
    ft_cuda_gemm_args p = gemm_of(&epilogues[0], 64, 64, 64);
    ok(ft_cuda_gemm_wgmma_supports(&props, &p), "the wgmma kernel supports a GEMM of 64 x 64 x 64");
    p.k = 72;
    ok(!ft_cuda_gemm_wgmma_supports(&props, &p),
       "the wgmma kernel does not support a k that is no multiple of 16");
    p.k = 64;
    p.x += 8;
    ok(!ft_cuda_gemm_wgmma_supports(&props, &p),
       "the wgmma kernel does not support an input that is not aligned to 16 bytes");
    p.x -= 8;
    p.prepacked = NULL;
    ok(!ft_cuda_gemm_wgmma_supports(&props, &p),
       "the wgmma kernel does not support weights that are not prepacked");
}

/* An argument bounds m * n * k, for tools that slow kernels down. */
int main(int argc, char **argv)
{
    static const size_t ms[] = { 1, 7, 64, 130, 1111 }, ns[] = { 32, 96, 200, 768, 1000, 2304 },
                        ks[] = { 16, 64, 208, 256, 768, 3072 };
    size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;
    ft_error err;
    props = need_gpu();
    if (!props.has_wgmma)
        skip_all("this device has no wgmma");
    if (ft_cpu_isa(&isa, &err) != FT_OK)
        bail_out("%s", err.text);
    make_operands();
    fill_floats();
    test_refusals();
    for (size_t i = 0; i < FT_COUNT(ms); i++)
        for (size_t j = 0; j < FT_COUNT(ns); j++)
            for (size_t l = 0; l < FT_COUNT(ks); l++)
                if (ms[i] * ns[j] * ks[l] <= largest)
                    test_shape(ms[i], ns[j], ks[l]);
    test_shape(1000, 1003, 80);
    if ((size_t) 128 * 384 * MAX_K <= largest) /* the pipeline wraps around several times */
        test_shape(100, 384, MAX_K);
    test_chain();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
