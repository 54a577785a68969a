/*
 * safetensors_header.c - the grammar of a safetensors header and the checks of each entry.
 *
 * Memory use is proportional to the header: a list entry takes twice the shortest text that
 * describes one, and names are decoded into one buffer of the header's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/safetensors_header.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/json_scan.h"
#include "runtime/tensor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    ft_tensor tensor;
    int64_t begin, end;   /* data_offsets */
    unsigned fields_seen; /* bit mask of the fields so far */
} entry;

/* Fail with "FILE: TENSOR: ...": a semantic error of an entry, without a byte position. */
__attribute__((format(printf, 3, 4), cold)) static ft_status
fail_tensor(const ft_json_scanner *scan, ft_status code, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return ft_fail(scan->err, code, "%s: %.256s: %s", scan->file, scan->tensor, what);
}

/* Read [1, 2, ...], at most `capacity` numbers; more are reported with the status `limit`. */
static ft_status read_numbers(ft_json_scanner *scan, int64_t *number, int capacity, int *count,
                              ft_status limit, const char *what)
{
    *count = 0;
    FT_TRY(ft_json_scan_expect(scan, '['));
    if (ft_json_scan_accept(scan, ']'))
        return FT_OK;
    do {
        if (*count == capacity)
            return fail_tensor(scan, limit, "%s has more than %d numbers", what, capacity);
        FT_TRY(ft_json_scan_integer(scan, &number[*count]));
        ++*count;
    } while (ft_json_scan_accept(scan, ','));
    return ft_json_scan_close(scan, ']');
}

/* ---- One entry ---------------------------------------------------------------------------- */

/* Dtypes of the format that ft_dtype does not have. */
static bool is_unsupported_dtype(const char *dtype)
{
    static const char *const names[] = {
        "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3",
        "F6_E3M2", "F4",      "U16",     "U32",         "U64",         "C64",
    };
    for (size_t i = 0; i < FT_COUNT(names); i++)
        if (strcmp(names[i], dtype) == 0)
            return true;
    return false;
}

static ft_status read_dtype(ft_json_scanner *scan, entry *e)
{
    static const char choices[] = "F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL";
    const char *dtype;
    FT_TRY(ft_json_scan_string(scan, &dtype));
    if (ft_dtype_parse(dtype, &e->tensor.dtype) && ft_dtype_size(e->tensor.dtype) > 0)
        return FT_OK;
    if (is_unsupported_dtype(dtype))
        return fail_tensor(scan, FT_EUNSUPPORTED, "dtype %s is not supported, expected %s", dtype,
                           choices);
    return fail_tensor(scan, FT_EFORMAT, "unknown dtype \"%.40s\", expected %s", dtype, choices);
}

static ft_status read_shape(ft_json_scanner *scan, entry *e)
{
    return read_numbers(scan, e->tensor.dim, FT_MAX_DIMS, &e->tensor.ndim, FT_ELIMIT, "shape");
}

static ft_status read_offsets(ft_json_scanner *scan, entry *e)
{
    int64_t offset[2];
    int count;
    FT_TRY(read_numbers(scan, offset, 2, &count, FT_EFORMAT, "data_offsets"));
    if (count != 2)
        return fail_tensor(scan, FT_EFORMAT, "data_offsets has %d numbers, expected 2", count);
    e->begin = offset[0];
    e->end = offset[1];
    return FT_OK;
}

static const struct {
    const char *name;
    ft_status (*read)(ft_json_scanner *, entry *);
} fields[] = {
    { "dtype", read_dtype },
    { "shape", read_shape },
    { "data_offsets", read_offsets },
};

static ft_status read_field(ft_json_scanner *scan, entry *e)
{
    const char *name;
    FT_TRY(ft_json_scan_string(scan, &name));
    FT_TRY(ft_json_scan_expect(scan, ':'));
    size_t i = 0;
    while (i < FT_COUNT(fields) && strcmp(fields[i].name, name) != 0)
        i++;
    if (i == FT_COUNT(fields))
        return fail_tensor(scan, FT_EFORMAT,
                           "unknown field \"%.40s\", expected dtype, shape and data_offsets", name);
    if (e->fields_seen & 1u << i)
        return fail_tensor(scan, FT_EFORMAT, "%s is given twice", name);
    e->fields_seen |= 1u << i;
    scan->field = fields[i].name;
    FT_TRY(fields[i].read(scan, e));
    scan->field = NULL;
    return FT_OK;
}

