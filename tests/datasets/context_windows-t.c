/*
 * context_windows-t.c - windows cover a context, overlap by the stride and have no more tokens than
 * allowed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/context_windows.h"
#include "tests/lib/models/tiny_tokenizer.h"

/* Words "a" and "e" in turn, so that each token of the context is one word of two bytes. */
static void write_context(char *text, size_t words)
{
    for (size_t i = 0; i < words; i++)
        memcpy(text + 2 * i, i % 2 == 0 ? "a " : "e ", 2);
}

static ft_context_windows *open_windows(const ft_tokenizer *tokenizer, size_t words)
{
    char context[256];
    ft_error err;
    ft_context_windows *windows;
    write_context(context, words);
    if (ft_context_windows_new(&windows, tokenizer, "able mask", 9, context, 2 * words, &err) !=
        FT_OK)
        bail_out("%s", err.text);
    return windows;
}

/* "0-5 3-8": the words of the context in each window. */
static const char *ranges(ft_context_windows *windows, size_t max_length, size_t stride, char *out)
{
    ft_encoding *row;
    ft_error err;
    size_t bytes = 0;
    out[0] = '\0';
    while (ft_context_windows_next(windows, max_length, stride, &row, &err) == FT_OK &&
           row != NULL) {
        size_t first = SIZE_MAX, end = 0;
        for (size_t i = 0; i < row->count; i++) {
            if (row->sequence[i] != 1)
                continue;
            first = first == SIZE_MAX ? row->offsets[i].start / 2 : first;
            end = (row->offsets[i].end + 1) / 2;
        }
        bytes += (size_t) sprintf(out + bytes, "%s%zu-%zu", bytes > 0 ? " " : "", first, end);
        if (row->count > max_length)
            bytes += (size_t) sprintf(out + bytes, " (%zu tokens)", row->count);
        ft_encoding_free(row);
    }
    ft_context_windows_free(windows);
    return out;
}

int main(void)
{
    char found[1024];
    ft_encoding *row = NULL;
    ft_error err;
    ft_tokenizer *tokenizer = tiny_open("", "");
    ft_context_windows *windows = open_windows(tokenizer, 4);
    is_int((long long) ft_context_windows_fixed_tokens(windows), 5,
           "a window has the tokens of the question and three special ones");
    is_str(ranges(windows, 9, 2, found), "0-4", "a context that fits is one window");
    is_str(ranges(open_windows(tokenizer, 10), 10, 2, found), "0-5 3-8 6-10",
           "windows begin with the last tokens of the window before and end with the context");
    is_str(ranges(open_windows(tokenizer, 11), 10, 2, found), "0-5 3-8 6-11",
           "the last window may be full");
    is_str(ranges(open_windows(tokenizer, 5), 7, 2, found), "0-2 2-4 4-5",
           "windows that are no longer than the stride do not overlap");
    windows = open_windows(tokenizer, 0);
    is_int(ft_context_windows_next(windows, 9, 2, &row, &err), FT_OK,
           "an empty context has a window");
    is_int(row == NULL ? 0 : (long long) row->count, 5, "it has the question alone");
    ft_encoding_free(row);
    ft_context_windows_free(windows);
    is_int(ft_context_windows_new(&windows, tokenizer, "\xff", 1, "a", 1, &err), FT_EFORMAT,
           "a question that is no UTF-8 is refused");
    ok(windows == NULL, "then there are no windows");
    ft_tokenizer_close(tokenizer);
    return done_testing();
}
