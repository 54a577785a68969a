/*
 * cuda-wgmma-norm-t.c - product and layer norm in one kernel against those of the CPU: every byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cpu/gemm_i8.h"
#include "kernels/cpu/rows.h"
#include "kernels/cuda/cuda.h"
#include "kernels/layout.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 1024, POISON = 0x5a };

static ft_cuda_chip chip;
static ft_isa isa;
static uint64_t state = 7;

static uint32_t draw(void)
{
    state = 6364136223846793005u * state + 1442695040888963407u;
    return (uint32_t) (state >> 33);
}

static void check_cuda(int status, const char *what)
{
    if (status != 0)
        bail_out("%s: %s", what, cudaGetErrorString((cudaError_t) status));
}

/* ---- Memory on both sides ------------------------------------------------------------------- */

typedef struct pair {
    void *host, *device;
    size_t bytes;
} pair;

static pair make_pair(size_t bytes)
{
    pair p = { ft_alloc(bytes), NULL, bytes };
    check_cuda((int) cudaMalloc(&p.device, bytes), "cudaMalloc");
    return p;
}

static void upload(const pair *p)
{
    check_cuda((int) cudaMemcpy(p->device, p->host, p->bytes, cudaMemcpyHostToDevice), "upload");
}

static void free_pair(pair *p)
{
    free(p->host);
    cudaFree(p->device);
}

