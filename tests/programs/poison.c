/*
 * poison.c - write NaN or another number into a tensor of an artifact, for tests; the converter
 * refuses weights that are not finite.
 *
 *     poison ARTIFACT TENSOR ELEMENT [NUMBER]
 *
 * The tensor is F32, F16 or BF16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "runtime/container/artifact.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The offset of the element in the file, or -1 if there is none. */
static long find(const char *path, const char *name, size_t element, ft_dtype *dtype)
{
    ft_artifact *artifact;
    ft_error err;
    if (ft_artifact_open(&artifact, path, FT_VERIFY_STRUCTURE, &err) != FT_OK) {
        fprintf(stderr, "poison: %s\n", err.text);
        return -1;
    }
    const ft_artifact_tensor *tensor = ft_artifact_find(artifact, name);
    long at = -1;
    if (tensor != NULL && tensor->layout == FT_ROW) {
        *dtype = tensor->dtype;
        at = (long) (tensor->offset + element * ft_dtype_size(tensor->dtype));
    }
    ft_artifact_close(artifact);
    return at;
}

static bool put(const char *path, long at, ft_dtype dtype, float number)
{
    uint16_t half = dtype == FT_F16 ? ft_f16_from_float(number) : ft_bf16_from_float(number);
    FILE *file = fopen(path, "r+b");
    if (file == NULL)
        return false;
    bool fine =
        fseek(file, at, SEEK_SET) == 0 && fwrite(dtype == FT_F32 ? (const void *) &number : &half,
                                                 ft_dtype_size(dtype), 1, file) == 1;
    return fclose(file) == 0 && fine;
}

int main(int argc, char **argv)
{
    ft_dtype dtype = FT_F32;
    if (argc < 4 || argc > 5) {
        fputs("poison ARTIFACT TENSOR ELEMENT [NUMBER]\n", stderr);
        return 2;
    }
    long at = find(argv[1], argv[2], strtoul(argv[3], NULL, 10), &dtype);
    float number = argc > 4 ? strtof(argv[4], NULL) : NAN;
    bool fine = at >= 0 && (dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16) &&
                put(argv[1], at, dtype, number);
    if (!fine)
        fprintf(stderr, "poison: %s has no such element of %s\n", argv[1], argv[2]);
    return !fine;
}
