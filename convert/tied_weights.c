/*
 * tied_weights.c - compare tied and computed weights with their copies in the checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tied_weights.h"

#include "convert/dtype_convert.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/sinusoids.h"
#include "runtime/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool contains(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

bool ft_is_tied_or_computed(const ft_architecture *architecture, const char *name)
{
    return contains(architecture->tied_embeddings, name) ||
           contains(architecture->stored_sinusoids, name);
}

/* ---- Token embeddings ----------------------------------------------------------------------- */

enum { BLOCK_BYTES = 1 << 20 }; /* bytes compared at once */

bool ft_tensors_equal(const ft_checkpoint *checkpoint, const ft_tensor *a, const ft_tensor *b)
{
    const unsigned char *left = a->data, *right = b->data;
    size_t bytes = ft_tensor_bytes(a), chunk;
    bool same = a->dtype == b->dtype && a->ndim == b->ndim &&
                memcmp(a->dim, b->dim, (size_t) a->ndim * sizeof a->dim[0]) == 0;
    for (size_t done = 0; same && done < bytes; done += chunk) {
        chunk = ft_min_size(bytes - done, BLOCK_BYTES);
        same = memcmp(left + done, right + done, chunk) == 0;
        ft_checkpoint_release(checkpoint, left + done, chunk);
        ft_checkpoint_release(checkpoint, right + done, chunk);
    }
    return same;
}

const char *ft_tied_embedding_find(const ft_checkpoint *checkpoint,
                                   const ft_architecture *architecture, const char *own,
                                   ft_messages *problems)
{
    const ft_tensor *table = ft_checkpoint_find(checkpoint, own), *copy;
    const char *found = own;
    for (const char *const *name = architecture->tied_embeddings; name != NULL && *name != NULL;
         name++) {
        if ((copy = ft_checkpoint_find(checkpoint, *name)) == NULL)
            continue;
        if (table == NULL) {
            table = copy;
            found = *name;
        } else if (!ft_tensors_equal(checkpoint, table, copy)) {
            ft_messages_add(
                problems, FT_EUNSUPPORTED,
                "%s: %s: differs from %s; separate embeddings of encoder and decoder are "
                "not supported",
                ft_checkpoint_file_of(checkpoint, *name), *name, found);
        }
    }
    return found;
}

/* ---- Positions ------------------------------------------------------------------------------ */

/*
 * Half a unit in the last place below 1 in the stored dtype, plus a margin for sines computed by
 * another implementation. A table of a different formula differs by 0.1 or more.
 */
static float tolerance_of(ft_dtype dtype)
{
    return 1e-4f + (dtype == FT_F16 ? 0x1p-12f : dtype == FT_BF16 ? 0x1p-9f : 0.0f);
}

/* Check that the stored row `row` equals the formula's. */
static ft_status compare_row(ft_tensor_reader *reader, const ft_config *config, int32_t row,
                             float *found, ft_error *err)
{
    size_t cols = (size_t) config->hidden, produced;
    float *expected = found + cols;
    FT_TRY(ft_tensor_reader_read(reader, found, cols * sizeof *found, &produced, err));
    ft_sinusoids_write_rows(expected, config, row, 1);
    for (size_t i = 0; i < cols; i++)
        if (!(fabsf(found[i] - expected[i]) <= tolerance_of(reader->tensor->dtype)))
            return ft_fail(err, FT_EUNSUPPORTED,
                           "%s: %s: %g at [%d, %zu], expected the sinusoid %g",
                           ft_checkpoint_file_of(reader->checkpoint, reader->source),
                           reader->source, (double) found[i], row, i, (double) expected[i]);
    return FT_OK;
}

static ft_status compare_table(const ft_checkpoint *checkpoint, const char *name,
                               const ft_config *config, float *rows, ft_error *err)
{
    const ft_tensor *table = ft_checkpoint_find(checkpoint, name);
    const int64_t dim[2] = { config->positions, config->hidden };
    char found[FT_SHAPE_TEXT], expected[FT_SHAPE_TEXT];
    if (table->ndim != 2 || memcmp(table->dim, dim, sizeof dim) != 0)
        return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected %s",
                       ft_checkpoint_file_of(checkpoint, name), name,
                       ft_shape_text(found, table->ndim, table->dim),
                       ft_shape_text(expected, 2, dim));
    if (!ft_dtype_convert_supports(table->dtype))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: %s: dtype %s, expected F32, F16, BF16 or F64",
                       ft_checkpoint_file_of(checkpoint, name), name, ft_dtype_name(table->dtype));
    ft_tensor_reader reader = { checkpoint, name, FT_SINUSOIDS_WEIGHT, table, FT_F32, 0 };
    for (int32_t row = 0; row < config->positions; row++)
        FT_TRY(compare_row(&reader, config, row, rows, err));
    return FT_OK;
}

void ft_stored_positions_check(const ft_checkpoint *checkpoint, const ft_architecture *architecture,
                               const ft_config *config, ft_messages *problems)
{
    if (architecture->stored_sinusoids == NULL)
        return;
    ft_error err;
    float *rows = ft_calloc(2 * (size_t) config->hidden, sizeof *rows);
    if (rows == NULL) {
        ft_messages_add(problems, FT_ENOMEM, "no memory for a row of positions");
        return;
    }
    for (const char *const *name = architecture->stored_sinusoids; *name != NULL; name++)
        if (ft_checkpoint_find(checkpoint, *name) != NULL &&
            compare_table(checkpoint, *name, config, rows, &err) != FT_OK)
            ft_messages_add_error(problems, &err);
    free(rows);
}
