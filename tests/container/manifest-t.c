/*
 * manifest-t.c - an invalid manifest, or entries that do not match it, are refused.
 *
 * The archives themselves are well-formed zip files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact.h"
#include "runtime/container/features.h"
#include "runtime/mem.h"
#include "runtime/container/zip_writer.h"
#include "tests/lib/folder.h"
#include "tests/lib/sample.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *good; /* the bytes of the current sample */
static size_t good_bytes;
static ft_artifact *whole; /* the same, opened */

static ft_status open_bytes(const unsigned char *data, size_t bytes, ft_verify verify,
                            ft_error *err)
{
    ft_artifact *a;
    err->text[0] = '\0';
    ft_status rc = ft_artifact_open_memory(&a, "m.ft", data, bytes, verify, err);
    ft_artifact_close(a);
    return rc;
}

/* ---- Archives with changed contents -------------------------------------------------------- */

typedef struct {
    ft_zip_item item[32];
    const void *data[32];
    size_t done[32], count;
} contents;

static ft_status pull(void *user, size_t index, void *buffer, size_t bytes, size_t *got,
                      ft_error *err)
{
    (void) err;
    contents *c = user;
    memcpy(buffer, (const char *) c->data[index] + c->done[index], bytes);
    c->done[index] += bytes;
    *got = bytes;
    return FT_OK;
}

static void put(contents *c, const char *name, const void *data, size_t bytes)
{
    size_t i = 0;
    while (i < c->count && strcmp(c->item[i].name, name) != 0)
        i++;
    c->count += i == c->count;
    c->item[i] = (ft_zip_item){ .name = name, .bytes = bytes };
    c->data[i] = data;
}

static void drop(contents *c, const char *name)
{
    size_t i = 0;
    while (strcmp(c->item[i].name, name) != 0)
        i++;
    c->count--;
    memmove(&c->item[i], &c->item[i + 1], (c->count - i) * sizeof *c->item);
    memmove(&c->data[i], &c->data[i + 1], (c->count - i) * sizeof *c->data);
}

/* The entries of the good artifact, in their order, without the manifest. */
static contents good_contents(void)
{
    contents c = { .count = 0 };
    for (size_t at = ft_load_le32(good + good_bytes - 22 + 16); at < good_bytes - 22;) {
        static char names[32][64];
        size_t length = ft_load_le16(good + at + 28), bytes = ft_load_le32(good + at + 24);
        size_t local = ft_load_le32(good + at + 42);
        snprintf(names[c.count], sizeof names[0], "%.*s", (int) length,
                 (const char *) good + at + 46);
        if (strcmp(names[c.count], "manifest.json") != 0)
            put(&c, names[c.count],
                good + local + 30 + ft_load_le16(good + local + 26) +
                    ft_load_le16(good + local + 28),
                bytes);
        at += 46 + length + ft_load_le16(good + at + 30) + ft_load_le16(good + at + 32);
    }
    return c;
}

/* Writes these entries and a manifest to a file and opens it. */
static ft_status open_contents(contents *c, const char *manifest, size_t bytes, ft_error *err)
{
    if (manifest != NULL)
        put(c, "manifest.json", manifest, bytes);
    char folder[FOLDER_PATH], path[128];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/m.ft", folder);
    FILE *file = fopen(path, "w+b");
    size_t end;
    if (file == NULL || !ft_zip_plan(c->item, c->count, &end) ||
        ft_zip_write(fileno(file), path, c->item, c->count, pull, c, err) != FT_OK)
        bail_out("%s", err->text);
    fclose(file);
    size_t size;
    unsigned char *data = folder_read(path, &size);
    folder_remove(folder);
    ft_status rc = open_bytes(data, size, FT_VERIFY_STRUCTURE, err);
    free(data);
    return rc;
}

static ft_status open_json(contents *c, json_t *json, ft_error *err)
{
    char *text = json_dumps(json, JSON_INDENT(1));
    ft_status rc = open_contents(c, text, strlen(text), err);
    free(text);
    return rc;
}

/* The member at a path such as "tensors/1/scale"; *key is the last component and *in its parent. */
static json_t *member(json_t *json, const char *path, json_t **in, char key[32])
{
    for (;;) {
        size_t length = strcspn(path, "/");
        snprintf(key, 32, "%.*s", (int) length, path);
        *in = json;
        json = json_is_array(json) ? json_array_get(json, (size_t) atoi(key))
                                   : json_object_get(json, key);
        if (path[length] == '\0')
            return json;
        path += length + 1;
    }
}

