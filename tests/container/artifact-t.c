/*
 * artifact-t.c - a written artifact is read back, and equal contents give equal bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/sample.h"
#include "tests/tap/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[FOLDER_PATH], path[128], again[128];

static const sample float_sample = { .state = FT_ARTIFACT_FLOAT, .seed = 3 };
static const sample int8_sample = { .state = FT_ARTIFACT_INT8, .seed = 5, .large = 512 };

static ft_artifact *open_sample(const char *file, ft_verify verify)
{
    ft_artifact *a;
    ft_error err;
    if (ft_artifact_open(&a, file, verify, &err) != FT_OK)
        bail_out("%s", err.text);
    return a;
}

static void write_sample(const char *file, const sample *what)
{
    ft_error err;
    sample forced = *what;
    forced.force = true;
    if (sample_write(file, &forced, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Round trip --------------------------------------------------------------------------- */

static void test_float(void)
{
    ft_error err;
    is_int(sample_write(path, &float_sample, &err), FT_OK, "a float artifact is written");
    ft_artifact *a = open_sample(path, FT_VERIFY_SHA256);
    const ft_artifact_header *head = ft_artifact_get_header(a);
    ok(head->state == FT_ARTIFACT_FLOAT && head->recipe == NULL,
       "a float artifact has state float and no recipe");
    is_str(head->family, "bert", "the artifact stores the family");
    is_str(head->tool, "ft-sample", "the artifact stores the tool that wrote it");
    is_int(json_integer_value(json_object_get(head->config, "hidden")), 24,
           "the artifact stores the config");
    near(json_number_value(json_object_get(head->config, "eps")), 1e-12, 0,
         "the artifact stores floats of the config without loss");
    is_int((long long) ft_artifact_count(a), 4, "the artifact has all four tensors");
    ok(sample_holds(a, &float_sample), "the tensors of a float artifact have the bytes written");
    const ft_artifact_tensor *t = ft_artifact_find(a, "temperature");
    ok(t != NULL && t->ndim == 0 && t->bytes == 4, "a scalar is a tensor without dimensions");
    ok(ft_artifact_find(a, "temper") == NULL,
       "ft_artifact_find does not find a tensor that is absent");
    ok(ft_artifact_amax(a) == NULL, "a float artifact has no amax");

    const void *data;
    size_t bytes;
    is_int(ft_artifact_file(a, "config.json", &data, &bytes, &err), FT_OK,
           "ft_artifact_file finds a stored file");
    ok(bytes == 2 && memcmp(data, "{}", 2) == 0, "a stored file has the bytes written");
    is_int(ft_artifact_file(a, "merges.txt", &data, &bytes, &err), FT_EFORMAT,
           "ft_artifact_file refuses a file that is absent");
    has(err.text, "no merges.txt", "the error of an absent file names the file");
    ok(ft_artifact_find_file(a, "selftest/empty") != NULL, "an empty file is stored");
    ft_artifact_close(a);
}

static void test_int8(void)
{
    write_sample(path, &int8_sample);
    ft_artifact *a = open_sample(path, FT_VERIFY_SHA256);
    ok(ft_artifact_get_header(a)->state == FT_ARTIFACT_INT8, "an int8 artifact has state int8");
    is_str(json_string_value(json_object_get(ft_artifact_get_header(a)->recipe, "residual")),
           "float", "the artifact stores the recipe");
    ok(sample_holds(a, &int8_sample), "the tensors of an int8 artifact have the bytes written");

    const ft_artifact_tensor *t = ft_artifact_find(a, "layer.0.ffn.up.weight");
    ok(t != NULL && t->layout == FT_COL4_4R2_8C && t->dtype == FT_I8,
       "an I8 weight is stored in COL4_4R2_8C");
    is_int((long long) t->bytes, 40 * 96, "a 37 x 70 I8 weight is padded to 40 x 96");
    int wrong = 0;
    for (int i = 0; i < 37; i++)
        wrong += t->scale[i] != 0.001f * (float) (i + 1 + int8_sample.seed);
    is_int(wrong, 0, "the artifact stores the scales that the callback computed");
    ok(ft_artifact_find(a, "embed.word")->scale == NULL, "an F16 tensor has no scale");

    const ft_amax_table *amax = ft_artifact_amax(a);
    is_int((long long) amax->count, 2, "the artifact stores amax.tsv");
    near((double) ft_amax_table_find(amax, "layer.0.input")->amax, (double) 3.1415927f, 0.0,
         "amax.tsv stores an amax without loss");
    ft_artifact_close(a);
}

