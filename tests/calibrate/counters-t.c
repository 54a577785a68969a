/*
 * counters-t.c - counter sets: merging shards, and the counters file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/counters_file.h"
#include "kernels/cpu/rowwise/count.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <openssl/sha.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { SAMPLES = 21, PER_SAMPLE = 9001, POINTS = 3 };

static const uint8_t model[FT_FINGERPRINT] = { 1 };

/* Samples first .. last - 1 of the dataset with the fingerprint `data`. */
static ft_sample_range samples(uint8_t data, uint64_t first, uint64_t last)
{
    ft_sample_range range = { .data = { data }, .first = first, .last = last };
    return range;
}

static const char *const names[POINTS] = { "layer.0.attn.context", "layer.0.ffn.gelu", "output" };
static char folder[FOLDER_PATH];

static const char *in_folder(const char *name)
{
    static char path[2][FOLDER_PATH + 16];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static ft_counter_set *new_set(void)
{
    ft_counter_set *set;
    ft_error err;
    if (ft_counter_set_new(&set, model, names, POINTS, "test", &err) != FT_OK)
        bail_out("%s", err.text);
    return set;
}

/* The values of one sample at every point: some are zero, a few are large. */
static void observe(ft_counter_set *set, uint32_t sample)
{
    static float value[PER_SAMPLE];
    uint32_t state = sample + 1;
    for (size_t k = 0; k < POINTS; k++) {
        for (int i = 0; i < PER_SAMPLE; i++) {
            state = 1664525u * state + 1013904223u;
            float x = (float) (int32_t) state * 0x1p-31f;
            value[i] = k == 1 && x < 0 ? 0.0f : i % 97 ? x : 1.0f / (x + 1.001f);
        }
        ft_cpu_counts_add(&set->point[k].counts, value, PER_SAMPLE);
    }
}

static ft_counter_set *observed(uint32_t first, uint32_t last)
{
    ft_counter_set *set = new_set();
    ft_error err;
    for (uint32_t sample = last; sample-- > first;)
        observe(set, sample);
    if (ft_counter_set_add_range(set, samples(2, first, last), "test", &err) != FT_OK)
        bail_out("%s", err.text);
    return set;
}

typedef struct bytes {
    unsigned char *byte;
    size_t size;
} bytes;

static bytes slurp(const char *path)
{
    bytes b = { 0 };
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0)
        bail_out("cannot read %s", path);
    b.size = (size_t) status.st_size;
    b.byte = malloc(b.size + 1);
    if (fread(b.byte, 1, b.size, file) != b.size)
        bail_out("cannot read %s", path);
    fclose(file);
    return b;
}

