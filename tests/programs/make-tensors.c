/*
 * make-tensors.c - a safetensors file of constants, for tests.
 *
 *     make-tensors OUT NAME:DTYPE:SHAPE=VALUE[,VALUE...]...      input_ids:I32:2,8=5
 *
 * DTYPE is I32, I64 or F32.  The last value fills all remaining elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 16 };

static bool parse_dtype(ft_dtype *out, const char *name)
{
    static const ft_dtype known[] = { FT_I32, FT_I64, FT_F32 };
    for (size_t i = 0; i < FT_COUNT(known); i++)
        if (strcmp(ft_dtype_name(known[i]), name) == 0) {
            *out = known[i];
            return true;
        }
    return false;
}

static void set(const ft_tensor *tensor, size_t i, double value)
{
    switch (tensor->dtype) {
    case FT_I32:
        ((int32_t *) tensor->data)[i] = (int32_t) value;
        break;
    case FT_I64:
        ((int64_t *) tensor->data)[i] = (int64_t) value;
        break;
    default:
        ((float *) tensor->data)[i] = (float) value;
        break;
    }
}

static void fill(const ft_tensor *tensor, char *values)
{
    size_t count = ft_tensor_numel(tensor);
    double value = 0.0;
    for (size_t i = 0; i < count; i++) {
        const char *next = strsep(&values, ",");
        value = next != NULL ? strtod(next, NULL) : value;
        set(tensor, i, value);
    }
}

/* Splits `text` in place; the tensor keeps a pointer to its name.  The caller frees the data. */
static bool make(ft_named_tensor *out, char *text)
{
    *out = (ft_named_tensor){ .name = strsep(&text, ":") };
    const char *dtype = strsep(&text, ":");
    char *shape = strsep(&text, "=");
    if (text == NULL || !parse_dtype(&out->tensor.dtype, dtype))
        return false;
    for (char *dim; out->tensor.ndim < FT_MAX_DIMS && (dim = strsep(&shape, ",")) != NULL;)
        out->tensor.dim[out->tensor.ndim++] = strtol(dim, NULL, 10);
    out->tensor.data = ft_calloc_aligned(ft_tensor_bytes(&out->tensor));
    if (out->tensor.data == NULL)
        return false;
    fill(&out->tensor, text);
    return true;
}

int main(int argc, char **argv)
{
    ft_named_tensor tensor[TENSORS];
    ft_error err = { 0 };
    size_t count = 0;
    bool fine = argc > 2 && argc - 2 <= TENSORS;
    for (int i = 2; fine && i < argc; i++)
        fine = make(&tensor[count++], argv[i]);
    fine = fine && ft_safetensors_write(argv[1], tensor, count, true, &err) == FT_OK;
    while (count > 0)
        free(tensor[--count].tensor.data);
    if (!fine)
        fprintf(stderr, "make-tensors OUT NAME:DTYPE:SHAPE=VALUE...; %s\n", err.text);
    return !fine;
}
