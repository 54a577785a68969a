/*
 * protect_checkpoint.c - search the folders of a checkpoint for the file that would be overwritten.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/protect_checkpoint.h"

#include "runtime/error.h"
#include "runtime/base/atomic_file.h"
#include "runtime/container/file_type.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Sentence-transformers modules and weights of other frameworks are one level down. */
enum { DEPTH = 1 };

typedef struct {
    const char *output;
    struct stat about; /* of the existing output file */
    ft_error *err;
} guard;

static ft_status search_folder(const guard *g, const char *folder, int depth);

static ft_status check_entry(const guard *g, const char *path, int depth)
{
    struct stat about;
    if (stat(path, &about) != 0) /* follows links */
        return FT_OK;
    if (about.st_dev == g->about.st_dev && about.st_ino == g->about.st_ino)
        return ft_fail(g->err, FT_EARG,
                       "%s: would replace the input %s; in the folder of a checkpoint, --force "
                       "replaces only artifacts",
                       g->output, path);
    return S_ISDIR(about.st_mode) && depth > 0 ? search_folder(g, path, depth - 1) : FT_OK;
}

/* A missing or unreadable folder is reported by the code that reads the checkpoint. */
static ft_status search_folder(const guard *g, const char *folder, int depth)
{
    char path[PATH_MAX];
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return errno == ENOMEM ? ft_fail_errno(g->err, "%s", folder) : FT_OK;
    ft_status rc = FT_OK;
    for (const struct dirent *e; rc == FT_OK && (e = readdir(entries)) != NULL;) {
        int length = snprintf(path, sizeof path, "%s%s%s", folder,
                              folder[strlen(folder) - 1] == '/' ? "" : "/", e->d_name);
        bool here = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!here && length < (int) sizeof path)
            rc = check_entry(g, path, depth);
    }
    closedir(entries);
    return rc;
}

/* A checkpoint is the folder itself or the folder of its file. */
static ft_status search_beside(const guard *g, const char *path)
{
    struct stat about;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return search_folder(g, path, DEPTH);
    if (slash == NULL)
        return search_folder(g, ".", DEPTH);
    snprintf(folder, sizeof folder, "%.*s", (int) (slash - path + 1), path);
    return search_folder(g, folder, DEPTH);
}

ft_status ft_checkpoint_spare(const char *const *paths, size_t count, const char *output,
                              ft_error *err)
{
    guard g = { .output = output, .err = err };
    if (stat(output, &g.about) != 0 || ft_recognize_file(output) == FT_FILE_ARTIFACT)
        return FT_OK;
    for (size_t i = 0; i < count; i++)
        FT_TRY(ft_output_spare_input(output, paths[i], err));
    for (size_t i = 0; i < count; i++)
        FT_TRY(search_beside(&g, paths[i]));
    return FT_OK;
}
