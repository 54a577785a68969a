/*
 * gemm-candidates.c - the names of the GEMM kernels that a tuning file may choose.
 *
 *     gemm-candidates int8|groupwise|f16
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <stdio.h>

#ifdef HAVE_CUDA

#include "kernels/cuda/gemm_family.h"
#include "runtime/mem.h"

#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const ft_cuda_gemm_family *family;
    } families[] = { { "int8", &ft_cuda_int8_family },
                     { "groupwise", &ft_cuda_groupwise_family },
                     { "f16", &ft_cuda_f16_family } };
    char kernel[FT_GEMM_KERNEL_NAME];
    for (size_t i = 0; argc == 2 && i < FT_COUNT(families); i++)
        for (int k = 0;
             strcmp(argv[1], families[i].name) == 0 && families[i].family->describe(k, kernel); k++)
            puts(kernel);
    return argc == 2 ? 0 : 2;
}

#else

int main(void)
{
    fputs("gemm-candidates: this build has no CUDA backend\n", stderr);
    return 1;
}

#endif
