/*
 * file_type.c - tables of magic bytes and of remedies for each file type.
 *
 * Sources: the specifications of GGUF (ggml), safetensors, NPY (NumPy), Git LFS pointers (v1), ONNX
 * (onnx.proto), PKWARE's APPNOTE.TXT, RFC 1952 (gzip), and file(1)'s database for the others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/file_type.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/json_scan.h"
#include "runtime/container/zip_directory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Bytes ---------------------------------------------------------------------------------- */

typedef struct {
    const unsigned char *at;
    size_t count;
} byte_span;

/* Order matters where several match: strict patterns come first. */
static const struct {
    ft_file_kind kind;
    unsigned offset, length;
    const char *magic;
} magics[] = {
    { FT_FILE_COUNTERS, 0, 8, "FTCOUNTS" },
    { FT_FILE_SHARD, 0, 8, "FTSHARD" },
    { FT_FILE_GGUF, 0, 4, "GGUF" },
    { FT_FILE_GGUF, 0, 4, "FUGG" }, /* big-endian */
    { FT_FILE_GGML, 0, 4, "lmgg" },
    { FT_FILE_GGML, 0, 4, "fmgg" },
    { FT_FILE_GGML, 0, 4, "tjgg" },
    { FT_FILE_TFLITE, 4, 4, "TFL3" },
    { FT_FILE_HDF5, 0, 8, "\211HDF\r\n\032\n" },
    { FT_FILE_NUMPY, 0, 6, "\223NUMPY" },
    { FT_FILE_GZIP, 0, 3, "\037\213\010" },
    { FT_FILE_XZ, 0, 6, "\3757zXZ" },
    { FT_FILE_ZSTD, 0, 4, "\050\265\057\375" },
    { FT_FILE_BZIP2, 0, 3, "BZh" },
    { FT_FILE_7Z, 0, 6, "7z\274\257\047\034" },
    { FT_FILE_TAR, 257, 5, "ustar" },
    { FT_FILE_LFS, 0, 42, "version https://git-lfs.github.com/spec/v1" },
    { FT_FILE_PNG, 0, 8, "\211PNG\r\n\032\n" },
    { FT_FILE_JPEG, 0, 3, "\377\330\377" },
    { FT_FILE_TEXT, 0, 2, "\377\376" }, /* UTF-16 */
    { FT_FILE_TEXT, 0, 2, "\376\377" },
};

static bool has_bytes(byte_span b, size_t offset, const char *part, size_t length)
{
    return b.count >= offset + length && memcmp(b.at + offset, part, length) == 0;
}

/* The length of a header of less than a terabyte, and the opening brace. */
static bool is_safetensors(byte_span b)
{
    return b.count > 8 && ft_load_le64(b.at) >> 40 == 0 && b.at[8] == '{';
}

/* ModelProto: a small ir_version, followed by another field of the message. */
static bool is_onnx(byte_span b)
{
    static const unsigned char fields[] = { 0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72 };
    return b.count > 2 && b.at[0] == 0x08 && b.at[1] > 0 && b.at[1] < 32 &&
           memchr(fields, b.at[2], sizeof fields) != NULL;
}

/* Protocols 2 to 5; no opcode that follows is a zero byte. */
static bool is_pickle(byte_span b)
{
    return b.count > 2 && b.at[0] == 0x80 && b.at[1] >= 2 && b.at[1] <= 5 && b.at[2] != 0;
}

static bool ends_with(byte_span name, const char *end)
{
    size_t length = strlen(end);
    return name.count >= length && has_bytes(name, name.count - length, end, length);
}