static void write_to(ft_counter_set *set, const char *path)
{
    ft_atomic_file *output;
    ft_error err;
    if (ft_atomic_file_open(&output, path, true, &err) != FT_OK ||
        ft_counter_set_write(set, output, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_atomic_file_close(output);
}

static bytes file_of(ft_counter_set *set)
{
    const char *path = in_folder("set");
    write_to(set, path);
    return slurp(path);
}

static bool same_bytes(bytes a, bytes b)
{
    return a.size == b.size && memcmp(a.byte, b.byte, a.size) == 0;
}

/* ---- Merging ------------------------------------------------------------------------------ */

static void test_shards(const bytes *whole)
{
    ft_error err;
    for (uint32_t parts = 2; parts <= 7; parts += 5) {
        ft_counter_set *sum = new_set();
        bool merged = true;
        for (uint32_t i = 0; i < parts; i++) {
            uint32_t part = i * 3 % parts; /* out of order */
            ft_counter_set *shard = observed(SAMPLES * part / parts, SAMPLES * (part + 1) / parts),
                           *back = NULL;
            bytes file = file_of(shard);
            merged = merged &&
                     ft_counter_set_parse(&back, file.byte, file.size, "shard", &err) == FT_OK &&
                     ft_counter_set_merge(sum, back, "shard", &err) == FT_OK;
            ft_counter_set_free(shard);
            ft_counter_set_free(back);
            free(file.byte);
        }
        bytes file = file_of(sum);
        ok(merged && same_bytes(file, *whole),
           "merging %u shards of counters in any order writes the file of a single calibration",
           parts);
        is_int((long long) sum->range_count, 1, "merged shards hold one contiguous sample range");
        is_int((long long) ft_counter_set_samples(sum), SAMPLES,
               "merged shards hold the sample count of the full calibration");
        free(file.byte);
        ft_counter_set_free(sum);
    }
}

static void refuse_merge(ft_counter_set *set, ft_counter_set *from, const char *why)
{
    ft_error err = { 0 };
    bytes before = file_of(set);
    is_int(ft_counter_set_merge(set, from, "b.counters", &err), FT_EARG,
           "ft_counter_set_merge() refuses incompatible counters: %s", why);
    has(err.text, why, "the merge error states the reason");
    has(err.text, "b.counters: ", "the merge error names the counters file");
    bytes after = file_of(set);
    ok(same_bytes(before, after), "a refused merge leaves the counters unchanged");
    free(before.byte);
    free(after.byte);
    ft_counter_set_free(from);
}

static void test_foreign(void)
{
    static const char *const renamed[POINTS] = { "layer.0.attn.context", "layer.0.ffn.up",
                                                 "output" };
    ft_counter_set *set = observed(0, 2), *from;
    ft_error err;
    refuse_merge(set, observed(1, 3), "samples 1 to 2 overlap samples 0 to 1");
    from = observed(2, 3);
    from->model[5] = 9;
    refuse_merge(set, from, "counted on another model");
    is_int(ft_counter_set_new(&from, model, renamed, POINTS, "t", &err), FT_OK,
           "ft_counter_set_new() accepts other point names");
    refuse_merge(set, from, "calibration point 2 is layer.0.ffn.up, expected layer.0.ffn.gelu");
    is_int(ft_counter_set_new(&from, model, names, 2, "t", &err), FT_OK,
           "ft_counter_set_new() accepts fewer points");
    refuse_merge(set, from, "2 calibration points, expected 3");
    ft_counter_set_free(set);
}

static void test_ranges(void)
{
    ft_counter_set *set = new_set();
    ft_error err;
    is_int(ft_counter_set_add_range(set, samples(2, 5, 5), "x", &err), FT_EARG,
           "ft_counter_set_add_range() refuses an empty sample range");
    const ft_sample_range order[] = { samples(2, 10, 12), samples(2, 0, 4), samples(2, 20, 30),
                                      samples(2, 4, 10), samples(2, 13, 20) };
    for (size_t i = 0; i < FT_COUNT(order); i++)
        is_int(ft_counter_set_add_range(set, order[i], "x", &err), FT_OK,
               "ft_counter_set_add_range() accepts the disjoint range %zu", i);
    ok(set->range_count == 2 && set->range[0].first == 0 && set->range[0].last == 12 &&
           set->range[1].first == 13 && set->range[1].last == 30,
       "adjacent sample ranges merge and a gap keeps them apart");
    is_int(ft_counter_set_add_range(set, samples(2, 11, 13), "x", &err), FT_EARG,
           "ft_counter_set_add_range() refuses a range with a sample that is already counted");
    is_int(ft_counter_set_add_range(set, samples(1, 12, 13), "x", &err), FT_OK,
           "ft_counter_set_add_range() accepts the same sample index of another dataset");
    ok(set->range_count == 3 && set->range[0].data[0] == 1,
       "sample ranges of different datasets never merge");
    ft_counter_set_free(set);
}

static void test_names(void)
{
    static const char *const twice[] = { "a", "b", "a" }, *const none[] = { "a", "" };
    char *long_name = calloc(1, 300);
    ft_counter_set *set;
    ft_error err;
    memset(long_name, 'x', 299);
    is_int(ft_counter_set_new(&set, model, twice, 3, "m.ft", &err), FT_EARG,
           "ft_counter_set_new() refuses a duplicate point name");
    is_str(err.text, "m.ft: a: two calibration points have this name",
           "the error names the duplicate calibration point");
    is_int(ft_counter_set_new(&set, model, none, 2, "m.ft", &err), FT_EARG,
           "ft_counter_set_new() refuses an empty point name");
    is_int(ft_counter_set_new(&set, model, (const char *const[]){ long_name }, 1, "m.ft", &err),
           FT_ELIMIT, "ft_counter_set_new() refuses a point name of 299 bytes");
    ok(set == NULL, "ft_counter_set_new() sets the result to NULL when it fails");
    set = new_set();
    ok(ft_counter_set_find(set, "output") == &set->point[2],
       "ft_counter_set_find() finds a point by its name");
    ok(ft_counter_set_find(set, "input") == NULL,
       "ft_counter_set_find() returns NULL for an unknown name");
    ft_counter_set_free(set);
    free(long_name);
}

/* ---- The file ----------------------------------------------------------------------------- */

static void sign(bytes b)
{
    SHA256(b.byte, b.size - FT_FINGERPRINT, b.byte + b.size - FT_FINGERPRINT);
}

static void test_round_trip(const bytes *whole)
{
    ft_counter_set *back;
    ft_error err;
    is_int(ft_counter_set_read(&back, in_folder("whole"), &err), FT_OK,
           "ft_counter_set_read() reads a counters file");
    is_str(back->point[1].name, names[1], "a counters file preserves the point names");
    ok(memcmp(back->model, model, sizeof model) == 0 && back->range[0].data[0] == 2,
       "a counters file preserves the model and dataset fingerprints");
    bytes again = file_of(back);
    ok(same_bytes(again, *whole), "rewriting a counters file that was read gives the same bytes");
    free(again.byte);
    ft_counter_set_free(back);
    is_int(ft_counter_set_read(&back, in_folder("absent"), &err), FT_EIO,
           "ft_counter_set_read() returns FT_EIO for a missing file");
    is_int(ft_counter_set_read(&back, folder, &err), FT_EFORMAT,
           "ft_counter_set_read() returns FT_EFORMAT for a directory");
}

/* One point with few values: small enough to give the offset of every field. */
static bytes small_file(void)
{
    ft_counter_set *set;
    ft_error err;
    static const char *const name[] = { "p" };
    const float value[] = { 0.0f, 1.0f, 2.0f, 2.0f };
    if (ft_counter_set_new(&set, model, name, 1, "t", &err) != FT_OK ||
        ft_counter_set_add_range(set, samples(2, 3, 7), "t", &err) != FT_OK)
        bail_out("%s", err.text);
    ft_cpu_counts_add(&set->point[0].counts, value, 4);
    bytes b = file_of(set);
    ft_counter_set_free(set);
    return b;
}

enum {
    AT_VERSION = 8,
    AT_POINTS = 12,
    AT_RANGES = 16,
    AT_RANGE = 84,
    AT_POINT = 100,
    AT_ZEROS = AT_POINT + 12,
    AT_NAME = AT_POINT + 36,
    AT_KEY = AT_NAME + 1,
    AT_TIMES = AT_KEY + 4,
    AT_TAIL = AT_TIMES + 8,
    SMALL = AT_TAIL + 3 * 4 + FT_FINGERPRINT
};

static void refuse_edit(bytes good, size_t at, uint32_t value, const char *why)
{
    bytes b = { malloc(good.size), good.size };
    ft_counter_set *set;
    ft_error err = { 0 };
    memcpy(b.byte, good.byte, b.size);
    ft_store_le32(b.byte + at, value);
    sign(b);
    ft_status rc = ft_counter_set_parse(&set, b.byte, b.size, "bad", &err);
    ok(rc != FT_OK && set == NULL, "ft_counter_set_parse() refuses the value %u at byte %zu", value,
       at);
    has(err.text, why, "the parse error states the reason");
    free(b.byte);
}

static void test_bad_files(void)
{
    bytes good = small_file();
    ft_counter_set *set;
    ft_error err = { 0 };
    is_int((long long) good.size, SMALL,
           "the size of a counters file matches the format description");
    refuse_edit(good, 0, 0, "not a counters file");
    refuse_edit(good, AT_VERSION, 2, "version 2, expected 1");
    refuse_edit(good, AT_POINTS, 2, "cut off");
    refuse_edit(good, AT_POINTS, 0, "bytes after the last point");
    refuse_edit(good, AT_POINTS, 5000, "at most 4096");
    refuse_edit(good, AT_RANGES, 1000, "cut off");
    refuse_edit(good, AT_RANGE + 8, 3, "no samples in the range");
    refuse_edit(good, AT_POINT, 0xffffffff, "cut off");
    refuse_edit(good, AT_POINT, 0, "bytes after the last point");
    refuse_edit(good, AT_POINT + 4, 0xffffffff, "cut off");
    refuse_edit(good, AT_POINT + 8, 2, "bytes after the last point");
    refuse_edit(good, AT_ZEROS, 2, "2 zeros of 1 in key 0");
    refuse_edit(good, AT_ZEROS, 0, "keys above the tail");
    refuse_edit(good, AT_KEY, FT_COUNT_KEYS, "out of order");
    refuse_edit(good, AT_KEY, 5, "1 zeros of 0 in key 0");
    refuse_edit(good, AT_TIMES, 0, "has count 0");
    refuse_edit(good, AT_TIMES + 4, 1 << 30, "has count");
    refuse_edit(good, AT_TAIL, 0, "value 1 of the tail");
    refuse_edit(good, AT_TAIL + 4, 0x3f000000, "value 2 of the tail");
    refuse_edit(good, AT_TAIL + 8, FT_COUNT_INFINITY, "value 3 of the tail");

    good.byte[AT_TAIL]++;
    is_int(ft_counter_set_parse(&set, good.byte, good.size, "bad", &err), FT_EFORMAT,
           "ft_counter_set_parse() refuses a file with a changed byte");
    has(err.text, "bad: altered or cut off",
        "the error names the file and reports that its digest does not match");
    good.byte[AT_TAIL]--;
    int taken = 0;
    for (size_t size = 0; size < good.size; size++)
        taken += ft_counter_set_parse(&set, good.byte, size, "bad", &err) == FT_OK;
    is_int(taken, 0, "ft_counter_set_parse() refuses every truncated file");
    free(good.byte);
}

/* A limit of 4096 bytes per file stands in for a full disk. */
static void test_failed_write(void)
{
    struct rlimit limit, small = { .rlim_cur = 4096 };
    ft_counter_set *set = observed(0, 1);
    ft_atomic_file *output;
    ft_error err;
    if (ft_atomic_file_open(&output, in_folder("whole"), true, &err) != FT_OK ||
        getrlimit(RLIMIT_FSIZE, &limit) != 0)
        bail_out("cannot prepare a small disk");
    bytes before = slurp(in_folder("whole"));
    small.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    is_int(ft_counter_set_write(set, output, &err), FT_EIO,
           "ft_counter_set_write() returns FT_EIO when the disk is full");
    setrlimit(RLIMIT_FSIZE, &limit);
    has(err.text, "whole: cannot write: File too large",
        "the write error states the file and the system's reason");
    ft_atomic_file_close(output);
    bytes after = slurp(in_folder("whole"));
    ok(same_bytes(before, after), "a failed write leaves the existing counters file unchanged");
    is_int(folder_count(folder), 2, "a failed write leaves no temporary file behind");
    free(before.byte);
    free(after.byte);
    ft_counter_set_free(set);
}

int main(void)
{
    folder_make(folder);
    ft_counter_set *set = observed(0, SAMPLES);
    write_to(set, in_folder("whole"));
    bytes whole = slurp(in_folder("whole"));
    test_shards(&whole);
    test_round_trip(&whole);
    test_foreign();
    test_ranges();
    test_names();
    test_bad_files();
    test_failed_write();
    free(whole.byte);
    ft_counter_set_free(set);
    folder_remove(folder);
    return done_testing();
}