/* Whether scales, or zero points, equal those written and are aligned for vector loads. */
static bool holds_groups(const void *data, bool zeros, size_t rows, size_t bytes)
{
    const unsigned char *found = data;
    for (size_t i = 0; i < bytes; i++)
        if (found[i] != sample_group_byte(zeros, rows, i))
            return false;
    return (uintptr_t) data % 64 == 0;
}

static void test_blocks(void)
{
    sample groupwise = { .state = FT_ARTIFACT_GROUPWISE, .seed = 7, .piece = 11 };
    write_sample(path, &groupwise);
    ft_artifact *a = open_sample(path, FT_VERIFY_SHA256);
    is_str(ft_artifact_state_name(ft_artifact_get_header(a)->state), "blocks",
           "the state of a group-wise quantized artifact is called blocks");
    ok(sample_holds(a, &groupwise),
       "the tensors of a group-wise quantized artifact have the bytes written");
    const ft_artifact_tensor *t = ft_artifact_find(a, "layer.0.ffn.up.weight");
    ok(t->dtype == FT_U4 && t->layout == FT_PANEL32 && t->groupwise.group == 32 &&
           t->has_zero_points && !t->groupwise.int8_activations,
       "a U4 weight is stored in PANEL32 with groups of 32 and zero points");
    is_int((long long) t->bytes, 64 * 96 / 2,
           "a 37 x 70 U4 weight is padded to 64 x 96, two values per byte");
    ok(holds_groups(t->groupwise.scale, false, 37, 3 * 64 * 2),
       "a U4 weight has the scales of three groups");
    ok(holds_groups(t->groupwise.zero, true, 37, 3 * 64),
       "a U4 weight has the zero points of three groups");
    t = ft_artifact_find(a, "head.weight");
    ok(t->dtype == FT_U8 && t->groupwise.group == 0 && t->groupwise.int8_activations &&
           t->groupwise.zero == NULL,
       "a U8 weight is stored with one group per row, without zero points, for int8 activations");
    ok(holds_groups(t->groupwise.scale, false, 3, 32 * 2), "a U8 weight has one scale per row");
    ok(ft_artifact_amax(a) == NULL, "a group-wise quantized artifact has no amax");
    ft_artifact_close(a);

    sample mixed = { .state = FT_ARTIFACT_INT8, .seed = 7, .mixed = true };
    write_sample(path, &mixed);
    a = open_sample(path, FT_VERIFY_SHA256);
    ok(ft_artifact_find(a, "layer.0.ffn.up.weight")->dtype == FT_U4 &&
           ft_artifact_find(a, "head.weight")->dtype == FT_I8,
       "an int8 artifact may have group-wise quantized weights beside I8 weights");
    ok(ft_artifact_amax(a) != NULL && sample_holds(a, &mixed),
       "a mixed int8 artifact has amax.tsv and the bytes written");
    ft_artifact_close(a);
}

static void test_alignment(void)
{
    ft_artifact *a = open_sample(path, FT_VERIFY_STRUCTURE);
    int off = 0, in_map = 0;
    for (size_t i = 0; i < ft_artifact_count(a); i++) {
        const ft_artifact_tensor *t = ft_artifact_at(a, i);
        size_t alignment = t->bytes >= 65536 ? 4096 : 64;
        off += (uintptr_t) t->data % alignment != 0 || t->offset % alignment != 0;
        in_map += t->scale != NULL && (uintptr_t) t->scale % 64 != 0;
    }
    is_int(off, 0, "tensors are aligned to 64 bytes, and those of 64 KiB or more to 4096 bytes");
    is_int(in_map, 0, "scales are aligned to 64 bytes");
    is_int((long long) ft_artifact_find(a, "large.weight")->bytes, 130 * 512,
           "the sample has a tensor of 64 KiB or more");
    ft_artifact_close(a);
}

