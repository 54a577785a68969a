/*
 * safetensors_write.c - write named tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/safetensors.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/json_scan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct header_writer {
    const char *path;
    const ft_named_tensor **tensor; /* in the order of the file */
    size_t count;
    char *header; /* length, JSON and padding */
    size_t header_bytes;
    ft_error *err;
} header_writer;

/* The file offsets of a tensor's next byte and of its end. */
typedef struct file_range {
    uint64_t at, end;
} file_range;

struct ft_safetensors_stream {
    ft_atomic_file *output;
    file_range *file_range; /* [count] */
    size_t count;
};

/* ---- Checks ------------------------------------------------------------------------------- */

static bool is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *) text, *end = at + strlen(text);
    while (at < end) {
        size_t length = ft_utf8_sequence_length(at, end);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

static bool is_empty(const ft_tensor *tensor)
{
    bool empty = false;
    for (int i = 0; i < tensor->ndim; i++)
        empty |= tensor->dim[i] == 0;
    return empty;
}

static bool has_size(const ft_tensor *tensor)
{
    if (ft_dtype_size(tensor->dtype) == 0 || tensor->ndim < 0 || tensor->ndim > FT_MAX_DIMS)
        return false;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->dim[i] < 0)
            return false;
    return is_empty(tensor) || ft_tensor_bytes(tensor) > 0;
}

static ft_status check_tensor(const header_writer *j, const ft_named_tensor *t)
{
    if (*t->name == '\0' || !is_utf8(t->name) || strcmp(t->name, "__metadata__") == 0)
        return ft_fail(j->err, FT_EARG, "%s: \"%.256s\" is not a valid tensor name", j->path,
                       t->name);
    if (!has_size(&t->tensor))
        return ft_fail(j->err, FT_EARG, "%s: %.256s: unsupported dtype or shape", j->path, t->name);
    if (t->tensor.layout != FT_ROW)
        return ft_fail(j->err, FT_EARG, "%s: %.256s: layout is not row", j->path, t->name);
    return FT_OK;
}

static ft_status check_data(const char *path, const ft_named_tensor *t, ft_error *err)
{
    if (t->tensor.data == NULL && !is_empty(&t->tensor))
        return ft_fail(err, FT_EARG, "%s: %.256s: no data", path, t->name);
    return FT_OK;
}

static int compare_names(const void *a, const void *b)
{
    const ft_named_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* On return j->tensor is sorted by name. */
static ft_status check_tensors(const header_writer *j)
{
    for (size_t i = 0; i < j->count; i++)
        FT_TRY(check_tensor(j, j->tensor[i]));
    qsort(j->tensor, j->count, sizeof *j->tensor, compare_names);
    for (size_t i = 1; i < j->count; i++)
        if (compare_names(&j->tensor[i - 1], &j->tensor[i]) == 0)
            return ft_fail(j->err, FT_EARG, "%s: %.256s: tensor is given twice", j->path,
                           j->tensor[i]->name);
    return FT_OK;
}

/* ---- The header --------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *) text; *c != '\0'; c++)
        if (*c < 0x20 || *c == '"' || *c == '\\')
            fprintf(out, "\\u%04x", *c);
        else
            putc(*c, out);
    putc('"', out);
}

static void put_entry(FILE *out, const ft_named_tensor *t, size_t write_header, size_t end)
{
    put_string(out, t->name);
    fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", ft_dtype_name(t->tensor.dtype));
    for (int i = 0; i < t->tensor.ndim; i++)
        fprintf(out, "%s%" PRId64, i == 0 ? "" : ",", t->tensor.dim[i]);
    fprintf(out, "],\"data_offsets\":[%zu,%zu]}", write_header, end);
}

/* False when the offsets overflow. */
static bool put_header(FILE *out, const header_writer *j)
{
    size_t write_header = 0, end;
    fwrite("\0\0\0\0\0\0\0", 1, 8, out); /* the length, filled in later */
    putc('{', out);
    for (size_t i = 0; i < j->count; i++, write_header = end) {
        if (!ft_checked_add(write_header, ft_tensor_bytes(&j->tensor[i]->tensor), &end))
            return false;
        if (i > 0)
            putc(',', out);
        put_entry(out, j->tensor[i], write_header, end);
    }
    putc('}', out);
    for (long used = ftell(out); used % 8 != 0; used++)
        putc(' ', out);
    return true;
}

static ft_status make_header(header_writer *j)
{
    FILE *out = open_memstream(&j->header, &j->header_bytes);
    if (out == NULL)
        return ft_fail(j->err, FT_ENOMEM, "%s: no memory", j->path);
    bool fits = put_header(out, j);
    if (!ft_memstream_close(out, &j->header))
        return ft_fail(j->err, FT_ENOMEM, "%s: no memory", j->path);
    if (!fits)
        return ft_fail(j->err, FT_EARG, "%s: tensors too large for any file", j->path);
    if (j->header_bytes - 8 > FT_SAFETENSORS_MAX_HEADER)
        return ft_fail(j->err, FT_ELIMIT, "%s: header of %zu bytes, expected at most %d", j->path,
                       j->header_bytes - 8, FT_SAFETENSORS_MAX_HEADER);
    ft_store_le64(j->header, j->header_bytes - 8);
    return FT_OK;
}

/*
 * Largest elements first: all element sizes are powers of two, so each group ends aligned for the
 * next one.
 */
static void order_tensors(const header_writer *j, const ft_named_tensor *tensors)
{
    size_t n_placed = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (size_t i = 0; i < j->count; i++)
            if (ft_dtype_size(tensors[i].tensor.dtype) == size)
                j->tensor[n_placed++] = &tensors[i];
}

/* ---- The file ----------------------------------------------------------------------------- */

static ft_status write_at(const ft_atomic_file *output, const void *data, size_t bytes, uint64_t at,
                          ft_error *err)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t written = pwrite(ft_atomic_file_fd(output), from, bytes, (off_t) at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return ft_fail_errno(err, "%s: cannot write", ft_atomic_file_path(output));
        from += written;
        at += (uint64_t) written;
        bytes -= (size_t) written;
    }
    return FT_OK;
}

