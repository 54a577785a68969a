/*
 * damage-t.c - a damaged archive is refused, and the error says where it is damaged.
 *
 * The tests overwrite the fields of zip headers one by one, truncate the archive at every byte
 * and flip a bit of every byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/sample.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sample good_sample;
static unsigned char *good; /* its bytes */
static size_t good_bytes;
static ft_artifact *whole; /* the same, opened */

static ft_status open_bytes(const unsigned char *data, size_t bytes, ft_verify verify,
                            ft_error *err)
{
    ft_artifact *a;
    err->text[0] = '\0';
    ft_status rc = ft_artifact_open_memory(&a, "m.ft", data, bytes, verify, err);
    ft_artifact_close(a);
    return rc;
}

static unsigned char *copy_of_good(void)
{
    return aligned_copy(good, good_bytes);
}

/* ---- Headers ------------------------------------------------------------------------------ */

static size_t central_header(const unsigned char *data, size_t bytes, const char *name)
{
    size_t at = ft_load_le32(data + bytes - 22 + 16);
    while (ft_load_le16(data + at + 28) != strlen(name) ||
           memcmp(data + at + 46, name, strlen(name)) != 0)
        at += 46u + ft_load_le16(data + at + 28) + ft_load_le16(data + at + 30) +
              ft_load_le16(data + at + 32);
    return at;
}

static size_t local_header(const unsigned char *data, size_t bytes, const char *name)
{
    return ft_load_le32(data + central_header(data, bytes, name) + 42);
}

typedef enum { CENTRAL, LOCAL, BOTH, END } place;

/* Add `add` to the 16-bit field at `at` in the headers of w/embed.word or in the end record. */
static const struct {
    place where;
    size_t at[2]; /* the second one is in the local header */
    int add;
    const char *reason, *sentence;
} fields[] = {
    { END, { 4 }, 1, "spans several files", "a nonzero disk number" },
    { END, { 8 }, 1, "spans several files", "entry counts that differ" },
    { END, { 12 }, 1, "do not end at byte", "a central directory size that is too large" },
    { END, { 16 }, 1, "do not end at byte", "a central directory offset that is wrong" },
    { END, { 20 }, 1, "no end record", "the length of a comment that is missing" },
    { CENTRAL, { 0 }, 1, "central directory altered", "a central header without signature" },
    { CENTRAL, { 28 }, 0x7000, "central directory altered", "a name longer than the directory" },
    { CENTRAL, { 28 }, -1, "disagree", "a name one byte short" },
    { CENTRAL, { 30 }, 3, "altered", "an extra field of three bytes" },
    { CENTRAL, { 34 }, 1, "central directory altered", "an entry on another disk" },
    { CENTRAL, { 42 }, 1, "outside, overlapping or after a gap", "a wrong local header offset" },
    { LOCAL, { 0, 0 }, 1, "no local header", "a local header without signature" },
    { LOCAL, { 0, 28 }, 0x7000, "local header altered", "an extra field longer than the file" },
    { LOCAL, { 0, 28 }, -1, "local header altered", "an extra field that is one byte short" },
    { LOCAL, { 0, 30 }, 1, "disagree", "a different name in the local header" },
    { LOCAL, { 0, 14 }, 1, "disagree", "a different CRC-32 in the local header" },
    { LOCAL, { 0, 22 }, 1, "disagree", "a different size in the local header" },
    { BOTH, { 8, 6 }, 1, "w/embed.word: encrypted", "an encrypted entry" },
    { BOTH, { 8, 6 }, 8, "w/embed.word: sizes follow the data", "a data descriptor" },
    { BOTH, { 8, 6 }, 64, "w/embed.word: unknown flags 0x0040", "strong encryption" },
    { BOTH, { 10, 8 }, 8, "w/embed.word: not stored (method 8)", "a deflated entry" },
    { BOTH, { 20, 18 }, 1, "bytes in the archive", "a stored entry whose compressed size differs" },
    { BOTH, { 46, 30 }, 'W' - 'w', "w/embed.word: missing", "a renamed entry" },
    { BOTH, { 47, 31 }, '\\' - '/', "is not a valid entry name", "a name with a backslash" },
    { BOTH, { 47, 31 }, 1, "missing", "a name without its folder" },
};

