/*
 * json_reader-t.c - JSON files are loaded within bounds, and errors name the file and the field.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/json_reader.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Loading ------------------------------------------------------------------------------ */

typedef struct bad_file {
    const char *text;
    json_type type;
    const char *message, *sentence;
} bad_file;

static const bad_file bad_files[] = {
    { "", JSON_OBJECT, "f.json: line 1, column 0: not valid JSON: ", "an empty file" },
    { "{\n\"a\": 1", JSON_OBJECT,
      "f.json: line 2, column 6: not valid JSON: ", "a truncated file" },
    { "{\"a\": 1} x", JSON_OBJECT, "not valid JSON: end of file expected", "text after the end" },
    { "{\"a\": \"\xff\"}", JSON_OBJECT, "not valid JSON: unable to decode byte 0xff",
      "text that is not UTF-8" },
    { "{\"a\": 1, \"a\": 2}", JSON_OBJECT, "not valid JSON: duplicate object key",
      "a duplicate key" },
    { "{\"a\": {\"b\": 1, \"b\": 2}}", JSON_OBJECT, "not valid JSON: duplicate object key",
      "a duplicate key of an inner object" },
    { "[]", JSON_OBJECT, "f.json: found a JSON array, expected a JSON object",
      "an array in place of an object" },
    { "{}", JSON_ARRAY, "f.json: found a JSON object, expected a JSON array",
      "an object in place of an array" },
    { "7", JSON_ARRAY, "f.json: line 1, column 1: not valid JSON: ", "a number" },
    { "{\"a\": 12345678901234567890}", JSON_OBJECT, "not valid JSON: too big integer",
      "an integer of more than 64 bits" },
    { "{\"a\": 1e999}", JSON_OBJECT, "not valid JSON: real number overflow", "an infinite number" },
};

static void test_bad_files(void)
{
    for (size_t i = 0; i < FT_COUNT(bad_files); i++) {
        const bad_file *b = &bad_files[i];
        ft_error err = { 0 };
        ft_json_reader in = { .json = json_null(), .file = "f.json", .err = &err };
        ft_status status = ft_json_load(&in, b->type, b->text, strlen(b->text), 1000);
        ok(status == FT_EFORMAT && err.code == status && in.json == NULL &&
               strncmp(err.text, "f.json: ", 8) == 0 && strstr(err.text, b->message) != NULL,
           "ft_json_load() refuses %s with the message: %s", b->sentence, b->message);
        if (strstr(err.text, b->message) == NULL)
            diag("found \"%s\"", err.text);
    }
}

static void test_size(void)
{
    ft_error err;
    ft_json_reader in = { .file = "f.json", .err = &err };
    is_int(ft_json_load(&in, JSON_OBJECT, "{\"a\": 1}", 8, 8), FT_OK,
           "ft_json_load() accepts a file of as many bytes as allowed");
    json_decref(in.json);
    is_int(ft_json_load(&in, JSON_OBJECT, "{\"a\": 1}", 8, 7), FT_ELIMIT,
           "ft_json_load() refuses a file of more bytes than allowed");
    is_str(err.text, "f.json: 8 bytes, expected at most 7",
           "the error names the size and the limit");
    ok(in.json == NULL, "a refused file leaves no JSON value");
}

static void test_big_integers(void)
{
    static const char text[] = "{\"a\": 1000000000000000019884624838656}";
    ft_error err;
    ft_json_reader in = { .file = "f.json", .err = &err };
    is_int(ft_json_load_big_integers(&in, JSON_OBJECT, text, strlen(text), 1000), FT_OK,
           "ft_json_load_big_integers() accepts an integer of more than 64 bits");
    ok(json_real_value(json_object_get(in.json, "a")) == 1e30,
       "ft_json_load_big_integers() reads an integer of more than 64 bits as the nearest real "
       "number");
    json_decref(in.json);
}

static void test_depth(void)
{
    enum { DEPTH = 100000 };
    char *deep = malloc(DEPTH);
    ft_error err;
    ft_json_reader in = { .file = "f.json", .err = &err };
    if (deep == NULL)
        bail_out("no memory");
    memset(deep, '[', DEPTH);
    is_int(ft_json_load(&in, JSON_ARRAY, deep, DEPTH, DEPTH), FT_EFORMAT,
           "ft_json_load() refuses 100,000 nested arrays");
    has(err.text, "not valid JSON: maximum parsing depth reached",
        "the error says that the file is too deep");
    free(deep);
}

