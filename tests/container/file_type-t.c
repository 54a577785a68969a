/*
 * file_type-t.c - file types are detected by their first bytes, and truncated signatures are not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/file_type.h"
#include "tests/lib/folder.h"
#include "tests/lib/sample.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES(text) sizeof text - 1, text

/* First bytes as written by the tools of these formats. */
static const struct {
    ft_file_kind kind;
    const char *what;
    size_t count;
    const char *bytes;
} beginnings[] = {
    { FT_FILE_SAFETENSORS, "a safetensors file", BYTES("\100\0\0\0\0\0\0\0{\"a\":{\"dtype\"") },
    { FT_FILE_SAFETENSORS, "a safetensors file whose header length looks like a pickle",
      BYTES("\200\2\0\0\0\0\0\0{\"") },
    { FT_FILE_GGUF, "a GGUF file", BYTES("GGUF\3\0\0\0\43\1\0\0\0\0\0\0") },
    { FT_FILE_GGUF, "a big-endian GGUF file", BYTES("FUGG\0\0\0\3") },
    { FT_FILE_GGML, "a GGML file", BYTES("tjgg\1\0\0\0") },
    { FT_FILE_ONNX, "an ONNX model exported by PyTorch", BYTES("\10\10\22\7pytorch\32\5") },
    { FT_FILE_ONNX, "an ONNX model that begins with its graph", BYTES("\10\7:\320\246\1") },
    { FT_FILE_TFLITE, "a TensorFlow Lite model", BYTES("\34\0\0\0TFL3\24\0\40\0") },
    { FT_FILE_HDF5, "an HDF5 file", BYTES("\211HDF\r\n\32\n\0\0\0\0\0\10\10\0") },
    { FT_FILE_PYTORCH, "a torch.save() zip",
      BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\22\0archive/data.pklFB") },
    { FT_FILE_PYTORCH, "a newer torch.save() zip",
      BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\21\0\21\0m/.format_versionFB") },
    { FT_FILE_PICKLE, "a legacy torch.save() file",
      BYTES("\200\2\212\12l\374\234F\371 j\250P\31.") },
    { FT_FILE_PICKLE, "a pickle of protocol 4", BYTES("\200\4\225\20\0\0\0\0\0\0\0}\224") },
    { FT_FILE_NUMPY, "a NumPy array", BYTES("\223NUMPY\1\0v\0{'descr': '<f4'") },
    { FT_FILE_NPZ, "an npz file",
      BYTES("PK\3\4-\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\11\0\24\0arr_0.npy\1\0") },
    { FT_FILE_ZIP, "a zip archive",
      BYTES("PK\3\4\24\0\0\0\10\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\11\0\0\0README.md") },
    { FT_FILE_ZIP, "an empty zip archive", BYTES("PK\5\6\0\0\0\0\0\0\0\0") },
    { FT_FILE_ZIP, "a truncated zip archive", BYTES("PK\3\4\24\0") },
    { FT_FILE_GZIP, "a gzip file", BYTES("\37\213\10\0\0\0\0\0\0\3") },
    { FT_FILE_XZ, "an xz file", BYTES("\3757zXZ\0\0\4") },
    { FT_FILE_ZSTD, "a zstd file", BYTES("\50\265\57\375\4\130") },
    { FT_FILE_BZIP2, "a bzip2 file", BYTES("BZh91AY&SY") },
    { FT_FILE_7Z, "a 7z archive", BYTES("7z\274\257\47\34\0\4") },
    { FT_FILE_LFS, "a Git LFS pointer",
      BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n") },
    { FT_FILE_HTML, "an HTML page", BYTES("<!DOCTYPE html>\n<html class=\"\">") },
    { FT_FILE_HTML, "an HTML page after blank lines", BYTES("\n\n  <HTML><head>") },
    { FT_FILE_HTML, "an XML error of an object store",
      BYTES("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>") },
    { FT_FILE_PNG, "a PNG image", BYTES("\211PNG\r\n\32\n\0\0\0\15IHDR") },
    { FT_FILE_JPEG, "a JPEG image", BYTES("\377\330\377\340\0\20JFIF") },
    { FT_FILE_JSON, "a JSON file", BYTES("{\n  \"architectures\": [") },
    { FT_FILE_JSON, "a JSON file after a byte order mark", BYTES("\357\273\277{\"a\": 1}") },
    { FT_FILE_TEXT, "a text file", BYTES("Invalid username or password.") },
    { FT_FILE_TEXT, "a UTF-8 text file", BYTES("na\303\257ve caf\303\251\n") },
    { FT_FILE_TEXT, "a UTF-16 text file", BYTES("\377\376h\0i\0") },
    { FT_FILE_COUNTERS, "a counters file", BYTES("FTCOUNTS\1\0\0\0") },
    { FT_FILE_SHARD, "statistics of a shard", BYTES("FTSHARD\0\1\0\0\0") },
    { FT_FILE_UNKNOWN, "an empty file", 0, "" },
    { FT_FILE_UNKNOWN, "a file of zeros", BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") },
    { FT_FILE_UNKNOWN, "a truncated safetensors file", BYTES("\200\2\0\0\0\0\0\0") },
    { FT_FILE_UNKNOWN, "a safetensors length without a header", BYTES("\100\0\0\0\0\0\0\0\1\1") },
    { FT_FILE_UNKNOWN, "a file that is not text", BYTES("abc\1\2\3def") },
    { FT_FILE_UNKNOWN, "a file that is not UTF-8", BYTES("abc\303\50def") },
};

static void test_beginnings(void)
{
    for (size_t i = 0; i < FT_COUNT(beginnings); i++)
        is_str(ft_file_kind_name(ft_detect_file_kind(beginnings[i].bytes, beginnings[i].count)),
               ft_file_kind_name(beginnings[i].kind), "%s is detected as %s", beginnings[i].what,
               ft_file_kind_name(beginnings[i].kind));
}

/* Must not read beyond the end of a short buffer; a sanitizer detects that. */
static void test_cuts(void)
{
    int wrong = 0;
    for (size_t i = 0; i < FT_COUNT(beginnings); i++)
        for (size_t count = 0; count <= beginnings[i].count; count++) {
            unsigned char *cut = aligned_copy((const unsigned char *) beginnings[i].bytes, count);
            ft_file_kind kind = ft_detect_file_kind(cut, count);
            wrong += ft_file_kind_name(kind) == NULL;
            free(cut);
        }
    is_int(wrong, 0, "every truncated signature is detected as some type or as unknown");
}

static void test_long(void)
{
    unsigned char block[FT_MAGIC_BYTES + 1];
    memset(block, 'a', sizeof block);
    memcpy(block + FT_MAGIC_BYTES - 1, "\303\251", 2);
    is_int(ft_detect_file_kind(block, sizeof block), FT_FILE_TEXT,
           "a text is detected although its last character is truncated by the read limit");
    memset(block, 0, sizeof block);
    memcpy(block + 257, "ustar", 5);
    is_int(ft_detect_file_kind(block, sizeof block), FT_FILE_TAR,
           "a tar archive is detected by its signature at byte 257");
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void test_files(void)
{
    char folder[FOLDER_PATH], path[128];
    ft_error err;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    const sample what = { .state = FT_ARTIFACT_INT8, .seed = 1, .large = 512 };
    if (sample_write(path, &what, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int(ft_detect_file_kind_at(path), FT_FILE_ARTIFACT,
           "an artifact is detected by its contents");
    is_int(ft_detect_file_kind_at(folder), FT_FILE_UNKNOWN, "a folder has no file type");
    is_int(ft_detect_file_kind_at("/nonexistent"), FT_FILE_UNKNOWN,
           "a missing file has no file type");
    ft_fail(&err, FT_ELIMIT, "unchanged");
    is_int(ft_explain_wrong_file(path, FT_EXPECTED_ARTIFACT, FT_ELIMIT, &err), FT_ELIMIT,
           "ft_explain_wrong_file keeps the status for a file of the expected type");
    is_str(err.text, "unchanged",
           "ft_explain_wrong_file keeps the error text for a file of the expected type");
    is_int(ft_explain_wrong_file(path, FT_EXPECTED_DATA, FT_ELIMIT, &err), FT_EFORMAT,
           "ft_explain_wrong_file returns FT_EFORMAT for a file of another type");
    has(err.text, "looks like an artifact: data are read from safetensors",
        "the error names the detected and the expected type");
    has(err.text, "; artifacts are for -i",
        "the error says which option expects the detected type");
    is_int(ft_explain_wrong_file(folder, FT_EXPECTED_ARTIFACT, FT_EIO, &err), FT_EIO,
           "a folder is refused where an artifact is expected");
    has(err.text, "convert it first with ft-convert -i ",
        "the error of a folder recommends ft-convert");
    unlink(path);
    if (mkfifo(path, 0600) != 0)
        bail_out("cannot make a pipe");
    is_int(ft_detect_file_kind_at(path), FT_FILE_UNKNOWN,
           "detecting the type of a pipe does not wait for a writer");
    folder_remove(folder);
}

static const struct {
    const char *path;
    bool hub;
} absent[] = {
    { "no-such-org/no-such-model", true },
    { "meta-llama/Llama-2-7b-hf", true },
    { "no-such-org/model.v1", true },
    { "no-such-folder/model.ft", false },
    { "no-such-folder/model.safetensors", false },
    { "no-such-model", true },
    { "no-such-model.safetensors", false },
    { "./no-such-model", false },
    { "../no-such-model", false },
    { "/no-such-folder/no-such-model", false },
    { "no-such/folder/model", false },
    { "no-such-folder/", false },
    { "no such/model", false },
};

static void test_hub(void)
{
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(absent); i++) {
        ft_fail(&err, FT_EIO, "unchanged");
        ft_explain_wrong_file(absent[i].path, FT_EXPECTED_CHECKPOINT, FT_EIO, &err);
        ok((strstr(err.text, "download it first") != NULL) == absent[i].hub,
           "the missing path %s %s described as the name of a model on a hub", absent[i].path,
           absent[i].hub ? "is" : "is not");
    }
    ft_fail(&err, FT_EIO, "unchanged");
    ft_explain_wrong_file("no-such-model", FT_EXPECTED_ARTIFACT, FT_EIO, &err);
    is_str(err.text, "unchanged",
           "a missing path is not described as the name of a model where an artifact is expected");
}

int main(void)
{
    test_beginnings();
    test_cuts();
    test_long();
    test_files();
    test_hub();
    return done_testing();
}