/* Classify by the first entry of the archive. */
static ft_file_kind detect_zip(byte_span b)
{
    enum { LOCAL = 30 };
    if (!has_bytes(b, 0, "PK\003\004", 4))
        return has_bytes(b, 0, "PK\005\006", 4) ? FT_FILE_ZIP : FT_FILE_UNKNOWN;
    size_t length = b.count >= LOCAL ? ft_load_le16(b.at + 26) : SIZE_MAX;
    if (b.count < LOCAL || length > b.count - LOCAL)
        return FT_FILE_ZIP;
    byte_span name = { b.at + LOCAL, length };
    size_t extra = LOCAL + length;
    if (b.count >= extra + 2 && ft_load_le16(b.at + extra) == FT_ZIP_ALIGN_EXTRA_ID)
        return FT_FILE_ARTIFACT;
    if (ends_with(name, "/data.pkl") || ends_with(name, "/.format_version") ||
        ends_with(name, "/version") || ends_with(name, "/byteorder"))
        return FT_FILE_PYTORCH;
    return ends_with(name, ".npy") ? FT_FILE_NPZ : FT_FILE_ZIP;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

/* Valid UTF-8 only, except a character that is truncated at the end. */
static bool is_text(byte_span b)
{
    const unsigned char *at = b.at, *end = b.at + b.count;
    while (at < end) {
        size_t length = ft_utf8_sequence_length(at, end);
        if (length == 0)
            return b.count == FT_MAGIC_BYTES && end - at < 4 && *at >= 0xc2;
        if (length == 1 && (*at == 0x7f || (*at < ' ' && !isspace(*at))))
            return false;
        at += length;
    }
    return b.count > 0;
}

static bool starts_with(byte_span text, const char *word)
{
    size_t length = strlen(word);
    return text.count >= length && strncasecmp((const char *) text.at, word, length) == 0;
}

static ft_file_kind detect_text(byte_span b)
{
    static const char *const html_starts[] = { "<!doctype", "<html", "<head",
                                               "<body",     "<?xml", "<error" };
    if (!is_text(b))
        return FT_FILE_UNKNOWN;
    if (has_bytes(b, 0, "\357\273\277", 3)) /* byte order mark */
        b = (byte_span){ b.at + 3, b.count - 3 };
    while (b.count > 0 && isspace(*b.at))
        b = (byte_span){ b.at + 1, b.count - 1 };
    for (size_t i = 0; i < FT_COUNT(html_starts); i++)
        if (starts_with(b, html_starts[i]))
            return FT_FILE_HTML;
    return starts_with(b, "{") || starts_with(b, "[") ? FT_FILE_JSON : FT_FILE_TEXT;
}

/* ---- Detection ------------------------------------------------------------------------------ */

ft_file_kind ft_detect_file_kind(const void *data, size_t count)
{
    const byte_span b = { data, count < FT_MAGIC_BYTES ? count : FT_MAGIC_BYTES };
    if (is_safetensors(b))
        return FT_FILE_SAFETENSORS;
    for (size_t i = 0; i < FT_COUNT(magics); i++)
        if (has_bytes(b, magics[i].offset, magics[i].magic, magics[i].length))
            return magics[i].kind;
    if (is_onnx(b))
        return FT_FILE_ONNX;
    if (is_pickle(b))
        return FT_FILE_PICKLE;
    ft_file_kind zip = detect_zip(b);
    return zip != FT_FILE_UNKNOWN ? zip : detect_text(b);
}

ft_file_kind ft_detect_file_kind_at(const char *path)
{
    unsigned char first[FT_MAGIC_BYTES];
    struct stat file_stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    if (fd < 0)
        return FT_FILE_UNKNOWN;
    ssize_t count = fstat(fd, &file_stat) == 0 && S_ISREG(file_stat.st_mode)
                        ? pread(fd, first, sizeof first, 0)
                        : 0;
    close(fd);
    return count > 0 ? ft_detect_file_kind(first, (size_t) count) : FT_FILE_UNKNOWN;
}

/* ---- Remedies ------------------------------------------------------------------------------- */

#define USE_CHECKPOINT "take the safetensors checkpoint that it was made from"
#define CONVERT_IN_PYTHON                                                                          \
    "reading pickles can run code; convert them in Python with model.save_pretrained(folder, "     \
    "safe_serialization=True) of transformers or save_file(state_dict, \"model.safetensors\") of " \
    "safetensors.torch"
#define SAVE_WITH_TORCH "write them with save_file() of safetensors.torch"
#define SAVE_WITH_NUMPY "write them with save_file() of safetensors.numpy"
#define UNPACK "unpack it first", "unpack it first"
#define LFS_PULL "only the pointer was cloned: git lfs pull downloads the file itself"
#define RETRY                                                                                      \
    "the download returned a web page, perhaps a login: download the file again, with a token if " \
    "the model is gated"
#define IS_ARTIFACT "ft-run, ft-calibrate, ft-eval and ft-bench take it as it is"
#define IS_COUNTERS "ft-calibrate --merge takes it"
#define IS_IMAGE "ft-run --image takes it"

/* Remedies for readers of weights and for readers of data. */
static const struct {
    const char *name, *weights, *data;
} kinds[] = {
    [FT_FILE_UNKNOWN] = { "something unknown", NULL, NULL },
    [FT_FILE_ARTIFACT] = { "an artifact", IS_ARTIFACT, "artifacts are for -i" },
    [FT_FILE_COUNTERS] = { "counters of ft-calibrate", IS_COUNTERS, IS_COUNTERS },
    [FT_FILE_SHARD] = { "statistics of ft-calibrate", IS_COUNTERS, IS_COUNTERS },
    [FT_FILE_SAFETENSORS] = { "safetensors", NULL, NULL },
    [FT_FILE_GGUF] = { "GGUF", USE_CHECKPOINT, NULL },
    [FT_FILE_GGML] = { "GGML, an older format of llama.cpp", USE_CHECKPOINT, NULL },
    [FT_FILE_ONNX] = { "ONNX", USE_CHECKPOINT, NULL },
    [FT_FILE_TFLITE] = { "TensorFlow Lite", USE_CHECKPOINT, NULL },
    [FT_FILE_HDF5] = { "HDF5, as of Keras", USE_CHECKPOINT, NULL },
    [FT_FILE_PYTORCH] = { "a PyTorch file of pickled tensors", CONVERT_IN_PYTHON, SAVE_WITH_TORCH },
    [FT_FILE_PICKLE] = { "a Python pickle, as of older PyTorch", CONVERT_IN_PYTHON,
                         SAVE_WITH_TORCH },
    [FT_FILE_NUMPY] = { "a NumPy array", SAVE_WITH_NUMPY, SAVE_WITH_NUMPY },
    [FT_FILE_NPZ] = { "an npz archive of NumPy arrays", SAVE_WITH_NUMPY, SAVE_WITH_NUMPY },
    [FT_FILE_ZIP] = { "a zip archive", UNPACK },
    [FT_FILE_GZIP] = { "gzip", UNPACK },
    [FT_FILE_XZ] = { "xz", UNPACK },
    [FT_FILE_ZSTD] = { "zstd", UNPACK },
    [FT_FILE_BZIP2] = { "bzip2", UNPACK },
    [FT_FILE_7Z] = { "a 7z archive", UNPACK },
    [FT_FILE_TAR] = { "a tar archive", UNPACK },
    [FT_FILE_LFS] = { "a Git LFS pointer", LFS_PULL, LFS_PULL },
    [FT_FILE_HTML] = { "an HTML or XML page", RETRY, RETRY },
    [FT_FILE_PNG] = { "a PNG image", IS_IMAGE, IS_IMAGE },
    [FT_FILE_JPEG] = { "a JPEG image", IS_IMAGE, IS_IMAGE },
    [FT_FILE_JSON] = { "JSON", NULL, NULL },
    [FT_FILE_TEXT] = { "plain text", NULL, NULL },
};

const char *ft_file_kind_name(ft_file_kind kind)
{
    return kinds[kind].name;
}

/* The type that each reader expects, and how messages say so. */
static const struct {
    ft_file_kind kind;
    const char *expected;
} readers[] = {
    [FT_EXPECTED_CHECKPOINT] = { FT_FILE_SAFETENSORS, "ft-convert reads safetensors" },
    [FT_EXPECTED_ARTIFACT] = { FT_FILE_ARTIFACT,
                               "expected an artifact, which ft-convert makes from safetensors" },
    [FT_EXPECTED_DATA] = { FT_FILE_SAFETENSORS, "data are read from safetensors, with input_ids "
                                                "[N, S] or pixel_values [N, C, H, W]" },
    [FT_EXPECTED_COUNTERS] = { FT_FILE_COUNTERS,
                               "expected counters, which ft-calibrate --save-counters writes" },
    [FT_EXPECTED_SHARD] = { FT_FILE_SHARD,
                            "expected statistics, which ft-calibrate --save-stats writes" },
    [FT_EXPECTED_JSON] = { FT_FILE_JSON, "expected JSON" },
    [FT_EXPECTED_TOKENIZER] = { FT_FILE_TEXT, "expected a file of a tokenizer" },
};

static const char *remedy(ft_expected_file wanted, ft_file_kind kind)
{
    if (wanted == FT_EXPECTED_COUNTERS || wanted == FT_EXPECTED_SHARD)
        return NULL;
    bool weights = wanted == FT_EXPECTED_CHECKPOINT || wanted == FT_EXPECTED_ARTIFACT;
    return weights ? kinds[kind].weights : kinds[kind].data;
}

static ft_status fail_kind(const char *path, ft_expected_file wanted, ft_file_kind kind,
                           ft_error *err)
{
    const char *advice = remedy(wanted, kind);
    if (wanted == FT_EXPECTED_ARTIFACT && kind == FT_FILE_SAFETENSORS)
        return ft_fail(err, FT_EFORMAT,
                       "%s: looks like safetensors: convert it first with ft-convert -i %s -o "
                       "model.ft",
                       path, path);
    return ft_fail(err, FT_EFORMAT, "%s: looks like %s: %s%s%s", path, ft_file_kind_name(kind),
                   readers[wanted].expected, advice != NULL ? "; " : "",
                   advice != NULL ? advice : "");
}

static ft_status explain_kind(const char *path, ft_expected_file wanted, ft_file_kind kind,
                              ft_status failure, ft_error *err)
{
    if (kind == FT_FILE_UNKNOWN || kind == readers[wanted].kind)
        return failure;
    return fail_kind(path, wanted, kind, err);
}

/* ---- Missing files -------------------------------------------------------------------------- */

/* "org/name", or for a checkpoint also the plain "name" of old models; without a file suffix. */
static bool is_hub_name(const char *path, ft_expected_file wanted)
{
    static const char *const ends[] = { ".ft",   ".safetensors", ".json", ".bin",
                                        ".gguf", ".onnx",        ".pt" };
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t first = strspn(path, letters);
    bool pair = path[first] == '/';
    const char *name = pair ? path + first + 1 : path;
    for (size_t i = 0; i < FT_COUNT(ends); i++)
        if (ends_with((byte_span){ (const unsigned char *) path, strlen(path) }, ends[i]))
            return false;
    return first > 0 && path[0] != '.' && name[0] != '.' && name[0] != '\0' &&
           name[strspn(name, letters)] == '\0' && (pair || wanted == FT_EXPECTED_CHECKPOINT);
}

static ft_status explain_absence(const char *path, ft_expected_file wanted, ft_status failure,
                                 ft_error *err)
{
    if (errno != ENOENT || !is_hub_name(path, wanted))
        return failure;
    const char *slash = strchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    return ft_fail(
        err, failure,
        "%s: No such file or directory; if that is a model on the Hugging Face Hub, "
        "download it first: hf download %s --local-dir %s, then ft-convert -i %s -o %s.ft",
        path, path, name, name, name);
}

static ft_status explain_folder(const char *path, ft_expected_file wanted, ft_status failure,
                                ft_error *err)
{
    if (wanted == FT_EXPECTED_ARTIFACT)
        return ft_fail(err, failure,
                       "%s: is a folder, expected an artifact; if it is a checkpoint, convert it "
                       "first with ft-convert -i %s -o model.ft",
                       path, path);
    return ft_fail(err, failure, "%s: is a folder, expected a file: %s", path,
                   readers[wanted].expected);
}

ft_status ft_explain_wrong_file(const char *path, ft_expected_file wanted, ft_status failure,
                                ft_error *err)
{
    struct stat file_stat;
    if (stat(path, &file_stat) != 0)
        return explain_absence(path, wanted, failure, err);
    if (S_ISDIR(file_stat.st_mode))
        return explain_folder(path, wanted, failure, err);
    return explain_kind(path, wanted, ft_detect_file_kind_at(path), failure, err);
}

ft_status ft_explain_wrong_bytes(const char *label, const void *data, size_t count,
                                 ft_expected_file wanted, ft_status failure, ft_error *err)
{
    ft_file_kind kind = ft_detect_file_kind(data, count);
    bool is_plain_text = wanted == FT_EXPECTED_JSON && kind == FT_FILE_TEXT;
    return is_plain_text ? failure : explain_kind(label, wanted, kind, failure, err);
}
