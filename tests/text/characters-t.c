/*
 * characters-t.c - Unicode properties of every code point equal those of the
 * `tokenizers` library: regular expression matches, NFC composition, numeric characters.
 *
 * golden/make-bpe.py generates the data.  wordpiece-t.c tests BERT's normalizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/text/normalizers/forms.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"
#include "tests/lib/golden_rows.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string.h>

static const char *const patterns[] = { "\\s",     "[^\\S]",  "\\d",     "\\p{L}",  "\\p{Lu}",
                                        "\\p{Ll}", "\\p{Lt}", "\\p{Lm}", "\\p{Lo}", "\\p{M}",
                                        "\\p{N}",  "\\p{Nd}", "\\p{Nl}", "\\p{No}", "\\p{P}",
                                        "\\p{Pc}", "\\p{Pd}", "\\p{Ps}", "\\p{Pe}", "\\p{Pi}",
                                        "\\p{Pf}", "\\p{Po}", "\\p{S}",  "\\p{Sm}", "\\p{Sc}",
                                        "\\p{Sk}", "\\p{So}", "\\p{Z}" };

static size_t utf8_of(uint32_t code, char *c)
{
    return (size_t) utf8proc_encode_char((utf8proc_int32_t) code, (uint8_t *) c);
}

/* The digest of what each pattern matches in a block of 4,096 code points. */
static void digest_matches(const ft_regex *regex, ft_regex_workspace *room, const ft_strbuf *block,
                           char sum[GOLDEN_DIGEST])
{
    EVP_MD_CTX *digest = digest_begin();
    for (size_t i = 0; i < FT_COUNT(patterns); i++) {
        ft_regex_search search = { .regex = &regex[i], .text = block->data, .bytes = block->bytes };
        size_t start, end;
        bool found;
        if (i > 0)
            EVP_DigestUpdate(digest, "\n", 1);
        while (ft_regex_next(&search, room, &found, &start, &end) == FT_OK && found)
            EVP_DigestUpdate(digest, block->data + start, end - start);
    }
    digest_end(digest, sum);
}

static void put_nfc(ft_strbuf *out, const char *text, size_t bytes)
{
    const ft_aligned_text in = { .text = text, .bytes = bytes };
    ft_aligned_buf buf = { .text = *out };
    if (!ft_normalize_form((ft_normal_form){ .composed = true }, &in, &buf) ||
        !ft_strbuf_append(&buf.text, "\n", 1))
        bail_out("no memory");
    *out = buf.text;
}

/* Each character after a letter and before marks, and its decomposition. */
static void normalize_character(uint32_t code, ft_strbuf *out)
{
    static const char marks[] = "\u0327\u0301";
    uint32_t part[FT_CHAR_MAX_DECOMPOSED];
    char text[32] = "A";
    size_t bytes = 1 + utf8_of(code, text + 1);
    memcpy(text + bytes, marks, sizeof marks - 1);
    bytes += sizeof marks - 1;
    bytes += utf8_of(code, text + bytes);
    put_nfc(out, text, bytes);
    bytes = 0;
    int parts = ft_char_decompose(code, part);
    for (int i = 0; i < parts; i++)
        bytes += utf8_of(part[i], text + bytes);
    put_nfc(out, text, bytes);
}

static void digest_text(const ft_strbuf *text, size_t bytes, char sum[GOLDEN_DIGEST])
{
    EVP_MD_CTX *digest = digest_begin();
    EVP_DigestUpdate(digest, text->data, bytes);
    digest_end(digest, sum);
}

typedef struct {
    ft_strbuf block, normal, numbers;
    char matches[GOLDEN_DIGEST], nfc[GOLDEN_DIGEST], digits[GOLDEN_DIGEST];
} characters;

static void digest_block(uint32_t first, const ft_regex *regex, ft_regex_workspace *room,
                         characters *c)
{
    c->block.bytes = c->normal.bytes = c->numbers.bytes = 0;
    for (uint32_t code = first; code < first + 0x1000; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        if (!ft_strbuf_append_char(&c->block, code) ||
            !ft_strbuf_append(&c->numbers, ft_char_is_numeric(code) ? "2" : "1", 1))
            bail_out("no memory");
        normalize_character(code, &c->normal);
    }
    digest_matches(regex, room, &c->block, c->matches);
    digest_text(&c->normal, c->normal.bytes, c->nfc);
    digest_text(&c->numbers, c->numbers.bytes, c->digits);
}