typedef struct alteration {
    const char *path, *value; /* JSON; NULL removes the member */
    ft_status status;
    const char *reason, *sentence;
} alteration;

/* Tensors of the sample: 0 embed.word F16, 1 layer.0.ffn.up.weight I8, 2 head.weight I8, 3 norm. */
static const alteration edits[] = {
    { "format", "\"gguf\"", FT_EFORMAT, "format: found \"gguf\", expected \"ft\"",
      "another format" },
    { "version", "2", FT_EUNSUPPORTED, "format version 2, this program reads version 1",
      "version 2" },
    { "version", "\"1\"", FT_EFORMAT, "version: found \"1\", expected an integer from 0",
      "a version that is a string" },
    { "requires", "[\"fp8-weights\"]", FT_EUNSUPPORTED, "requires fp8-weights, which version",
      "a feature of a later version" },
    { "requires", "\"fp8-weights\"", FT_EFORMAT,
      "\"requires\": expected an array of at most 16 names", "a feature that is no array" },
    { "requires", "null", FT_EFORMAT, "\"requires\": expected an array", "features that are null" },
    { "requires", "{}", FT_EFORMAT, "\"requires\": expected an array", "features by name" },
    { "requires", "[7]", FT_EFORMAT, "\"requires\"[0]: expected at most 31 visible",
      "a feature that is a number" },
    { "requires", "[\"\"]", FT_EFORMAT, "\"requires\"[0]: expected", "a feature without a name" },
    { "requires", "[\"x\", \"a b\"]", FT_EFORMAT, "\"requires\"[1]: expected",
      "a feature of two words" },
    { "requires", "[\"x\\n\"]", FT_EFORMAT, "\"requires\"[0]: expected",
      "a feature with a line feed" },
    { "requires", "[\"abcdefghijklmnopqrstuvwxyz012345\"]", FT_EFORMAT, "\"requires\"[0]: expected",
      "a feature whose name has 32 characters" },
    { "requires", "[\"x\", \"y\", \"x\"]", FT_EFORMAT, "\"requires\": x is listed twice",
      "a feature that is required twice" },
    { "requires", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", FT_EFORMAT, "at most 16 names",
      "17 features" },
    { "state", "\"int4\"", FT_EFORMAT,
      "state: found \"int4\", expected \"float\", \"blocks\" or \"int8\"", "an unknown state" },
    { "state", "\"float\"", FT_EFORMAT,
      "recipe: found {\"residual\": \"float\"}, expected none in a float artifact",
      "state float with a recipe" },
    { "family", "3", FT_EFORMAT, "family: found 3, expected a string",
      "a family that is a number" },
    { "tool", NULL, FT_EFORMAT, "tool", "a missing tool" },
    { "config", "[]", FT_EFORMAT, "config: found [], expected an object",
      "a config that is a list" },
    { "recipe", NULL, FT_EFORMAT, "recipe: found nothing, expected an object", "a missing recipe" },
    { "tensors", "{}", FT_EFORMAT, "tensors: found {}, expected an array",
      "tensors that are not a list" },
    { "tensors/0", "7", FT_EFORMAT, "an array of objects", "a tensor that is a number" },
    { "tensors/0/name", NULL, FT_EFORMAT, "tensors[0].name: found nothing, expected a string",
      "a tensor without a name" },
    { "tensors/0/name", "\"../x\"", FT_EFORMAT,
      "tensors[0].name: found \"../x\", expected a path of visible ASCII characters",
      "a name with a parent directory" },
    { "tensors/0/name", "\"x\"", FT_EFORMAT, "expected w/x", "a name that differs from its entry" },
    { "tensors/0/role", "\"a b\"", FT_EFORMAT,
      "tensors[0].role: found \"a b\", expected at most 31 visible ASCII characters",
      "a role of two words" },
    { "tensors/0/dtype", "\"F8\"", FT_EFORMAT,
      "tensors[0].dtype: found \"F8\", expected a known dtype", "an unknown dtype" },
    { "tensors/0/dtype", "\"F32\"", FT_EFORMAT, "528 bytes, but F32 [11, 24] row has 1056",
      "an F32 tensor with the bytes of F16" },
    { "tensors/0/shape", "[11, 23]", FT_EFORMAT, "but F16 [11, 23] row has 506",
      "a shape that is too small" },
    { "tensors/0/shape", "[11, \"24\"]", FT_EFORMAT,
      "tensors[0].shape: found [11, \"24\"], expected integers", "a dimension that is a string" },
    { "tensors/0/shape", "[11, -24]", FT_EFORMAT, "[11, -24] has a dimension below 1",
      "a negative dimension" },
    { "tensors/0/shape", "[9223372036854775807, 9223372036854775807]", FT_ELIMIT, "is too large",
      "a shape that overflows" },
    { "tensors/0/shape", "[1,1,1,1,1,1,1,11,24]", FT_EFORMAT, "at most 8 dimensions",
      "nine dimensions" },
    { "tensors/1/shape", "[9223372036854775807, 9223372036854775807]", FT_ELIMIT, "is too large",
      "a padded shape that overflows" },
    { "tensors/1/shape", "[41, 70]", FT_EFORMAT, "3840 bytes, but I8 [41, 70] col4_4r2_8c has 4608",
      "a shape with different padding" },
    { "tensors/1/shape", "[38, 70]", FT_EFORMAT, "37 scales, expected 38",
      "more rows than scales" },
    { "tensors/0/layout", "\"tiled\"", FT_EFORMAT,
      "tensors[0].layout: found \"tiled\", expected a known layout", "an unknown layout" },
    { "tensors/0/layout", "\"col32\"", FT_EFORMAT, "layout col32 is for I8 matrices, not for F16",
      "an F16 tensor in an I8 layout" },
    { "tensors/0/entry", "\"w/head.weight\"", FT_EFORMAT,
      "found w/head.weight, expected w/embed.word", "the entry of another tensor" },
    { "tensors/0/offset", "64", FT_EFORMAT, "says 528 at byte 64",
      "an offset that differs from the entry" },
    { "tensors/0/offset", "-64", FT_EFORMAT,
      "tensors[0].offset: found -64, expected an integer from 0", "a negative offset" },
    { "tensors/0/bytes", "527", FT_EFORMAT, "527 bytes, but",
      "a size that differs from the shape" },
    { "tensors/0/bytes", "528.0", FT_EFORMAT,
      "tensors[0].bytes: found 528.0, expected an integer from 0", "a size with a fraction" },
    { "tensors/0/sha256", "\"00\"", FT_EFORMAT,
      "tensors[0].sha256: found \"00\", expected 64 hexadecimal digits", "a short digest" },
    { "tensors/0/scale", "\"s/embed.word\"", FT_EFORMAT, "embed.word: F16 with a scale",
      "a scale of an F16 tensor" },
    { "tensors/1/scale", NULL, FT_EFORMAT, "layer.0.ffn.up.weight: I8 without scale",
      "an I8 tensor without scale" },
    { "tensors/1/scale", "\"s/head.weight\"", FT_EFORMAT, "expected s/layer.0.ffn.up.weight",
      "the scale of another tensor" },
    { "tensors/3", NULL, FT_EFORMAT, "w/layer.0.norm.weight: not in manifest.json",
      "an entry that no tensor refers to" },
    { "files/0", NULL, FT_EFORMAT, "config.json: not in manifest.json",
      "an entry that is not listed as a file" },
    { "files/0/name", "\"other.json\"", FT_EFORMAT, "other.json: missing", "a missing file" },
    { "files/0/name", "\"amax.tsv\"", FT_EFORMAT, "amax.tsv: ", "a file that is listed twice" },
    { "files/0/name", "\"manifest.json\"", FT_EFORMAT, "named twice",
      "a manifest that lists itself" },
    { "files/0/bytes", "3", FT_EFORMAT, "config.json: 2 bytes, manifest.json says 3",
      "a file size that differs from the entry" },
    { "files", NULL, FT_EFORMAT, "files: found nothing, expected an array",
      "a missing list of files" },
    { "state", "\"blocks\"", FT_EFORMAT, "I8 in an artifact of state blocks",
      "an I8 tensor in state blocks" },
    { "tensors/1/group", "32", FT_EFORMAT, "I8 col4_4r2_8c with \"group\"",
      "a group size of an I8 tensor" },
    { "tensors/0/zero", "\"z/embed.word\"", FT_EFORMAT, "F16 row with \"zero\"",
      "zero points of an F16 tensor" },
    { "tensors/0/activations", "\"int8\"", FT_EFORMAT, "F16 row with \"activations\"",
      "int8 activations of an F16 tensor" },
    { "tensors/1/layout", "\"panel32\"", FT_EFORMAT,
      "tensors[1].group: found nothing, expected an integer from 0", "an I8 tensor in PANEL32" },
};

