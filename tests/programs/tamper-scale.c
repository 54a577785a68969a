/*
 * tamper-scale.c - make one scale of a quantized artifact wrong, for tests of ft-inspect --diff.
 *
 *     tamper-scale IN OUT SEED
 *
 * Multiplies or divides by 4 the range of an activation, the scales of some rows of a matrix or of
 * one of its groups, or all scales of a matrix; SEED decides.  Prints the name of the point or
 * matrix, then what was done.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "runtime/container/amax.h"
#include "runtime/container/artifact.h"
#include "runtime/container/identifier.h"
#include "tests/lib/folder.h"
#include "tests/lib/forge.h"
#include "tests/lib/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR = 4, MAX_ROWS = 16, PANEL = 32 };

static void fail(const char *text)
{
    fprintf(stderr, "tamper-scale: %s\n", text);
    exit(1);
}

/* ---- Ranges -------------------------------------------------------------------------------- */

/* A random range; where scales are per token nothing uses it. */
static ft_amax_entry *pick_range(ft_amax_table *table, rng *random)
{
    uint32_t count = 0;
    ft_amax_entry *found = NULL;
    for (size_t i = 0; i < table->count; i++)
        if (!ft_amax_entry_is_per_token(&table->entry[i]) && rng_below(random, ++count) == 0)
            found = &table->entry[i];
    if (found == NULL)
        fail("no range in use");
    return found;
}

static void tamper_range(forge *f, rng *random)
{
    const forge_entry *entry = forge_find(f, FT_AMAX_ENTRY);
    ft_amax_table *table;
    ft_error err;
    char *text;
    size_t bytes;
    if (ft_amax_table_parse(&table, FT_AMAX_ENTRY, entry->data, entry->bytes, &err) != FT_OK)
        fail(err.text);
    ft_amax_entry *changed = pick_range(table, random);
    bool larger = rng_below(random, 2) == 1;
    changed->amax = larger ? changed->amax * FACTOR : changed->amax / FACTOR;
    printf("%s range %s %d\n", changed->name, larger ? "times" : "divided by", FACTOR);
    if (ft_amax_table_format(table, &text, &bytes, &err) != FT_OK)
        fail(err.text);
    forge_put(f, FT_AMAX_ENTRY, text, bytes, true);
    free(text);
    ft_amax_table_free(table);
}

/* ---- Matrices ------------------------------------------------------------------------------ */

/* A random entry of float scales. */
static forge_entry *pick_scales(const forge *f, rng *random)
{
    size_t count = 0, prefix = strlen(FT_SCALE_PREFIX);
    forge_entry *found = NULL;
    for (size_t i = 0; i < f->count; i++)
        if (strncmp(f->entry[i].name, FT_SCALE_PREFIX, prefix) == 0 &&
            rng_below(random, (uint32_t) ++count) == 0)
            found = &f->entry[i];
    return found;
}

/* The manifest's words for the matrix of an entry of scales. */
static const json_t *matrix_of(const forge *f, const forge_entry *scales)
{
    size_t i;
    const json_t *tensor;
    json_array_foreach(json_object_get(f->manifest, "tensors"), i,
                       tensor) if (strcmp(json_string_value(json_object_get(tensor, "name")),
                                          scales->name + strlen(FT_SCALE_PREFIX)) ==
                                   0) return tensor;
    fail("scales of no tensor");
    return NULL;
}

static void multiply(forge_entry *entry, size_t index, bool is_f16, float factor)
{
    if (is_f16) {
        uint16_t *scale = (uint16_t *) (void *) entry->data + index;
        *scale = ft_f16_from_float(ft_float_from_f16(*scale) * factor);
    } else {
        ((float *) (void *) entry->data)[index] *= factor;
    }
}

/*
 * Scales of I8 are F32, one per row; those of groups are F16, group by group, with the rows of each
 * padded.
 */
static void tamper_matrix(forge *f, rng *random)
{
    forge_entry *entry = pick_scales(f, random);
    if (entry == NULL)
        fail("no scales");
    const json_t *matrix = matrix_of(f, entry);
    bool is_groupwise = json_object_get(matrix, "group") != NULL;
    uint32_t rows =
        (uint32_t) json_integer_value(json_array_get(json_object_get(matrix, "shape"), 0));
    uint32_t stride = is_groupwise ? (rows + PANEL - 1) / PANEL * PANEL : rows;
    uint32_t groups = is_groupwise ? (uint32_t) (entry->bytes / sizeof(uint16_t) / stride) : 1;
    bool all = rng_below(random, 2) == 1, larger = rng_below(random, 2) == 1;
    uint32_t first = all ? 0 : rng_below(random, rows), count = all ? rows : 1;
    if (!all)
        count = 1 + rng_below(random, rows - first < MAX_ROWS ? rows - first : MAX_ROWS);
    uint32_t group = all || groups == 1 ? 0 : rng_below(random, groups);
    uint32_t end_group = all ? groups : group + 1;
    for (uint32_t g = group; g < end_group; g++)
        for (uint32_t i = first; i < first + count; i++)
            multiply(entry, (size_t) g * stride + i, is_groupwise,
                     larger ? (float) FACTOR : 1.0f / FACTOR);
    printf("%s %u of %u scales from row %u, groups %u to %u of %u, %s %d\n",
           entry->name + strlen(FT_SCALE_PREFIX), count, rows, first, group, end_group - 1, groups,
           larger ? "times" : "divided by", FACTOR);
}

int main(int argc, char **argv)
{
    forge f;
    size_t bytes;
    if (argc != 4) {
        fputs("tamper-scale IN OUT SEED\n", stderr);
        return 2;
    }
    rng random = { strtoull(argv[3], NULL, 10) };
    unsigned char *data = folder_read(argv[1], &bytes);
    if (!forge_read(&f, data, bytes))
        fail("not an artifact");
    bool has_ranges = forge_find(&f, FT_AMAX_ENTRY) != NULL;
    if (has_ranges && rng_below(&random, 2) == 0)
        tamper_range(&f, &random);
    else
        tamper_matrix(&f, &random);
    unsigned char *out = forge_write(&f, &bytes);
    FILE *file = fopen(argv[2], "wb");
    if (out == NULL || file == NULL || fwrite(out, 1, bytes, file) != bytes || fclose(file) != 0)
        fail("cannot write");
    forge_fini(&f);
    free(out);
    free(data);
    return 0;
}
