/*
 * tuning-t.c - the tuning file: where it is, what it keeps, and that whatever is wrong with it is
 * said and ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/strbuf.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tuning/tuning.h"
#include "tests/lib/folder.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[FOLDER_PATH], cache[FOLDER_PATH + 8], path[FOLDER_PATH + 64];
static ft_error err;

static const ft_device_identity here = { "Card A", "580.159.04" };
static const ft_device_identity other_card = { "Card B", "580.159.04" };
static const ft_device_identity other_driver = { "Card A", "580.95.05" };

static ft_tuned_gemm gemms[] = {
    { { 16, 6144, 4096, FT_F16, FT_U4, FT_F16, 128, .zero_points = true, .linears = 3 },
      "wgmma n192 m16" },
    { { 4096, 3072, 768, FT_I8, FT_I8, FT_I8, .activation = FT_ACT_GELU, .linears = 1 },
      "mma 96x128" },
    { { 1, 128256, 4096, FT_BF16, FT_BF16, FT_F32, .batch_invariant = true, .linears = 1 },
      "wgmma n64 m8" },
};
static const ft_tuning all = { gemms, 3 }, one = { gemms + 1, 1 };

/* ---- A device that remembers what it is given --------------------------------------------- */

static size_t used;
static char used_kernel[FT_GEMM_KERNEL_NAME];

static ft_status identify(const ft_device *device, ft_device_identity *out, ft_error *e)
{
    (void) device, (void) e;
    *out = here;
    return FT_OK;
}

static ft_status use_tuned(ft_device *device, const ft_tuned_gemm *tuned, size_t count, ft_error *e)
{
    (void) device, (void) e;
    used = count;
    if (count > 0)
        memcpy(used_kernel, tuned[0].kernel, sizeof used_kernel);
    return FT_OK;
}

static const ft_backend card = { .name = "card", .identify = identify, .use_tuned = use_tuned };

/* The note of a model that is opened with this --tuning. */
static const char *note_of(const char *given)
{
    static char note[FT_TUNING_NOTE];
    used = 0;
    ft_tuning_apply(&card, NULL, given, note);
    return note;
}

/* ---- Place -------------------------------------------------------------------------------- */

static void is_path(const char *given, const char *expected, bool by_default, const char *sentence)
{
    char *found;
    bool is_default;
    if (ft_tuning_path(&found, &is_default, given, &err) != FT_OK)
        bail_out("%s", err.text);
    is_str(found != NULL ? found : "none", expected, "%s", sentence);
    ok(is_default == by_default, "... which is %s", by_default ? "the default" : "a request");
    free(found);
}

static void test_place(void)
{
    unsetenv("FT_TUNING");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/me", 1);
    is_path(NULL, "/home/me/.cache/ft/tuning.json", true, "the file is in the cache of the user");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    is_path(NULL, "/cache/ft/tuning.json", true, "XDG_CACHE_HOME names another cache");
    setenv("XDG_CACHE_HOME", "cache", 1);
    is_path(NULL, "/home/me/.cache/ft/tuning.json", true, "a relative XDG_CACHE_HOME is ignored");
    unsetenv("HOME");
    is_path(NULL, "none", true, "there is no file without a home folder");
    setenv("FT_TUNING", "env.json", 1);
    is_path(NULL, "env.json", false, "FT_TUNING names the file");
    is_path("own.json", "own.json", false, "an option has precedence over FT_TUNING");
    is_path("", "none", false, "an empty name means no file");
    setenv("FT_TUNING", "", 1);
    is_path(NULL, "none", false, "an empty FT_TUNING means no file");
    unsetenv("FT_TUNING");
}

/* ---- Contents ----------------------------------------------------------------------------- */

static void must_write(const ft_tuning *tuning, const ft_device_identity *device)
{
    if (ft_tuning_write(tuning, path, device, &err) != FT_OK)
        bail_out("%s", err.text);
}

static bool same_gemm(const ft_tuned_gemm *a, const ft_tuned_gemm *b)
{
    return a->problem.m == b->problem.m && ft_gemm_problem_same_shape(&a->problem, &b->problem) &&
           strcmp(a->kernel, b->kernel) == 0;
}

static void test_contents(void)
{
    ft_tuning found;
    struct stat about;
    must_write(&all, &here);
    ok(stat(path, &about) == 0, "writing creates the folder of the file");
    ok(ft_tuning_read(&found, path, &here, &err) == FT_OK && found.count == 3 &&
           same_gemm(&found.gemm[0], &gemms[0]) && same_gemm(&found.gemm[1], &gemms[1]) &&
           same_gemm(&found.gemm[2], &gemms[2]),
       "reading gives the kernels that were written");
    ft_tuning_fini(&found);
    must_write(&one, &other_card);
    must_write(&all, &here);
    ok(ft_tuning_read(&found, path, &other_card, &err) == FT_OK && found.count == 1,
       "the kernels of other devices stay");
    ft_tuning_fini(&found);
}