/* 0 embed.word F16, 1 layer.0.ffn.up.weight U4 with zero points, 2 head.weight U8 with int8
 * activations, 3 norm. */
static const alteration blocks_edits[] = {
    { "state", "\"float\"", FT_EFORMAT,
      "recipe: found {\"residual\": \"float\"}, expected none in a float artifact",
      "state float with a recipe" },
    { "state", "\"int8\"", FT_EFORMAT, "state int8, but no tensor is I8",
      "state int8 without an I8 tensor" },
    { "recipe", NULL, FT_EFORMAT, "recipe: found nothing, expected an object", "a missing recipe" },
    { "tensors/1/group", NULL, FT_EFORMAT,
      "tensors[1].group: found nothing, expected an integer from 0", "a missing group size" },
    { "tensors/1/group", "\"32\"", FT_EFORMAT,
      "tensors[1].group: found \"32\", expected an integer from 0",
      "a group size that is a string" },
    { "tensors/1/group", "-32", FT_EFORMAT,
      "tensors[1].group: found -32, expected an integer from 0", "a negative group size" },
    { "tensors/1/group", "48", FT_EFORMAT, "groups of 48 columns, expected a multiple of 32",
      "a group size of 48" },
    { "tensors/1/group", "2147483648", FT_EFORMAT,
      "tensors[1].group: found 2147483648, expected an integer from 0 to 2147483647",
      "a group size that overflows" },
    { "tensors/1/group", "64", FT_EFORMAT, "192 scales, expected 128",
      "a group size that needs fewer scales" },
    { "tensors/1/dtype", "\"U8\"", FT_EFORMAT, "3072 bytes, but U8 [37, 70] panel32 has 6144",
      "a U8 tensor with the bytes of U4" },
    { "tensors/1/dtype", "\"F16\"", FT_EFORMAT, "is for U4 and U8 matrices, not for F16",
      "an F16 tensor in PANEL32" },
    { "tensors/1/layout", "\"row\"", FT_EFORMAT, "U4 row with \"group\"",
      "a U4 tensor that is not in PANEL32" },
    { "tensors/1/layout", "\"col32\"", FT_EFORMAT, "U4 col32 with \"group\"",
      "a U4 tensor in an I8 layout" },
    { "tensors/1/shape", "[37, 70, 1]", FT_EFORMAT, "not for U4 [37, 70, 1]",
      "a U4 tensor of three dimensions" },
    { "tensors/1/shape", "[65, 70]", FT_EFORMAT, "but U4 [65, 70] panel32 has 4608",
      "more rows than panels" },
    { "tensors/1/shape", "[38, 70]", FT_EFORMAT,
      "scale of row 37, group 0 is 0, expected a positive finite number", "more rows than scales" },
    { "tensors/1/shape", "[36, 70]", FT_EFORMAT, "expected 0 in a padding row",
      "fewer rows than scales" },
    { "tensors/1/shape", "[9223372036854775807, 70]", FT_ELIMIT, "is too large",
      "a shape that overflows" },
    { "tensors/1/scale", NULL, FT_EFORMAT, "U4 without scale", "a U4 tensor without scales" },
    { "tensors/1/scale", "\"s/head.weight\"", FT_EFORMAT, "expected s/layer.0.ffn.up.weight",
      "the scales of another tensor" },
    { "tensors/1/zero", "\"z/head.weight\"", FT_EFORMAT, "expected z/layer.0.ffn.up.weight",
      "the zero points of another tensor" },
    { "tensors/1/zero", NULL, FT_EFORMAT, "z/layer.0.ffn.up.weight: zeros of no quantized tensor",
      "zero points that no tensor refers to" },
    { "tensors/2/zero", "\"z/head.weight\"", FT_EFORMAT, "z/head.weight: missing: the zeros of",
      "missing zero points" },
    { "tensors/2/activations", "\"int4\"", FT_EFORMAT,
      "tensors[2].activations: found \"int4\", expected \"int8\"", "unknown activations" },
    { "tensors/2/activations", "8", FT_EFORMAT,
      "tensors[2].activations: found 8, expected a string", "activations that are a number" },
};

