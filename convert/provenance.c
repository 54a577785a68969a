/*
 * provenance.c - writes an artifact with its provenance: options, and digests of the source files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/provenance.h"

#include "convert/source_files.h"
#include "kernels/threads/processors.h"
#include "kernels/threads/thread_pool.h"
#include "runtime/base/json_build.h"
#include "runtime/container/provenance.h"
#include "runtime/error.h"

static json_t *conversion_json(const ft_convert_options *options)
{
    json_t *json = ft_provenance_tool("ft-convert"), *ignored = json_array();
    ft_json_set(&json, "dtype",
                json_string(options->cast ? ft_dtype_name(options->dtype) : "keep"));
    ft_json_set(&json, "tokenizer", json_boolean(!options->no_tokenizer));
    if (options->rotate)
        ft_json_set(&json, "rotate", json_true());
    for (const char *const *key = options->ignored_keys; key != NULL && *key != NULL; key++)
        ft_json_append(&ignored, json_string(*key));
    ft_json_set(&json, "ignored_keys", ignored);
    return json;
}

/* The digests are filled in when everything else is written. */
static json_t *provenance_json(const ft_source_files *files, const ft_convert_options *options)
{
    json_t *json = json_object();
    ft_json_set(&json, "source", ft_source_files_json(files));
    ft_json_set(&json, "conversion", conversion_json(options));
    return json;
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* The write of an artifact, and the files that are hashed at the same time. */
typedef struct write_job {
    ft_artifact_writer *writer;
    const ft_artifact_header *header;
    ft_source_files *files;
    ft_status status;
    ft_error *err;
} write_job;

/* An ft_manifest_hook: hashes what the other thread has not hashed yet. */
static ft_status fill_in_digests(void *user, ft_error *err)
{
    const write_job *job = user;
    ft_source_files_hash(job->files);
    FT_TRY(ft_source_files_status(job->files, err));
    json_t *source = ft_source_files_json(job->files);
    if (source == NULL || json_object_set_new(job->header->provenance, "source", source) != 0)
        return ft_fail(err, FT_ENOMEM, "no memory for the manifest");
    return FT_OK;
}

static void write_or_hash(const void *user, int rank)
{
    write_job *job = (write_job *) (uintptr_t) user;
    if (rank == 0)
        job->status = ft_artifact_write(job->writer, job->header, job->err);
    else
        ft_source_files_hash(job->files);
}

ft_status ft_conversion_write_provenance(const ft_conversion *conversion,
                                         ft_artifact_writer *writer, ft_artifact_header *header,
                                         ft_error *err)
{
    ft_source_files *files;
    FT_TRY(ft_source_files_open(&files, conversion, err));
    write_job job = { .writer = writer, .header = header, .files = files, .err = err };
    header->provenance = provenance_json(files, &conversion->options);
    if (header->provenance == NULL) {
        job.status = ft_fail(err, FT_ENOMEM, "no memory for the manifest");
    } else {
        ft_artifact_set_manifest_hook(writer, fill_in_digests, &job);
        ft_pool_run_any(ft_num_processors() > 1 ? 2 : 1, write_or_hash, &job);
        ft_artifact_set_manifest_hook(writer, NULL, NULL);
    }
    json_decref(header->provenance);
    header->provenance = NULL;
    ft_source_files_close(files);
    return job.status;
}