/* The number of resident pages of a file, among those that contain only bytes of the tensor. */
static size_t resident(const char *file, size_t offset, size_t bytes)
{
    unsigned char pages[1024];
    int fd = open(file, O_RDONLY);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t) offset);
    if (map == MAP_FAILED || mincore(map, bytes, pages) != 0)
        bail_out("cannot map");
    size_t count = 0;
    for (size_t i = 0; i < bytes / 4096; i++)
        count += pages[i] & 1;
    munmap(map, bytes);
    close(fd);
    return count;
}

/* Drops the pages of a file from the page cache. */
static void forget(const char *file)
{
    int fd = open(file, O_RDONLY);
    if (fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        bail_out("cannot drop");
    close(fd);
}

static void test_untouched(void)
{
    sample large = int8_sample;
    large.large = 1 << 14; /* columns: 2 MiB */
    write_sample(again, &large);
    ft_artifact *a = open_sample(again, FT_VERIFY_STRUCTURE);
    size_t offset = ft_artifact_find(a, "large.weight")->offset;
    size_t bytes = ft_artifact_find(a, "large.weight")->bytes;
    bytes -= 1 << 17; /* libzip searches the last 64 KiB of an archive for its end record */
    ft_artifact_close(a);
    forget(again);
    if (emulated() || sysconf(_SC_PAGESIZE) != 4096 || resident(again, offset, bytes) > 0) {
        skip(1, "this file system or emulator keeps its files in memory");
        return;
    }
    a = open_sample(again, FT_VERIFY_STRUCTURE);
    is_int((long long) resident(again, offset, bytes), 0,
           "opening an artifact with FT_VERIFY_STRUCTURE reads no page of the weights");
    ft_artifact_close(a);
}

/* ---- Reproducibility ---------------------------------------------------------------------- */

static bool same_bytes(const char *x, const char *y)
{
    size_t bytes[2];
    unsigned char *data[2] = { folder_read(x, &bytes[0]), folder_read(y, &bytes[1]) };
    bool same = bytes[0] == bytes[1] && memcmp(data[0], data[1], bytes[0]) == 0;
    free(data[0]);
    free(data[1]);
    return same;
}

static void test_same_bytes(void)
{
    sample other = int8_sample;
    mode_t old = umask(077);
    other.piece = 7;
    write_sample(again, &other);
    umask(old);
    ok(same_bytes(path, again),
       "the bytes of an artifact depend neither on the umask nor on the sizes of writes");
    other.seed++;
    write_sample(again, &other);
    ok(!same_bytes(path, again), "different weights give different bytes");
}

/* ---- Callbacks ----------------------------------------------------------------------------- */

static ft_status fail_late(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    int *calls = user;
    if (++*calls > 1)
        return ft_fail(err, FT_ESHAPE, "the text of the callback");
    memset(buffer, 0, bytes);
    *produced = bytes / 2;
    return FT_OK;
}

static ft_status give_nothing(void *user, void *buffer, size_t bytes, size_t *produced,
                              ft_error *err)
{
    (void) user, (void) buffer, (void) bytes, (void) err;
    *produced = 0;
    return FT_OK;
}

static ft_status give_too_much(void *user, void *buffer, size_t bytes, size_t *produced,
                               ft_error *err)
{
    (void) user, (void) buffer, (void) err;
    *produced = bytes + 1;
    return FT_OK;
}

/* Writes an artifact whose only file comes from `produce`. */
static ft_status finish_with(ft_read_callback produce, void *user, ft_error *err)
{
    ft_artifact_writer *w;
    json_t *config = json_object();
    const ft_artifact_header head = {
        .state = FT_ARTIFACT_FLOAT, .family = "bert", .tool = "ft-test", .config = config
    };
    ft_status rc = ft_artifact_create(&w, path, true, err);
    if (rc == FT_OK)
        rc = ft_artifact_add(w, "selftest/output", 1000, produce, user, err);
    if (rc == FT_OK)
        rc = ft_artifact_finish(w, &head, err);
    ft_artifact_discard(w);
    json_decref(config);
    return rc;
}

static void test_producers(void)
{
    ft_error err;
    int calls = 0;
    is_int(finish_with(fail_late, &calls, &err), FT_ESHAPE,
           "a failing callback ends writing with its status");
    is_str(err.text, "the text of the callback", "the error text of a failing callback is kept");
    is_int(finish_with(give_nothing, NULL, &err), FT_EARG,
           "a callback that produces no bytes is refused");
    has(err.text, "selftest/output: callback returned 0 of 1000 bytes",
        "the error of a callback that produces no bytes names the entry");
    is_int(finish_with(give_too_much, NULL, &err), FT_EARG,
           "a callback that produces too many bytes is refused");
    ft_artifact *a = open_sample(path, FT_VERIFY_SHA256);
    ok(sample_holds(a, &int8_sample), "the existing artifact is kept when writing fails");
    ft_artifact_close(a);
}

typedef struct {
    uint64_t last, total;
    int calls, backwards;
} course;

static void follow(void *user, uint64_t done, uint64_t total)
{
    course *c = user;
    c->backwards += done < c->last;
    c->last = done;
    c->total = total;
    c->calls++;
}

static void test_progress(void)
{
    course c = { 0 };
    sample followed = int8_sample;
    followed.progress = follow;
    followed.user = &c;
    write_sample(again, &followed);
    ok(c.calls > 4 && c.backwards == 0,
       "the progress callback is called with increasing byte counts");
    ok(c.last == c.total, "the progress callback ends at the total");
}

/* ---- Misuse -------------------------------------------------------------------------------- */

static void test_names(ft_artifact_writer *w)
{
    static const char *const bad[] = {
        "",     "/etc/passwd", "../x",     "a/../b", "a//b", "./a", "a/",
        "a\\b", "a b",         "\xc3\xa4", "w/x",    "s/x",  "z/x", "manifest.json",
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(bad); i++)
        is_int(ft_artifact_add_memory(w, bad[i], "", 0, &err), FT_EARG,
               "ft_artifact_add_memory refuses the file name \"%s\"",
               i == 9 ? "(not ASCII)" : bad[i]);
    is_int(ft_artifact_add_memory(w, "config.json", "", 0, &err), FT_OK,
           "ft_artifact_add_memory accepts the file name config.json");
    is_int(ft_artifact_add_memory(w, "config.json", "", 0, &err), FT_EARG,
           "ft_artifact_add_memory refuses a duplicate file name");
}

static void test_tensors(ft_artifact_writer *w)
{
    static const float scale[4] = { 1, 1, 1, 1 };
    ft_artifact_tensor t = {
        .name = "x", .role = "linear", .dtype = FT_I8, .ndim = 2, .dim = { 4, 4 }
    };
    ft_error err;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EARG,
           "ft_artifact_add_tensor refuses an I8 tensor without a scale");
    t.scale = scale;
    t.dtype = FT_F32;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EARG,
           "ft_artifact_add_tensor refuses an F32 tensor with a scale");
    t.scale = NULL;
    t.layout = FT_COL32;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EFORMAT,
           "ft_artifact_add_tensor refuses an F32 tensor in an I8 layout");
    t.layout = FT_PANEL32;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EFORMAT,
           "ft_artifact_add_tensor refuses an F32 tensor in PANEL32");
    t.dtype = FT_U4;
    t.groupwise.group = 48;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EFORMAT,
           "ft_artifact_add_tensor refuses groups of 48 columns");
    t.groupwise.group = 0;
    t.layout = FT_ROW;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EFORMAT,
           "ft_artifact_add_tensor refuses a U4 tensor that is not in PANEL32");
    t.dtype = FT_F32;
    t.dim[1] = 0;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EFORMAT,
           "ft_artifact_add_tensor refuses a tensor without elements");
    t.dim[0] = t.dim[1] = INT64_MAX;
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_ELIMIT,
           "ft_artifact_add_tensor refuses a tensor larger than the address space");
    t.dim[0] = t.dim[1] = 4;
    t.role = "two words";
    is_int(ft_artifact_add_tensor(w, &t, give_nothing, NULL, &err), FT_EARG,
           "ft_artifact_add_tensor refuses a role of two words");
}