static void edit(json_t *json, const char *path, const char *value)
{
    json_t *in;
    char key[32];
    member(json, path, &in, key);
    json_t *new = value != NULL ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_array(in) && new != NULL)
        json_array_set_new(in, (size_t) atoi(key), new);
    else if (json_is_array(in))
        json_array_remove(in, (size_t) atoi(key));
    else if (new != NULL)
        json_object_set_new(in, key, new);
    else
        json_object_del(in, key);
}

static void test_edits(const alteration *list, size_t count)
{
    ft_error err;
    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole));
    is_int(open_json(&c, json, &err), FT_OK, "the unedited manifest is accepted");
    json_decref(json);
    for (size_t i = 0; i < count; i++) {
        c = good_contents();
        json = json_deep_copy(ft_artifact_manifest(whole));
        edit(json, list[i].path, list[i].value);
        ft_status rc = open_json(&c, json, &err);
        ok(rc == list[i].status && strstr(err.text, list[i].reason),
           "an artifact with %s is refused (%s)", list[i].sentence, err.text);
        json_decref(json);
    }
}

/* Which version to install, and which features are known. */
static void test_requires(void)
{
    static const char *const known[] = { "x", "fp8-weights", NULL };
    ft_error err;
    json_t *required = json_pack("[ssss]", "fp8-weights", "sparse", "x", "long-rope");
    json_t *two = json_pack("[ss]", "x", "fp8-weights"), *none = json_array();
    is_int(ft_features_check(NULL, known, "m.ft", "9.0", &err), FT_OK,
           "an artifact without requires is read");
    is_int(ft_features_check(none, known, "m.ft", "9.0", &err), FT_OK,
           "an artifact that requires nothing is read");
    is_int(ft_features_check(two, known, "m.ft", "9.0", &err), FT_OK,
           "an artifact that requires known features is read");
    is_int(ft_features_check(required, known, "m.ft", "9.0", &err), FT_EUNSUPPORTED,
           "an artifact that requires an unknown feature is refused");
    char text[200];
    snprintf(
        text, sizeof text,
        "m.ft: requires sparse, long-rope, which version %s does not have; install version 9.0, "
        "which wrote it, or a later one",
        ft_version());
    is_str(err.text, text, "the error names the unknown features and the version that wrote them");
    ft_features_check(required, known, "m.ft", ft_version(), &err);
    has(err.text, "does not have; install a later version", "this version is not recommended");
    ft_features_check(required, known, "m.ft", "9.0\x1b[31m", &err);
    has(err.text, "does not have; install a later version",
        "a version that is no word is not quoted");

    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole));
    json_object_set(json, "requires", none);
    is_int(open_json(&c, json, &err), FT_OK, "a manifest may require nothing in so many words");
    ok(json_object_get(ft_artifact_manifest(whole), "requires") == NULL,
       "an artifact that old readers understand has no requires");
    json_decref(json);
    json_decref(required);
    json_decref(two);
    json_decref(none);
}