/* The kernels of `before`, and then those of `after`, are written by the same or another driver. */
static ft_tuning written_twice(const ft_tuning *before, const ft_device_identity *device,
                               const ft_tuning *after)
{
    ft_tuning found;
    (void) remove(path);
    must_write(before, device);
    must_write(after, &here);
    if (ft_tuning_read(&found, path, &here, &err) != FT_OK)
        bail_out("%s", err.text);
    return found;
}

static void test_second_model(void)
{
    ft_tuned_gemm retuned[2] = { gemms[1], gemms[1] };
    retuned[0].problem.m = 512;
    retuned[1].problem.m = 8192;
    memcpy(retuned[1].kernel, "mma 128x128", sizeof "mma 128x128");
    const ft_tuning again = { retuned, 2 }, others = { gemms + 2, 1 };

    ft_tuning found = written_twice(&one, &here, &others);
    ok(found.count == 2 && same_gemm(&found.gemm[0], &gemms[1]) &&
           same_gemm(&found.gemm[1], &gemms[2]),
       "the kernels of a second model join those of the first one");
    ft_tuning_fini(&found);
    found = written_twice(&all, &here, &again);
    ok(found.count == 4 && same_gemm(&found.gemm[0], &gemms[0]) &&
           same_gemm(&found.gemm[1], &gemms[2]) && same_gemm(&found.gemm[2], &retuned[0]) &&
           same_gemm(&found.gemm[3], &retuned[1]),
       "a shape that is tuned again has only the kernels that were written last");
    ft_tuning_fini(&found);
    found = written_twice(&all, &other_driver, &one);
    ok(found.count == 1 && same_gemm(&found.gemm[0], &gemms[1]),
       "kernels that were tuned with another driver go");
    ft_tuning_fini(&found);
}

static void test_use(void)
{
    must_write(&all, &here);
    is_str(note_of(path), "", "a file for this device is used without a note");
    is_int((long long) used, 3, "the device gets all kernels");
    is_str(used_kernel, gemms[0].kernel, "the device gets the names of kernels");
    must_write(&one, &other_driver);
    has(note_of(path), "is for Card A with driver 580.95.05", "another driver is named");
    is_int((long long) used, 0, "kernels for another driver are ignored");
    (void) remove(path);
    must_write(&one, &other_card);
    has(note_of(path), "has no kernels for Card A; ignored", "a device that is missing is named");
    setenv("XDG_CACHE_HOME", "/nonexistent", 1);
    is_str(note_of(NULL), "", "nothing is said where there is no file in the cache");
    has(note_of("/nonexistent/x.json"), "/nonexistent/x.json: cannot open",
        "a file that was requested must exist");
}

/* ---- Damage ------------------------------------------------------------------------------- */

#define ENTRY "{\"format\": 2, \"devices\": [{\"device\": \"Card A\", \"driver\": \"580.159.04\", "
#define GEMMS(gemm) ENTRY "\"version\": \"V\", \"gemms\": [" gemm "]}]}"
#define GEMM(x, group, activation)                                                                 \
    GEMMS("{\"rows\": 16, \"n\": 8, \"k\": 8, \"linears\": 1, \"x\": \"" x                         \
          "\", \"w\": \"U4\", \"out\": \"F16\", \"group\": " group                                 \
          ", \"zero_points\": false, \"int8_activations\": false, \"batch_invariant\": false, "    \
          "\"activation\": \"" activation "\", \"kernel\": 7}")

/* "V" stands for the version of FT. */
static const struct {
    const char *text, *message;
} damaged[] = {
    { "", "expected" },
    { "[]", "expected" },
    { "{", "expected" },
    { "{}", "is not a tuning file of ft-bench --tune" },
    { "{\"format\": 2}", "is not a tuning file of ft-bench --tune" },
    { "{\"format\": \"1\", \"devices\": []}", "format: found \"1\"" },
    { "{\"format\": 1, \"devices\": []}", "format: found 1, expected 2" },
    { "{\"format\": 2, \"devices\": {}}", "devices: found {}" },
    { "{\"format\": 2, \"devices\": [7]}", "devices[0].device" },
    { ENTRY "\"version\": \"0.0\", \"gemms\": []}]}", "FT 0.0" },
    { ENTRY "\"version\": \"V\"}]}", "devices[0].gemms" },
    { GEMMS("1"), "devices[0].gemms[0].rows" },
    { GEMMS("{\"rows\": 0}"), "gemms[0].rows: found 0" },
    { GEMMS("{\"rows\": 1e9}"), "gemms[0].rows" },
    { GEMMS("{\"rows\": 1, \"n\": 8, \"k\": 8, \"linears\": 0}"), "gemms[0].linears: found 0" },
    { GEMM("I9", "128", "none"), "gemms[0].x: found \"I9\"" },
    { GEMM("F16", "-1", "none"), "gemms[0].group: found -1" },
    { GEMM("F16", "128", "no"), "gemms[0].activation: found \"no\"" },
    { GEMM("F16", "128", "none"), "gemms[0].kernel: found 7" },
};

