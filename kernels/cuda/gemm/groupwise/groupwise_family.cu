/*
 * groupwise_family.cu - the group-wise GEMM kernels and their tiles as candidates of the tuner.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_variant.h"
#include "kernels/groupwise.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static bool computes(const ft_gemm_problem *p)
{
    return ft_groupwise_bits(p->w) != 0;
}

static bool describe(int candidate, char name[FT_GEMM_KERNEL_NAME])
{
    if (ft_cuda_groupwise_variant_at(candidate) == NULL)
        return false;
    snprintf(name, FT_GEMM_KERNEL_NAME, "%s", ft_cuda_groupwise_variant_name(candidate));
    return true;
}

/* ---- Operands ----------------------------------------------------------------------------- */

static void measure(const ft_cuda_device_props *props, ft_cuda_gemm_operands *out)
{
    const ft_gemm_problem *p = out->problem;
    ft_groupwise params = {};
    params.group = p->group;
    size_t scales = ft_groupwise_scale_count(&params, p->n, p->k);
    out->bytes[FT_CUDA_GEMM_X] = p->m * p->k * ft_dtype_size(p->x);
    out->bytes[FT_CUDA_GEMM_W] = ft_panel_bytes(p->n, p->k, ft_groupwise_bits(p->w));
    out->bytes[FT_CUDA_GEMM_SCALE] = scales * sizeof(uint16_t);
    out->bytes[FT_CUDA_GEMM_ZERO] = p->zero_points ? scales : 0;
    out->bytes[FT_CUDA_GEMM_BIAS] = p->n * sizeof(float);
    out->bytes[FT_CUDA_GEMM_Y] = p->m * p->n * ft_dtype_size(p->y);
    out->bytes[FT_CUDA_GEMM_SCRATCH] =
        ft_cuda_groupwise_scratch(props, p->m, p->n, p->k, p->x, p->int8_activations);
    out->bytes[FT_CUDA_GEMM_COUNTERS] = FT_CUDA_GROUPWISE_COUNTERS * sizeof(uint32_t);
}

/* One matrix: panels of several ones are numbered across all of them, too. */
static ft_cuda_groupwise_args args_of(const ft_cuda_gemm_operands *o)
{
    const ft_gemm_problem *p = o->problem;
    ft_cuda_groupwise_args args = {};
    args.m = p->m;
    args.k = p->k;
    args.x = o->data[FT_CUDA_GEMM_X];
    args.x_dtype = p->x;
    args.y_dtype = p->y;
    args.bits = ft_groupwise_bits(p->w);
    args.group = p->group;
    args.int8_activations = p->int8_activations;
    args.activation = p->activation;
    args.n_linears = 1;
    args.linear[0].rows = p->n;
    args.linear[0].w = (const char *) o->data[FT_CUDA_GEMM_W];
    args.linear[0].scale = (const uint16_t *) o->data[FT_CUDA_GEMM_SCALE];
    args.linear[0].zero = (const uint8_t *) o->data[FT_CUDA_GEMM_ZERO];
    args.linear[0].bias = (const float *) o->data[FT_CUDA_GEMM_BIAS];
    args.linear[0].y = o->data[FT_CUDA_GEMM_Y];
    args.scratch = o->data[FT_CUDA_GEMM_SCRATCH];
    args.scratch_bytes = o->bytes[FT_CUDA_GEMM_SCRATCH];
    args.counters = (uint32_t *) o->data[FT_CUDA_GEMM_COUNTERS];
    return args;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static int select_variant(const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    ft_cuda_device_props untuned = *props;
    untuned.num_tuned = 0;
    ft_cuda_groupwise_args args = args_of(o);
    ft_cuda_groupwise_variant selected =
        ft_cuda_groupwise_variant_of(ft_cuda_groupwise_select(&untuned, &args), props, &args);
    const ft_cuda_groupwise_variant *v;
    for (int i = 0; (v = ft_cuda_groupwise_variant_at(i)) != NULL; i++)
        if (v->kernel == selected.kernel && v->tile == selected.tile &&
            ft_cuda_groupwise_variant_supports(v, props, &args))
            return i;
    return -1;
}

static bool fits(int candidate, const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    ft_cuda_groupwise_args args = args_of(o);
    return ft_cuda_groupwise_variant_supports(ft_cuda_groupwise_variant_at(candidate), props,
                                              &args);
}

static int launch(int candidate, const ft_cuda_device_props *props, void *stream,
                  const ft_cuda_gemm_operands *o)
{
    ft_cuda_groupwise_args args = args_of(o);
    return ft_cuda_groupwise_variant_launch(ft_cuda_groupwise_variant_at(candidate), props, stream,
                                            &args);
}

extern "C" const ft_cuda_gemm_family ft_cuda_groupwise_family = { computes, describe,       measure,
                                                                  NULL,     select_variant, fits,
                                                                  launch };