static void test_twice(void)
{
    ft_error err;
    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole));
    json_t *tensors = json_object_get(json, "tensors");
    json_array_append(tensors, json_array_get(tensors, 0));
    is_int(open_json(&c, json, &err), FT_EFORMAT, "a tensor that is listed twice is refused");
    has(err.text, "w/embed.word: named twice", "the error of a duplicate tensor names its entry");
    json_decref(json);
}

static void test_texts(void)
{
    static const struct {
        const char *text, *reason, *sentence;
    } texts[] = {
        { "", "manifest.json: line", "an empty manifest" },
        { "[]", "found a JSON array, expected a JSON object", "a manifest that is a list" },
        { "{\"format\": \"ft\", \"format\": \"ft\"}", "duplicate object key", "a duplicate key" },
        { "{\"format\": \"ft\"", "manifest.json: line 1, column 15: not valid JSON",
          "a truncated manifest" },
        { "{\"format\": \"\xff\"}", "unable to decode", "bytes that are not UTF-8" },
        { "{}x", "end of file expected", "data after the manifest" },
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(texts); i++) {
        contents c = good_contents();
        ft_status rc = open_contents(&c, texts[i].text, strlen(texts[i].text), &err);
        ok(rc == FT_EFORMAT && strstr(err.text, texts[i].reason),
           "an artifact with %s is refused (%s)", texts[i].sentence, err.text);
    }
    char *deep = malloc(100000);
    memset(deep, '[', 100000);
    contents c = good_contents();
    is_int(open_contents(&c, deep, 100000, &err), FT_EFORMAT,
           "a manifest of 100,000 nested arrays is refused");
    free(deep);
    c = good_contents();
    is_int(open_contents(&c, NULL, 0, &err), FT_EFORMAT,
           "an artifact without a manifest is refused");
    has(err.text, "m.ft: no manifest.json", "the error of a missing manifest names it");
}

