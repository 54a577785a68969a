/*
 * languages.c - fuzz target: arbitrary bytes parsed as languages.json.
 *
 * Each language of an accepted file is found by its token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/languages/languages.h"
#include "tests/fuzz/fuzz.h"

static void find_all(const ft_languages *languages)
{
    const ft_language *found;
    ft_error err;
    char *list = ft_languages_list(languages);
    require(list != NULL);
    free(list);
    for (size_t i = 0; i < languages->count; i++) {
        const ft_language *language = &languages->language[i];
        require(ft_languages_find(languages, language->token, &found, &err) == FT_OK);
        require(found->id >= 0);
    }
    require(ft_languages_find(languages, "no such language", &found, &err) == FT_EARG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_languages *languages;
    ft_error err = { .text = "" };
    ft_status status =
        ft_languages_parse(&languages, "languages.json", (const char *) data, size, &err);
    if (status == FT_OK)
        find_all(languages);
    else
        require(languages == NULL && err.text[0] != '\0');
    ft_languages_free(languages);
    return 0;
}