/*
 * Size of a tensor in bytes. Dimensions of 0 are left out of the product until the end, so that no
 * partial product overflows, in whatever order other code multiplies.
 */
static bool size_of(const ft_tensor *tensor, size_t *bytes)
{
    bool empty = false;
    *bytes = ft_dtype_size(tensor->dtype);
    for (int i = 0; i < tensor->ndim; i++) {
        empty |= tensor->dim[i] == 0;
        if (__builtin_mul_overflow(*bytes, tensor->dim[i] == 0 ? 1 : tensor->dim[i], bytes))
            return false;
    }
    if (empty)
        *bytes = 0;
    return true;
}

/* Check an entry whose fields have been read, and point the tensor at its data. */
static ft_status locate_data(ft_json_scanner *scan, entry *e, const ft_safetensors_header *header)
{
    for (size_t i = 0; i < FT_COUNT(fields); i++)
        if (!(e->fields_seen & 1u << i))
            return fail_tensor(scan, FT_EFORMAT, "%s is missing", fields[i].name);

    char shape[FT_SHAPE_TEXT];
    const ft_tensor *t = &e->tensor;
    size_t bytes;
    if (!size_of(t, &bytes))
        return fail_tensor(scan, FT_EFORMAT, "%s %s overflows", ft_dtype_name(t->dtype),
                           ft_shape_text(shape, t->ndim, t->dim));
    if (e->begin > e->end)
        return fail_tensor(scan, FT_EFORMAT,
                           "data_offsets [%" PRId64 ", %" PRId64 "] end before they begin",
                           e->begin, e->end);
    if ((uint64_t) e->end > header->bytes)
        return fail_tensor(scan, FT_EFORMAT,
                           "data_offsets [%" PRId64 ", %" PRId64
                           "] lie outside the data, which are %zu bytes",
                           e->begin, e->end, header->bytes);
    if ((uint64_t) (e->end - e->begin) != bytes)
        return fail_tensor(scan, FT_EFORMAT,
                           "data_offsets [%" PRId64 ", %" PRId64 "] hold %" PRId64
                           " bytes, expected %zu for %s %s",
                           e->begin, e->end, e->end - e->begin, bytes, ft_dtype_name(t->dtype),
                           ft_shape_text(shape, t->ndim, t->dim));

    /* ft_tensor has a non-const pointer; safetensors.h documents that this data is read-only. */
    e->tensor.data = (void *) (uintptr_t) (header->data + e->begin);
    return FT_OK;
}

static ft_status append(ft_safetensors_header *header, const char *name, const ft_tensor *tensor,
                        const ft_json_scanner *scan)
{
    if (header->count == header->capacity) {
        void *grown = ft_array_grow(header->tensor, &header->capacity, 64, sizeof *header->tensor);
        if (grown == NULL)
            return ft_fail(scan->err, FT_ENOMEM, "%s: no memory", scan->file);
        header->tensor = grown;
    }
    header->tensor[header->count++] = (ft_named_tensor){ name, *tensor };
    return FT_OK;
}

static ft_status read_entry(ft_json_scanner *scan, const char *name, ft_safetensors_header *header)
{
    entry e = { .tensor.layout = FT_ROW };
    char *out = scan->out;
    if (*name == '\0')
        return ft_json_scan_fail(scan, "empty tensor name");
    scan->tensor = name;
    FT_TRY(ft_json_scan_expect(scan, '{'));
    if (!ft_json_scan_accept(scan, '}')) {
        do {
            FT_TRY(read_field(scan, &e));
        } while (ft_json_scan_accept(scan, ','));
        FT_TRY(ft_json_scan_close(scan, '}'));
    }
    FT_TRY(locate_data(scan, &e, header));
    scan->tensor = NULL;
    scan->out = out; /* keep names, discard field names and dtypes */
    return append(header, name, &e.tensor, scan);
}

