/*
 * image_list.c - expand folders to the image files in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/image_files/image_list.h"

#include "runtime/data/images/image.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void ft_image_list_fini(ft_image_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->path[i]);
        free(list->folder[i]);
    }
    free(list->path);
    free(list->folder);
    *list = (ft_image_list){ 0 };
}

/* ---- Files ---------------------------------------------------------------------------------- */

static bool grow(ft_image_list *list)
{
    size_t capacity = list->capacity;
    char **path = ft_array_grow(list->path, &capacity, 64, sizeof *path);
    list->path = path != NULL ? path : list->path;
    char **folder = path != NULL ? realloc(list->folder, capacity * sizeof *folder) : NULL;
    list->folder = folder != NULL ? folder : list->folder;
    list->capacity = folder != NULL ? capacity : list->capacity;
    return folder != NULL;
}

/* Append a file; `folder` may be NULL. */
static ft_status append(ft_image_list *list, const char *path, const char *folder, ft_error *err)
{
    if (list->count == FT_IMAGE_LIST_MAX)
        return ft_fail(err, FT_ELIMIT, "%s: is image %zu, the limit is %d; give fewer at a time",
                       path, list->count + 1, FT_IMAGE_LIST_MAX);
    char *copy = ft_strdup(path), *class = folder == NULL ? NULL : ft_strdup(folder);
    bool copied = copy != NULL && (folder == NULL || class != NULL);
    if (copied && (list->count < list->capacity || grow(list))) {
        list->path[list->count] = copy;
        list->folder[list->count++] = class;
        return FT_OK;
    }
    free(copy);
    free(class);
    return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu paths", path, list->count + 1);
}

/* ---- Folders -------------------------------------------------------------------------------- */

/* The sorted entries of a folder: [count] files and folders, as dirent names them. */
typedef struct {
    struct dirent **entry;
    int count;
} listing;

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static ft_status open_listing(listing *out, const char *path, ft_error *err)
{
    out->count = scandir(path, &out->entry, is_visible, by_name);
    if (out->count >= 0)
        return FT_OK;
    *out = (listing){ NULL, 0 };
    return ft_fail_errno(err, "%s: cannot read the folder", path);
}

static void close_listing(listing *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->entry[i]);
    free(list->entry);
}

/* What a path is; it is followed if it is a link. */
static ft_status find_kind(const char *path, mode_t *kind, ft_error *err)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return ft_fail_errno(err, "%s: cannot open", path);
    *kind = found.st_mode & S_IFMT;
    return FT_OK;
}

static ft_status join(char **out, const char *folder, const char *name, ft_error *err)
{
    size_t length = strlen(folder);
    const char *separator = length > 0 && folder[length - 1] == '/' ? "" : "/";
    if (asprintf(out, "%s%s%s", folder, separator, name) >= 0)
        return FT_OK;
    *out = NULL;
    return ft_fail(err, FT_ENOMEM, "%s: no memory for a path", folder);
}

/* How an entry of a folder is added; `class` is the name of the folder if it is that of a class. */
typedef ft_status (*entry_fn)(ft_image_list *list, const char *path, const char *class,
                              ft_error *err);

static ft_status add_entries(ft_image_list *list, const char *folder, const char *class,
                             entry_fn add, ft_error *err)
{
    listing entries;
    size_t before = list->count;
    FT_TRY(open_listing(&entries, folder, err));
    ft_status status = FT_OK;
    for (int i = 0; i < entries.count && status == FT_OK; i++) {
        char *path;
        status = join(&path, folder, entries.entry[i]->d_name, err);
        if (status == FT_OK)
            status = add(list, path, class, err);
        free(path);
    }
    close_listing(&entries);
    if (status != FT_OK || list->count > before)
        return status;
    return ft_fail(err, FT_EFORMAT, "%s: holds no visible files, expected PNG or JPEG images%s",
                   folder, class == NULL ? ", or a folder of them for each class" : "");
}

static ft_status add_image(ft_image_list *list, const char *path, const char *class, ft_error *err)
{
    mode_t kind = 0;
    FT_TRY(find_kind(path, &kind, err));
    if (kind == S_IFDIR && class != NULL)
        return ft_fail(err, FT_EFORMAT, "%s: is a folder, expected the images of class \"%s\"",
                       path, class);
    if (kind != S_IFREG)
        return ft_fail(err, FT_EFORMAT, "%s: is not a regular file, expected an image", path);
    FT_TRY(ft_image_check(path, err));
    return append(list, path, class, err);
}

/* An image, or the folder of a class. */
static ft_status add_entry(ft_image_list *list, const char *path, const char *class, ft_error *err)
{
    mode_t kind = 0;
    FT_TRY(find_kind(path, &kind, err));
    return kind == S_IFDIR ? add_entries(list, path, strrchr(path, '/') + 1, add_image, err)
                           : add_image(list, path, class, err);
}

/* ---- Paths ---------------------------------------------------------------------------------- */

/* Anything but a regular file may be a pipe, which is not read ahead. */
static ft_status add_path(ft_image_list *list, const char *path, ft_error *err)
{
    mode_t kind = 0;
    FT_TRY(find_kind(path, &kind, err));
    if (kind == S_IFDIR)
        return add_entries(list, path, NULL, add_entry, err);
    if (kind == S_IFREG)
        return add_image(list, path, NULL, err);
    FT_TRY(append(list, path, NULL, err));
    list->once = list->path[list->count - 1];
    return FT_OK;
}

ft_status ft_image_list_read(ft_image_list *out, const char *const *path, size_t count,
                             ft_error *err)
{
    *out = (ft_image_list){ 0 };
    for (size_t i = 0; i < count; i++)
        FT_TRY(add_path(out, path[i], err));
    return FT_OK;
}
