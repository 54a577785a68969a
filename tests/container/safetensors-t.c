/*
 * safetensors-t.c - which files are read, the errors for malformed files, and memory use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[4096]; /* a temporary folder for the files of this test */

static const char *in_folder(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- Files in memory ----------------------------------------------------------------------- */

typedef struct file {
    unsigned char *bytes; /* exactly as large as the file, so that a sanitizer sees its end */
    size_t size;
} file;

static file make_file(const char *header, size_t data)
{
    size_t length = strlen(header);
    file f = { .size = 8 + length + data };
    f.bytes = malloc(f.size);
    if (f.bytes == NULL)
        bail_out("no memory");
    ft_store_le64(f.bytes, length);
    memcpy(f.bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        f.bytes[8 + length + i] = (unsigned char) i;
    return f;
}

/* Parses a valid file with this header and `data` bytes 0, 1, 2, ... */
static ft_safetensors *parse(file *f, const char *header, size_t data)
{
    ft_error err;
    ft_safetensors *st;
    *f = make_file(header, data);
    if (ft_safetensors_parse(&st, "memory", f->bytes, f->size, &err) != FT_OK)
        bail_out("%s", err.text);
    return st;
}

/* ---- Valid files --------------------------------------------------------------------------- */

static void test_order_and_names(void)
{
    file f;
    ft_safetensors *st =
        parse(&f,
              "{ \"c\\u00e9\\ud83d\\ude00\\n\\/\\\"\" :\t"
              "{\"shape\":[3],\"dtype\":\"U8\",\"data_offsets\":[1,4]},\r\n"
              "\"b\":{\"data_offsets\":[4,8],\"dtype\":\"F32\",\"shape\":[]},"
              "\"__metadata__\":{\"format\":\"pt\",\"note\":\"\\u0007\"},"
              "\"a\":{\"dtype\":\"BOOL\",\"shape\":[1,1],\"data_offsets\":[0,1]}} ",
              8);
    is_int((long long) ft_safetensors_count(st), 3, "__metadata__ is not counted as a tensor");
    is_str(ft_safetensors_path(st), "memory", "ft_safetensors_path returns the given name");
    is_str(ft_safetensors_at(st, 0)->name, "a", "tensors are sorted by the offsets of their data");
    is_str(ft_safetensors_at(st, 1)->name, "c\u00e9\U0001f600\n/\"",
           "escapes in tensor names are decoded");
    const ft_tensor *b = ft_safetensors_find(st, "b");
    ok(b == &ft_safetensors_at(st, 2)->tensor, "a tensor is found by name");
    ok(b != NULL && b->dtype == FT_F32 && b->layout == FT_ROW && b->ndim == 0,
       "a tensor without dimensions is a scalar");
    ok(b != NULL && (unsigned char *) b->data == f.bytes + f.size - 4,
       "tensor data are not copied");
    ok(ft_safetensors_find(st, "") == NULL && ft_safetensors_find(st, "d") == NULL &&
           ft_safetensors_find(st, "__metadata__") == NULL,
       "ft_safetensors_find does not find a name that is absent");
    ft_safetensors_close(st);
    free(f.bytes);
}

static void test_odd_but_good(void)
{
    file f;
    ft_safetensors *st = parse(&f, "{}", 0);
    is_int((long long) ft_safetensors_count(st), 0, "a file without tensors is valid");
    ok(ft_safetensors_find(st, "w") == NULL, "no tensor is found in a file without tensors");
    ft_safetensors_close(st);
    free(f.bytes);

    st = parse(&f,
               "{\"z\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[3,3]},"
               "\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
               "\"y\":{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[0,0]},"
               "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[3,7]}}",
               7);
    const char *expected[] = { "y", "w", "z", "x" };
    for (size_t i = 0; i < FT_COUNT(expected); i++)
        is_str(ft_safetensors_at(st, i)->name, expected[i],
               "tensors at equal offsets, empty or not, have a fixed order: position %zu", i);
    is_int((long long) ft_tensor_bytes(ft_safetensors_find(st, "z")), 0,
           "an empty tensor has 0 bytes");
    const ft_tensor *x = ft_safetensors_find(st, "x");
    unsigned char bytes[4];
    memcpy(bytes, x->data, sizeof bytes);
    ok((uintptr_t) x->data % 4 != 0 && (unsigned char *) x->data == f.bytes + f.size - 4,
       "an unaligned tensor is not moved");
    is_int(ft_load_le32(bytes), 0x06050403, "an unaligned tensor can be read with memcpy");
    ft_safetensors_close(st);
    free(f.bytes);
    ft_safetensors_close(NULL);
}

static void test_many_names(void)
{
    enum { TENSORS = 5000 };
    char *header = malloc(TENSORS * 64 + 2), *at = header;
    char name[16];
    for (unsigned i = 0; i < TENSORS; i++)
        at += sprintf(at, "%c\"t%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                      i == 0 ? '{' : ',', i, i, i + 1);
    strcpy(at, "}");
    file f;
    ft_safetensors *st = parse(&f, header, TENSORS);
    int wrong = 0;
    for (unsigned i = 0; i < TENSORS; i++) {
        snprintf(name, sizeof name, "t%u", i);
        wrong += ft_safetensors_find(st, name) != &ft_safetensors_at(st, i)->tensor;
    }
    is_int(wrong, 0, "each of %d tensors is found by its name", TENSORS);
    ft_safetensors_close(st);
    free(f.bytes);
    free(header);
}

/* ---- Malformed files ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    ft_status status;
    const char *text;
} bad[] = {
    { "file-empty", FT_EFORMAT, "file of 0 bytes, expected at least 8" },
    { "file-too-short", FT_EFORMAT, "file of 5 bytes, expected at least 8" },
    { "header-too-long", FT_ELIMIT, "header of 100000001 bytes, expected at most 100000000" },
    { "header-length-huge", FT_ELIMIT, "header of 18446744073709551615 bytes" },
    { "header-beyond-file", FT_EFORMAT, "header of 3 bytes, but the file has only 2" },
    { "header-empty", FT_EFORMAT, "expected '{', found the end of the header" },
    { "header-array", FT_EFORMAT, "header byte 0: expected '{', found '['" },
    { "header-number", FT_EFORMAT, "header byte 0: expected '{', found '8'" },
    { "header-leading-space", FT_EFORMAT, "header byte 0: expected '{', found ' '" },
    { "header-cut", FT_EFORMAT, "w: header byte 24: expected '\"' to close the string" },
    { "header-trailing-garbage", FT_EFORMAT, "header byte 3: expected nothing after" },
    { "header-trailing-nul", FT_EFORMAT, "header byte 2: expected nothing after" },
    { "header-trailing-comma", FT_EFORMAT, "header byte 54: expected a string, found '}'" },
    { "header-missing-comma", FT_EFORMAT, "header byte 54: expected ',' or '}', found '\"'" },
    { "header-missing-colon", FT_EFORMAT, "header byte 5: expected ':', found '{'" },
    { "header-single-quotes", FT_EFORMAT, "header byte 1: expected a string, found '''" },
    { "header-comment", FT_EFORMAT, "header byte 1: expected a string, found '/'" },
    { "header-nesting", FT_EFORMAT, "w: header byte 5: expected '{', found '['" },
    { "header-byte-order-mark", FT_EFORMAT, "header byte 0: expected '{', found byte 0xef" },
    { "header-utf16", FT_EFORMAT, "header byte 1: expected a string, found byte 0x00" },
    { "duplicate-tensor", FT_EFORMAT, "w: tensor is listed twice" },
    { "duplicate-tensor-escaped", FT_EFORMAT, "w: tensor is listed twice" },
    { "duplicate-field", FT_EFORMAT, "w: dtype is given twice" },
    { "duplicate-metadata", FT_EFORMAT, "__metadata__ is given twice" },
    { "duplicate-metadata-key", FT_EFORMAT, "__metadata__: \"format\" is given twice" },
    { "field-unknown", FT_EFORMAT, "w: unknown field \"strides\", expected dtype, shape and" },
    { "field-dtype-missing", FT_EFORMAT, "w: dtype is missing" },
    { "field-shape-missing", FT_EFORMAT, "w: shape is missing" },
    { "field-offsets-missing", FT_EFORMAT, "w: data_offsets is missing" },
    { "tensor-empty-object", FT_EFORMAT, "w: dtype is missing" },
    { "tensor-not-object", FT_EFORMAT, "w: header byte 5: expected '{', found '['" },
    { "tensor-null", FT_EFORMAT, "w: header byte 5: expected '{', found 'n'" },
    { "metadata-not-object", FT_EFORMAT, "header byte 16: expected '{', found '\"'" },
    { "metadata-not-text", FT_EFORMAT, "header byte 26: expected a string, found '4'" },
    { "name-empty", FT_EFORMAT, "empty tensor name" },
    { "name-with-nul", FT_EFORMAT, "header byte 3: U+0000 in a string" },
    { "utf8-lone-continuation", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-cut", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-overlong", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-overlong-three", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-surrogate", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-beyond-unicode", FT_EFORMAT, "header byte 3: bad UTF-8" },
    { "utf8-in-metadata", FT_EFORMAT, "header byte 27: bad UTF-8" },
    { "string-control-character", FT_EFORMAT, "header byte 3: control character 0x0a" },
    { "string-escape-unknown", FT_EFORMAT, "header byte 3: unknown escape" },
    { "string-escape-not-hex", FT_EFORMAT, "header byte 3: expected four hexadecimal digits" },
    { "string-escape-cut", FT_EFORMAT, "header byte 3: expected four hexadecimal digits" },
    { "string-surrogate-high-alone", FT_EFORMAT, "header byte 3: lone surrogate" },
    { "string-surrogate-low-alone", FT_EFORMAT, "header byte 3: lone surrogate" },
    { "string-surrogates-swapped", FT_EFORMAT, "header byte 3: lone surrogate" },
    { "string-without-end", FT_EFORMAT, "header byte 3: expected '\"' to close the string" },
    { "dtype-unknown", FT_EFORMAT, "w: unknown dtype \"F33\", expected F64, F32, F16, BF16" },
    { "dtype-lower-case", FT_EFORMAT, "w: unknown dtype \"f32\"" },
    { "dtype-not-text", FT_EFORMAT, "w: dtype: header byte 14: expected a string, found '3'" },
    { "dtype-f8-e4m3", FT_EUNSUPPORTED, "w: dtype F8_E4M3 is not supported, expected F64, F32" },
    { "dtype-f8-e5m2", FT_EUNSUPPORTED, "w: dtype F8_E5M2 is not supported" },
    { "dtype-f8-e8m0", FT_EUNSUPPORTED, "w: dtype F8_E8M0 is not supported" },
    { "dtype-f4", FT_EUNSUPPORTED, "w: dtype F4 is not supported" },
    { "dtype-u16", FT_EUNSUPPORTED, "w: dtype U16 is not supported" },
    { "dtype-u32", FT_EUNSUPPORTED, "w: dtype U32 is not supported" },
    { "dtype-u64", FT_EUNSUPPORTED, "w: dtype U64 is not supported" },
    { "dtype-c64", FT_EUNSUPPORTED, "w: dtype C64 is not supported" },
    { "shape-negative", FT_EFORMAT, "w: shape: header byte 29: expected an integer from 0" },
    { "shape-minus-zero", FT_EFORMAT, "9223372036854775807, found -0" },
    { "shape-fractional", FT_EFORMAT, "9223372036854775807, found 2.0" },
    { "shape-exponent", FT_EFORMAT, "9223372036854775807, found 2e0" },
    { "shape-leading-zero", FT_EFORMAT, "9223372036854775807, found 02" },
    { "shape-text", FT_EFORMAT, "w: shape: header byte 29: expected an integer, found '\"'" },
    { "shape-scalar", FT_EFORMAT, "w: shape: header byte 28: expected '[', found '2'" },
    { "shape-nested", FT_EFORMAT, "w: shape: header byte 29: expected an integer, found '['" },
    { "shape-trailing-comma", FT_EFORMAT, "header byte 31: expected an integer, found ']'" },
    { "shape-beyond-int64", FT_EFORMAT, "9223372036854775807, found 9223372036854775808" },
    { "shape-wraps-to-2", FT_EFORMAT, "9223372036854775807, found 18446744073709551618" },
    { "shape-overflow", FT_EFORMAT, "w: F32 [4294967296, 4294967296] overflows" },
    { "shape-overflow-in-bytes", FT_EFORMAT, "w: F32 [4611686018427387906] overflows" },
    { "shape-overflow-before-zero", FT_EFORMAT, "[4294967296, 4294967296, 0] overflows" },
    { "shape-nine-dimensions", FT_ELIMIT, "w: shape has more than 8 numbers" },
    { "offsets-reversed", FT_EFORMAT, "w: data_offsets [8, 0] end before they begin" },
    { "offsets-outside", FT_EFORMAT, "w: data_offsets [0, 8] lie outside the data, which are 7" },
    { "offsets-far-outside", FT_EFORMAT, "lie outside the data, which are 8 bytes" },
    { "offsets-negative", FT_EFORMAT, "w: data_offsets: header byte 48: expected an integer" },
    { "offsets-wrap", FT_EFORMAT, "9223372036854775807, found 18446744073709551608" },
    { "offsets-one", FT_EFORMAT, "w: data_offsets has 1 numbers, expected 2" },
    { "offsets-three", FT_EFORMAT, "w: data_offsets has more than 2 numbers" },
    { "offsets-none", FT_EFORMAT, "w: data_offsets has 0 numbers, expected 2" },
    { "offsets-shorter-than-shape", FT_EFORMAT, "[0, 4] hold 4 bytes, expected 8 for F32 [2]" },
    { "offsets-longer-than-shape", FT_EFORMAT, "[0, 12] hold 12 bytes, expected 8 for F32 [2]" },
    { "overlap", FT_EFORMAT, "b: data begin at 4, inside a, expected 6" },
    { "overlap-entirely", FT_EFORMAT, "b: data begin at 0, inside a, expected 8" },
    { "overlap-empty-inside", FT_EFORMAT, "b: data begin at 4, inside a, expected 8" },
    { "hole-at-start", FT_EFORMAT, "a: data begin at 2, expected 0: the bytes between" },
    { "hole-in-middle", FT_EFORMAT, "b: data begin at 4, expected 3: the bytes between" },
    { "trailing-bytes", FT_EFORMAT, "9 bytes of data, expected 8" },
    { "trailing-bytes-no-tensors", FT_EFORMAT, "1 bytes of data, expected 0" },
};

static void test_bad_files(void)
{
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        ft_error err = { .code = FT_OK };
        ft_safetensors *st;
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/data/bad-%s.safetensors", getenv("FT_SRCDIR"),
                 bad[i].name);
        ft_status rc = ft_safetensors_open(&st, path, &err);
        bool named = strncmp(err.text, path, strlen(path)) == 0;
        if (!ok(rc == bad[i].status && err.code == rc && st == NULL && named &&
                    strstr(err.text, bad[i].text) != NULL,
                "%s is refused by name: %s", bad[i].name, bad[i].text))
            diag("found %s \"%s\", expected %s", ft_status_name(rc), err.text,
                 ft_status_name(bad[i].status));
        ft_safetensors_close(st);
    }
}

static void test_bad_files_are_all_listed(void)
{
    char path[4096];
    size_t files = 0;
    snprintf(path, sizeof path, "%s/tests/data", getenv("FT_SRCDIR"));
    DIR *entries = opendir(path);
    if (entries == NULL)
        bail_out("%s is missing", path);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        files += strncmp(entry->d_name, "bad-", 4) == 0 && strstr(entry->d_name, ".safetensors");
    closedir(entries);
    is_int((long long) files, FT_COUNT(bad), "every bad-*.safetensors is tested");
}

/* The header determines the length of the file, so a truncated file is never valid. */
static void test_cut_files(void)
{
    size_t accepted = 0;
    file f = make_file("{\"a\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
                       "\"\\u00e9\\ud83d\\ude00\":{\"dtype\":\"I8\",\"shape\":[3],"
                       "\"data_offsets\":[4,7]}}",
                       7);
    for (size_t size = 0; size < f.size; size++) {
        ft_safetensors *st;
        void *part = memcpy(malloc(size + 1), f.bytes, size);
        accepted += ft_safetensors_parse(&st, "part", part, size, NULL) == FT_OK;
        if (size > 8) {
            ft_store_le64(part, size - 8); /* make the header end at the end of the file */
            accepted += ft_safetensors_parse(&st, "part", part, size, NULL) == FT_OK;
        }
        free(part);
    }
    is_int((long long) accepted, 0, "a file truncated at any byte is refused");
    free(f.bytes);
}

static void test_not_files(void)
{
    ft_error err;
    ft_safetensors *st;
    is_int(ft_safetensors_open(&st, in_folder("absent"), &err), FT_EIO,
           "ft_safetensors_open fails with FT_EIO for a missing file");
    has(err.text, "absent: No such file", "the error of a missing file names it");
    is_int(ft_safetensors_open(&st, folder, &err), FT_EIO, "ft_safetensors_open refuses a folder");
    const char *pipe_path = in_folder("pipe");
    if (mkfifo(pipe_path, 0600) != 0)
        bail_out("mkfifo fails");
    is_int(ft_safetensors_open(&st, pipe_path, &err), FT_EIO,
           "ft_safetensors_open refuses a pipe without waiting for a writer");
    unlink(pipe_path);
}

/* ---- Streaming ---------------------------------------------------------------------------- */

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Sums 64 MiB of a file, one MiB at a time, releasing each. */
static void test_release(void)
{
    enum { MIB = 1 << 20, SIZE = 64 * MIB };
    const char *path = in_folder("large.safetensors");
    const char header[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[67108864],\"data_offsets\":"
                          "[0,67108864]}}";
    file start = make_file(header, 1 * MIB);
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(start.bytes, 1, start.size, out) != start.size || fclose(out) != 0 ||
        truncate(path, (off_t) (start.size - MIB + SIZE)) != 0)
        bail_out("cannot make a large file");

    ft_error err;
    ft_safetensors *st;
    if (ft_safetensors_open(&st, path, &err) != FT_OK)
        bail_out("%s", err.text);
    const unsigned char *data = ft_safetensors_find(st, "w")->data;
    long before = peak_kilobytes();
    long long sum = 0;
    for (size_t at = 0; at < SIZE; at += MIB) {
        for (size_t i = 0; i < MIB; i++)
            sum += data[at + i];
        ft_safetensors_release(st, data + at, MIB);
    }
    long grown = peak_kilobytes() - before;
    if (!ok(grown < 8192, "reading 64 MiB uses less than 8 MiB when pages are released"))
        diag("took %ld KiB", grown);
    is_int(sum, 255LL * 128 * MIB / 256, "the pages read have the bytes of the file");
    is_int(data[MIB - 1], 255, "released pages are read from the file again");
    ft_safetensors_close(st);
    unlink(path);
    free(start.bytes);
}

/* Released pages of anonymous memory would come back as zeros. */
static void test_release_of_foreign_memory(void)
{
    enum { SIZE = 1 << 16 };
    char header[96];
    snprintf(header, sizeof header,
             "{\"w\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", SIZE, SIZE);
    file f;
    ft_safetensors *st = parse(&f, header, SIZE);
    const ft_tensor *w = ft_safetensors_find(st, "w");
    ft_safetensors_release(st, w->data, SIZE);
    const unsigned char *data = w->data;
    size_t kept = 0;
    for (size_t i = 0; i < SIZE; i++)
        kept += data[i] == i % 256;
    is_int((long long) kept, SIZE, "ft_safetensors_release keeps the memory of the caller");
    ft_safetensors_close(st);
    free(f.bytes);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/ft-safetensors-XXXXXX", temporary ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL || getenv("FT_SRCDIR") == NULL)
        bail_out("needs a temporary folder and FT_SRCDIR");
    test_order_and_names();
    test_odd_but_good();
    test_many_names();
    test_bad_files();
    test_bad_files_are_all_listed();
    test_cut_files();
    test_not_files();
    test_release();
    test_release_of_foreign_memory();
    rmdir(folder);
    return done_testing();
}
