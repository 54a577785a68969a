/*
 * pick-rows.c - select rows of a data file in any order, for tests.
 *
 *     pick-rows IN OUT FIRST:END...
 *
 * Writes rows FIRST to END - 1 of every tensor for each range in turn, or rows FIRST - 1 down to
 * END if FIRST is larger than END.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 16 };

typedef struct picked {
    size_t row[4096];
    size_t count;
} picked;

static bool take_range(picked *p, const char *text)
{
    char *end;
    size_t first = strtoul(text, &end, 10);
    if (*end != ':')
        return false;
    size_t last = strtoul(end + 1, NULL, 10);
    while (first != last && p->count < FT_COUNT(p->row))
        p->row[p->count++] = first < last ? first++ : --first;
    return first == last;
}

/* Replaces the data of a tensor with its selected rows, which the caller frees. */
static bool pick(ft_tensor *tensor, const picked *p)
{
    size_t rows = (size_t) tensor->dim[0], bytes = ft_tensor_bytes(tensor) / rows;
    char *data = ft_calloc_aligned(p->count * bytes);
    if (data == NULL)
        return false;
    for (size_t i = 0; i < p->count; i++) {
        if (p->row[i] >= rows) {
            free(data);
            return false;
        }
        memcpy(data + i * bytes, (const char *) tensor->data + p->row[i] * bytes, bytes);
    }
    tensor->dim[0] = (int64_t) p->count;
    tensor->data = data;
    return true;
}

int main(int argc, char **argv)
{
    static picked p;
    ft_named_tensor tensor[TENSORS];
    ft_safetensors *in;
    ft_error err = { 0 };
    bool fine = argc > 3 && ft_safetensors_open(&in, argv[1], &err) == FT_OK;
    if (!fine) {
        fprintf(stderr, "pick-rows IN OUT FIRST:END...; %s\n", err.text);
        return 1;
    }
    for (int i = 3; i < argc; i++)
        fine = fine && take_range(&p, argv[i]);
    size_t count = 0;
    while (fine && count < TENSORS && count < ft_safetensors_count(in)) {
        tensor[count] = *ft_safetensors_at(in, count);
        fine = pick(&tensor[count].tensor, &p);
        count += fine;
    }
    fine = fine && ft_safetensors_write(argv[2], tensor, count, true, &err) == FT_OK;
    while (count > 0)
        free(tensor[--count].tensor.data);
    ft_safetensors_close(in);
    if (!fine)
        fprintf(stderr, "pick-rows: %s: rows do not exist, or %s\n", argv[1], err.text);
    return !fine;
}
