/*
 * padded_batch.c - the caller's padded inputs [sequences, positions], and packing without padding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/padded_batch.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_padded_batch_init(ft_padded_batch *p, const ft_padded_batch_limits *limits,
                               ft_error *err)
{
    *p = (ft_padded_batch){ .limits = *limits };
    p->start = ft_calloc(limits->sequences + 1, sizeof *p->start);
    p->index = ft_calloc(limits->tokens, sizeof *p->index);
    if (p->start == NULL || p->index == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session of %zu tokens", limits->tokens);
    return FT_OK;
}

static void clear_input(ft_padded_batch *p, int input)
{
    free(p->input[input].data);
    p->input[input].data = NULL;
}

void ft_padded_batch_fini(ft_padded_batch *p)
{
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        clear_input(p, i);
    free(p->start);
    free(p->index);
}

/* ---- Inputs ------------------------------------------------------------------------------- */

int ft_padded_batch_find_input(const ft_padded_batch *p, const char *name)
{
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        if (p->limits.name[i] != NULL && strcmp(p->limits.name[i], name) == 0)
            return i;
    return -1;
}

static ft_status check_input(const ft_padded_batch *p, int input, const ft_tensor *tensor,
                             ft_error *err)
{
    const ft_padded_batch_limits *limits = &p->limits;
    const char *name = limits->name[input];
    char shape[FT_SHAPE_TEXT];
    ft_shape_text(shape, tensor->ndim, tensor->dim);
    if (tensor->dtype != FT_I32 && tensor->dtype != FT_I64)
        return ft_fail(err, FT_EARG, "%s: dtype %s, expected I32 or I64", name,
                       ft_dtype_name(tensor->dtype));
    if (tensor->ndim != 2 || ft_tensor_numel(tensor) == 0)
        return ft_fail(err, FT_ESHAPE, "%s: shape %s, expected [sequences, positions]", name,
                       shape);
    if (input != FT_INPUT_IDS &&
        ((size_t) tensor->dim[0] != p->rows || (size_t) tensor->dim[1] != p->cols))
        return ft_fail(err, FT_ESHAPE, "%s: shape %s, expected that of %s [%zu, %zu]", name, shape,
                       limits->name[FT_INPUT_IDS], p->rows, p->cols);
    if ((size_t) tensor->dim[0] > limits->sequences)
        return ft_fail(err, FT_ELIMIT, "%s: %" PRId64 " sequences, but the session allows %zu",
                       name, tensor->dim[0], limits->sequences);
    if (tensor->dim[1] > limits->positions)
        return ft_fail(err, FT_ELIMIT,
                       "%s: sequences of %" PRId64 " positions, but the %s has %" PRId64, name,
                       tensor->dim[1], limits->limited_by, limits->positions);
    return FT_OK;
}

static ft_status check_mask(const char *name, const ft_tensor *mask, ft_error *err)
{
    size_t cols = (size_t) mask->dim[1];
    for (size_t i = 0; i < ft_tensor_numel(mask); i++) {
        int64_t number = ft_tensor_get_i64(mask, i);
        if (number != 0 && number != 1)
            return ft_fail(err, FT_EARG, "%s[%zu][%zu]: %" PRId64 ", expected 0 or 1", name,
                           i / cols, i % cols, number);
    }
    return FT_OK;
}

bool ft_padded_batch_has(const ft_padded_batch *p, int input)
{
    return p->input[input].data != NULL;
}

ft_status ft_padded_batch_set(ft_padded_batch *p, int input, const ft_tensor *tensor, ft_error *err)
{
    const char *const *name = p->limits.name;
    if (input != FT_INPUT_IDS && !ft_padded_batch_has(p, FT_INPUT_IDS))
        return ft_fail(err, FT_EARG, "%s: set %s first", name[input], name[FT_INPUT_IDS]);
    FT_TRY(check_input(p, input, tensor, err));
    if (input == FT_INPUT_MASK)
        FT_TRY(check_mask(name[input], tensor, err));
    void *copy = ft_calloc(ft_tensor_bytes(tensor), 1);
    if (copy == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu elements", name[input],
                       ft_tensor_numel(tensor));
    memcpy(copy, tensor->data, ft_tensor_bytes(tensor));
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        if (i == input || input == FT_INPUT_IDS)
            clear_input(p, i);
    p->input[input] = *tensor;
    p->input[input].data = copy;
    p->rows = (size_t) tensor->dim[0];
    p->cols = (size_t) tensor->dim[1];
    return FT_OK;
}

