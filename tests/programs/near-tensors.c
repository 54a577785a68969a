/*
 * near-tensors.c - compare two safetensors files, floats within a tolerance.
 *
 *     near-tensors FOUND EXPECTED TOLERANCE
 *
 * Names, dtypes, shapes and integers must be equal.  Floats may differ by the tolerance times the
 * larger of 1 and the expected value.  Prints the first difference and exits with 1 if there is
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ft_safetensors *must_open(const char *path)
{
    ft_safetensors *st;
    ft_error err;
    if (ft_safetensors_open(&st, path, &err) == FT_OK)
        return st;
    fprintf(stderr, "near-tensors: %s\n", err.text);
    exit(2);
}

static bool same_shape(const ft_tensor *a, const ft_tensor *b)
{
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int i = 0; i < a->ndim && same; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* The index of the first element that differs, or the number of elements if none does. */
static size_t first_difference(const ft_tensor *a, const ft_tensor *b, double tolerance)
{
    size_t count = ft_tensor_numel(a), size = ft_dtype_size(a->dtype), i = 0;
    for (; i < count; i++) {
        float x, y;
        const char *found = (const char *) a->data + i * size;
        const char *expected = (const char *) b->data + i * size;
        if (memcmp(found, expected, size) == 0)
            continue;
        if (a->dtype != FT_F32)
            break;
        memcpy(&x, found, sizeof x);
        memcpy(&y, expected, sizeof y);
        if (!(fabs((double) x - (double) y) <= tolerance * fmax(1.0, fabs((double) y))))
            break;
    }
    return i;
}

static bool near(const ft_named_tensor *expected, const ft_tensor *found, double tolerance)
{
    if (found == NULL || !same_shape(found, &expected->tensor)) {
        printf("%s: %s\n", expected->name, found == NULL ? "is missing" : "has another shape");
        return false;
    }
    size_t at = first_difference(found, &expected->tensor, tolerance);
    if (at == ft_tensor_numel(found))
        return true;
    printf("%s: element %zu differs\n", expected->name, at);
    return false;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const ft_safetensors *found = must_open(argv[1]), *expected = must_open(argv[2]);
    bool fine = ft_safetensors_count(found) == ft_safetensors_count(expected);
    if (!fine)
        printf("%zu tensors, expected %zu\n", ft_safetensors_count(found),
               ft_safetensors_count(expected));
    for (size_t i = 0; i < ft_safetensors_count(expected); i++) {
        const ft_named_tensor *tensor = ft_safetensors_at(expected, i);
        fine &= near(tensor, ft_safetensors_find(found, tensor->name), atof(argv[3]));
    }
    return fine ? 0 : 1;
}
