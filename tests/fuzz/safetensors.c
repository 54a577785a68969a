/*
 * safetensors.c - fuzz target: arbitrary files parsed as safetensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* The tensors of an accepted file cover all data without gaps, and are found by name. */
static void check(const ft_safetensors *st, const uint8_t *end)
{
    const uint8_t *next = NULL;
    for (size_t i = 0; i < ft_safetensors_count(st); i++) {
        const ft_named_tensor *t = ft_safetensors_at(st, i);
        const uint8_t *data = t->tensor.data;
        require(next == NULL || data == next);
        next = data + ft_tensor_bytes(&t->tensor);
        require(*t->name != '\0' && ft_safetensors_find(st, t->name) == &t->tensor);
    }
    require(next == NULL || next == end);
}

static void parse(const uint8_t *file, size_t size)
{
    ft_error err = { .code = FT_OK };
    ft_safetensors *st;
    ft_status rc = ft_safetensors_parse(&st, "fuzz", file, size, &err);
    if (rc == FT_OK)
        check(st, file + size);
    else
        require(st == NULL && err.code == rc && strncmp(err.text, "fuzz: ", 6) == 0);
    ft_safetensors_close(st);
}

/*
 * Each input is tried as a file, and as "header, newline, data" with the correct length prepended:
 * a fuzzer would rarely find that length after changing the header.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    uint8_t *file = malloc(8 + size);
    if (newline == NULL || file == NULL) {
        free(file);
        return 0;
    }
    size_t header = (size_t) (newline - data), rest = size - header - 1;
    ft_store_le64(file, header);
    memcpy(file + 8, data, header);
    memcpy(file + 8 + header, newline + 1, rest);
    parse(file, 8 + header + rest);
    free(file);
    return 0;
}
