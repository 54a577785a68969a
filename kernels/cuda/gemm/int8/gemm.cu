/*
 * gemm.cu - INT8 GEMM kernel selection.
 *
 * Every kernel returns the same bits, so the choice only affects time. It is a table of device kind
 * and shape, and deterministic for a shape. FT_CUDA_GEMM=plain|mma|lt|wgmma|stream
 * requests a kernel; where that kernel does not support a GEMM, the table decides and
 * ft_cuda_gemm_explain() reports it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

/* Name, support predicate and launcher of each kernel. */
typedef struct gemm_way {
    const char *name;
    bool (*takes)(const ft_cuda_chip *chip, const ft_cuda_product *p);
    int (*launch)(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
} gemm_way;

static const gemm_way ways[FT_CUDA_GEMMS] = {
    { "plain", ft_cuda_gemm_plain_takes, ft_cuda_gemm_plain },
    { "mma", ft_cuda_gemm_mma_takes, ft_cuda_gemm_mma },
    { "lt", ft_cuda_gemm_lt_takes, ft_cuda_gemm_lt },
    { "wgmma", ft_cuda_gemm_wgmma_takes, ft_cuda_gemm_wgmma },
    { "stream", ft_cuda_gemm_stream_takes, ft_cuda_gemm_stream },
};

/* Kernels for a device kind and up to so many rows and columns, in order of preference. */
typedef struct gemm_rule {
    int capability; /* minimum compute capability */
    size_t rows, columns;
    ft_cuda_gemm order[4];
} gemm_rule;

/*
 * sm_90: with up to 8 rows the GEMM is bound by reading weights. One persistent thread block per
 * SM, which prefetches across launches, is best for matrices up to about 50 MB; for larger ones
 * mma.sync with many thread blocks keeps more loads in flight. H200, gemv.cu against mma.sync in
 * us: 1 x 4096 x 4096 5.1 and 6.8, 1 x 4096 x 11008 13.2 and 13.2, 4 x 4096 x 11008 12.4 and 13.8,
 * 1 x 6144 x 4096 8.1 and 8.5, 1 x 12288 x 4096 15.1 and 13.4, 1 x 22016 x 4096 24.8 and 23.4 (the
 * bandwidth roofline is 20.4). With more rows wgmma is faster: 16 x 4096 x 4096 6.4 us against 8.4,
 * 16 x 4096 x 11008 12.8 against 19.8.
 *
 * sm_75: mma.sync has no cp.async there, so cuBLASLt comes first for many rows although its int32
 * accumulators go through memory. Not measured.
 *
 * Elsewhere mma.sync: its epilogue is fused, and a round trip of the accumulators through memory
 * costs more than the GEMM itself.
 */
static const gemm_rule rules[] = {
    { 100, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_PLAIN } },
    { 90,
      8,
      8192,
      { FT_CUDA_GEMM_STREAM, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_PLAIN } },
    { 90,
      8,
      SIZE_MAX,
      { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_STREAM, FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_PLAIN } },
    { 90, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_PLAIN } },
    { 80, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_PLAIN } },
    { 75, 256, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_PLAIN } },
    { 75, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_LT, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_PLAIN } },
    { 0, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_PLAIN } },
};

static bool takes(ft_cuda_gemm how, const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    return ways[how].takes(chip, p);
}

/* The emulation of cuBLASLt's layouts (sm_90) runs only on request. */
static bool is_offered(ft_cuda_gemm how, const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    return takes(how, chip, p) && (how != FT_CUDA_GEMM_LT || chip->has_imma);
}

static ft_cuda_gemm tabulated(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    const gemm_rule *rule = rules;
    while (chip->capability < rule->capability || p->m > rule->rows || p->n > rule->columns)
        rule++;
    for (ft_cuda_gemm how : rule->order) {
        if (is_offered(how, chip, p))
            return how;
    }
    /* only prepacked weights exist */
    return FT_CUDA_GEMM_WGMMA;
}

static const char *asked_name(void)
{
    const char *name = getenv("FT_CUDA_GEMM");
    return name != NULL && *name != '\0' ? name : NULL;
}

/* The kernel of this name, or FT_CUDA_GEMMS. */
static int way_named(const char *name)
{
    int how = 0;
    while (how < FT_CUDA_GEMMS && strcmp(name, ways[how].name) != 0)
        how++;
    return how;
}

/* ------------------------------------------------------------------------------------------ */

extern "C" bool ft_cuda_gemm_asked(const ft_cuda_chip *chip, const ft_cuda_product *p,
                                   ft_cuda_gemm *how)
{
    const char *name = asked_name();
    int asked = name == NULL ? FT_CUDA_GEMMS : way_named(name);
    if (asked == FT_CUDA_GEMMS || !takes((ft_cuda_gemm) asked, chip, p))
        return false;
    *how = (ft_cuda_gemm) asked;
    return true;
}

extern "C" ft_cuda_gemm ft_cuda_gemm_choose(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    ft_cuda_gemm asked;
    return ft_cuda_gemm_asked(chip, p, &asked) ? asked : tabulated(chip, p);
}

extern "C" void ft_cuda_gemm_explain(const ft_cuda_chip *chip, const ft_cuda_product *p, char *text,
                                     size_t size)
{
    const char *name = asked_name(), *chosen = ways[ft_cuda_gemm_choose(chip, p)].name;
    if (name == NULL)
        snprintf(text, size, "%s", chosen);
    else if (way_named(name) == FT_CUDA_GEMMS)
        snprintf(text, size, "%s: FT_CUDA_GEMM=%s is not a kernel", chosen, name);
    else if (strcmp(name, chosen) != 0)
        snprintf(text, size, "%s: FT_CUDA_GEMM=%s does not support it", chosen, name);
    else
        snprintf(text, size, "%s: requested by FT_CUDA_GEMM", chosen);
}

extern "C" bool ft_cuda_product_adds_up(const ft_cuda_product *p)
{
    size_t columns = 0;
    if (p->parts < 1 || p->parts > FT_CUDA_PARTS)
        return false;
    for (int i = 0; i < p->parts; i++)
        columns += p->width[i];
    return columns == p->n;
}

extern "C" int ft_cuda_gemm_run(ft_cuda_gemm how, const ft_cuda_chip *chip, void *stream,
                                const ft_cuda_product *p)
{
    if (!ft_cuda_product_adds_up(p))
        return (int) cudaErrorInvalidValue;
    if ((int) how < 0 || how >= FT_CUDA_GEMMS || !takes(how, chip, p))
        return (int) cudaErrorNotSupported;
    return ways[how].launch(chip, stream, p);
}

extern "C" const char *ft_cuda_gemm_name(ft_cuda_gemm how)
{
    return (int) how >= 0 && how < FT_CUDA_GEMMS ? ways[how].name : "?";
}

extern "C" size_t ft_cuda_gemm_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k)
{
    const char *name = asked_name();
    bool asked = name != NULL && way_named(name) == FT_CUDA_GEMM_LT;
    bool offered = chip->has_imma && chip->capability < 80;
    return asked || offered ? ft_cuda_gemm_lt_scratch(chip, m, n, k) : 0;
}
