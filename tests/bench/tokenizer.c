/*
 * tokenizer.c - speed of opening, encoding and decoding: tokenizer TOKENIZER.json TEXT [-r 9].
 *
 * Prints "open MS", "encode MS MB/S", "lines MS MB/S" and "decode MS MB/S": the minimum processor
 * time of r rounds, which competing load affects least. "encode" is the whole text at once, "lines"
 * each line for itself. TEXT must not exceed the tokenizer's maximum length.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static double now_ms(void)
{
    return 1e3 * seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void take_min(double *least, double since)
{
    double ms = now_ms() - since;
    *least = ms < *least ? ms : *least;
}

static char *read_text(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    long end = file == NULL || fseek(file, 0, SEEK_END) != 0 ? -1 : ftell(file);
    char *text = end < 0 ? NULL : malloc((size_t) end + 1);
    if (text != NULL) {
        rewind(file);
        *bytes = fread(text, 1, (size_t) end, file);
        fclose(file);
        return text;
    }
    fprintf(stderr, "tokenizer: cannot read %s\n", path);
    exit(1);
}

static double time_open(const char *path, int rounds, ft_tokenizer **tokenizer)
{
    ft_error err;
    double least = DBL_MAX;
    *tokenizer = NULL;
    for (int i = 0; i < rounds; i++) {
        ft_tokenizer_close(*tokenizer);
        double start = now_ms();
        must(ft_tokenizer_open(tokenizer, path, &err), &err);
        take_min(&least, start);
    }
    return least;
}

/* Encode line by line; returns the number of ids. */
static size_t encode_lines(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                           int32_t *ids, size_t capacity)
{
    size_t all = 0, count;
    ft_error err;
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *feed = memchr(at, '\n', (size_t) (end - at));
        const char *stop = feed != NULL ? feed : end;
        must(ft_tokenizer_encode(tokenizer, at, (size_t) (stop - at), ids, capacity, &count, &err),
             &err);
        all += count;
        at = stop + 1;
    }
    return all;
}

int main(int argc, char **argv)
{
    int rounds = argc == 5 && strcmp(argv[3], "-r") == 0 ? atoi(argv[4]) : 9;
    if ((argc != 3 && argc != 5) || rounds < 1) {
        fputs("usage: tokenizer TOKENIZER.json TEXT [-r ROUNDS]\n", stderr);
        return 2;
    }
    ft_error err;
    ft_tokenizer *tokenizer;
    size_t bytes, count, in_lines = 0, decoded;
    double encode = DBL_MAX, lines = DBL_MAX, decode = DBL_MAX,
           open = time_open(argv[1], rounds, &tokenizer);
    char *text = read_text(argv[2], &bytes);
    int32_t *ids = ft_calloc(bytes + 16, sizeof *ids);
    char *back = ft_calloc(8 * bytes + 16, 1);
    for (int i = 0; i < rounds && ids != NULL && back != NULL; i++) {
        double start = now_ms();
        must(ft_tokenizer_encode(tokenizer, text, bytes, ids, bytes + 16, &count, &err), &err);
        take_min(&encode, start);
        start = now_ms();
        in_lines = encode_lines(tokenizer, text, bytes, ids, bytes + 16);
        take_min(&lines, start);
        start = now_ms();
        must(ft_tokenizer_decode(tokenizer, ids, ft_min_size(count, bytes + 16), true, back,
                                 8 * bytes, &decoded, &err),
             &err);
        take_min(&decode, start);
    }
    printf("open %.1f, %zu tokens\n", open, ft_tokenizer_vocab_size(tokenizer));
    printf("encode %.1f %.1f, %zu bytes, %zu ids\n", encode, 1e-3 * (double) bytes / encode, bytes,
           count);
    printf("lines %.1f %.1f, %zu ids\n", lines, 1e-3 * (double) bytes / lines, in_lines);
    printf("decode %.1f %.1f\n", decode, 1e-3 * (double) decoded / decode);
    ft_tokenizer_close(tokenizer);
    free(back);
    free(ids);
    free(text);
    return 0;
}