static void test_parse(void)
{
    json_error_t why;
    json_t *number = ft_json_parse("7", 1, JSON_DECODE_ANY, NULL);
    is_int((int) json_integer_value(number), 7, "ft_json_parse() takes the flags of json_loadb()");
    json_decref(number);
    ok(ft_json_parse(NULL, 0, 0, &why) == NULL && why.line == 1,
       "ft_json_parse() refuses a text of 0 bytes, which may be NULL");
}

/* ---- Members ------------------------------------------------------------------------------ */

static const char text[] =
    "{\"word\": \"a\", \"yes\": true, \"none\": null, \"list\": [1, {\"x\": 2}],"
    " \"part\": {\"n\": -3, \"r\": 2.0, \"big\": 1e300}}";
static ft_error error;
static ft_json_reader file, part;

static void test_getters(void)
{
    const char *word;
    bool flag = false;
    json_t *list;
    int64_t n;
    int32_t id = 0;
    double r;
    ok(ft_json_read_string(&file, "word", &word) == FT_OK && strcmp(word, "a") == 0,
       "a string is read");
    ok(ft_json_read_bool(&file, "yes", &flag) == FT_OK && flag, "a boolean is read");
    ok(ft_json_read_optional_bool(&file, "none", true, &flag) == FT_OK && flag &&
           ft_json_read_optional_bool(&file, "absent", false, &flag) == FT_OK && !flag,
       "an optional boolean that is null or missing has its default");
    ok(ft_json_read_optional_bool(&file, "yes", false, &flag) == FT_OK && flag,
       "an optional boolean that is present is read");
    ok(ft_json_read_array(&file, "list", &list) == FT_OK && json_array_size(list) == 2,
       "an array is read");
    ok(ft_json_get(&file, "none") == NULL && ft_json_get(&file, "absent") == NULL &&
           ft_json_get(&file, "word") != NULL,
       "ft_json_get() returns NULL for a member that is null or missing");
    ok(ft_json_read_integer(&part, "n", -3, 0, &n) == FT_OK && n == -3,
       "an integer at the lower bound is read");
    ok(ft_json_read_integer(&part, "n", -9, -3, &n) == FT_OK && n == -3,
       "an integer at the upper bound is read");
    ok(ft_json_read_optional_int32(&part, "n", -3, 0, 7, &id) == FT_OK && id == -3,
       "an optional integer that is present is read");
    ok(ft_json_read_optional_int32(&file, "none", -3, 0, 7, &id) == FT_OK && id == 7 &&
           ft_json_read_optional_int32(&file, "absent", -3, 0, 8, &id) == FT_OK && id == 8,
       "an optional integer that is null or missing has its default, even out of bounds");
    ok(ft_json_to_number(&part, "r", ft_json_get(&part, "r"), 1.0, 2.0, &r) == FT_OK && r == 2.0,
       "a number at the bound is read");
    ok(ft_json_to_number(&part, "n", ft_json_get(&part, "n"), -3, 0, &r) == FT_OK && r == -3.0,
       "an integer is read as a number");
    ft_json_reader element = ft_json_read_element(&file, "list", 1);
    ok(ft_json_read_integer(&element, "x", 0, 9, &n) == FT_OK && n == 2,
       "a member of an element of an array is read");
}

static void test_lists(void)
{
    const json_t *list = ft_json_get(&file, "list"), *word = ft_json_get(&file, "word");
    ok(ft_json_list_size(list) == 2 && ft_json_list_at(list, 0) == json_array_get(list, 0),
       "the elements of an array are those of a list");
    ok(ft_json_list_at(list, 2) == NULL, "a list has no element after its last");
    ok(ft_json_list_size(word) == 1 && ft_json_list_at(word, 0) == word,
       "a value that is not an array is a list of itself");
    is_int((int) ft_json_list_size(NULL), 0, "a missing value is an empty list");
}

/* The last call failed with this message. */
static void fails(ft_status status, const char *message)
{
    ok(status == FT_EFORMAT && error.code == status && strcmp(error.text, message) == 0,
       "a getter fails with \"%s\"", message);
    if (strcmp(error.text, message) != 0)
        diag("found \"%s\"", error.text);
}

