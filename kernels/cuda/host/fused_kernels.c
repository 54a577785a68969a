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
 * In order of preference.  Where the selected kernel does not compute the norm of a group, the norm
 * runs before it as a kernel of its own; likewise the gate runs after it.
 */
static const ft_cuda_fused_kernel kernels[] = {
    { "norm, groupwise gemv, gate", FT_FUSION_LINEAR, true, true, ft_cuda_group_decode_supports,
      ft_cuda_group_decode },
    { "groupwise gemv, gate", FT_FUSION_LINEAR, false, true, ft_cuda_group_decode_supports,
      ft_cuda_group_decode },
    { "groupwise", FT_FUSION_LINEAR, false, false, ft_cuda_group_groupwise_supports,
      ft_cuda_group_groupwise },
    { "int8", FT_FUSION_LINEAR, false, false, ft_cuda_group_int8_supports, ft_cuda_group_int8 },
    { "f16", FT_FUSION_LINEAR, false, false, ft_cuda_group_f16_supports, ft_cuda_group_f16 },
    { "cuBLAS strided batch", FT_FUSION_LINEAR, false, false, ft_cuda_group_cublas_supports,
      ft_cuda_group_cublas },
    { "store, attend", FT_FUSION_ATTENTION, false, false, ft_cuda_store_attend_supports,
      ft_cuda_store_attend },
};

/* The part of a group that a kernel computes; false where the group lacks that norm or gate. */
static bool restrict_to_kernel(ft_cuda_group *part, const ft_cuda_group *group,
                               const ft_cuda_fused_kernel *kernel)
{
    *part = *group;
    if (!kernel->norm)
        part->norm = NULL;
    if (!kernel->gate)
        part->gate = NULL;
    return part->kind == kernel->kind && (!kernel->norm || part->norm != NULL) &&
           (!kernel->gate || kernel->norm || part->gate != NULL);
}

const ft_cuda_fused_kernel *ft_cuda_fused_kernel_for(const ft_cuda_group *group,
                                                     ft_cuda_group *part)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (restrict_to_kernel(part, group, &kernels[i]) && kernels[i].supports(part))
            return &kernels[i];
    return NULL;
}