static void add_at(unsigned char *data, size_t at, int add)
{
    int value = ft_load_le16(data + at) + add;
    data[at] = (unsigned char) value;
    data[at + 1] = (unsigned char) (value >> 8);
}

static void test_fields(void)
{
    size_t central = central_header(good, good_bytes, "w/embed.word");
    size_t local = local_header(good, good_bytes, "w/embed.word");
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(fields); i++) {
        unsigned char *bad = copy_of_good();
        if (fields[i].where == END)
            add_at(bad, good_bytes - 22 + fields[i].at[0], fields[i].add);
        if (fields[i].where == CENTRAL || fields[i].where == BOTH)
            add_at(bad, central + fields[i].at[0], fields[i].add);
        if (fields[i].where == LOCAL || fields[i].where == BOTH)
            add_at(bad, local + fields[i].at[1], fields[i].add);
        ft_status rc = open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err);
        ok(rc == FT_EFORMAT && strstr(err.text, fields[i].reason),
           "an archive with %s is refused (%s)", fields[i].sentence, err.text);
        free(bad);
    }
}

/* Sizes whose sums overflow. */
static void test_large_sizes(void)
{
    unsigned char *bad = copy_of_good();
    size_t central = central_header(bad, good_bytes, "w/embed.word");
    size_t local = local_header(bad, good_bytes, "w/embed.word");
    ft_store_le32(bad + central + 20, 0xfffffff0u);
    ft_store_le32(bad + central + 24, 0xfffffff0u);
    ft_store_le32(bad + local + 18, 0xfffffff0u);
    ft_store_le32(bad + local + 22, 0xfffffff0u);
    ft_error err;
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "an entry longer than the file is refused");
    has(err.text, "w/embed.word: out of bounds",
        "the error of an entry longer than the file says out of bounds");
    ft_store_le32(bad + good_bytes - 22 + 16, 0xffffffffu);
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "a central directory offset of 0xffffffff is refused without a zip64 locator");
    free(bad);
}

static void test_same_name(void)
{
    unsigned char *bad = copy_of_good();
    bad[central_header(bad, good_bytes, "s/head.weight") + 46] = 'w';
    bad[local_header(good, good_bytes, "s/head.weight") + 30] = 'w';
    ft_error err;
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "duplicate entry names are refused");
    has(err.text, "two entries are called w/head.weight",
        "the error of duplicate entries names the entry");
    free(bad);
}

/* Moves one byte from the padding to the data of the first entry. */
static void test_unaligned(void)
{
    unsigned char *bad = copy_of_good();
    size_t local = local_header(bad, good_bytes, "config.json");
    size_t name = ft_load_le16(bad + local + 26), extra = ft_load_le16(bad + local + 28);
    is_int((long long) local, 0, "config.json is the first entry");
    ft_error err;
    unsigned char *data = bad + 30 + name + extra;
    memmove(data - 1, data, 2);
    add_at(bad, local + 28, -1);
    add_at(bad, local + 30 + name + 2, -1);
    add_at(bad, local + 18, 1);
    add_at(bad, local + 22, 1);
    size_t central = central_header(bad, good_bytes, "config.json");
    add_at(bad, central + 20, 1);
    add_at(bad, central + 24, 1);
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "an unaligned entry is refused");
    has(err.text, "config.json: not aligned: 3 bytes at byte 63",
        "the error of an unaligned entry names its offset");
    free(bad);
}

/* ---- Random damage ------------------------------------------------------------------------- */

