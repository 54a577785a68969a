/*
 * text_lines-t.c - texts from files: line ends, invalid bytes and the line numbers in error
 * messages.
 *
 * realloc() and malloc() are intercepted, so that each allocation fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/text_lines.h"
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

/* Reads the data; returns the texts between bars, or the error message. */
static const char *texts_of(const char *data, size_t bytes, bool whole)
{
    static char shown[1024];
    ft_texts texts;
    ft_error err;
    write_file(data, bytes);
    if (ft_texts_read(&texts, path, whole, &err) != FT_OK)
        return strcpy(shown, err.text + strlen(folder) + 1);
    strcpy(shown, "|");
    for (size_t i = 0; i < texts.count; i++)
        strcat(strcat(shown, texts.line[i]), "|");
    ft_texts_fini(&texts);
    return shown;
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

static void test_folder(void)
{
    ft_texts texts;
    ft_error err;
    is_int(ft_texts_read(&texts, folder, false, &err), FT_EIO, "reading texts from a folder fails");
    has(err.text, ": line 1: Is a directory", "the message says that the path is a folder");
}

/* Whichever allocation fails: either all texts are read, or none and an error is returned. */
static void test_memory(void)
{
    static char data[3 * 1001];
    ft_texts texts;
    ft_error err;
    ft_status status;
    long wrong = 0;
    memset(data, 'x', sizeof data);
    for (size_t end = 1000; end < sizeof data; end += 1001)
        data[end] = '\n';
    write_file(data, sizeof data);
    for (failing = 1;; failing++) {
        allocations = 0;
        status = ft_texts_read(&texts, path, false, &err);
        if (allocations < failing)
            break;
        wrong += status != FT_ENOMEM || texts.count != 0;
    }
    ok(failing > 5, "reading three lines allocates several times: %ld", failing - 1);
    is_int(wrong, 0, "a failed allocation returns FT_ENOMEM and no texts");
    ok(status == FT_OK && texts.count == 3, "all three lines are read if no allocation fails");
    failing = 0;
    ft_texts_fini(&texts);
}

int main(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/in.txt", folder);
    test_lines();
    test_bytes();
    test_folder();
    test_memory();
    folder_remove(folder);
    return done_testing();
}
