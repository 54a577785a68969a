/*
 * models-t.c - random models of each kind split random words as the `tokenizers` library does, with
 * the same byte ranges.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/golden_rows.h"

#include <string.h>

enum { MAX_WORD = 128, MAX_MODEL = 1 << 15 };

/* ---- Words ---------------------------------------------------------------------------------- */

/* splitmix64, as make-models.py has it. */
static uint64_t below(uint64_t *state, uint64_t limit)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % limit;
}

/* The start of each character of a text; returns their number. */
static size_t split_characters(const char *text, const char *start[MAX_WORD])
{
    size_t count = 0;
    for (const char *at = text; *at != '\0'; at++)
        if (((unsigned char) *at & 0xc0) != 0x80)
            start[count++] = at;
    start[count] = text + strlen(text);
    return count;
}

static size_t make_word(uint64_t *state, const char *alphabet, char *word)
{
    const char *start[MAX_WORD];
    size_t letters = split_characters(alphabet, start), bytes = 0;
    for (uint64_t left = 1 + below(state, 24); left > 0; left--) {
        uint64_t i = below(state, letters);
        size_t length = (size_t) (start[i + 1] - start[i]);
        memcpy(word + bytes, start[i], length);
        bytes += length;
    }
    return bytes;
}

/* ---- Models --------------------------------------------------------------------------------- */

static ft_tokenizer *open_model(const char *model)
{
    static char text[MAX_MODEL];
    ft_tokenizer *tokenizer;
    ft_error err;
    snprintf(text, sizeof text, "{\"version\":\"1.0\",\"model\":%s}", model);
    if (ft_tokenizer_parse(&tokenizer, "model", text, strlen(text), &err) != FT_OK)
        bail_out("%s", err.text);
    return tokenizer;
}

static void add_tokens(EVP_MD_CTX *digest, const ft_token_list *tokens)
{
    char text[64];
    for (size_t i = 0; i < tokens->count; i++) {
        int bytes = snprintf(text, sizeof text, "%s%d:%u-%u", i > 0 ? " " : "", tokens->id[i],
                             tokens->range[i].start, tokens->range[i].end);
        EVP_DigestUpdate(digest, text, (size_t) bytes);
    }
    EVP_DigestUpdate(digest, "\n", 1);
}

static void split_words(const ft_token_model *model, const char *alphabet, uint64_t seed,
                        size_t count, char sum[GOLDEN_DIGEST])
{
    ft_token_model_workspace workspace = { 0 };
    ft_token_list tokens = { .has_ranges = true };
    EVP_MD_CTX *digest = digest_begin();
    char word[MAX_WORD];
    for (size_t i = 0; i < count; i++) {
        size_t bytes = make_word(&seed, alphabet, word);
        tokens.count = 0;
        if (ft_token_model_encode(model, word, bytes, &workspace, &tokens) != FT_OK)
            bail_out("a model cannot split a word");
        add_tokens(digest, &tokens);
    }
    digest_end(digest, sum);
    ft_token_model_workspace_fini(&workspace);
    ft_token_list_fini(&tokens);
}

int main(void)
{
    FILE *file = open_golden("tests/golden/models.jsonl");
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row)) {
        char sum[GOLDEN_DIGEST];
        const char *kind = json_string_value(json_array_get(row, 0));
        const char *alphabet = json_string_value(json_array_get(row, 2));
        json_int_t seed = json_integer_value(json_array_get(row, 3));
        ft_tokenizer *tokenizer = open_model(json_string_value(json_array_get(row, 1)));
        split_words(&tokenizer->model, alphabet, (uint64_t) seed,
                    (size_t) json_integer_value(json_array_get(row, 4)), sum);
        is_str(sum, json_string_value(json_array_get(row, 5)),
               "random %s model %d splits words of the letters %s as the tokenizers library does",
               kind, (int) seed, alphabet);
        ft_tokenizer_close(tokenizer);
    }
    fclose(file);
    return done_testing();
}
