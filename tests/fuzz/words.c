/*
 * words.c - fuzz target: arbitrary bytes parsed as a word-level vocab.json.
 *
 * An accepted vocabulary encodes a text and decodes it to the same words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/word_list.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void use(const ft_tokenizer *words)
{
    static const char text[] = " Hello,  world w1 \t <unk> </s>\n\xe2\x82\xac";
    int32_t ids[64];
    char out[4096];
    size_t count, bytes;
    require(ft_tokenizer_encode(words, text, sizeof text - 1, ids, 64, &count, NULL) == FT_OK);
    require(count > 0 && count <= 64);
    for (size_t i = 0; i < count; i++)
        require(ids[i] >= 0);
    require(ft_tokenizer_decode(words, ids, count, true, out, sizeof out, &bytes, NULL) == FT_OK);
    require(ft_tokenizer_end_id(words) == ids[count - 1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t special[] = { 0, 3, 1, 0, -1, INT32_MAX };
    for (int32_t end = -1; end < 4; end += 2) {
        ft_tokenizer *words;
        ft_error err = { .code = FT_OK };
        ft_status status =
            ft_word_level_tokenizer_open(&words, (const char *) data, size, end, special, 6, &err);
        if (status == FT_OK)
            use(words);
        else
            require(words == NULL && err.code == status && err.text[0] != '\0');
        ft_tokenizer_close(words);
    }
    return 0;
}
