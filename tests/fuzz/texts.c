/*
 * texts.c - fuzz target: arbitrary files read as texts, line by line and all at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <config.h>

#include "runtime/tools/run/text_lines.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reading texts line by line gives the same as reading them all at once. */
static void read_texts(const char *path, bool whole)
{
    ft_text_reader reader;
    ft_texts all;
    ft_error err = { .code = FT_OK };
    const char *text = "";
    size_t count = 0;
    ft_status status = ft_texts_read(&all, path, whole, &err);
    require(status == FT_OK || (err.code == status && strncmp(err.text, path, strlen(path)) == 0));
    ft_status one = ft_text_reader_open(&reader, path, whole, &err);
    while (one == FT_OK && (one = ft_text_reader_next(&reader, &text, &err)) == FT_OK &&
           text != NULL) {
        require(status != FT_OK || (count < all.count && strcmp(all.line[count], text) == 0));
        count++;
    }
    require(status != FT_OK || (one == FT_OK && count == all.count && count > 0));
    ft_text_reader_close(&reader);
    ft_texts_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int file = memfd_create("fuzz", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t) size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    read_texts(path, false);
    read_texts(path, true);
    close(file);
    return 0;
}
