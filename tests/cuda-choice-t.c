/*
 * cuda-choice-t.c - which way computes an int8 product, and what is said of it; needs no device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

/* FT_CUDA_GEMM asks; what cannot be had is said. */
static void test_choice(void)
{
    static int8_t codes[64] __attribute__((aligned(64)));
    ft_cuda_chip chip = { .capability = 86, .multiprocessors = 84, .shared = 101376 };
    ft_cuda_product p = { .m = 64, .n = 64, .k = 64, .x = codes, .w = codes, .parts = 1 };
    char text[128];
    unsetenv("FT_CUDA_GEMM");
    ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
    is_str(text, "mma", "sm_86 multiplies by mma.sync");
    p.k = 50;
    ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
    is_str(text, "plain", "but not rows of 50 codes");
    setenv("FT_CUDA_GEMM", "mma", 1);
    ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
    is_str(text, "plain: FT_CUDA_GEMM=mma does not take it", "even if asked to, and says so");
    setenv("FT_CUDA_GEMM", "plain", 1);
    p.k = 64;
    ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
    is_str(text, "plain: FT_CUDA_GEMM asks for it", "FT_CUDA_GEMM=plain is heard");
    setenv("FT_CUDA_GEMM", "abacus", 1);
    ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
    is_str(text, "mma: FT_CUDA_GEMM=abacus is no way", "another word is said to be none");
    setenv("FT_CUDA_GEMM", "lt", 1);
    is_int(ft_cuda_gemm_choose(&chip, &p), FT_CUDA_GEMM_MMA, "no cuBLASLt without scratch");
    ok(ft_cuda_gemm_scratch(&chip, 64, 64, 64) > 0, "which is asked for where lt is");
    unsetenv("FT_CUDA_GEMM");
    is_int((long long) ft_cuda_gemm_scratch(&chip, 64, 64, 64), 0, "and nowhere else");
    chip.capability = 60;
    is_int(ft_cuda_gemm_choose(&chip, &p), FT_CUDA_GEMM_PLAIN, "old devices have the plain way");
    for (int how = 0; how < FT_CUDA_GEMMS; how++) {
        setenv("FT_CUDA_GEMM", ft_cuda_gemm_name((ft_cuda_gemm) how), 1);
        ft_cuda_gemm_explain(&chip, &p, text, sizeof text);
        ok(strstr(text, "is no way") == NULL, "FT_CUDA_GEMM knows %s",
           ft_cuda_gemm_name((ft_cuda_gemm) how));
    }
    unsetenv("FT_CUDA_GEMM");
}

int main(void)
{
    test_choice();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
