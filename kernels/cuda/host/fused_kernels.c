/*
 * fused_kernels.c - selects the kernel for a fusion group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/fused_kernels.h"

#include <assert.h>

static_assert((int) FT_GROUP_LINEARS <= (int) FT_CUDA_MAX_FUSED,
              "kernels support all linears of a group");

/*
 * In order of preference.  Where the selected kernel does not compute the norm or QUANTIZE of a
 * group, that runs before it as a kernel of its own; likewise the gate and its linear run after it.
 */
static const ft_cuda_fused_kernel kernels[] = {
    { .name = "norm, groupwise gemv, gate",
      .kind = FT_FUSION_LINEAR,
      .norm = true,
      .gate = true,
      .supports = ft_cuda_group_decode_supports,
      .launch = ft_cuda_group_decode },
    { .name = "groupwise gemv, gate",
      .kind = FT_FUSION_LINEAR,
      .gate = true,
      .supports = ft_cuda_group_decode_supports,
      .launch = ft_cuda_group_decode },
    { .name = "norm, int8 gemv, gate, int8 gemv",
      .kind = FT_FUSION_LINEAR,
      .norm = true,
      .gate = true,
      .down = true,
      .supports = ft_cuda_group_int8_ffn_supports,
      .launch = ft_cuda_group_int8_ffn },
    { .name = "norm, int8 gemv",
      .kind = FT_FUSION_LINEAR,
      .norm = true,
      .supports = ft_cuda_group_int8_decode_supports,
      .launch = ft_cuda_group_int8_decode },
    { .name = "quantize, int8 gemv",
      .kind = FT_FUSION_LINEAR,
      .quantize = true,
      .supports = ft_cuda_group_int8_decode_supports,
      .launch = ft_cuda_group_int8_decode },
    { .name = "norm, f16 gemv, gate",
      .kind = FT_FUSION_LINEAR,
      .norm = true,
      .gate = true,
      .supports = ft_cuda_group_f16_decode_supports,
      .launch = ft_cuda_group_f16_decode },
    { .name = "groupwise",
      .kind = FT_FUSION_LINEAR,
      .supports = ft_cuda_group_groupwise_supports,
      .launch = ft_cuda_group_groupwise },
    { .name = "int8",
      .kind = FT_FUSION_LINEAR,
      .supports = ft_cuda_group_int8_supports,
      .launch = ft_cuda_group_int8 },
    { .name = "f16",
      .kind = FT_FUSION_LINEAR,
      .supports = ft_cuda_group_f16_supports,
      .launch = ft_cuda_group_f16 },
    { .name = "cuBLAS strided batch",
      .kind = FT_FUSION_LINEAR,
      .supports = ft_cuda_group_cublas_supports,
      .launch = ft_cuda_group_cublas },
    { .name = "store, attend",
      .kind = FT_FUSION_ATTENTION,
      .supports = ft_cuda_store_attend_supports,
      .launch = ft_cuda_store_attend },
};

/*
 * The part of a group that a kernel computes; false where the group lacks an operation that the
 * kernel needs. A kernel with a norm also runs without a gate.
 */
static bool restrict_to_kernel(ft_cuda_group *part, const ft_cuda_group *group,
                               const ft_cuda_fused_kernel *kernel)
{
    *part = *group;
    if (!kernel->norm)
        part->norm = NULL;
    if (!kernel->quantize)
        part->quantize = NULL;
    if (!kernel->gate)
        part->gate = NULL;
    if (!kernel->down)
        part->down = NULL;
    return part->kind == kernel->kind && (!kernel->norm || part->norm != NULL) &&
           (!kernel->quantize || part->quantize != NULL) &&
           (!kernel->gate || kernel->norm || part->gate != NULL) &&
           (!kernel->down || part->down != NULL);
}

const ft_cuda_fused_kernel *ft_cuda_fused_kernel_for(const ft_cuda_group *group,
                                                     ft_cuda_group *part)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (restrict_to_kernel(part, group, &kernels[i]) && kernels[i].supports(part))
            return &kernels[i];
    return NULL;
}