/* The text with the version of FT in place of "V". */
static char *with_version(const char *text)
{
    static char out[1024];
    const char *mark = strstr(text, "\"V\"");
    if (mark == NULL)
        snprintf(out, sizeof out, "%s", text);
    else
        snprintf(out, sizeof out, "%.*s\"%s\"%s", (int) (mark - text), text, ft_version(),
                 mark + 3);
    return out;
}

static void test_damage(void)
{
    char file[FOLDER_PATH + 64];
    snprintf(file, sizeof file, "%s/damaged.json", folder);
    for (size_t i = 0; i < FT_COUNT(damaged); i++) {
        const char *text = with_version(damaged[i].text);
        folder_write(folder, "damaged.json", text, strlen(text));
        const char *note = note_of(file);
        has(note, damaged[i].message, "a damaged tuning file is ignored with a note (%zu)", i);
        ok(used == 0 && strstr(note, "; ignored") != NULL, "none of its kernels is used (%zu)", i);
    }
    char *large = calloc(1, 5 << 20);
    memset(large, ' ', 5 << 20);
    folder_write(folder, "damaged.json", large, 5 << 20);
    has(note_of(file), "4194304", "a file above 4 MiB is ignored with a note");
    free(large);
}

/* Every prefix of a good file is damaged. */
static void test_truncation(void)
{
    size_t bytes, silent = 0;
    (void) remove(path);
    must_write(&all, &here);
    char *text = (char *) folder_read(path, &bytes);
    char file[FOLDER_PATH + 64];
    snprintf(file, sizeof file, "%s/short.json", folder);
    for (size_t length = 0; length + 2 < bytes; length++) { /* the end is "}\n" */
        folder_write(folder, "short.json", text, length);
        silent += note_of(file)[0] == '\0' || used > 0;
    }
    is_int((long long) silent, 0,
           "a file that ends early is ignored with a note, wherever it ends");
    free(text);
}

/* A changed byte gives an error or another valid file, and never more GEMMs. */
static void test_mutations(void)
{
    enum { MUTATIONS = 3000 };
    size_t bytes, wrong = 0;
    rng r = { 7 };
    (void) remove(path);
    must_write(&all, &here);
    char *text = (char *) folder_read(path, &bytes), *changed = malloc(bytes);
    char file[FOLDER_PATH + 64];
    snprintf(file, sizeof file, "%s/changed.json", folder);
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(changed, text, bytes);
        for (uint32_t n = 1 + rng_below(&r, 3); n > 0; n--)
            changed[rng_below(&r, (uint32_t) bytes)] = (char) rng_below(&r, 256);
        folder_write(folder, "changed.json", changed, bytes);
        bool ignored = note_of(file)[0] != '\0';
        wrong += ignored ? used != 0 : used > all.count;
    }
    is_int((long long) wrong, 0, "a file with changed bytes is read whole or ignored with a note");
    free(text);
    free(changed);
}

static void test_foreign_file(void)
{
    char file[FOLDER_PATH + 64];
    size_t bytes;
    snprintf(file, sizeof file, "%s/notes.txt", folder);
    folder_write(folder, "notes.txt", "my notes", 8);
    ok(ft_tuning_write(&one, file, &here, &err) == FT_EFORMAT,
       "a file that is no tuning file is not overwritten");
    char *text = (char *) folder_read(file, &bytes);
    ok(bytes == 8 && memcmp(text, "my notes", 8) == 0, "... and stays as it was");
    free(text);
}

int main(void)
{
    folder_make(folder);
    snprintf(cache, sizeof cache, "%s/ft", folder);
    snprintf(path, sizeof path, "%s/tuning.json", cache);
    test_place();
    test_contents();
    test_second_model();
    test_use();
    test_damage();
    test_truncation();
    test_mutations();
    test_foreign_file();
    (void) remove(path);
    (void) rmdir(cache);
    folder_remove(folder);
    return done_testing();
}
