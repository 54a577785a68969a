/*
 * embed.c - token embeddings: each row is a sum of table rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

#include <string.h>

enum { BLOCK = 256 }; /* columns converted at a time: the buffer stays in the L1 cache */

/* out[first .. first + n) += the same columns of row `index` of the table, times `scale`. */
static void add_table_row(const ft_row_kernels *rows, float *out, const ft_weight *table,
                          int32_t index, float scale, size_t first, size_t n)
{
    size_t element = (size_t) index * table->cols + first;
    float buffer[BLOCK];
    rows->to_float(buffer, (const char *) table->data + element * ft_dtype_size(table->dtype),
                   table->dtype, n);
    for (size_t i = 0; scale != 1.0f && i < n; i++)
        buffer[i] = buffer[i] * scale;
    rows->add(out + first, out + first, buffer, n);
}

/*
 * A negative index -1 - slot stands for the token last sampled in that slot. Without an input of
 * positions, those of the tokens in their sequences are used.
 */
static int32_t index_of(const ft_args *args, int input, size_t row)
{
    if (args->in[input].data == NULL)
        return args->op->attr.position_offset + (int32_t) ft_row_position(args->batch, row);
    int32_t index = ((const int32_t *) args->in[input].data)[row];
    return index >= 0 ? index
                      : ((const int32_t *) args->state[FT_STATE_LAST_TOKEN].data)[-1 - index];
}

static void embed_rows(const void *job, int thread, size_t first_row, size_t end)
{
    const ft_args *args = job;
    size_t cols = args->out.cols;
    for (size_t row = first_row; row < end; row++) {
        float *out = ft_row_output(&args->out, row, ft_row_buffer(args, thread, 0));
        memset(out, 0, cols * sizeof *out);
        for (int i = 0; i < FT_MAX_IN; i++)
            for (size_t first = 0; args->weight[i] != NULL && first < cols; first += BLOCK)
                add_table_row(args->rows, out, args->weight[i], index_of(args, i, row),
                              i == 0 ? args->op->attr.embed_scale : 1.0f, first,
                              cols - first < BLOCK ? cols - first : BLOCK);
        ft_row_flush(args, &args->out, row, out);
    }
}

void ft_cpu_embed(const ft_args *args)
{
    ft_parallel_rows(args, args->out.rows, args->out.cols, embed_rows);
}
