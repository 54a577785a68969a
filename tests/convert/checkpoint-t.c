/*
 * checkpoint-t.c - checkpoints of one file, several files or an index are opened, or refused with
 * the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/checkpoint/checkpoint.h"
#include "convert/checkpoint/text_file.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[4096];      /* a temporary folder for the files of this test */
static char data_folder[4096]; /* tests/data */

/* The result is valid until the call after next. */
static const char *join(const char *below, const char *name)
{
    static char paths[2][4400];
    static int turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", below, name);
    return path;
}

/* ---- Temporary checkpoints ----------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0)
        bail_out("cannot write %s", path);
}

/* Writes a file with one tensor of one byte. */
static void write_tensor(const char *path, const char *name, char byte)
{
    ft_error err;
    ft_named_tensor tensor = { name, { FT_U8, FT_ROW, 1, { 1 }, &byte } };
    if (ft_safetensors_write(path, &tensor, 1, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* The byte of a tensor, or -1 when the checkpoint has no tensor of that name. */
static int byte_of(const ft_checkpoint *cp, const char *name)
{
    const ft_tensor *tensor = ft_checkpoint_find(cp, name);
    return tensor == NULL ? -1 : *(unsigned char *) tensor->data;
}

static ft_checkpoint *open_good(const char *path)
{
    ft_error err;
    ft_checkpoint *cp;
    if (ft_checkpoint_open(&cp, path, &err) != FT_OK)
        diag("%s", err.text);
    return cp;
}

static void test_single_file(void)
{
    write_tensor(join(folder, "model.safetensors"), "w", 7);
    write_text(join(folder, "config.json"), "{\"model_type\": \"bert\"}");
    const char *ways[] = { folder, join(folder, "model.safetensors") };
    for (size_t i = 0; i < FT_COUNT(ways); i++) {
        ft_checkpoint *cp = open_good(ways[i]);
        const char *what = i == 0 ? "the folder of a checkpoint" : "the file of a checkpoint";
        if (!ok(cp != NULL && byte_of(cp, "w") == 7, "%s is opened", what))
            continue;
        char *text;
        size_t bytes;
        is_int(ft_checkpoint_read(cp, "config.json", &text, &bytes, NULL), FT_OK,
               "%s gives access to config.json", what);
        is_str(text, "{\"model_type\": \"bert\"}", "%s has the text of config.json", what);
        is_int((long long) bytes, 22, "%s has the length of config.json", what);
        free(text);
        ft_checkpoint_close(cp);
    }
}

static void test_companions(void)
{
    ft_error err;
    char *text;
    size_t bytes;
    ft_checkpoint *cp = open_good(folder);
    ok(ft_checkpoint_has(cp, "config.json"), "ft_checkpoint_has finds config.json");
    ok(!ft_checkpoint_has(cp, "tokenizer.json"),
       "ft_checkpoint_has does not find a missing tokenizer.json");
    is_int(ft_checkpoint_read(cp, "tokenizer.json", &text, &bytes, &err), FT_EIO,
           "reading a missing file of the checkpoint fails with FT_EIO");
    has(err.text, "/tokenizer.json: No such file", "the error of a missing file names it");
    ok(text == NULL && bytes == 0, "reading a missing file returns no text");
    const char *large = join(folder, "large.json");
    write_text(large, "");
    if (truncate(large, FT_TEXT_FILE_MAX_BYTES + 1) != 0)
        bail_out("cannot make a large file");
    is_int(ft_checkpoint_read(cp, "large.json", &text, &bytes, &err), FT_ELIMIT,
           "a file of the checkpoint larger than 64 MiB is refused");
    has(err.text, "large.json: 67108865 bytes, expected at most 67108864",
        "the error of a file that is too large names the limit");
    unlink(large);
    ft_checkpoint_close(cp);
}

static void test_index(void)
{
    const char *shard = join(folder, "b.safetensors");
    write_tensor(join(folder, "a.safetensors"), "z", 1);
    write_tensor(shard, "y", 2);
    write_text(join(folder, "w.index.json"),
               "{\"weight_map\": {\"y\": \"b.safetensors\", \"z\": \"a.safetensors\"}}");
    ft_checkpoint *cp = open_good(join(folder, "w.index.json"));
    ok(cp != NULL && byte_of(cp, "z") == 1 && byte_of(cp, "y") == 2,
       "a checkpoint is opened by its index with all shards");
    is_int((long long) ft_checkpoint_count(cp), 2, "the tensors of all shards are counted");
    is_str(ft_checkpoint_at(cp, 0)->name, "y", "tensors are sorted by name");
    is_str(ft_checkpoint_file_of(cp, "y"), join(folder, "b.safetensors"),
           "ft_checkpoint_file_of names the shard of a tensor");
    ok(ft_checkpoint_find(cp, "x") == NULL && ft_checkpoint_file_of(cp, "x") == NULL,
       "a tensor that is absent is not found");
    ok(ft_checkpoint_has(cp, "config.json"), "config.json is found in the folder of the index");
    ft_checkpoint_release(cp, ft_checkpoint_find(cp, "y")->data, 1);
    is_int(byte_of(cp, "y"), 2, "released data are read from the file again");
    ft_checkpoint_close(cp);

    if (symlink("b.safetensors", join(folder, "link.safetensors")) != 0)
        bail_out("symlink fails");
    write_text(join(folder, "w.index.json"), "{\"weight_map\": {\"y\": \"link.safetensors\"}}");
    cp = open_good(join(folder, "w.index.json"));
    ok(cp != NULL && byte_of(cp, "y") == 2,
       "a shard may be a symbolic link, as in download caches");
    ft_checkpoint_close(cp);
    unlink(join(folder, "link.safetensors"));
    unlink(join(folder, "w.index.json"));
}

static void test_several_files(void)
{
    ft_error err;
    ft_checkpoint *cp;
    char a[4400], b[4400];
    snprintf(a, sizeof a, "%s/a.safetensors", folder);
    snprintf(b, sizeof b, "%s/b.safetensors", folder);
    const char *const files[] = { a, b }, *const twice[] = { a, b, a };
    is_int(ft_checkpoint_open_files(&cp, files, 2, &err), FT_OK,
           "several files are opened as one checkpoint");
    ok(byte_of(cp, "z") == 1 && byte_of(cp, "y") == 2, "the tensors of all files are found");
    ft_checkpoint_close(cp);
    is_int(ft_checkpoint_open_files(&cp, twice, 3, &err), FT_EFORMAT,
           "a tensor that occurs in two files is refused");
    has(err.text, "z: tensor occurs in a.safetensors too",
        "the error of a duplicate tensor names the tensor and the file");
    is_int(ft_checkpoint_open_files(&cp, files, 0, &err), FT_EARG,
           "an empty list of files is refused");
    unlink(a);
    unlink(b);
}

/* ---- Malformed checkpoints ----------------------------------------------------------------- */

static const struct {
    const char *name;
    ft_status status;
    const char *text;
} bad[] = {
    { "index-shard-missing", FT_EIO, "shard model-2.safetensors: No such file" },
    { "index-shard-broken", FT_EFORMAT,
      "/model-2.safetensors: v: data_offsets [0, 8] lie outside" },
    { "index-other-shard", FT_EFORMAT, "w: listed in model-2.safetensors, found in model-1" },
    { "index-tensor-nowhere", FT_EFORMAT, "u: listed in model-2.safetensors, found in no shard" },
    { "index-tensor-unlisted", FT_EFORMAT, "v: found in model-1.safetensors, but not listed" },
    { "index-tensor-in-two-shards", FT_EFORMAT, "w: tensor occurs in model-" },
    { "index-path-absolute", FT_EFORMAT, "\"/etc/model-1.safetensors\" is not the name of a file" },
    { "index-path-parent", FT_EFORMAT, "\"../index-other-shard/model-1.safetensors\" is not the" },
    { "index-path-subfolder", FT_EFORMAT, "\"shards/model-1.safetensors\" is not the name" },
    { "index-path-backslash", FT_EFORMAT, "\"..\\model-1.safetensors\" is not the name" },
    { "index-path-dots", FT_EFORMAT, "w: \"..\" is not the name of a file in the same folder" },
    { "index-path-empty", FT_EFORMAT, "w: \"\" is not the name of a file in the same folder" },
    { "index-path-nul", FT_EFORMAT, "line 6, column " },
    { "index-path-not-text", FT_EFORMAT, "w: expected the name of a file" },
    { "index-duplicate-key", FT_EFORMAT, "not valid JSON: duplicate object key" },
    { "index-not-json", FT_EFORMAT, "line 1, column " },
    { "index-not-object", FT_EFORMAT, "found a JSON array, expected a JSON object" },
    { "index-cut", FT_EFORMAT, "line 8, column " },
    { "index-without-map", FT_EFORMAT, "no object \"weight_map\"" },
    { "index-map-not-object", FT_EFORMAT, "no object \"weight_map\"" },
    { "index-map-empty", FT_EFORMAT, "weight_map is empty" },
    { "folder-pickle-only", FT_EUNSUPPORTED, "pytorch_model.bin holds pickled weights" },
    { "folder-pickle-only/pytorch_model.bin", FT_EUNSUPPORTED, "safe_serialization=True" },
    { "folder-without-weights", FT_EIO,
      "no model.safetensors and no model.safetensors.index.json" },
    { "folder-without-weights/config.json", FT_EFORMAT, "no object \"weight_map\"" },
    { "folder-other-name", FT_EIO, "if adapter_model.safetensors is the model, name that file" },
    { "folder-broken-model", FT_EFORMAT, "/model.safetensors: w: data_offsets [0, 8] lie outside" },
    { "none-of-this-name", FT_EIO, "No such file or directory" },
};

static void test_bad_checkpoints(void)
{
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        ft_error err = { .code = FT_OK };
        ft_checkpoint *cp;
        char name[256];
        snprintf(name, sizeof name, "bad-%s", bad[i].name);
        ft_status rc = ft_checkpoint_open(&cp, join(data_folder, name), &err);
        if (!ok(rc == bad[i].status && err.code == rc && cp == NULL &&
                    strstr(err.text, join(data_folder, name)) == err.text &&
                    strstr(err.text, bad[i].text) != NULL,
                "%s is refused by name: %s", bad[i].name, bad[i].text))
            diag("found %s \"%s\", expected %s", ft_status_name(rc), err.text,
                 ft_status_name(bad[i].status));
        ft_checkpoint_close(cp);
    }
}

static bool is_tested(const char *name)
{
    size_t i = 0;
    while (i < FT_COUNT(bad) && strcmp(bad[i].name, name) != 0)
        i++;
    return i < FT_COUNT(bad);
}

static void test_bad_checkpoints_are_all_listed(void)
{
    int untested = 0;
    DIR *entries = opendir(data_folder);
    if (entries == NULL)
        bail_out("%s is missing", data_folder);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (strncmp(entry->d_name, "bad-index-", 10) == 0 ||
            strncmp(entry->d_name, "bad-folder-", 11) == 0)
            untested += !is_tested(entry->d_name + 4);
    closedir(entries);
    is_int(untested, 0, "every bad-index-* and bad-folder-* is tested");
}

/* ---- Checkpoints written by transformers --------------------------------------------------- */

static void test_checkpoint(const char *path, long long elements, const char *tensor)
{
    const char *name = strrchr(path, '/') + 1;
    ft_checkpoint *cp = open_good(path);
    if (cp == NULL)
        bail_out("%s cannot be opened", path);
    long long found = 0;
    for (size_t i = 0; i < ft_checkpoint_count(cp); i++)
        found += (long long) ft_tensor_numel(&ft_checkpoint_at(cp, i)->tensor);
    is_int(found, elements, "the tensors of %s have the expected number of elements", name);
    ok(ft_checkpoint_find(cp, tensor) != NULL, "the checkpoint has the tensor %s", tensor);
    ok(ft_checkpoint_has(cp, "config.json"), "%s has a config.json", name);
    ft_checkpoint_close(cp);
}

/* One file; the number of elements was counted with Python. */
static void test_sample(void)
{
    static const char *const data[] = { "calibration.safetensors", "reference.safetensors" };
    char path[4096];
    size_t opened = 0;
    snprintf(path, sizeof path, "%s/samples/source-language-bert", getenv("FT_SRCDIR"));
    test_checkpoint(path, 4079366, "bert.embeddings.word_embeddings.weight");
    for (size_t i = 0; i < FT_COUNT(data); i++) {
        ft_checkpoint *cp = open_good(join(path, data[i]));
        opened += cp != NULL;
        ft_checkpoint_close(cp);
    }
    is_int((long long) opened, FT_COUNT(data),
           "the calibration and reference data of the sample model are opened");
}

/* Two shards, whose index states the number of elements. */
static void test_shards(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/python-llama", getenv("FT_MODELS"));
    if (access(path, R_OK) == 0)
        test_checkpoint(path, 5475584, "model.embed_tokens.weight");
    else
        skip(3, "no checkpoint %s; set FT_MODELS to the folder of the test models", path);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/ft-checkpoint-XXXXXX", temporary ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL || getenv("FT_SRCDIR") == NULL || getenv("FT_MODELS") == NULL)
        bail_out("needs a temporary folder, FT_SRCDIR and FT_MODELS");
    snprintf(data_folder, sizeof data_folder, "%s/tests/data", getenv("FT_SRCDIR"));
    test_single_file();
    test_companions();
    test_index();
    test_several_files();
    test_bad_checkpoints();
    test_bad_checkpoints_are_all_listed();
    test_sample();
    test_shards();
    unlink(join(folder, "model.safetensors"));
    unlink(join(folder, "config.json"));
    rmdir(folder);
    return done_testing();
}
