/*
 * tune_gemm.c - the fastest kernel and tile for an INT8 GEMM on this device, for several numbers of
 * rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"
#include "runtime/error.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VARIANTS = 48, ROUNDS = 5 };

/* A variant that is slower by this factor in one round is not timed again. */
static const float hopeless = 1.25f;

/* Differences below this are noise, and the kernel of the table stays. */
static const float worth = 0.97f;

/* The table's choice first, then all variants but the reference kernel and cuBLASLt. */
static int init_candidates(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *candidate)
{
    ft_cuda_gemm_args gemm = ft_cuda_gemm_benchmark_args(c, &c->set[0]);
    ft_cuda_gemm_variant variant = { ft_cuda_gemm_select(c->props, &gemm), -1 };
    candidate[0] = (ft_cuda_candidate){ .variant = variant };
    int count = ft_cuda_candidate_capture(c, &candidate[0]);
    for (int i = 0; count > 0 && count < MAX_VARIANTS && ft_cuda_gemm_variant_at(i, &variant);
         i++) {
        candidate[count] = (ft_cuda_candidate){ .variant = variant };
        if (variant.kernel != FT_CUDA_GEMM_SIMT && variant.kernel != FT_CUDA_GEMM_CUBLASLT)
            count += ft_cuda_candidate_capture(c, &candidate[count]);
    }
    return count;
}

/* Keep the first candidate and those that are not hopeless; returns their number. */
static int drop_slow(ft_cuda_candidate *candidate, int count)
{
    int kept = 1;
    float best = candidate[0].median;
    for (int i = 1; i < count; i++)
        best = candidate[i].median < best ? candidate[i].median : best;
    for (int i = 1; i < count; i++) {
        if (candidate[i].median > hopeless * best) {
            ft_cuda_candidate_fini(&candidate[i]);
            continue;
        }
        ft_cuda_candidate keep = candidate[i];
        candidate[i] = (ft_cuda_candidate){ .graph = NULL };
        candidate[kept++] = keep;
    }
    return kept;
}

static void describe(const ft_cuda_candidate *candidate, ft_gemm_candidate *out)
{
    ft_cuda_gemm_variant_name(&candidate->variant, out->name, sizeof out->name);
    out->seconds = 1e-3 * (double) candidate->median;
}

/* For the rows of c->problem; no names: no kernel supports the GEMM. */
static int tune(ft_cuda_gemm_benchmark *c, ft_gemm_tuning *out)
{
    ft_cuda_candidate candidate[MAX_VARIANTS + 1] = { 0 };
    int count = init_candidates(c, candidate);
    int code = count > 0 ? ft_cuda_gemm_benchmark_run(c, candidate, count, 1) : 0;
    if (count > 0 && code == 0) {
        count = drop_slow(candidate, count);
        code = ft_cuda_gemm_benchmark_run(c, candidate, count, ROUNDS);
    }
    int best = 0;
    for (int i = 1; i < count; i++)
        if (candidate[i].median < candidate[best].median &&
            candidate[i].median < worth * candidate[0].median)
            best = i;
    if (count > 0 && code == 0) {
        describe(&candidate[0], &out->used);
        describe(&candidate[best], &out->fastest);
    }
    for (int i = 0; i < count; i++)
        ft_cuda_candidate_fini(&candidate[i]);
    return code;
}

ft_status ft_cuda_tune_gemm(ft_device *device, const ft_gemm_problem *problem, const size_t *rows,
                            size_t count, ft_gemm_tuning *out, ft_error *err)
{
    ft_gemm_problem one = *problem;
    ft_cuda_device_props props = device->props;
    ft_cuda_gemm_benchmark c;
    props.num_tuned = 0;
    memset(out, 0, count * sizeof *out);
    int code = ft_cuda_gemm_benchmark_init(&c, &props, &one);
    for (size_t i = 0; i < count && code == 0; i++) {
        one.m = rows[i];
        code = tune(&c, &out[i]);
    }
    ft_cuda_gemm_benchmark_fini(&c);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &device->props, code, "tuning of a GEMM");
}
