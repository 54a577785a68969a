/*
 * checkpoint.c - one sorted list of the tensors of all files of a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/checkpoint/checkpoint.h"

#include "convert/checkpoint/shard_index.h"
#include "convert/checkpoint/text_file.h"
#include "runtime/base/affix.h"
#include "runtime/base/file_name.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/file_type.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tensor_location {
    const ft_named_tensor *named;
    const ft_safetensors *file;
} tensor_location;

struct ft_checkpoint {
    char *folder; /* "" or with a trailing slash */
    ft_safetensors **file;
    size_t n_files;
    tensor_location *tensor; /* sorted by name */
    size_t count;
};

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

/* ---- Paths -------------------------------------------------------------------------------- */

/* Join `folder` and `name` with a slash where one is needed. */
static char *join(const char *folder, const char *name)
{
    size_t length = strlen(folder), size = length + strlen(name) + 2;
    char *path = malloc(size);
    bool slash = length > 0 && folder[length - 1] != '/';
    if (path != NULL)
        snprintf(path, size, "%s%s%s", folder, slash ? "/" : "", name);
    return path;
}

/* ---- Assembling --------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const tensor_location *left = a, *right = b;
    return strcmp(left->named->name, right->named->name);
}

static const tensor_location *find(const ft_checkpoint *cp, const char *name)
{
    const ft_named_tensor key = { .name = name };
    return bsearch(&(tensor_location){ &key, NULL }, cp->tensor, cp->count, sizeof *cp->tensor,
                   compare_names);
}

static ft_checkpoint *new_checkpoint(const char *path, size_t n_files)
{
    ft_checkpoint *cp = calloc(1, sizeof *cp);
    if (cp == NULL)
        return NULL;
    cp->folder = strndup(path, (size_t) (ft_file_name(path) - path));
    cp->file = ft_calloc(n_files, sizeof(ft_safetensors *));
    if (cp->folder == NULL || cp->file == NULL) {
        ft_checkpoint_close(cp);
        return NULL;
    }
    return cp;
}

static ft_status add_file(ft_checkpoint *cp, const char *path, ft_error *err)
{
    ft_status rc = ft_safetensors_open(&cp->file[cp->n_files], path, err);
    if (rc != FT_OK)
        return ft_explain_wrong_file(path, FT_EXPECTED_CHECKPOINT, rc, err);
    cp->count += ft_safetensors_count(cp->file[cp->n_files]);
    cp->n_files++;
    return FT_OK;
}

/* Merge the tensors of all files into one list and reject duplicate names. */
static ft_status merge(ft_checkpoint *cp, ft_error *err)
{
    cp->tensor = ft_calloc(cp->count, sizeof *cp->tensor);
    if (cp->tensor == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", cp->folder);
    tensor_location *next = cp->tensor;
    for (size_t i = 0; i < cp->n_files; i++)
        for (size_t k = 0; k < ft_safetensors_count(cp->file[i]); k++)
            *next++ = (tensor_location){ ft_safetensors_at(cp->file[i], k), cp->file[i] };
    qsort(cp->tensor, cp->count, sizeof *cp->tensor, compare_names);
    for (size_t i = 1; i < cp->count; i++)
        if (compare_names(&cp->tensor[i - 1], &cp->tensor[i]) == 0)
            return ft_fail(err, FT_EFORMAT, "%s: %.256s: tensor occurs in %s too",
                           ft_safetensors_path(cp->tensor[i].file), cp->tensor[i].named->name,
                           ft_file_name(ft_safetensors_path(cp->tensor[i - 1].file)));
    return FT_OK;
}

static ft_status open_all(ft_checkpoint *cp, const char *const *paths, size_t count, ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        FT_TRY(add_file(cp, paths[i], err));
    return merge(cp, err);
}

ft_status ft_checkpoint_open_files(ft_checkpoint **out, const char *const *paths, size_t count,
                                   ft_error *err)
{
    *out = NULL;
    if (count == 0)
        return ft_fail(err, FT_EARG, "no files given for a checkpoint");
    ft_checkpoint *cp = new_checkpoint(paths[0], count);
    if (cp == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", paths[0]);
    ft_status rc = open_all(cp, paths, count, err);
    if (rc != FT_OK) {
        ft_checkpoint_close(cp);
        return rc;
    }
    *out = cp;
    return FT_OK;
}

/* ---- An index and its shards -------------------------------------------------------------- */

static ft_status add_shard(ft_checkpoint *cp, const ft_shard_index *index, const char *file,
                           ft_error *err)
{
    struct stat file_stat;
    char *path = join(cp->folder, file);
    if (path == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", index->path);
    ft_status rc = stat(path, &file_stat) == 0
                       ? add_file(cp, path, err)
                       : ft_fail_errno(err, "%s: shard %s", index->path, file);
    free(path);
    return rc;
}

static ft_status check_index_entry(const ft_checkpoint *cp, const ft_shard_index *index,
                                   const char *name, ft_error *err)
{
    const char *listed = ft_shard_index_file_of(index, name);
    const tensor_location *found = find(cp, name);
    if (found == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: %.256s: listed in %s, found in no shard", index->path,
                       name, listed);
    const char *file = ft_file_name(ft_safetensors_path(found->file));
    if (strcmp(file, listed) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: %.256s: listed in %s, found in %s", index->path, name,
                       listed, file);
    return FT_OK;
}

static ft_status check_tensor_listed(const tensor_location *found, const ft_shard_index *index,
                                     ft_error *err)
{
    if (ft_shard_index_file_of(index, found->named->name) != NULL)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: %.256s: found in %s, but not listed", index->path,
                   found->named->name, ft_file_name(ft_safetensors_path(found->file)));
}

static ft_status open_shards(ft_checkpoint *cp, const ft_shard_index *index, ft_error *err)
{
    for (size_t i = 0; i < index->n_files; i++)
        FT_TRY(add_shard(cp, index, index->file[i], err));
    FT_TRY(merge(cp, err));

    const char *name;
    json_t *file;
    json_object_foreach(index->weight_map, name, file)
    {
        FT_TRY(check_index_entry(cp, index, name, err));
    }
    for (size_t i = 0; i < cp->count; i++)
        FT_TRY(check_tensor_listed(&cp->tensor[i], index, err));
    return FT_OK;
}

static ft_status open_by_index(ft_checkpoint **out, const ft_shard_index *index, ft_error *err)
{
    ft_checkpoint *cp = new_checkpoint(index->path, index->n_files);
    if (cp == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", index->path);
    ft_status rc = open_shards(cp, index, err);
    if (rc != FT_OK) {
        ft_checkpoint_close(cp);
        return rc;
    }
    *out = cp;
    return FT_OK;
}

/* Read a JSON file; reject what a failed download left in its place, such as a Git LFS pointer. */
static ft_status read_json(const char *path, char **text, size_t *bytes, ft_error *err)
{
    FT_TRY(ft_text_file_read(path, text, bytes, err));
    ft_status rc = ft_explain_wrong_bytes(path, *text, *bytes, FT_EXPECTED_JSON, FT_OK, err);
    if (rc != FT_OK) {
        free(*text);
        *text = NULL;
        *bytes = 0;
    }
    return rc;
}

static ft_status open_index(ft_checkpoint **out, const char *path, ft_error *err)
{
    char *text;
    size_t bytes;
    ft_shard_index index;
    FT_TRY(read_json(path, &text, &bytes, err));
    ft_status rc = ft_shard_index_parse(&index, path, text, bytes, err);
    free(text);
    if (rc == FT_OK)
        rc = open_by_index(out, &index, err);
    ft_shard_index_fini(&index);
    return rc;
}

/* ---- Locating the files -------------------------------------------------------------------- */

static const char *const safetensors_suffixes[] = { ".safetensors", NULL };
static const char *const foreign_suffixes[] = { ".gguf", ".onnx",    ".h5",  ".tflite",
                                                ".ggml", ".msgpack", ".npz", NULL };
static const char *const pickle_suffixes[] = { ".bin", ".pt", ".pth", ".ckpt", ".pkl", NULL };

/* A hidden file such as ".bin" has no extension. */
static bool has_extension(const char *name, const char *extension)
{
    return strlen(name) > strlen(extension) && ft_ends_with(name, extension);
}

static bool has_suffix_of(const char *name, const char *const *suffixes)
{
    while (*suffixes != NULL && !has_extension(name, *suffixes))
        suffixes++;
    return *suffixes != NULL;
}

/*
 * The first file, by name, with one of these suffixes; the caller frees it; NULL when there is
 * none.
 */
static char *first_in_folder(const char *folder, const char *const *suffixes)
{
    char *first = NULL;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return NULL;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (has_suffix_of(entry->d_name, suffixes) &&
            (first == NULL || strcmp(entry->d_name, first) < 0)) {
            free(first);
            first = ft_strdup(entry->d_name);
        }
    closedir(entries);
    return first;
}

static ft_status reject_pickle(const char *where, const char *file, ft_error *err)
{
    return ft_fail(err, FT_EUNSUPPORTED,
                   "%s: %s holds pickled weights, and reading those can run code; convert them in "
                   "Python with model.save_pretrained(folder, safe_serialization=True) of "
                   "transformers or save_file(state_dict, \"model.safetensors\") of "
                   "safetensors.torch",
                   where, file);
}

/* Weights in another format. */
static ft_status reject_foreign(const char *folder, const char *file, ft_error *err)
{
    ft_status rc = ft_fail(err, FT_EIO, "%s: no %s and no %s; ft-convert does not read %s", folder,
                           single_name, index_name, file);
    char *path = join(folder, file);
    if (path != NULL)
        rc = ft_explain_wrong_file(path, FT_EXPECTED_CHECKPOINT, rc, err);
    free(path);
    return rc;
}

/* The Hugging Face cache keeps checkpoints two folders down. */
static ft_status reject_empty(const char *folder, ft_error *err)
{
    struct stat file_stat;
    char *snapshots = join(folder, "snapshots");
    bool is_hub_cache =
        snapshots != NULL && stat(snapshots, &file_stat) == 0 && S_ISDIR(file_stat.st_mode);
    free(snapshots);
    return ft_fail(err, FT_EIO, "%s: no %s and no %s%s", folder, single_name, index_name,
                   is_hub_cache ? "; name one of the folders in its snapshots/" : "");
}

static ft_status reject_folder(const char *folder, ft_error *err)
{
    ft_status rc;
    char *other = first_in_folder(folder, safetensors_suffixes);
    char *pickle = first_in_folder(folder, pickle_suffixes);
    char *foreign = first_in_folder(folder, foreign_suffixes);
    if (other != NULL)
        rc = ft_fail(err, FT_EIO, "%s: no %s and no %s; if %s is the model, name that file", folder,
                     single_name, index_name, other);
    else if (pickle != NULL)
        rc = reject_pickle(folder, pickle, err);
    else if (foreign != NULL)
        rc = reject_foreign(folder, foreign, err);
    else
        rc = reject_empty(folder, err);
    free(foreign);
    free(other);
    free(pickle);
    return rc;
}

/* Pickled by its suffix, unless its contents show another format. */
static bool is_pickle(const char *path)
{
    ft_file_kind kind = ft_detect_file_kind_at(path);
    return has_suffix_of(path, pickle_suffixes) &&
           (kind == FT_FILE_UNKNOWN || kind == FT_FILE_ZIP || kind == FT_FILE_TAR);
}

static ft_status open_file(ft_checkpoint **out, const char *path, ft_error *err)
{
    if (has_extension(path, ".json"))
        return open_index(out, path, err);
    if (is_pickle(path))
        return reject_pickle(path, "it", err);
    return ft_checkpoint_open_files(out, &path, 1, err);
}

/* Open folder/name if it exists; *found tells whether it does. */
static ft_status try_in_folder(ft_checkpoint **out, const char *folder, const char *name,
                               bool *found, ft_error *err)
{
    struct stat file_stat;
    char *path = join(folder, name);
    if (path == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", folder);
    *found = lstat(path, &file_stat) == 0; /* a dangling link is reported, not skipped */
    ft_status rc = *found ? open_file(out, path, err) : FT_OK;
    free(path);
    return rc;
}

static ft_status open_folder(ft_checkpoint **out, const char *folder, ft_error *err)
{
    bool found;
    FT_TRY(try_in_folder(out, folder, single_name, &found, err));
    if (!found)
        FT_TRY(try_in_folder(out, folder, index_name, &found, err));
    return found ? FT_OK : reject_folder(folder, err);
}

ft_status ft_checkpoint_open(ft_checkpoint **out, const char *path, ft_error *err)
{
    struct stat file_stat;
    *out = NULL;
    if (stat(path, &file_stat) != 0)
        return ft_explain_wrong_file(path, FT_EXPECTED_CHECKPOINT, ft_fail_errno(err, "%s", path),
                                     err);
    return S_ISDIR(file_stat.st_mode) ? open_folder(out, path, err) : open_file(out, path, err);
}

void ft_checkpoint_close(ft_checkpoint *cp)
{
    if (cp == NULL)
        return;
    for (size_t i = 0; i < cp->n_files; i++)
        ft_safetensors_close(cp->file[i]);
    free(cp->file);
    free(cp->tensor);
    free(cp->folder);
    free(cp);
}

/* ---- Queries -------------------------------------------------------------------------------- */

size_t ft_checkpoint_count(const ft_checkpoint *cp)
{
    return cp->count;
}

const ft_named_tensor *ft_checkpoint_at(const ft_checkpoint *cp, size_t index)
{
    assert(index < cp->count);
    return cp->tensor[index].named;
}

const ft_tensor *ft_checkpoint_find(const ft_checkpoint *cp, const char *name)
{
    const tensor_location *found = find(cp, name);
    return found == NULL ? NULL : &found->named->tensor;
}

const char *ft_checkpoint_file_of(const ft_checkpoint *cp, const char *name)
{
    const tensor_location *found = find(cp, name);
    return found == NULL ? NULL : ft_safetensors_path(found->file);
}

void ft_checkpoint_release(const ft_checkpoint *cp, const void *data, size_t bytes)
{
    for (size_t i = 0; i < cp->n_files; i++)
        ft_safetensors_release(cp->file[i], data, bytes);
}

/* Allocates nothing, so that running out of memory cannot make a file seem absent. */
const char *ft_checkpoint_folder(const ft_checkpoint *cp)
{
    return cp->folder[0] != '\0' ? cp->folder : ".";
}

size_t ft_checkpoint_file_count(const ft_checkpoint *cp)
{
    return cp->n_files;
}

const char *ft_checkpoint_file_at(const ft_checkpoint *cp, size_t index)
{
    return ft_safetensors_path(cp->file[index]);
}

bool ft_checkpoint_has(const ft_checkpoint *cp, const char *file)
{
    struct stat file_stat;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s", cp->folder, file);
    return length < (int) sizeof path && stat(path, &file_stat) == 0 && S_ISREG(file_stat.st_mode);
}

ft_status ft_checkpoint_read(const ft_checkpoint *cp, const char *file, char **text, size_t *bytes,
                             ft_error *err)
{
    *text = NULL;
    *bytes = 0;
    char *path = join(cp->folder, file);
    if (path == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", file);
    ft_status rc = read_json(path, text, bytes, err);
    free(path);
    return rc;
}
