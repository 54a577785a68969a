/*
 * texts.c - fuzz target: arbitrary files read as texts, line by line and all at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <config.h>

#include "runtime/data/texts/examples.h"
#include "runtime/data/texts/text_reader.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reading texts line by line gives the same as reading them all at once. */
static void read_texts(const char *path, bool whole)
{
    ft_text_reader reader;
    const ft_examples_options options = { .whole_file = whole };
    ft_examples all;
    ft_error err = { .code = FT_OK };
    const char *text = "";
    size_t count = 0;
    ft_status status = ft_examples_read(&all, path, &options, &err);
    require(status == FT_OK || (err.code == status && strncmp(err.text, path, strlen(path)) == 0));
    ft_status one = ft_text_reader_open(&reader, path, whole, &err);
    while (one == FT_OK && (one = ft_text_reader_next(&reader, &text, &err)) == FT_OK &&
           text != NULL) {
        require(status != FT_OK ||
                (count < all.count && strcmp(all.example[count].text, text) == 0));
        count++;
    }
    require(status != FT_OK || (one == FT_OK && count == all.count && count > 0));
    ft_text_reader_close(&reader);
    ft_examples_fini(&all);
}

/* Pairs and JSON Lines are read, or refused with a message that names the file. */
static void read_examples(const char *path, const ft_examples_options options)
{
    ft_examples all;
    ft_error err = { .code = FT_OK };
    ft_status status = ft_examples_read(&all, path, &options, &err);
    require(status == FT_OK || (err.code == status && strncmp(err.text, path, strlen(path)) == 0));
    for (size_t i = 0; status == FT_OK && i < all.count; i++)
        require(all.example[i].text != NULL &&
                (all.example[i].json != NULL) == (options.fields != NULL));
    ft_examples_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int file = memfd_create("fuzz", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t) size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    read_texts(path, false);
    read_texts(path, true);
    read_examples(path, (ft_examples_options){ .pairs = true });
    read_examples(path, (ft_examples_options){ .fields = "a" });
    close(file);
    return 0;
}
