/*
 * tamper-scale.c - make one scale of an int8 artifact wrong, for tests of ft-inspect --diff.
 *
 *     tamper-scale IN OUT SEED
 *
 * Multiplies or divides by 4 the range of an activation, the scales of some rows of a matrix, or
 * all scales of a matrix; SEED decides.  Prints the name of the point or matrix, then what was
 * done.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/amax.h"
#include "runtime/container/artifact.h"
#include "runtime/container/identifier.h"
#include "tests/lib/folder.h"
#include "tests/lib/forge.h"
#include "tests/lib/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR = 4, MAX_ROWS = 16 };

static void fail(const char *text)
{
    fprintf(stderr, "tamper-scale: %s\n", text);
    exit(1);
}

/* ---- Ranges -------------------------------------------------------------------------------- */

static void tamper_range(forge *f, rng *random)
{
    const forge_entry *entry = forge_find(f, FT_AMAX_ENTRY);
    ft_amax_table *table;
    ft_error err;
    char *text;
    size_t bytes;
    if (entry == NULL)
        fail("no amax.tsv");
    if (ft_amax_table_parse(&table, FT_AMAX_ENTRY, entry->data, entry->bytes, &err) != FT_OK)
        fail(err.text);
    ft_amax_entry *changed = &table->entry[rng_below(random, (uint32_t) table->count)];
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

static void tamper_matrix(forge *f, rng *random)
{
    forge_entry *entry = pick_scales(f, random);
    if (entry == NULL)
        fail("no scales");
    float *scale = (float *) (void *) entry->data;
    uint32_t rows = (uint32_t) (entry->bytes / sizeof *scale);
    bool all = rng_below(random, 2) == 1, larger = rng_below(random, 2) == 1;
    uint32_t first = all ? 0 : rng_below(random, rows), count = all ? rows : 1;
    if (!all)
        count = 1 + rng_below(random, rows - first < MAX_ROWS ? rows - first : MAX_ROWS);
    for (uint32_t i = first; i < first + count; i++)
        scale[i] = larger ? scale[i] * FACTOR : scale[i] / FACTOR;
    printf("%s %u of %u scales from row %u %s %d\n", entry->name + strlen(FT_SCALE_PREFIX), count,
           rows, first, larger ? "times" : "divided by", FACTOR);
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
    if (rng_below(&random, 2) == 0)
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