/* ---- Entries and values -------------------------------------------------------------------- */

/* Replaces an entry by `bytes` bytes and updates its size in the manifest. */
static ft_status open_with(const char *name, const void *data, size_t bytes, ft_error *err)
{
    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole)), *file;
    size_t index;
    json_array_foreach(json_object_get(json, "files"), index,
                       file) if (strcmp(json_string_value(json_object_get(file, "name")), name) ==
                                 0)
        json_object_set_new(file, "bytes", json_integer((json_int_t) bytes));
    put(&c, name, data, bytes);
    ft_status rc = open_json(&c, json, err);
    json_decref(json);
    return rc;
}

static void test_scales(void)
{
    static const struct {
        float value;
        const char *found;
    } bad[] = {
        { 0.0f, "0" }, { -0.5f, "-0.5" }, { NAN, "nan" }, { INFINITY, "inf" }, { -INFINITY, "-inf" }
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        float scale[3] = { 0.25f, 0.5f, bad[i].value };
        char reason[80];
        snprintf(reason, sizeof reason, "head.weight: scale of channel 2 is %s, ", bad[i].found);
        ft_status rc = open_with("s/head.weight", scale, sizeof scale, &err);
        ok(rc == FT_EFORMAT && strstr(err.text, reason), "a scale of %s is refused (%s)",
           bad[i].found, err.text);
    }
    float four[4] = { 1, 1, 1, 1 };
    is_int(open_with("s/head.weight", four, sizeof four, &err), FT_EFORMAT,
           "more scales than channels are refused");
    has(err.text, "s/head.weight: 4 scales, expected 3",
        "the error names the number of scales found and expected");
    is_int(open_with("s/head.weight", four, 11, &err), FT_EFORMAT, "a partial scale is refused");

    contents c = good_contents();
    drop(&c, "s/head.weight");
    json_t *json = json_deep_copy(ft_artifact_manifest(whole));
    json_t *files = json_object_get(json, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(files, i), "name")),
                   "s/head.weight") == 0)
            json_array_remove(files, i);
    json_array_remove(json_object_get(json, "tensors"),
                      3); /* norm, which is stored after the scales */
    drop(&c, "w/layer.0.norm.weight");
    is_int(open_json(&c, json, &err), FT_EFORMAT,
           "an I8 tensor whose scales are missing is refused");
    has(err.text, "s/head.weight: missing: the scales of head.weight",
        "the error of missing scales names the entry and the tensor");
    json_decref(json);
}

/* Replaces one scale or zero point of layer.0.ffn.up.weight: 37 rows, padded to 64, by three
 * groups. */
static void refuse_group_number(bool zeros, size_t index, uint16_t number, const char *reason)
{
    const ft_artifact_tensor *t = ft_artifact_find(whole, "layer.0.ffn.up.weight");
    uint16_t scale[3 * 64];
    uint8_t zero[3 * 64];
    ft_error err;
    memcpy(scale, t->groupwise.scale, sizeof scale);
    memcpy(zero, t->groupwise.zero, sizeof zero);
    scale[index] = zeros ? scale[index] : number;
    zero[index] = zeros ? (uint8_t) number : zero[index];
    ft_status rc = zeros ? open_with("z/layer.0.ffn.up.weight", zero, sizeof zero, &err)
                         : open_with("s/layer.0.ffn.up.weight", scale, sizeof scale, &err);
    ok(rc == FT_EFORMAT && strstr(err.text, reason),
       "a group-wise quantized tensor is refused with the error: %s (%s)", reason, err.text);
}

