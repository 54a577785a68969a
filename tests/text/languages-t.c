/*
 * languages-t.c - languages of a translator are found by their tokens and by shorter names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/languages/languages.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static ft_languages *parse(const char *json)
{
    ft_languages *languages;
    ft_error err;
    if (ft_languages_parse(&languages, "languages.json", json, strlen(json), &err) != FT_OK)
        bail_out("%s", err.text);
    return languages;
}

/* The id of a language, or the error. */
static const char *find(const ft_languages *languages, const char *name)
{
    static char text[sizeof(ft_error)];
    const ft_language *language;
    ft_error err;
    if (ft_languages_find(languages, name, &language, &err) != FT_OK)
        return strcpy(text, err.text);
    snprintf(text, sizeof text, "%d", (int) language->id);
    return text;
}

static void test_prefix(void)
{
    ft_languages *l = parse("{\"place\": \"prefix\", \"source\": \"eng_Latn\", \"target\": null,"
                            " \"languages\": {\"deu_Latn\": 5, \"eng_Latn\": 6, \"zho_Hans\": 7,"
                            " \"zho_Hant\": 8}}");
    is_int(l->place, FT_LANGUAGE_PREFIX, "the place of the language's token is read");
    is_str(l->source->name, "eng_Latn", "the default source language is read");
    ok(l->target == NULL, "a translator need not have a default target language");
    is_str(find(l, "deu_Latn"), "5", "a language is found by its token");
    is_str(find(l, "deu"), "5", "a language is found by the start of its token");
    is_str(find(l, "zho"),
           "language \"zho\": several start so; the model's languages are deu_Latn, eng_Latn, "
           "zho_Hans, zho_Hant",
           "a start that several languages share is an error that lists all languages");
    is_str(find(l, "de"),
           "language \"de\": the model has none of that name; the model's languages are deu_Latn, "
           "eng_Latn, zho_Hans, zho_Hant",
           "an unknown language is an error that lists all languages");
    ft_languages_free(l);
}

static void test_signs(void)
{
    ft_languages *l = parse("{\"place\": \"prefix\", \"source\": \"__en__\","
                            " \"languages\": {\"__en__\": 1, \"__de__\": 2}}");
    is_str(find(l, "de"), "2", "a language is found without the signs of its token");
    is_str(find(l, "__de__"), "2", "a language is found with the signs of its token");
    ft_languages_free(l);
    l = parse("{\"place\": \"text\", \"languages\": {\">>fra<<\": 3, \">>fra_CA<<\": 4}}");
    is_str(find(l, "fra"), "3", "a whole name goes before the start of another one");
    is_str(l->language[0].token, ">>fra<<", "the token goes in front of the text as it is");
    is_int(l->place, FT_LANGUAGE_TEXT, "the place may be the text itself");
    ft_languages_free(l);
    l = parse("{\"place\": \"suffix\", \"languages\": {\"de_DE\": 3, \"en_XX\": 4}}");
    is_str(find(l, "de"), "3", "a language is found without its country");
    ft_languages_free(l);
}

static void refused(const char *json, const char *says)
{
    ft_languages *languages;
    ft_error err = { .text = "" };
    ft_status status = ft_languages_parse(&languages, "l.json", json, strlen(json), &err);
    ok(status == FT_EFORMAT && languages == NULL && strstr(err.text, says) != NULL,
       "a languages.json is refused with the error: %s", says);
}

int main(void)
{
    test_prefix();
    test_signs();
    refused("[]", "l.json: ");
    refused("{}", "place: found nothing, expected a string");
    refused("{\"place\": \"above\", \"languages\": {\"a\": 1}}",
            "place: found \"above\", expected \"prefix\", \"suffix\" or \"text\"");
    refused("{\"place\": \"text\", \"languages\": {}}", "languages: found 0, expected 1 to 4096");
    refused("{\"place\": \"text\", \"languages\": {\"a\": -1}}", "languages.a: found -1");
    refused("{\"place\": \"text\", \"languages\": {\"\": 1}}", "a language has no name");
    refused("{\"place\": \"text\", \"languages\": {\"a\": 1}, \"source\": \"b\"}",
            "source: found \"b\", expected one of the languages");
    return done_testing();
}
