/*
 * amx-t.c - the int8 GEMM with AMX, its instructions emulated: on every processor with AVX-512
 * VNNI.
 *
 * This program defines ft_i8_amx_gemm_block() itself, so that the GEMM calls it instead of the
 * library's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#if defined HAVE_AMX

#include "tests/lib/amx_emulator.h"

#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/cpu/gemm/int8/i8_amx.c"
#include "kernels/layout.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"

#include <math.h>
#include <stdlib.h>

/* Rows of one and several blocks; whole and partial tiles; chunks of k with and without a rest. */
static const size_t shapes[][3] = {
    { 1, 16, 64 },   { 16, 64, 768 },   { 17, 33, 100 },   { 33, 70, 832 },  { 64, 64, 1536 },
    { 70, 40, 900 }, { 130, 80, 1540 }, { 257, 17, 2050 }, { 300, 130, 60 }, { 512, 48, 800 },
};

typedef struct operands {
    size_t m, n, k;
    int8_t *x, *w;
    float *w_scale, *y;
    void *scratch;
    size_t scratch_bytes;
} operands;

static int8_t *random_bytes(uint64_t seed, size_t count)
{
    int8_t *byte = aligned_alloc(64, ft_round_up(count, 64));
    float *number = random_floats(seed, count, 50.0);
    for (size_t i = 0; i < count; i++)
        byte[i] = (int8_t) fminf(fmaxf(number[i], -127.0f), 127.0f);
    free(number);
    return byte;
}

static operands make_operands(size_t m, size_t n, size_t k)
{
    operands o = { .m = m, .n = n, .k = k };
    o.x = random_bytes(1, m * k);
    o.w = random_bytes(2, ft_layout_bytes(FT_COL4_4R2_8C, n, k));
    o.w_scale = random_floats(3, n, 1.0);
    o.y = calloc(m * n, sizeof *o.y);
    o.scratch_bytes = ft_gemm_i8_scratch(m, n, k, 2);
    o.scratch = aligned_alloc(64, ft_round_up(o.scratch_bytes, 64));
    return o;
}

static void free_operands(operands *o)
{
    void *all[] = { o->x, o->w, o->w_scale, o->y, o->scratch };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* A zero point keeps few rows from the stream kernel. */
static void run_gemm(const operands *o, ft_isa isa, int threads, float *y)
{
    ft_gemm_i8_run(&(ft_gemm_i8){
        .isa = isa,
        .threads = threads,
        .m = o->m,
        .n = o->n,
        .k = o->k,
        .x = o->x,
        .x_stride = o->k,
        .x_zero = 3,
        .x_scale = 0.5f,
        .w = o->w,
        .w_scale = o->w_scale,
        .y = y,
        .y_dtype = FT_F32,
        .y_stride = o->n,
        .scratch = o->scratch,
        .scratch_bytes = o->scratch_bytes,
    });
}

static void test_shape(size_t m, size_t n, size_t k)
{
    operands o = make_operands(m, n, k);
    float *expected = calloc(m * n, sizeof *expected);
    run_gemm(&o, FT_ISA_AVX512VNNI, 1, expected);
    for (int threads = 1; threads <= 2; threads++) {
        run_gemm(&o, FT_ISA_AMX, threads, o.y);
        ok(memcmp(o.y, expected, m * n * sizeof *expected) == 0,
           "%zu x %zu x %zu with %d threads: AMX gives the bytes of AVX-512 VNNI", m, n, k,
           threads);
    }
    free(expected);
    free_operands(&o);
}

int main(void)
{
    if (!ft_isa_supported(FT_ISA_AVX512VNNI))
        skip_all("this machine has no avx512vnni");
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        test_shape(shapes[i][0], shapes[i][1], shapes[i][2]);
    ok(!amx_faulted, "no AMX instruction would fault");
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no AMX kernels");
}

#endif