/* Unicode 14 to 16, whose differences are known. */
static bool knows_pcre2(void)
{
    char version[64] = "";
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    return atoi(version) >= 14 && atoi(version) <= 16;
}

static void test_characters(void)
{
    FILE *file = open_golden("tests/golden/bpe-characters.txt");
    ft_regex regex[FT_COUNT(patterns)] = { 0 };
    ft_regex_workspace room;
    characters c = { 0 };
    char why[FT_REGEX_ERROR_SIZE], matches[32], nfc[32], digits[32];
    int equal[3] = { 0 };
    unsigned expected;
    if (ft_regex_workspace_init(&room, SIZE_MAX >> 8, 1) != FT_OK)
        bail_out("no memory");
    for (size_t i = 0; i < FT_COUNT(patterns); i++)
        if (ft_regex_compile(&regex[i], patterns[i], why) != FT_OK)
            bail_out("%s", why);
    for (uint32_t first = 0; first < 0x110000; first += 0x1000) {
        digest_block(first, regex, &room, &c);
        if (fscanf(file, "%x %31s %31s %31s", &expected, matches, nfc, digits) != 4 ||
            expected != first)
            bail_out("bpe-characters.txt ends at U+%04X", first);
        bool same[] = { strcmp(c.matches, matches) == 0, strcmp(c.nfc, nfc) == 0,
                        strcmp(c.digits, digits) == 0 };
        for (int i = 0; i < 3; i++) {
            equal[i] += same[i];
            if (!same[i])
                diag("code points from U+%04X differ (%d)", first, i);
        }
    }
    if (knows_pcre2())
        is_int(equal[0], 0x110,
               "every code point matches the same patterns as in the tokenizers library");
    else
        skip(1, "this PCRE2 implements a version of Unicode other than 14 to 16");
    is_int(equal[1], 0x110, "NFC of every code point equals that of the tokenizers library");
    is_int(equal[2], 0x110,
           "every code point is numeric exactly when it is in the tokenizers library");
    for (size_t i = 0; i < FT_COUNT(patterns); i++)
        ft_regex_fini(&regex[i]);
    ft_regex_workspace_fini(&room);
    ft_strbuf_fini(&c.block);
    ft_strbuf_fini(&c.normal);
    ft_strbuf_fini(&c.numbers);
    fclose(file);
}

/* The normalizers of the library have the decompositions and the marks of Unicode 9. */
static void test_later_characters(void)
{
    static const uint32_t later[] = { 0x32ff, 0xab69, 0x10781, 0x1f16c, 0x1fbf0 };
    static const uint32_t marks[] = { 0x8d4, 0x1cf2, 0x1dfb, 0x11435, 0x1e000, 0x1e944 };
    static const uint32_t later_marks[] = { 0xcf3, 0x1cf7, 0x11145, 0x11930, 0x16f87 };
    uint32_t out[FT_CHAR_MAX_COMPATIBLE];
    int same = 0, found = 0, others = 0;
    for (size_t i = 0; i < FT_COUNT(later); i++)
        same += ft_char_decompose_compatible(later[i], out) == 1 && out[0] == later[i];
    is_int(same, FT_COUNT(later),
           "characters that are younger than Unicode 9 have no compatibility decomposition");
    for (size_t i = 0; i < FT_COUNT(marks); i++)
        found += ft_char_is_any_mark(marks[i]);
    is_int(found, FT_COUNT(marks), "the marks of Unicode 9 are accents that StripAccents removes");
    for (size_t i = 0; i < FT_COUNT(later_marks); i++)
        others += ft_char_is_any_mark(later_marks[i]);
    is_int(others, 0, "marks that are younger than Unicode 9 are no accents");
}

int main(void)
{
    test_characters();
    test_later_characters();
    return done_testing();
}
