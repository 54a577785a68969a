/*
 * zip-t.c - archives are written with aligned entries and read back, including zip64.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/zip_directory.h"
#include "runtime/container/zip_writer.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[FOLDER_PATH], path[128];

static ft_status pull(void *user, size_t index, void *buffer, size_t bytes, size_t *got,
                      ft_error *err)
{
    (void) user, (void) err;
    memset(buffer, (int) (index & 0x7f), bytes);
    *got = bytes;
    return FT_OK;
}

/* Writes the items and reads the directory of the archive. */
static unsigned char *round_trip(ft_zip_item *item, size_t count, ft_zip_directory *dir)
{
    FILE *file = fopen(path, "w+b");
    size_t end, bytes;
    ft_error err;
    if (file == NULL || !ft_zip_plan(item, count, &end) ||
        ft_zip_write(fileno(file), path, item, count, pull, NULL, &err) != FT_OK)
        bail_out("cannot write: %s", err.text);
    fclose(file);
    unsigned char *data = folder_read(path, &bytes);
    if (ft_zip_directory_read(dir, path, data, bytes, &err) != FT_OK)
        bail_out("cannot read: %s", err.text);
    return data;
}

static void test_alignment(void)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65535, 65536, 65537, 5, 100000, 0 };
    ft_zip_item item[FT_COUNT(sizes)];
    char names[FT_COUNT(sizes)][FT_ZIP_MAX_NAME + 1];
    for (size_t i = 0; i < FT_COUNT(sizes); i++) {
        int length = i == 3 ? FT_ZIP_MAX_NAME : 3;
        snprintf(names[i], sizeof names[i], "%0*zu", length, i);
        item[i] = (ft_zip_item){ .name = names[i], .bytes = sizes[i] };
    }
    ft_zip_directory dir;
    unsigned char *data = round_trip(item, FT_COUNT(item), &dir);
    size_t wrong = 0, misplaced = 0, unaligned = 0;
    for (size_t i = 0; i < FT_COUNT(sizes); i++) {
        const ft_zip_entry *e = &dir.entry[i];
        misplaced += e->offset != item[i].offset || e->bytes != sizes[i] ||
                     strcmp(e->name, names[i]) != 0 || ft_zip_directory_find(&dir, names[i]) != e;
        unaligned += e->offset % (sizes[i] >= 65536 ? 4096 : 64) != 0;
        for (size_t k = 0; k < e->bytes; k++)
            wrong += e->data[k] != (unsigned char) i;
    }
    is_int((long long) dir.count, FT_COUNT(sizes), "the directory has all entries");
    is_int((long long) misplaced, 0,
           "entries are at their planned offsets, in order, and found by name");
    is_int((long long) unaligned, 0,
           "entries are aligned to 64 bytes, and those of 64 KiB or more to 4096 bytes");
    is_int((long long) wrong, 0, "entries have the bytes written");
    ok(ft_zip_directory_find(&dir, "nothing") == NULL,
       "ft_zip_directory_find does not find an entry that is absent");
    is_int(data[6] | data[7] << 8, 0,
           "ASCII names do not set the UTF-8 flag with any version of libzip");
    ft_zip_directory_fini(&dir);
    free(data);
}

/* More entries than a 16-bit count holds, which needs the zip64 end record. */
static void test_many(void)
{
    enum { COUNT = 66000 };
    ft_zip_item *item = calloc(COUNT, sizeof *item);
    char(*names)[8] = calloc(COUNT, sizeof *names);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        item[i].name = names[i];
    }
    ft_zip_directory dir;
    unsigned char *data = round_trip(item, COUNT, &dir);
    is_int((long long) dir.count, COUNT,
           "an archive of 66,000 entries is read with its zip64 end record");
    const ft_zip_entry *last = ft_zip_directory_find(&dir, "65999");
    ok(last != NULL && last->offset == item[COUNT - 1].offset,
       "the last entry of a zip64 archive is found at its offset");
    ft_zip_directory_fini(&dir);

    ft_error err;
    size_t bytes;
    free(data);
    data = folder_read(path, &bytes);
    unsigned char *locator = data + bytes - 22 - 20;
    locator[8] ^= 1;
    is_int(ft_zip_directory_read(&dir, path, data, bytes, &err), FT_EFORMAT,
           "a zip64 locator with a wrong offset is refused");
    locator[8] ^= 1;
    locator[0] ^= 1;
    is_int(ft_zip_directory_read(&dir, path, data, bytes, &err), FT_EFORMAT,
           "a zip64 locator without its signature is refused");
    locator[0] ^= 1;
    locator[-56 + 24] ^= 1;
    is_int(ft_zip_directory_read(&dir, path, data, bytes, &err), FT_EFORMAT,
           "a zip64 end record with a wrong count is refused");
    free(data);
    free(names);
    free(item);
}

static void test_limits(void)
{
    ft_zip_item huge[2] = { { .name = "a", .bytes = SIZE_MAX / 4 + 1 }, { .name = "b" } };
    size_t end;
    ok(!ft_zip_plan(huge, 2, &end), "ft_zip_plan refuses an archive larger than the address space");
    ok(ft_zip_name_is_valid("w/layer.0.attn.q.weight", 23), "a path is a valid entry name");
    ok(ft_zip_name_is_valid("..a/b..", 7), "dots within a component are valid");
    ok(!ft_zip_name_is_valid("a/..", 4) && !ft_zip_name_is_valid(".", 1),
       "a component of only dots is not valid");
    ok(!ft_zip_name_is_valid("a\nb", 3) && !ft_zip_name_is_valid("a\0b", 3),
       "control characters are not valid in entry names");
}

int main(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/a.zip", folder);
    test_alignment();
    test_many();
    test_limits();
    folder_remove(folder);
    return done_testing();
}