static void test_heads(void)
{
    ft_error err;
    json_t *config = json_object();
    ft_artifact_writer *w;
    is_int(ft_artifact_create(&w, path, false, &err), FT_EARG,
           "ft_artifact_create refuses an existing file at once");
    if (ft_artifact_create(&w, path, true, &err) != FT_OK)
        bail_out("%s", err.text);
    test_names(w);
    test_tensors(w);
    const ft_artifact_header heads[] = {
        { FT_ARTIFACT_INT8, "bert", "ft-test", config, config, NULL, NULL }, /* and no amax.tsv */
        { FT_ARTIFACT_INT8, "bert", "ft-test", config, NULL, NULL, NULL },
        { FT_ARTIFACT_FLOAT, "bert", "ft-test", config, config, NULL, NULL },
        { FT_ARTIFACT_FLOAT, "bert", "ft-test", NULL, NULL, NULL, NULL },
        { FT_ARTIFACT_FLOAT, "two words", "ft-test", config, NULL, NULL, NULL },
    };
    static const char *const missing[] = { "of state int8 without amax.tsv",
                                           "of state int8 without a recipe",
                                           "of state float with a recipe", "without a config",
                                           "with a family of two words" };
    for (size_t i = 0; i < FT_COUNT(heads); i++)
        is_int(ft_artifact_finish(w, &heads[i], &err), FT_EARG,
               "ft_artifact_finish refuses a header %s", missing[i]);
    ft_artifact_discard(w);
    json_decref(config);
}

