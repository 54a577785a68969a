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
enum { MAX_DEPTH = 1 };

typedef struct {
    const char *output;
    struct stat file_stat; /* of the existing output file */
    ft_error *err;
} overwrite_check;

static ft_status search_folder(const overwrite_check *g, const char *folder, int depth);

static ft_status check_entry(const overwrite_check *g, const char *path, int depth)
{
    struct stat file_stat;
    if (stat(path, &file_stat) != 0) /* follows links */
        return FT_OK;
    if (file_stat.st_dev == g->file_stat.st_dev && file_stat.st_ino == g->file_stat.st_ino)
        return ft_fail(g->err, FT_EARG,
                       "%s: would replace the input %s; in the folder of a checkpoint, --force "
                       "replaces only artifacts",
                       g->output, path);
    return S_ISDIR(file_stat.st_mode) && depth > 0 ? search_folder(g, path, depth - 1) : FT_OK;
}

/* A missing or unreadable folder is reported by the code that reads the checkpoint. */
static ft_status search_folder(const overwrite_check *g, const char *folder, int depth)
{
    char path[PATH_MAX];
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return errno == ENOMEM ? ft_fail_errno(g->err, "%s", folder) : FT_OK;
    ft_status rc = FT_OK;
    for (const struct dirent *e; rc == FT_OK && (e = readdir(entries)) != NULL;) {
        int length = snprintf(path, sizeof path, "%s%s%s", folder,
                              folder[strlen(folder) - 1] == '/' ? "" : "/", e->d_name);
        bool is_dot = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!is_dot && length < (int) sizeof path)
            rc = check_entry(g, path, depth);
    }
    closedir(entries);
    return rc;
}

/* A checkpoint is the folder itself or the folder of its file. */
static ft_status search_checkpoint_of(const overwrite_check *g, const char *path)
{
    struct stat file_stat;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (stat(path, &file_stat) == 0 && S_ISDIR(file_stat.st_mode))
        return search_folder(g, path, MAX_DEPTH);
    if (slash == NULL)
        return search_folder(g, ".", MAX_DEPTH);
    snprintf(folder, sizeof folder, "%.*s", (int) (slash - path + 1), path);
    return search_folder(g, folder, MAX_DEPTH);
}

ft_status ft_checkpoint_check_output(const char *const *paths, size_t count, const char *output,
                                     ft_error *err)
{
    overwrite_check g = { .output = output, .err = err };
    if (stat(output, &g.file_stat) != 0 || ft_detect_file_kind_at(output) == FT_FILE_ARTIFACT)
        return FT_OK;
    for (size_t i = 0; i < count; i++)
        FT_TRY(ft_path_check_not_input(output, paths[i], err));
    for (size_t i = 0; i < count; i++)
        FT_TRY(search_checkpoint_of(&g, paths[i]));
    return FT_OK;
}
