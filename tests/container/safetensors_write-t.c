/*
 * safetensors_write-t.c - written files can be read, and a failed write leaves no file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[FOLDER_PATH]; /* a temporary folder */

static const char *in_folder(const char *name)
{
    static char path[FOLDER_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static ft_status write_one(const char *path, ft_named_tensor tensor, bool force, ft_error *err)
{
    return ft_safetensors_write(path, &tensor, 1, force, err);
}

static bool holds(const char *path, const char *name)
{
    ft_safetensors *st;
    bool found = ft_safetensors_open(&st, path, NULL) == FT_OK && ft_safetensors_count(st) == 1 &&
                 ft_safetensors_find(st, name) != NULL;
    ft_safetensors_close(st);
    return found;
}

static void test_round_trip(void)
{
    enum { DTYPES = FT_BOOL + 1 }; /* the format has no U4 */
    static const char awkward[] = "\"quoted\\\"\n\t\x7f \u00e9\u4e2d\U0001f600";
    static unsigned char data[64];
    ft_named_tensor written[DTYPES + 2];
    ft_error err;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char) (37 * i);
    for (int i = 0; i < DTYPES; i++)
        written[i] = (ft_named_tensor){ ft_dtype_name((ft_dtype) i),
                                        { (ft_dtype) i, FT_ROW, 2, { 1, 3 }, data + i } };
    written[DTYPES] = (ft_named_tensor){ "empty", { FT_I64, FT_ROW, 3, { 5, 0, 2 }, NULL } };
    written[DTYPES + 1] = (ft_named_tensor){ awkward, { FT_U8, FT_ROW, 0, { 0 }, data } };

    ft_safetensors *st;
    const char *path = in_folder("all.safetensors");
    if (ft_safetensors_write(path, written, DTYPES + 2, false, &err) != FT_OK ||
        ft_safetensors_open(&st, path, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int((long long) ft_safetensors_count(st), DTYPES + 2, "all written tensors are read");
    int aligned = 0;
    for (int i = 0; i < DTYPES + 2; i++) {
        const ft_tensor *in = &written[i].tensor, *out = ft_safetensors_find(st, written[i].name);
        ok(out != NULL && out->dtype == in->dtype && out->ndim == in->ndim &&
               memcmp(out->dim, in->dim, (size_t) in->ndim * sizeof *in->dim) == 0 &&
               (in->data == NULL || memcmp(out->data, in->data, ft_tensor_bytes(in)) == 0),
           "the tensor %s is unchanged by a round trip through a file",
           i <= DTYPES ? written[i].name : "with escapes in its name");
        aligned += out != NULL && (uintptr_t) out->data % ft_dtype_size(out->dtype) == 0;
    }
    is_int(aligned, DTYPES + 2, "the data of written tensors are aligned to their elements");
    ft_safetensors_close(st);
    unlink(path);

    is_int(ft_safetensors_write(path, NULL, 0, false, &err), FT_OK,
           "a file without tensors is written");
    is_int(ft_safetensors_open(&st, path, &err), FT_OK, "a file without tensors can be read");
    ft_safetensors_close(st);
    unlink(path);
}

static void test_overwriting(void)
{
    ft_error err;
    const char *path = in_folder("x.safetensors");
    ft_named_tensor old = { "old", { FT_U8, FT_ROW, 1, { 1 }, "x" } };
    ft_named_tensor new = { "new", { FT_U8, FT_ROW, 1, { 1 }, "y" } };
    mode_t before = umask(027);
    struct stat about;
    is_int(write_one(path, old, false, &err), FT_OK, "a new file is written");
    umask(before);
    is_int(stat(path, &about) == 0 ? about.st_mode & 0777 : 0, 0640,
           "the mode of a new file is 0666 without the umask");
    is_int(write_one(path, new, false, &err), FT_EARG, "an existing file is not overwritten");
    has(err.text, "x.safetensors: exists already",
        "the error of an existing file says that it exists");
    ok(holds(path, "old"), "an existing file that is not overwritten is unchanged");
    is_int(write_one(path, new, true, &err), FT_OK, "an existing file is overwritten with force");
    ok(holds(path, "new"), "an overwritten file has the new tensor");
    is_int(folder_count(folder), 1, "overwriting leaves no temporary file");
    is_int(write_one(folder, new, true, &err), FT_EARG,
           "a folder is not replaced, even with force");
    is_int(write_one("/dev/null", new, true, &err), FT_EARG,
           "a device is not replaced, even with force");
    is_int(write_one(in_folder("none/x"), new, true, &err), FT_EIO,
           "missing folders are not created");
    unlink(in_folder("x.safetensors"));
}

static void test_full_disk(void)
{
    enum { BIG = 1 << 20 };
    ft_error err;
    struct rlimit limit, small = { 4096, RLIM_INFINITY };
    const char *path = in_folder("x.safetensors");
    void *zeros = calloc(1, BIG);
    ft_named_tensor old = { "old", { FT_U8, FT_ROW, 1, { 1 }, "x" } };
    ft_named_tensor big = { "big", { FT_U8, FT_ROW, 1, { BIG }, zeros } };
    if (write_one(path, old, false, &err) != FT_OK || getrlimit(RLIMIT_FSIZE, &limit) != 0)
        bail_out("cannot prepare a small disk");
    small.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    ft_status rc = write_one(path, big, true, &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    is_int(rc, FT_EIO, "writing to a full disk fails with FT_EIO");
    has(err.text, "x.safetensors: cannot write: File too large",
        "the error of a full disk gives the system's reason");
    ok(holds(path, "old"), "the old file is intact after a failed write");
    is_int(folder_count(folder), 1, "a failed write leaves no temporary file");
    unlink(path);
    free(zeros);
}

static void test_unwritable_tensors(void)
{
    static const struct {
        const char *what;
        ft_named_tensor tensor;
    } cases[] = {
        { "an empty name", { "", { FT_U8, FT_ROW, 1, { 1 }, "x" } } },
        { "the name __metadata__", { "__metadata__", { FT_U8, FT_ROW, 1, { 1 }, "x" } } },
        { "a name that is not UTF-8", { "w\xff", { FT_U8, FT_ROW, 1, { 1 }, "x" } } },
        { "a negative dimension", { "w", { FT_U8, FT_ROW, 1, { -1 }, "x" } } },
        { "a size that overflows", { "w", { FT_F64, FT_ROW, 1, { INT64_MAX }, "x" } } },
        { "nine dimensions", { "w", { FT_U8, FT_ROW, 9, { 1 }, "x" } } },
        { "an unknown dtype", { "w", { (ft_dtype) 99, FT_ROW, 1, { 1 }, "x" } } },
        { "a kernel layout", { "w", { FT_I8, FT_COL32, 2, { 1, 1 }, "x" } } },
        { "no data", { "w", { FT_U8, FT_ROW, 1, { 1 }, NULL } } },
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(cases); i++)
        is_int(write_one(in_folder("w"), cases[i].tensor, false, &err), FT_EARG,
               "a tensor with %s cannot be written", cases[i].what);
    const ft_named_tensor w = { "w", { FT_U8, FT_ROW, 1, { 1 }, "x" } };
    is_int(ft_safetensors_write(in_folder("w"), (ft_named_tensor[]){ w, w }, 2, false, &err),
           FT_EARG, "two tensors of one name cannot be written");
    is_int(folder_count(folder), 0, "refused tensors leave no file");
}

int main(void)
{
    folder_make(folder);
    test_round_trip();
    test_overwriting();
    test_full_disk();
    test_unwritable_tensors();
    folder_remove(folder);
    return done_testing();
}