static void test_open_anything(void)
{
    ft_artifact *a;
    ft_error err;
    is_int(ft_artifact_open(&a, folder, FT_VERIFY_STRUCTURE, &err), FT_EIO,
           "ft_artifact_open refuses a folder");
    is_int(ft_artifact_open(&a, "/dev/null", FT_VERIFY_STRUCTURE, &err), FT_EIO,
           "ft_artifact_open refuses a device");
    is_int(ft_artifact_open(&a, "no-such.ft", FT_VERIFY_STRUCTURE, &err), FT_EIO,
           "ft_artifact_open refuses a missing file");
    has(err.text, "no-such.ft: No such file or directory",
        "the error of a missing artifact names the file and the cause");
    if (mkfifo(again, 0600) == 0) {
        is_int(ft_artifact_open(&a, again, FT_VERIFY_STRUCTURE, &err), FT_EIO,
               "ft_artifact_open refuses a pipe without waiting for a writer");
        unlink(again);
    }
    static _Alignas(64) const char bytes[128] = "PK";
    is_int(ft_artifact_open_memory(&a, "m", bytes + 1, 64, FT_VERIFY_STRUCTURE, &err), FT_EARG,
           "ft_artifact_open_memory refuses unaligned memory");
    ft_artifact_close(NULL);
}

int main(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    snprintf(again, sizeof again, "%s/again.ft", folder);
    test_float();
    test_int8();
    test_blocks();
    write_sample(path, &int8_sample);
    test_alignment();
    test_untouched();
    test_same_bytes();
    test_producers();
    test_progress();
    test_heads();
    unlink(again);
    test_open_anything();
    folder_remove(folder);
    return done_testing();
}
