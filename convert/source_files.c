/*
 * source_files.c - the files of a checkpoint and their SHA-256, for the provenance of an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/source_files.h"

#include "runtime/base/file_name.h"
#include "runtime/base/json_build.h"
#include "runtime/container/provenance.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK_BYTES = 1 << 20 }; /* hashed at a time */

typedef struct source_file {
    char name[NAME_MAX + 1]; /* relative to the folder of the checkpoint */
    char path[PATH_MAX];
    uint64_t bytes;
    uint8_t digest[FT_SHA256_BYTES];
} source_file;

struct ft_source_files {
    source_file *file;
    size_t count, capacity;

    pthread_mutex_t lock; /* of everything below, and of the digests */
    size_t current;       /* the file that is hashed */
    FILE *stream;
    ft_sha256 *hash;
    unsigned char *block;
    ft_status status;
    ft_error err;
};

/* Files that a conversion reads if the folder has them, besides weights; in strcmp() order. */
static const char *const known_files[] = {
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "config_sentence_transformers.json",
    "generation_config.json",
    "merges.txt",
    "model.safetensors.index.json",
    "modules.json",
    "preprocessor_config.json",
    "sentence_bert_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
};

/* ---- Listing -------------------------------------------------------------------------------- */

static ft_status add_file(ft_source_files *files, const char *folder, const char *path,
                          ft_error *err)
{
    struct stat about;
    if (files->count == files->capacity) {
        source_file *grown = ft_array_grow(files->file, &files->capacity, 16, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
        files->file = grown;
    }
    if (stat(path, &about) != 0)
        return ft_fail_errno(err, "%s: cannot open", path);
    source_file *new = &files->file[files->count++];
    *new = (source_file){ .bytes = (uint64_t) about.st_size };
    snprintf(new->path, sizeof new->path, "%s", path);
    snprintf(new->name, sizeof new->name, "%.120s%s%.120s", folder, folder[0] != '\0' ? "/" : "",
             ft_file_name(path));
    return FT_OK;
}

/* `folder` is that of the checkpoint below the first one, or "". */
static ft_status add_weights(ft_source_files *files, const char *folder,
                             const ft_checkpoint *checkpoint, ft_error *err)
{
    for (size_t i = 0; i < ft_checkpoint_file_count(checkpoint); i++)
        FT_TRY(add_file(files, folder, ft_checkpoint_file_at(checkpoint, i), err));
    return FT_OK;
}

static ft_status list_files(ft_source_files *files, const ft_conversion *conversion, ft_error *err)
{
    char path[PATH_MAX];
    FT_TRY(add_weights(files, "", conversion->checkpoint, err));
    for (int i = 0; i < FT_MAX_DENSE && conversion->dense[i] != NULL; i++)
        FT_TRY(add_weights(files, conversion->sentence.modules.dense[i], conversion->dense[i], err));
    for (size_t i = 0; i < FT_COUNT(known_files); i++) {
        snprintf(path, sizeof path, "%s/%s", ft_checkpoint_folder(conversion->checkpoint),
                 known_files[i]);
        if (ft_checkpoint_has(conversion->checkpoint, known_files[i]))
            FT_TRY(add_file(files, "", path, err));
    }
    return FT_OK;
}

ft_status ft_source_files_open(ft_source_files **out, const ft_conversion *conversion,
                               ft_error *err)
{
    ft_source_files *files = ft_calloc(1, sizeof *files);
    *out = NULL;
    if (files == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to hash the checkpoint");
    pthread_mutex_init(&files->lock, NULL);
    files->hash = ft_sha256_new();
    files->block = malloc(BLOCK_BYTES);
    ft_status status = files->hash != NULL && files->block != NULL
                           ? list_files(files, conversion, err)
                           : ft_fail(err, FT_ENOMEM, "no memory to hash the checkpoint");
    if (status != FT_OK) {
        ft_source_files_close(files);
        return status;
    }
    *out = files;
    return FT_OK;
}

void ft_source_files_close(ft_source_files *files)
{
    if (files == NULL)
        return;
    if (files->stream != NULL)
        fclose(files->stream);
    ft_sha256_free(files->hash);
    free(files->block);
    free(files->file);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

/* ---- Hashing -------------------------------------------------------------------------------- */

static ft_status begin_file(ft_source_files *files)
{
    const source_file *file = &files->file[files->current];
    files->stream = fopen(file->path, "rb");
    if (files->stream == NULL)
        return ft_fail_errno(&files->err, "%s: cannot open", file->path);
    setvbuf(files->stream, NULL, _IONBF, 0);
    ft_sha256_init(files->hash);
    return FT_OK;
}

static ft_status end_file(ft_source_files *files)
{
    source_file *file = &files->file[files->current++];
    bool failed = ferror(files->stream);
    fclose(files->stream);
    files->stream = NULL;
    if (failed)
        return ft_fail(&files->err, FT_EIO, "%s: cannot read", file->path);
    return ft_sha256_final(files->hash, file->digest)
               ? FT_OK
               : ft_fail(&files->err, FT_ENOMEM, "%s: cannot compute SHA-256", file->path);
}

/* The next block of the current file. */
static ft_status hash_block(ft_source_files *files)
{
    if (files->stream == NULL)
        FT_TRY(begin_file(files));
    size_t got = fread(files->block, 1, BLOCK_BYTES, files->stream);
    ft_sha256_update(files->hash, files->block, got);
    return got == BLOCK_BYTES ? FT_OK : end_file(files);
}

void ft_source_files_hash(ft_source_files *files)
{
    for (bool more = true; more;) {
        pthread_mutex_lock(&files->lock);
        more = files->status == FT_OK && files->current < files->count;
        if (more)
            files->status = hash_block(files);
        pthread_mutex_unlock(&files->lock);
    }
}

json_t *ft_source_files_json(const ft_source_files *files)
{
    json_t *list = json_array();
    for (size_t i = 0; i < files->count; i++)
        ft_json_append(&list, ft_provenance_file(files->file[i].name, files->file[i].bytes,
                                                 files->file[i].digest));
    return list;
}

ft_status ft_source_files_status(const ft_source_files *files, ft_error *err)
{
    if (files->status != FT_OK && err != NULL)
        *err = files->err;
    return files->status;
}