static void test_failures(void)
{
    const char *word;
    bool flag = true;
    json_t *list;
    int64_t n = 5;
    int32_t id = 5;
    double r = 5;
    ft_json_reader object, element = ft_json_read_element(&file, "list", 0);
    fails(ft_json_read_string(&file, "yes", &word), "f.json: yes: found true, expected a string");
    fails(ft_json_read_string(&part, "absent", &word),
          "f.json: part.absent: found nothing, expected a string");
    fails(ft_json_read_bool(&file, "word", &flag),
          "f.json: word: found \"a\", expected true or false");
    fails(ft_json_read_bool(&file, "none", &flag),
          "f.json: none: found null, expected true or false");
    fails(ft_json_read_optional_bool(&file, "list", true, &flag),
          "f.json: list: found [1, {\"x\": 2}], expected true or false");
    fails(ft_json_read_array(&file, "none", &list), "f.json: none: found null, expected an array");
    fails(ft_json_read_object(&file, "word", &object),
          "f.json: word: found \"a\", expected an object");
    fails(ft_json_read_string(&element, "x", &word),
          "f.json: list[0].x: found nothing, expected a string");
    fails(ft_json_read_integer(&part, "n", 0, 9, &n),
          "f.json: part.n: found -3, expected an integer from 0 to 9");
    fails(ft_json_read_integer(&part, "r", 0, INT64_MAX, &n),
          "f.json: part.r: found 2.0, expected an integer from 0 to 9223372036854775807");
    fails(ft_json_to_int32(&part, "n", ft_json_get(&part, "n"), 0, 9, &id),
          "f.json: part.n: found -3, expected an integer from 0 to 9");
    fails(ft_json_to_number(&part, "big", ft_json_get(&part, "big"), 0, 1, &r),
          "f.json: part.big: found 1e300, expected a number from 0 to 1");
    fails(ft_json_to_number(&file, "word", ft_json_get(&file, "word"), 0, 1, &r),
          "f.json: word: found \"a\", expected a number from 0 to 1");
    ok(n == 5 && id == 5 && r == 5, "a value that is refused leaves the result alone");
    fails(ft_json_read_optional_int32(&file, "word", 0, 9, 7, &id),
          "f.json: word: found \"a\", expected an integer from 0 to 9");
    is_int(id, 7, "an optional integer that is refused has its default");
}

static void test_unknown(void)
{
    is_int(FT_JSON_REJECT_UNKNOWN(&part, "n", "r"), FT_EUNSUPPORTED,
           "an object with a member that is not listed is refused");
    is_str(error.text, "f.json: part.big: found 1e300, expected no such field",
           "the error names the unknown member");
    is_int(FT_JSON_REJECT_UNKNOWN(&part, "n", "r", "big"), FT_OK,
           "an object with the listed members only is accepted");
}

/* ---- Messages ----------------------------------------------------------------------------- */

static void test_problems(void)
{
    ft_messages problems = { 0 };
    bool flag;
    ft_json_reader in = { .json = file.json, .file = "f.json", .problems = &problems };
    ft_json_reader object;
    (void) ft_json_read_bool(&in, "word", &flag);
    (void) ft_json_read_object(&in, "part", &object);
    (void) ft_json_read_bool(&object, "n", &flag);
    (void) ft_json_load(&in, JSON_OBJECT, "[]", 2, 2);
    is_int((int) problems.count, 3, "a reader adds each error to its list of problems");
    is_str(problems.message[1].text, "f.json: part.n: found -3, expected true or false",
           "the reader of an inner object adds its errors to the same list");
    is_str(problems.message[2].text, "f.json: found a JSON array, expected a JSON object",
           "a file that cannot be loaded adds its error to the list");
}

static void test_snippet(void)
{
    char snippet[FT_JSON_SNIPPET_SIZE];
    char *longer = malloc(1001);
    if (longer == NULL)
        bail_out("no memory");
    memset(longer, 'x', 1000);
    longer[1000] = '\0';
    json_t *value = json_pack("[s]", longer);
    ft_json_snippet(snippet, value);
    ok(strlen(snippet) == sizeof snippet - 1 && strncmp(snippet, "[\"xxx", 5) == 0 &&
           strcmp(snippet + sizeof snippet - 4, "...") == 0,
       "a long value is cut, and three dots say so");
    json_decref(value);
    value = json_string("\xe2\x96\x81\n");
    is_str(ft_json_snippet(snippet, value), "\"\\u2581\\n\"",
           "a value is quoted in ASCII without control characters");
    json_decref(value);
    free(longer);
}

int main(void)
{
    test_bad_files();
    test_size();
    test_big_integers();
    test_depth();
    test_parse();
    file = (ft_json_reader){ .file = "f.json", .err = &error };
    if (ft_json_load(&file, JSON_OBJECT, text, strlen(text), sizeof text) != FT_OK ||
        ft_json_read_object(&file, "part", &part) != FT_OK)
        bail_out("%s", error.text);
    test_getters();
    test_lists();
    test_failures();
    test_unknown();
    test_problems();
    test_snippet();
    json_decref(file.json);
    return done_testing();
}