/* Each tensor starts where the previous one in the file ends. */
static void assign_offsets(const header_writer *j, const ft_named_tensor *tensors,
                           file_range *ranges)
{
    uint64_t at = j->header_bytes;
    for (size_t i = 0; i < j->count; i++) {
        file_range *p = &ranges[j->tensor[i] - tensors];
        p->at = at;
        p->end = at += ft_tensor_bytes(&j->tensor[i]->tensor);
    }
}

static ft_status write_header(header_writer *j, const ft_named_tensor *tensors,
                              const ft_safetensors_stream *stream)
{
    for (size_t i = 0; i < j->count; i++)
        j->tensor[i] = &tensors[i];
    FT_TRY(check_tensors(j));
    order_tensors(j, tensors);
    FT_TRY(make_header(j));
    assign_offsets(j, tensors, stream->file_range);
    return write_at(stream->output, j->header, j->header_bytes, 0, j->err);
}

ft_status ft_safetensors_stream_open(ft_safetensors_stream **out, ft_atomic_file *output,
                                     const ft_named_tensor *tensors, size_t count, ft_error *err)
{
    header_writer j = { .path = ft_atomic_file_path(output), .count = count, .err = err };
    ft_safetensors_stream *stream = calloc(1, sizeof *stream);
    ft_status status = FT_OK;
    *out = NULL;
    j.tensor = ft_calloc(count, sizeof *j.tensor);
    if (stream != NULL) {
        *stream = (ft_safetensors_stream){ .output = output, .count = count };
        stream->file_range = ft_calloc(count, sizeof *stream->file_range);
    }
    if (stream == NULL || stream->file_range == NULL || j.tensor == NULL)
        status = ft_fail(err, FT_ENOMEM, "%s: no memory", j.path);
    if (status == FT_OK)
        status = write_header(&j, tensors, stream);
    free(j.header);
    free(j.tensor);
    if (status == FT_OK)
        *out = stream;
    else
        ft_safetensors_stream_free(stream);
    return status;
}

ft_status ft_safetensors_stream_write(ft_safetensors_stream *stream, size_t index, const void *data,
                                      size_t bytes, ft_error *err)
{
    file_range *p = &stream->file_range[index];
    assert(bytes <= p->end - p->at);
    FT_TRY(write_at(stream->output, data, bytes, p->at, err));
    p->at += bytes;
    return FT_OK;
}

ft_status ft_safetensors_stream_commit(ft_safetensors_stream *stream, ft_error *err)
{
    for (size_t i = 0; i < stream->count; i++)
        assert(stream->file_range[i].at == stream->file_range[i].end);
    return ft_atomic_file_commit(stream->output, err);
}

void ft_safetensors_stream_free(ft_safetensors_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->file_range);
    free(stream);
}

ft_status ft_safetensors_write_to(ft_atomic_file *output, const ft_named_tensor *tensors,
                                  size_t count, ft_error *err)
{
    ft_safetensors_stream *stream;
    for (size_t i = 0; i < count; i++)
        FT_TRY(check_data(ft_atomic_file_path(output), &tensors[i], err));
    FT_TRY(ft_safetensors_stream_open(&stream, output, tensors, count, err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < count && status == FT_OK; i++)
        status = ft_safetensors_stream_write(stream, i, tensors[i].tensor.data,
                                             ft_tensor_bytes(&tensors[i].tensor), err);
    if (status == FT_OK)
        status = ft_safetensors_stream_commit(stream, err);
    ft_safetensors_stream_free(stream);
    return status;
}

ft_status ft_safetensors_write(const char *path, const ft_named_tensor *tensors, size_t count,
                               bool force, ft_error *err)
{
    ft_atomic_file *output;
    FT_TRY(ft_atomic_file_open(&output, path, force, err));
    ft_status rc = ft_safetensors_write_to(output, tensors, count, err);
    ft_atomic_file_close(output);
    return rc;
}