/* ---- The header --------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* `keys` are consecutive zero-terminated strings. */
static ft_status check_unique(const ft_json_scanner *scan, const char *keys, size_t count)
{
    const char **sorted = ft_calloc(count, sizeof *sorted);
    if (sorted == NULL)
        return ft_fail(scan->err, FT_ENOMEM, "%s: no memory", scan->file);
    for (size_t i = 0; i < count; i++, keys += strlen(keys) + 1)
        sorted[i] = keys;
    qsort(sorted, count, sizeof *sorted, by_text);

    ft_status rc = FT_OK;
    for (size_t i = 1; i < count && rc == FT_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            rc = ft_fail(scan->err, FT_EFORMAT, "%s: __metadata__: \"%.256s\" is given twice",
                         scan->file, sorted[i]);
    free(sorted);
    return rc;
}

/* Pairs of strings. They do not affect the tensors, so they are only validated. */
static ft_status read_metadata(ft_json_scanner *scan)
{
    char *keys = scan->out;
    size_t count = 0;
    FT_TRY(ft_json_scan_expect(scan, '{'));
    if (ft_json_scan_accept(scan, '}'))
        return FT_OK;
    do {
        const char *key, *value;
        FT_TRY(ft_json_scan_string(scan, &key));
        FT_TRY(ft_json_scan_expect(scan, ':'));
        char *out = scan->out;
        FT_TRY(ft_json_scan_string(scan, &value));
        scan->out = out;
        count++;
    } while (ft_json_scan_accept(scan, ','));
    FT_TRY(ft_json_scan_close(scan, '}'));
    FT_TRY(check_unique(scan, keys, count));
    scan->out = keys;
    return FT_OK;
}

static ft_status read_member(ft_json_scanner *scan, ft_safetensors_header *header, bool *metadata)
{
    const char *name;
    FT_TRY(ft_json_scan_string(scan, &name));
    FT_TRY(ft_json_scan_expect(scan, ':'));
    if (strcmp(name, "__metadata__") != 0)
        return read_entry(scan, name, header);
    if (*metadata)
        return ft_json_scan_fail(scan, "__metadata__ is given twice");
    *metadata = true;
    return read_metadata(scan);
}

static ft_status read_object(ft_json_scanner *scan, ft_safetensors_header *header)
{
    bool metadata = false;
    if (scan->at < scan->end && *scan->at != '{') /* leading white space is not allowed */
        return ft_json_scan_fail_expected(scan, "'{'");
    FT_TRY(ft_json_scan_expect(scan, '{'));
    if (!ft_json_scan_accept(scan, '}')) {
        do {
            FT_TRY(read_member(scan, header, &metadata));
        } while (ft_json_scan_accept(scan, ','));
        FT_TRY(ft_json_scan_close(scan, '}'));
    }
    return ft_json_scan_end(scan);
}

/* The length is untrusted and determines the size of an allocation: check it first. */
static ft_status read_length(const char *file, const void *bytes, size_t size, size_t *length,
                             ft_error *err)
{
    if (size < 8)
        return ft_fail(err, FT_EFORMAT, "%s: file of %zu bytes, expected at least 8", file, size);
    uint64_t found = ft_load_le64(bytes);
    if (found > FT_SAFETENSORS_MAX_HEADER)
        return ft_fail(err, FT_ELIMIT, "%s: header of %" PRIu64 " bytes, expected at most %d", file,
                       found, FT_SAFETENSORS_MAX_HEADER);
    if (found > size - 8)
        return ft_fail(err, FT_EFORMAT,
                       "%s: header of %" PRIu64
                       " bytes, but the file has only %zu after its length",
                       file, found, size - 8);
    *length = (size_t) found;
    return FT_OK;
}

ft_status ft_safetensors_header_read(ft_safetensors_header *header, const char *file,
                                     const void *bytes, size_t size, ft_error *err)
{
    size_t length = 0;
    *header = (ft_safetensors_header){ .count = 0 };
    FT_TRY(read_length(file, bytes, size, &length, err));
    header->names = malloc(length + 1);
    if (header->names == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", file);

    const unsigned char *text = (const unsigned char *) bytes + 8;
    header->data = text + length;
    header->bytes = size - 8 - length;
    ft_json_scanner scan = { .file = file,
                             .start = text,
                             .at = text,
                             .end = header->data,
                             .out = header->names,
                             .err = err };
    return read_object(&scan, header);
}

void ft_safetensors_header_fini(ft_safetensors_header *header)
{
    free(header->tensor);
    free(header->names);
}