static void test_groups(void)
{
    static const struct {
        uint16_t bits;
        const char *found;
    } bad[] = {
        { 0, "0" }, { 0x8000, "-0" }, { 0xb800, "-0.5" }, { 0x7c00, "inf" }, { 0x7e00, "nan" }
    };
    char reason[100];
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        snprintf(reason, sizeof reason, "scale of row 36, group 2 is %s, expected a pos",
                 bad[i].found);
        refuse_group_number(false, 2 * 64 + 36, bad[i].bits, reason);
    }
    refuse_group_number(false, 64 + 37, 1, "scale of row 37, group 1 is 5.96046e-08, expected 0");
    refuse_group_number(true, 64 + 36, 16, "zero of row 36, group 1 is 16, expected at most 15");
    refuse_group_number(true, 63, 1, "zero of row 63, group 0 is 1, expected at most 0");
    ft_error err;
    static const char few[190];
    is_int(open_with("z/layer.0.ffn.up.weight", few, sizeof few, &err), FT_EFORMAT,
           "too few zero points are refused");
    has(err.text, "z/layer.0.ffn.up.weight: 190 zeros, expected 192",
        "the error names the number of zero points found and expected");
}

static void test_orphans(void)
{
    ft_error err;
    static const float one = 1.0f;
    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole));
    json_t *extra = json_deep_copy(json_array_get(json_object_get(json, "files"), 0));
    json_object_set_new(extra, "name", json_string("s/embed.word"));
    json_object_set_new(extra, "bytes", json_integer(4));
    json_array_append_new(json_object_get(json, "files"), extra);
    put(&c, "s/embed.word", &one, sizeof one);
    is_int(open_json(&c, json, &err), FT_EFORMAT,
           "scales of a tensor that is not quantized are refused");
    has(err.text, "s/embed.word: scales of no quantized tensor",
        "the error says that the scales belong to no quantized tensor");
    json_decref(json);
}

static void test_amax(void)
{
    ft_error err;
    is_int(open_with("amax.tsv", "nonsense\n", 9, &err), FT_EFORMAT,
           "a malformed amax.tsv is refused");
    has(err.text,
        "m.ft: amax.tsv: line 1:", "the error of a malformed amax.tsv names the file and the line");

    contents c = good_contents();
    json_t *json = json_deep_copy(ft_artifact_manifest(whole)), *file;
    size_t index;
    json_array_foreach(
        json_object_get(json, "files"), index,
        file) if (strcmp(json_string_value(json_object_get(file, "name")), "amax.tsv") == 0)
        json_object_set_new(file, "name", json_string("amax.tsw"));
    for (size_t i = 0; i < c.count; i++)
        if (strcmp(c.item[i].name, "amax.tsv") == 0)
            c.item[i].name = "amax.tsw";
    is_int(open_json(&c, json, &err), FT_EFORMAT, "an int8 artifact without amax.tsv is refused");
    has(err.text, "amax.tsv: missing in an int8 artifact",
        "the error says that amax.tsv is missing");
    json_decref(json);
}

/* Writes a sample and opens it. */
static void begin(const sample *what)
{
    char folder[FOLDER_PATH], path[128];
    ft_error err;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/good.ft", folder);
    if (sample_write(path, what, &err) != FT_OK)
        bail_out("%s", err.text);
    good = folder_read(path, &good_bytes);
    folder_remove(folder);
    if (ft_artifact_open_memory(&whole, "m.ft", good, good_bytes, FT_VERIFY_SHA256, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void end(void)
{
    ft_artifact_close(whole);
    free(good);
}

int main(void)
{
    begin(&(sample){ .state = FT_ARTIFACT_INT8, .seed = 9 });
    test_edits(edits, FT_COUNT(edits));
    test_requires();
    test_twice();
    test_texts();
    test_scales();
    test_orphans();
    test_amax();
    end();
    begin(&(sample){ .state = FT_ARTIFACT_GROUPWISE, .seed = 9 });
    test_edits(blocks_edits, FT_COUNT(blocks_edits));
    test_groups();
    end();
    return done_testing();
}
