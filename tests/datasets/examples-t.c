/*
 * examples-t.c - texts from files: line ends, pairs, JSON Lines, invalid bytes and the line numbers
 * in error messages.
 *
 * realloc() and malloc() are intercepted, so that each allocation fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/texts/examples.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Allocations -------------------------------------------------------------------------- */

static long allocations, failing; /* count; the one that fails, from 1, or 0 */

static bool is_refused(void)
{
    if (failing == 0 || ++allocations != failing)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_refused() ? NULL : __real_realloc(memory, size);
}

/* ---- Files -------------------------------------------------------------------------------- */

static char folder[FOLDER_PATH], path[128];

static void write_file(const char *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        bail_out("cannot write %s", path);
}

/* Appends a text, and its pair after a slash. */
static void show(char *shown, const ft_example *example)
{
    strcat(shown, example->text);
    if (example->pair != NULL)
        strcat(strcat(shown, "/"), example->pair);
    strcat(shown, "|");
}

/* Reads the data; returns the texts between bars, or the error message without the folder. */
static const char *examples_of(const char *data, size_t bytes, ft_examples_options options)
{
    static char shown[1024];
    ft_examples examples;
    ft_error err;
    write_file(data, bytes);
    strcpy(shown, "|");
    if (ft_examples_read(&examples, path, &options, &err) != FT_OK)
        strcpy(shown, err.text + strlen(folder) + 1);
    else
        for (size_t i = 0; i < examples.count; i++)
            show(shown, &examples.example[i]);
    ft_examples_fini(&examples);
    return shown;
}

static const char *texts_of(const char *data, size_t bytes, bool whole)
{
    return examples_of(data, bytes, (ft_examples_options){ .whole_file = whole });
}

#define TEXTS_OF(literal, whole) texts_of(literal, sizeof literal - 1, whole)

static void test_lines(void)
{
    is_str(TEXTS_OF("one\ntwo\n", false), "|one|two|", "each line is a text");
    is_str(TEXTS_OF("one\ntwo", false), "|one|two|", "the last line may lack a line end");
    is_str(TEXTS_OF("one\r\n\r\ntwo\r\n", false), "|one||two|",
           "CR LF ends a line, and an empty line is a text");
    is_str(TEXTS_OF("", false), "in.txt: contains no text", "an empty file is refused");
    is_str(TEXTS_OF("one\r\ntwo\n", true), "|one\r\ntwo\n|",
           "a file read as one text keeps its line ends");
    is_str(TEXTS_OF("", true), "in.txt: contains no text",
           "an empty file read as one text is refused");
}

static void test_bytes(void)
{
    is_str(TEXTS_OF("one\n\xc3\xa4\xff\n", false),
           "in.txt: line 2: byte 2 is 0xff, expected valid UTF-8",
           "the message for invalid UTF-8 names file, line and byte");
    is_str(TEXTS_OF("one\n\xc3\xa4\xff\n", true),
           "in.txt: line 2: byte 2 is 0xff, expected valid UTF-8",
           "the message for invalid UTF-8 in a file read as one text names file, line and byte");
    is_str(TEXTS_OF("one\ntw\0o\n", false), "in.txt: line 2: NUL at byte 2, expected text",
           "the message for a NUL names file, line and byte");
    is_str(TEXTS_OF("one\ntw\0o\n", true), "in.txt: line 2: NUL at byte 2, expected text",
           "the message for a NUL in a file read as one text names file, line and byte");
    is_str(TEXTS_OF("one\n\xe2\x82", false), "in.txt: line 2: byte 0 is 0xe2, expected valid UTF-8",
           "a character that is truncated by the end of the file is refused");
}

/* A pair of texts on each line. */
static const char *pairs_of(const char *data)
{
    return examples_of(data, strlen(data), (ft_examples_options){ .pairs = true });
}

static void test_pairs(void)
{
    is_str(pairs_of("a\tb\n\t\nc\td\te\n"), "|a/b|/|c/d\te|",
           "a pair is parted by the first tab of its line, and its texts may be empty");
    is_str(pairs_of("a\tb\nc\n"), "in.txt: line 2: has no tab, expected two texts parted by one",
           "a line without a tab is refused where pairs are expected");
}

static const char *json_of(const char *data, const char *fields)
{
    return examples_of(data, strlen(data), (ft_examples_options){ .fields = fields });
}

static void test_fields(void)
{
    is_str(json_of("{\"a\": \"x\\ty\", \"b\": 1}\n{\"a\": \"\"}\n", "a"), "|x\ty||",
           "a named field of JSON Lines is the text");
    is_str(json_of("{\"q\": \"x\", \"c\": \"y\"}\n", "q,c"), "|x/y|",
           "two named fields of JSON Lines are a pair");
    is_str(json_of("{\"a\": \"x\"}\n{\"b\": \"y\"}\n", "a"),
           "in.txt: line 2: a: found nothing, expected a string",
           "the message for a missing field names file, line and field");
    has(json_of("{\"a\": \"x\"}\n{\"a\" \"y\"}\n", "a"),
        "in.txt: line 2: ", "the message for invalid JSON names file and line");
    has(json_of("[1]\n", "a"), "in.txt: line 1: ", "a line that is no JSON object is refused");
}

/* Without field names, the first object decides. */
static void test_known_fields(void)
{
    strcat(path, ".jsonl");
    is_str(json_of("{\"text\": \"t\", \"question\": \"q\", \"context\": \"c\"}\n", NULL), "|q/c|",
           "question and context are a pair, even next to a text");
    is_str(json_of("{\"sentence\": \"s\"}\n{\"text\": \"t\", \"sentence\": \"u\"}\n", NULL),
           "|s|u|", "the first object decides which field holds the text");
    has(json_of("{\"body\": \"s\"}\n", NULL), "name the field with --fields",
        "an object without a known field is refused, and the message tells what to do");
    path[strlen(path) - strlen(".jsonl")] = '\0';
}

static void test_folder(void)
{
    const ft_examples_options options = { 0 };
    ft_examples texts;
    ft_error err;
    is_int(ft_examples_read(&texts, folder, &options, &err), FT_EIO,
           "reading texts from a folder fails");
    ft_examples_fini(&texts);
    has(err.text, ": line 1: Is a directory", "the message says that the path is a folder");
}

/* Whichever allocation fails: either all texts are read, or none and an error is returned. */
static void test_memory(void)
{
    static char data[3 * 1001];
    const ft_examples_options options = { 0 };
    ft_examples texts;
    ft_error err;
    ft_status status;
    long wrong = 0;
    memset(data, 'x', sizeof data);
    for (size_t end = 1000; end < sizeof data; end += 1001)
        data[end] = '\n';
    write_file(data, sizeof data);
    for (failing = 1;; failing++) {
        allocations = 0;
        status = ft_examples_read(&texts, path, &options, &err);
        if (allocations < failing)
            break;
        wrong += status != FT_ENOMEM;
        ft_examples_fini(&texts);
    }
    ok(failing > 5, "reading three lines allocates several times: %ld", failing - 1);
    is_int(wrong, 0, "each failed allocation returns FT_ENOMEM");
    ok(status == FT_OK && texts.count == 3, "all three lines are read if no allocation fails");
    failing = 0;
    ft_examples_fini(&texts);
}

int main(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/in.txt", folder);
    test_lines();
    test_bytes();
    test_pairs();
    test_fields();
    test_known_fields();
    test_folder();
    test_memory();
    folder_remove(folder);
    return done_testing();
}