void ft_padded_batch_fill(ft_padded_batch *p, size_t rows, size_t cols)
{
    p->rows = rows;
    p->cols = p->longest = cols;
    p->tokens = rows * cols;
    for (size_t row = 0; row <= rows; row++)
        p->start[row] = (int32_t) (row * cols);
    for (size_t i = 0; i < p->tokens; i++)
        p->index[i] = i;
}

/* ---- Rows --------------------------------------------------------------------------------- */

static bool is_token(const ft_padded_batch *p, size_t index)
{
    return !ft_padded_batch_has(p, FT_INPUT_MASK) ||
           ft_tensor_get_i64(&p->input[FT_INPUT_MASK], index) != 0;
}

/* Pack one sequence. */
static ft_status pack_row(ft_padded_batch *p, size_t row, ft_error *err)
{
    const char *const *name = p->limits.name;
    size_t before = p->tokens;
    p->start[row] = (int32_t) before;
    for (size_t col = 0; col < p->cols; col++) {
        size_t index = row * p->cols + col;
        if (!is_token(p, index))
            continue;
        if (p->tokens == p->limits.tokens)
            return ft_fail(err, FT_ELIMIT, "%s: more than the %zu tokens that the session allows",
                           name[FT_INPUT_IDS], p->limits.tokens);
        p->index[p->tokens++] = index;
    }
    if (p->tokens == before)
        return ft_fail(err, FT_EARG, "%s: sequence %zu has no token", name[FT_INPUT_MASK], row);
    if (p->index[before] != row * p->cols && p->limits.needs_first_token)
        return ft_fail(err, FT_EARG,
                       "%s: sequence %zu masks its first token, which the model pools",
                       name[FT_INPUT_MASK], row);
    if (p->longest < p->tokens - before)
        p->longest = p->tokens - before;
    return FT_OK;
}

ft_status ft_padded_batch_pack(ft_padded_batch *p, ft_error *err)
{
    if (!ft_padded_batch_has(p, FT_INPUT_IDS))
        return ft_fail(err, FT_EARG, "%s is not set", p->limits.name[FT_INPUT_IDS]);
    p->tokens = p->longest = 0;
    for (size_t row = 0; row < p->rows; row++)
        FT_TRY(pack_row(p, row, err));
    p->start[p->rows] = (int32_t) p->tokens;
    return FT_OK;
}

ft_status ft_padded_batch_packed_ids(const ft_padded_batch *p, int input, int32_t bound,
                                     int32_t *out, ft_error *err)
{
    bool is_set = ft_padded_batch_has(p, input);
    for (size_t i = 0; i < p->tokens; i++) {
        size_t index = p->index[i];
        int64_t number = is_set ? ft_tensor_get_i64(&p->input[input], index) : 0;
        if (number < 0 || number >= bound)
            return ft_fail(err, FT_EARG, "%s[%zu][%zu]: %" PRId64 " is outside 0 to %d",
                           p->limits.name[input], index / p->cols, index % p->cols, number,
                           bound - 1);
        out[i] = (int32_t) number;
    }
    return FT_OK;
}

void ft_padded_batch_positions(const ft_padded_batch *p, int32_t offset, int32_t padding_id,
                               int32_t *out)
{
    const ft_tensor *ids = &p->input[FT_INPUT_IDS];
    size_t next = 0; /* tokens before this index are counted */
    int32_t counted = 0;
    for (size_t i = 0; i < p->tokens; i++) {
        size_t index = p->index[i], column = index % p->cols;
        if (next <= index - column) {
            next = index - column;
            counted = 0;
        }
        for (; next < index; next++)
            counted += ft_tensor_get_i64(ids, next) != padding_id;
        if (offset == 0)
            out[i] = (int32_t) column;
        else if (ft_tensor_get_i64(ids, index) == padding_id)
            out[i] = padding_id;
        else
            out[i] = offset + counted;
    }
}

/* From the last row to the first, so that no row is overwritten before it is moved. */
void ft_padded_batch_unpack(const ft_padded_batch *p, float *values, size_t cols)
{
    size_t index = p->rows * p->cols;
    for (size_t i = p->tokens; i-- > 0;) {
        for (index--; index > p->index[i]; index--)
            memset(values + index * cols, 0, cols * sizeof *values);
        memmove(values + index * cols, values + i * cols, cols * sizeof *values);
    }
    memset(values, 0, index * cols * sizeof *values);
}