static pair random_floats(size_t n, float low, float high)
{
    pair p = make_pair(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        ((float *) p.host)[i] = low + (high - low) * ((float) (draw() >> 7) / 16777216.0f);
    upload(&p);
    return p;
}

static pair random_codes(size_t n)
{
    pair p = make_pair(n);
    for (size_t i = 0; i < n; i++)
        ((int8_t *) p.host)[i] = (int8_t) (draw() % 255) - 127;
    upload(&p);
    return p;
}

/* ---- One shape ------------------------------------------------------------------------------ */

typedef struct setting {
    size_t m, n, k;
    pair x, w, tiles, w_scale, bias, weight, norm_bias, floats, codes, y, y_codes;
    float *expected;
    int8_t *expected_codes;
} setting;

static const float x_scale = 1.0f / 64.0f, residual_scale = 0.021f, eps = 1e-12f, inverse = 41.0f;

static void setting_init(setting *s, size_t m, size_t n, size_t k)
{
    *s = (setting){ .m = m, .n = n, .k = k };
    s->x = random_codes(m * k);
    s->w = random_codes(ft_layout_bytes(FT_COL4_4R2_8C, n, k));
    s->tiles = make_pair(ft_cuda_tiles_bytes(n, k));
    s->w_scale = random_floats(n, 0.5f / 2000.0f, 1.5f / 2000.0f);
    s->bias = random_floats(n, -0.5f, 0.5f);
    s->weight = random_floats(n, 0.2f, 1.6f);
    s->norm_bias = random_floats(n, -0.3f, 0.3f);
    s->floats = random_floats(m * n, -3.0f, 3.0f);
    s->codes = random_codes(m * n);
    s->y = make_pair(m * n * sizeof(float) + 2 * GUARD);
    s->y_codes = make_pair(m * n + 2 * GUARD);
    s->expected = ft_alloc(m * n * sizeof(float));
    s->expected_codes = ft_alloc(m * n);
    check_cuda(ft_cuda_tile(NULL, s->tiles.device, s->w.device, n, k), "tile");
}

static void setting_fini(setting *s)
{
    pair *all[] = { &s->x,         &s->w,      &s->tiles, &s->w_scale, &s->bias,   &s->weight,
                    &s->norm_bias, &s->floats, &s->codes, &s->y,       &s->y_codes };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free_pair(all[i]);
    free(s->expected);
    free(s->expected_codes);
}

enum { NO_RESIDUAL, FLOATS, CODES };

static void expect(setting *s, int residual)
{
    size_t count = s->m * s->n, scratch_bytes = ft_gemm_i8_scratch(s->m, s->n, s->k, 1);
    float *sums = ft_alloc(count * sizeof *sums), *added = ft_alloc(count * sizeof *added);
    void *scratch = ft_alloc(scratch_bytes);
    for (size_t i = 0; i < count; i++)
        added[i] = residual == CODES ? (float) ((int8_t *) s->codes.host)[i] * residual_scale
                                     : ((float *) s->floats.host)[i];
    ft_gemm_i8_run(&(ft_gemm_i8){
        .isa = isa,
        .threads = 1,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .x = s->x.host,
        .x_stride = s->k,
        .w = s->w.host,
        .x_scale = x_scale,
        .w_scale = s->w_scale.host,
        .bias = s->bias.host,
        .residual = residual == NO_RESIDUAL ? NULL : added,
        .residual_stride = s->n,
        .y = sums,
        .y_stride = s->n,
        .scratch = scratch,
        .scratch_bytes = scratch_bytes,
    });
    for (size_t row = 0; row < s->m; row++)
        ft_rows_of(isa)->norm(s->expected + row * s->n, sums + row * s->n, s->weight.host,
                              s->norm_bias.host, eps, s->n);
    for (size_t i = 0; i < count; i++)
        s->expected_codes[i] = ft_quantize(s->expected[i], inverse);
    free(sums);
    free(added);
    free(scratch);
}

/* Bytes that are not those expected, or no longer poison: around the result, or all if unused. */
static size_t count_wrong(const pair *found, const void *expected, bool used)
{
    const uint8_t *bytes = found->host, *right = expected;
    size_t wrong = 0, size = found->bytes - 2 * GUARD;
    check_cuda((int) cudaMemcpy(found->host, found->device, found->bytes, cudaMemcpyDeviceToHost),
               "download");
    for (size_t i = 0; i < found->bytes; i++) {
        bool inside = i >= GUARD && i < GUARD + size;
        wrong += bytes[i] != (used && inside ? right[i - GUARD] : POISON);
    }
    return wrong;
}

static size_t test_outputs(setting *s, int residual, bool floats, bool codes)
{
    ft_cuda_product p = {
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .x = s->x.device,
        .tiles = s->tiles.device,
        .x_scale = x_scale,
        .w_scale = s->w_scale.device,
        .bias = s->bias.device,
        .y_dtype = FT_F32,
        .parts = 1,
    };
    ft_cuda_product_norm norm = {
        .weight = s->weight.device,
        .bias = s->norm_bias.device,
        .eps = eps,
        .residual = residual == FLOATS  ? s->floats.device
                    : residual == CODES ? s->codes.device
                                        : NULL,
        .residual_scale = residual == CODES ? residual_scale : 0.0f,
        .y = floats ? (float *) ((char *) s->y.device + GUARD) : NULL,
        .codes = codes ? (int8_t *) s->y_codes.device + GUARD : NULL,
        .inverse = inverse,
    };
    if (!ft_cuda_gemm_wgmma_norm_takes(&chip, &p, &norm))
        return 1;
    check_cuda((int) cudaMemset(s->y.device, POISON, s->y.bytes), "memset");
    check_cuda((int) cudaMemset(s->y_codes.device, POISON, s->y_codes.bytes), "memset");
    check_cuda(ft_cuda_gemm_wgmma_norm(&chip, NULL, &p, &norm), "launch");
    size_t wrong = count_wrong(&s->y, s->expected, floats);
    size_t wrong_codes = count_wrong(&s->y_codes, s->expected_codes, codes);
    if (wrong + wrong_codes > 0)
        diag("residual %d: %zu wrong bytes of floats, %zu of codes", residual, wrong, wrong_codes);
    return wrong + wrong_codes;
}

static void test_shape(size_t m, size_t n, size_t k)
{
    setting s;
    size_t wrong = 0;
    setting_init(&s, m, n, k);
    for (int residual = NO_RESIDUAL; residual <= CODES; residual++) {
        expect(&s, residual);
        wrong += test_outputs(&s, residual, true, true);
        wrong += test_outputs(&s, residual, false, true);
        wrong += test_outputs(&s, residual, true, false);
    }
    is_int((long long) wrong, 0, "%zu x %zu x %zu: floats and codes are the CPU's", m, n, k);
    setting_fini(&s);
}

static bool find_chip(void)
{
    struct cudaDeviceProp properties;
    check_cuda((int) cudaGetDeviceProperties(&properties, 0), "properties");
    chip = (ft_cuda_chip){
        .capability = 10 * properties.major + properties.minor,
        .multiprocessors = properties.multiProcessorCount,
        .shared = properties.sharedMemPerBlockOptin,
        .has_wgmma = properties.major == 9,
        .overlaps = properties.major >= 9,
    };
    return chip.has_wgmma;
}

int main(void)
{
    static const size_t ms[] = { 1, 64, 65, 500, 4500 }, ns[] = { 512, 768, 1024, 1152, 1536 },
                        ks[] = { 64, 768, 3072 };
    int count;
    ft_error err;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
        skip_all("no CUDA device: %s", cudaGetErrorString(status));
    if (!find_chip())
        skip_all("the device has no wgmma");
    if (ft_cpu_isa(&isa, &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < FT_COUNT(ms); i++)
        for (size_t j = 0; j < FT_COUNT(ns); j++)
            for (size_t l = 0; l < FT_COUNT(ks); l++)
                if (ms[i] <= 500 || ns[j] == 768) /* the largest only where models are */
                    test_shape(ms[i], ns[j], ks[l]);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
