/*
 * safetensors.c - map a file, index its tensors by name and by position, and check that they tile
 * it.
 *
 * Names are looked up in a sorted list rather than a hash table: sorting also finds duplicates, and
 * no choice of names makes it slow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/safetensors.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors_header.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct ft_safetensors {
    char *path;
    void *map; /* NULL when the caller owns the bytes */
    size_t mapped_bytes;
    ft_safetensors_header header;    /* tensors sorted by position */
    const ft_named_tensor **by_name; /* tensors sorted by name */
};

/* ---- The index ---------------------------------------------------------------------------- */

static const char *begin_of(const ft_named_tensor *t)
{
    return t->tensor.data;
}

static const char *end_of(const ft_named_tensor *t)
{
    return begin_of(t) + ft_tensor_bytes(&t->tensor);
}

static int compare_names(const void *a, const void *b)
{
    const ft_named_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* By begin, then end, so that empty tensors precede the tensor that starts at the same position. */
static int compare_positions(const void *a, const void *b)
{
    const ft_named_tensor *left = a, *right = b;
    if (begin_of(left) != begin_of(right))
        return begin_of(left) < begin_of(right) ? -1 : 1;
    if (end_of(left) != end_of(right))
        return end_of(left) < end_of(right) ? -1 : 1;
    return strcmp(left->name, right->name);
}

static ft_status index_names(ft_safetensors *st, ft_error *err)
{
    size_t count = st->header.count;
    st->by_name = ft_calloc(count, sizeof *st->by_name);
    if (st->by_name == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", st->path);
    for (size_t i = 0; i < count; i++)
        st->by_name[i] = &st->header.tensor[i];
    qsort(st->by_name, count, sizeof *st->by_name, compare_names);
    for (size_t i = 1; i < count; i++)
        if (compare_names(&st->by_name[i - 1], &st->by_name[i]) == 0)
            return ft_fail(err, FT_EFORMAT, "%s: %.256s: tensor is listed twice", st->path,
                           st->by_name[i]->name);
    return FT_OK;
}

/* Check that every byte of the data belongs to exactly one tensor. */
static ft_status check_tiling(const ft_safetensors *st, ft_error *err)
{
    const char *data = (const char *) st->header.data, *covered = data;
    for (size_t i = 0; i < st->header.count; i++) {
        const ft_named_tensor *t = &st->header.tensor[i];
        if (begin_of(t) < covered)
            return ft_fail(err, FT_EFORMAT,
                           "%s: %.256s: data begin at %zd, inside %.256s, expected %zd", st->path,
                           t->name, begin_of(t) - data, t[-1].name, covered - data);
        if (begin_of(t) > covered)
            return ft_fail(
                err, FT_EFORMAT,
                "%s: %.256s: data begin at %zd, expected %zd: the bytes between belong to "
                "no tensor",
                st->path, t->name, begin_of(t) - data, covered - data);
        covered = end_of(t);
    }
    size_t used = (size_t) (covered - data);
    if (used != st->header.bytes)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %zu bytes of data, expected %zu: the file goes on after its last "
                       "tensor",
                       st->path, st->header.bytes, used);
    return FT_OK;
}

static ft_status read_header(ft_safetensors *st, const void *bytes, size_t size, ft_error *err)
{
    FT_TRY(ft_safetensors_header_read(&st->header, st->path, bytes, size, err));
    if (st->header.count > 0)
        qsort(st->header.tensor, st->header.count, sizeof *st->header.tensor, compare_positions);
    FT_TRY(index_names(st, err));
    return check_tiling(st, err);
}

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status map_descriptor(ft_safetensors *st, int fd, ft_error *err)
{
    struct stat file_stat;
    if (fstat(fd, &file_stat) != 0)
        return ft_fail_errno(err, "%s", st->path);
    if (!S_ISREG(file_stat.st_mode))
        return ft_fail(err, FT_EIO, "%s: not a regular file", st->path);
    if (file_stat.st_size == 0) /* mmap rejects length 0 */
        return ft_fail(err, FT_EFORMAT, "%s: file of 0 bytes, expected at least 8", st->path);
    if ((uint64_t) file_stat.st_size > SIZE_MAX)
        return ft_fail(err, FT_ELIMIT, "%s: larger than the address space", st->path);
    void *map = mmap(NULL, (size_t) file_stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return ft_fail_errno(err, "%s", st->path);
    st->map = map;
    st->mapped_bytes = (size_t) file_stat.st_size;
    return FT_OK;
}

static ft_status map_file(ft_safetensors *st, ft_error *err)
{
    /* Without O_NONBLOCK, opening a FIFO would block until there is a writer. */
    int fd = open(st->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ft_fail_errno(err, "%s", st->path);
    ft_status rc = map_descriptor(st, fd, err);
    close(fd);
    return rc;
}

static ft_safetensors *new_safetensors(const char *path)
{
    ft_safetensors *st = calloc(1, sizeof *st);
    if (st != NULL && (st->path = ft_strdup(path)) == NULL) {
        free(st);
        return NULL;
    }
    return st;
}

ft_status ft_safetensors_open(ft_safetensors **out, const char *path, ft_error *err)
{
    *out = NULL;
    ft_safetensors *st = new_safetensors(path);
    if (st == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
    ft_status rc = map_file(st, err);
    if (rc == FT_OK)
        rc = read_header(st, st->map, st->mapped_bytes, err);
    if (rc != FT_OK) {
        ft_safetensors_close(st);
        return rc;
    }
    *out = st;
    return FT_OK;
}

ft_status ft_safetensors_parse(ft_safetensors **out, const char *name, const void *bytes,
                               size_t size, ft_error *err)
{
    *out = NULL;
    ft_safetensors *st = new_safetensors(name);
    if (st == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", name);
    ft_status rc = read_header(st, bytes, size, err);
    if (rc != FT_OK) {
        ft_safetensors_close(st);
        return rc;
    }
    *out = st;
    return FT_OK;
}

void ft_safetensors_close(ft_safetensors *st)
{
    if (st == NULL)
        return;
    if (st->map != NULL)
        munmap(st->map, st->mapped_bytes);
    ft_safetensors_header_fini(&st->header);
    free(st->by_name);
    free(st->path);
    free(st);
}

/* ---- Queries -------------------------------------------------------------------------------- */

const char *ft_safetensors_path(const ft_safetensors *st)
{
    return st->path;
}

size_t ft_safetensors_count(const ft_safetensors *st)
{
    return st->header.count;
}

const ft_named_tensor *ft_safetensors_at(const ft_safetensors *st, size_t index)
{
    assert(index < st->header.count);
    return &st->header.tensor[index];
}

const ft_tensor *ft_safetensors_find(const ft_safetensors *st, const char *name)
{
    const ft_named_tensor key = { .name = name }, *wanted = &key;
    const ft_named_tensor **found =
        bsearch(&wanted, st->by_name, st->header.count, sizeof *st->by_name, compare_names);
    return found == NULL ? NULL : &(*found)->tensor;
}

void ft_safetensors_release(const ft_safetensors *st, const void *data, size_t bytes)
{
    uintptr_t map = (uintptr_t) st->map, begin = (uintptr_t) data;
    if (st->map == NULL || begin < map || begin - map > st->mapped_bytes ||
        bytes > st->mapped_bytes - (begin - map))
        return;
    /*
     * Accessing a page also maps its neighbours, up to 2 MiB where the kernel keeps files in large
     * folios, including pages that were released before. So the neighbours are released too: one
     * that is in use costs a minor fault.
     */
    size_t margin = 2 << 20, page = (size_t) sysconf(_SC_PAGESIZE);
    size_t start = begin - map, end = start + bytes;
    start = start > margin ? (start - margin) / page * page : 0;
    end = st->mapped_bytes - end > margin ? end + margin : st->mapped_bytes;
    madvise((char *) st->map + start, end - start, MADV_DONTNEED);
}