static void test_truncation(void)
{
    ft_error err;
    size_t accepted = 0;
    for (size_t bytes = 0; bytes < good_bytes; bytes++) {
        unsigned char *cut = aligned_copy(good, bytes);
        accepted += open_bytes(cut, bytes, FT_VERIFY_STRUCTURE, &err) == FT_OK;
        free(cut);
    }
    is_int((long long) accepted, 0, "an artifact truncated at any byte is refused");
    unsigned char *longer = calloc(1, good_bytes + 65);
    unsigned char *start = longer + 64 - (uintptr_t) longer % 64;
    memcpy(start, good, good_bytes);
    is_int(open_bytes(start, good_bytes + 1, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "an artifact followed by one more byte is refused");
    free(longer);
}

/* Whether an artifact has the same manifest and contents as the undamaged one. */
static bool equal_contents(const ft_artifact *a)
{
    if (!json_equal(ft_artifact_manifest(a), ft_artifact_manifest(whole)))
        return false;
    for (size_t i = 0; i < ft_artifact_file_count(a); i++) {
        const ft_artifact_entry *x = ft_artifact_file_at(a, i), *y = ft_artifact_file_at(whole, i);
        if (x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0)
            return false;
    }
    return sample_holds(a, &good_sample);
}

static void test_flips(void)
{
    unsigned char *bad = copy_of_good();
    size_t accepted = 0, wrong = 0;
    for (size_t i = 0; i < good_bytes; i++) {
        bad[i] ^= (unsigned char) (1u << i % 8);
        ft_artifact *a;
        if (ft_artifact_open_memory(&a, "m.ft", bad, good_bytes, FT_VERIFY_SHA256, NULL) == FT_OK) {
            accepted++;
            wrong += !equal_contents(a);
        }
        ft_artifact_close(a);
        bad[i] ^= (unsigned char) (1u << i % 8);
    }
    is_int((long long) wrong, 0,
           "every bit flip that changes the contents is detected by FT_VERIFY_SHA256");
    ok(accepted > 0, "the undetected bit flips (%zu) are in padding and dates", accepted);
    free(bad);
}

static void test_levels(void)
{
    ft_error err;
    unsigned char *bad = copy_of_good();
    size_t offset = ft_artifact_find(whole, "embed.word")->offset;
    bad[offset] ^= 1;
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_OK,
           "FT_VERIFY_STRUCTURE does not check weights");
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_CRC, &err), FT_EFORMAT,
           "FT_VERIFY_CRC detects a bit flip in a weight");
    has(err.text, "w/embed.word: altered: CRC-32", "the CRC error names the entry");
    bad[offset] ^= 1;
    const ft_artifact_entry *scale = ft_artifact_find_file(whole, "s/head.weight");
    bad[(const unsigned char *) scale->data - good] ^= 1;
    is_int(open_bytes(bad, good_bytes, FT_VERIFY_STRUCTURE, &err), FT_EFORMAT,
           "FT_VERIFY_STRUCTURE detects a bit flip in the scales");
    free(bad);
}

static void begin(ft_artifact_state state)
{
    char folder[FOLDER_PATH], path[128];
    ft_error err;
    good_sample = (sample){ .state = state, .seed = 9 };
    folder_make(folder);
    snprintf(path, sizeof path, "%s/good.ft", folder);
    if (sample_write(path, &good_sample, &err) != FT_OK)
        bail_out("%s", err.text);
    good = folder_read(path, &good_bytes);
    folder_remove(folder);
    if (ft_artifact_open_memory(&whole, "m.ft", good, good_bytes, FT_VERIFY_SHA256, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void end(void)
{
    ft_artifact_close(whole);
    free(good);
}

int main(void)
{
    begin(FT_ARTIFACT_INT8);
    test_fields();
    test_large_sizes();
    test_same_name();
    test_unaligned();
    test_truncation();
    test_flips();
    test_levels();
    end();
    begin(FT_ARTIFACT_GROUPWISE);
    test_truncation();
    test_flips();
    test_levels();
    end();
    return done_testing();
}
