/*
 * regex_pattern.c - translate Oniguruma patterns to PCRE2.
 *
 * Translated: \s, which is Unicode's White_Space in Oniguruma and has one more character in PCRE2;
 * \uXXXX; and the general categories, to which the characters added in Unicode 15 and 16 are
 * appended, so that ids do not depend on the installed PCRE2 (10.40 or later, which has Unicode
 * 14).
 *
 * Rejected: everything that differs, such as \w, \h, \v, nested classes, and lazy or possessive
 * braces; and everything that has not been compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/regex.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *pattern, *at;
    ft_strbuf *out;
    char *why;
    int depth;    /* open groups */
    int caseless; /* depth of the outermost (?i: group, from 1; 0 for none */
} translator;

/* clang-format off */

/* Characters assigned in Unicode 15 or 16. */
static const struct {
    uint32_t first, last;
    char category[3];
} added_after_unicode_14[] = {
    { 0x00897, 0x00897, "Mn" }, { 0x00cf3, 0x00cf3, "Mc" }, { 0x00ece, 0x00ece, "Mn" },
    { 0x01b4e, 0x01b4f, "Po" }, { 0x01b7f, 0x01b7f, "Po" }, { 0x01c89, 0x01c89, "Lu" },
    { 0x01c8a, 0x01c8a, "Ll" }, { 0x02427, 0x02429, "So" }, { 0x02ffc, 0x02fff, "So" },
    { 0x031e4, 0x031e5, "So" }, { 0x031ef, 0x031ef, "So" }, { 0x0a7cb, 0x0a7cc, "Lu" },
    { 0x0a7cd, 0x0a7cd, "Ll" }, { 0x0a7da, 0x0a7da, "Lu" }, { 0x0a7db, 0x0a7db, "Ll" },
    { 0x0a7dc, 0x0a7dc, "Lu" }, { 0x105c0, 0x105f3, "Lo" }, { 0x10d40, 0x10d49, "Nd" },
    { 0x10d4a, 0x10d4d, "Lo" }, { 0x10d4e, 0x10d4e, "Lm" }, { 0x10d4f, 0x10d4f, "Lo" },
    { 0x10d50, 0x10d65, "Lu" }, { 0x10d69, 0x10d6d, "Mn" }, { 0x10d6e, 0x10d6e, "Pd" },
    { 0x10d6f, 0x10d6f, "Lm" }, { 0x10d70, 0x10d85, "Ll" }, { 0x10d8e, 0x10d8f, "Sm" },
    { 0x10ec2, 0x10ec4, "Lo" }, { 0x10efc, 0x10eff, "Mn" }, { 0x1123f, 0x11240, "Lo" },
    { 0x11241, 0x11241, "Mn" }, { 0x11380, 0x11389, "Lo" }, { 0x1138b, 0x1138b, "Lo" },
    { 0x1138e, 0x1138e, "Lo" }, { 0x11390, 0x113b5, "Lo" }, { 0x113b7, 0x113b7, "Lo" },
    { 0x113b8, 0x113ba, "Mc" }, { 0x113bb, 0x113c0, "Mn" }, { 0x113c2, 0x113c2, "Mc" },
    { 0x113c5, 0x113c5, "Mc" }, { 0x113c7, 0x113ca, "Mc" }, { 0x113cc, 0x113cd, "Mc" },
    { 0x113ce, 0x113ce, "Mn" }, { 0x113cf, 0x113cf, "Mc" }, { 0x113d0, 0x113d0, "Mn" },
    { 0x113d1, 0x113d1, "Lo" }, { 0x113d2, 0x113d2, "Mn" }, { 0x113d3, 0x113d3, "Lo" },
    { 0x113d4, 0x113d5, "Po" }, { 0x113d7, 0x113d8, "Po" }, { 0x113e1, 0x113e2, "Mn" },
    { 0x116d0, 0x116e3, "Nd" }, { 0x11b00, 0x11b09, "Po" }, { 0x11bc0, 0x11be0, "Lo" },
    { 0x11be1, 0x11be1, "Po" }, { 0x11bf0, 0x11bf9, "Nd" }, { 0x11f00, 0x11f01, "Mn" },
    { 0x11f02, 0x11f02, "Lo" }, { 0x11f03, 0x11f03, "Mc" }, { 0x11f04, 0x11f10, "Lo" },
    { 0x11f12, 0x11f33, "Lo" }, { 0x11f34, 0x11f35, "Mc" }, { 0x11f36, 0x11f3a, "Mn" },
    { 0x11f3e, 0x11f3f, "Mc" }, { 0x11f40, 0x11f40, "Mn" }, { 0x11f41, 0x11f41, "Mc" },
    { 0x11f42, 0x11f42, "Mn" }, { 0x11f43, 0x11f4f, "Po" }, { 0x11f50, 0x11f59, "Nd" },
    { 0x11f5a, 0x11f5a, "Mn" }, { 0x1342f, 0x1342f, "Lo" }, { 0x13440, 0x13440, "Mn" },
    { 0x13441, 0x13446, "Lo" }, { 0x13447, 0x13455, "Mn" }, { 0x13460, 0x143fa, "Lo" },
    { 0x16100, 0x1611d, "Lo" }, { 0x1611e, 0x16129, "Mn" }, { 0x1612a, 0x1612c, "Mc" },
    { 0x1612d, 0x1612f, "Mn" }, { 0x16130, 0x16139, "Nd" }, { 0x16d40, 0x16d42, "Lm" },
    { 0x16d43, 0x16d6a, "Lo" }, { 0x16d6b, 0x16d6c, "Lm" }, { 0x16d6d, 0x16d6f, "Po" },
    { 0x16d70, 0x16d79, "Nd" }, { 0x18cff, 0x18cff, "Lo" }, { 0x1b132, 0x1b132, "Lo" },
    { 0x1b155, 0x1b155, "Lo" }, { 0x1cc00, 0x1ccef, "So" }, { 0x1ccf0, 0x1ccf9, "Nd" },
    { 0x1cd00, 0x1ceb3, "So" }, { 0x1d2c0, 0x1d2d3, "No" }, { 0x1df25, 0x1df2a, "Ll" },
    { 0x1e030, 0x1e06d, "Lm" }, { 0x1e08f, 0x1e08f, "Mn" }, { 0x1e4d0, 0x1e4ea, "Lo" },
    { 0x1e4eb, 0x1e4eb, "Lm" }, { 0x1e4ec, 0x1e4ef, "Mn" }, { 0x1e4f0, 0x1e4f9, "Nd" },
    { 0x1e5d0, 0x1e5ed, "Lo" }, { 0x1e5ee, 0x1e5ef, "Mn" }, { 0x1e5f0, 0x1e5f0, "Lo" },
    { 0x1e5f1, 0x1e5fa, "Nd" }, { 0x1e5ff, 0x1e5ff, "Po" }, { 0x1f6dc, 0x1f6dc, "So" },
    { 0x1f774, 0x1f776, "So" }, { 0x1f77b, 0x1f77f, "So" }, { 0x1f7d9, 0x1f7d9, "So" },
    { 0x1f8b2, 0x1f8bb, "So" }, { 0x1f8c0, 0x1f8c1, "So" }, { 0x1fa75, 0x1fa77, "So" },
    { 0x1fa87, 0x1fa89, "So" }, { 0x1fa8f, 0x1fa8f, "So" }, { 0x1faad, 0x1faaf, "So" },
    { 0x1fabb, 0x1fabf, "So" }, { 0x1fac6, 0x1fac6, "So" }, { 0x1face, 0x1facf, "So" },
    { 0x1fada, 0x1fadc, "So" }, { 0x1fadf, 0x1fadf, "So" }, { 0x1fae8, 0x1fae9, "So" },
    { 0x1faf7, 0x1faf8, "So" }, { 0x1fbcb, 0x1fbef, "So" }, { 0x2b739, 0x2b739, "Lo" },
    { 0x2ebf0, 0x2ee5d, "Lo" }, { 0x31350, 0x323af, "Lo" },
};

/* clang-format on */

/* The general categories that agree; among marks, one character has changed its subcategory. */
static const char *const categories[] = { "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",
                                          "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd",
                                          "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm",
                                          "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp" };

/* ------------------------------------------------------------------------------------------ */

/* Reject the next `bytes` bytes. */
static ft_status reject(translator *s, int bytes)
{
    snprintf(s->why, FT_REGEX_ERROR_SIZE, "a pattern without %.*s, found at byte %d", bytes, s->at,
             (int) (s->at - s->pattern));
    return FT_EUNSUPPORTED;
}

static ft_status append(translator *s, const char *text, size_t bytes)
{
    return ft_strbuf_append(s->out, text, bytes) ? FT_OK : FT_ENOMEM;
}

static ft_status append_string(translator *s, const char *text)
{
    return append(s, text, strlen(text));
}

/* Copy the next bytes. */
static ft_status copy(translator *s, size_t bytes)
{
    s->at += bytes;
    return append(s, s->at - bytes, bytes);
}

__attribute__((format(printf, 2, 3))) static ft_status append_format(translator *s,
                                                                     const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return append_string(s, text);
}

/* ---- Character categories ------------------------------------------------------------------- */

/* The contents of a character class for a category. */
static ft_status append_category(translator *s, const char *name)
{
    FT_TRY(append_format(s, "\\p{%s}", name));
    for (size_t i = 0; i < FT_COUNT(added_after_unicode_14); i++)
        if (strncmp(added_after_unicode_14[i].category, name, strlen(name)) == 0)
            FT_TRY(append_format(s, "\\x{%x}-\\x{%x}", (unsigned) added_after_unicode_14[i].first,
                                 (unsigned) added_after_unicode_14[i].last));
    return FT_OK;
}

/* \p{L}, \P{L}: the name between the braces, or NULL. */
static const char *category_at(const char *escape)
{
    for (size_t i = 0; i < FT_COUNT(categories); i++) {
        size_t bytes = strlen(categories[i]);
        if (escape[2] == '{' && strncmp(escape + 3, categories[i], bytes) == 0 &&
            escape[3 + bytes] == '}')
            return categories[i];
    }
    return NULL;
}

/* \s, \d, \p{..} and their negations, which are not supported inside a class. */
static ft_status translate_category(translator *s, bool in_class)
{
    char letter = s->at[1];
    bool negated = letter == 'S' || letter == 'D' || letter == 'P';
    bool property = letter == 'p' || letter == 'P';
    const char *name = property ? category_at(s->at) : "Nd";
    bool cased = property && name != NULL && name[0] == 'L' && name[1] != '\0';
    if (name == NULL || (in_class && negated) || (s->caseless > 0 && cased))
        return reject(s, property ? (int) strcspn(s->at, "}") + 1 : 2);
    if (!in_class)
        FT_TRY(append_string(s, negated ? "[^" : "["));
    if (letter == 's' || letter == 'S')
        FT_TRY(append_string(s, "\\t-\\r\\x{85}\\p{Z}"));
    else
        FT_TRY(append_category(s, name));
    s->at += property ? 4 + strlen(name) : 2;
    return in_class ? FT_OK : append_string(s, "]");
}

/* \S inside a class has one more character in Oniguruma. */
static ft_status translate_non_space_in_class(translator *s)
{
    s->at += 2;
    return append_string(s, "\\S\\x{180e}");
}

static ft_status translate_code_point(translator *s)
{
    size_t digits = strspn(s->at + 2, "0123456789abcdefABCDEF");
    if (digits < 4)
        return reject(s, 2);
    FT_TRY(append_format(s, "\\x{%.4s}", s->at + 2));
    s->at += 6;
    return FT_OK;
}

static ft_status translate_escape(translator *s, bool in_class)
{
    char letter = s->at[1];
    if (letter == 'S' && in_class)
        return translate_non_space_in_class(s);
    if (letter != '\0' && strchr("sSdDpP", letter) != NULL)
        return translate_category(s, in_class);
    if (letter == 'u')
        return translate_code_point(s);
    if (letter == 'x' && s->at[2] == '{')
        return copy(s, 3 + strcspn(s->at + 3, "}"));
    if (letter != '\0' && strchr("rntf!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", letter) != NULL)
        return copy(s, 2);
    return reject(s, letter == '\0' ? 1 : 2);
}

/* ---- Structure ---------------------------------------------------------------------------- */

static ft_status translate_class(translator *s)
{
    FT_TRY(copy(s, s->at[1] == '^' ? 2 : 1));
    if (*s->at == ']')
        return reject(s, 1);
    while (*s->at != ']') {
        if (*s->at == '\0')
            return reject(s, 0);
        if (*s->at == '[' || strncmp(s->at, "&&", 2) == 0)
            return reject(s, *s->at == '[' ? 1 : 2);
        FT_TRY(*s->at == '\\' ? translate_escape(s, true) : copy(s, 1));
    }
    return copy(s, 1);
}

static ft_status translate_group(translator *s)
{
    static const char *const known[] = { "(?:", "(?i:", "(?=", "(?!", "(?>", "(?<=", "(?<!" };
    size_t i = 0;
    s->depth++;
    if (s->at[1] != '?' && s->at[1] != '*')
        return copy(s, 1);
    while (i < FT_COUNT(known) && strncmp(s->at, known[i], strlen(known[i])) != 0)
        i++;
    if (i == FT_COUNT(known))
        return reject(s, 3);
    if (s->at[2] == 'i' && s->caseless == 0)
        s->caseless = s->depth;
    return copy(s, strlen(known[i]));
}

static ft_status translate_end_of_group(translator *s)
{
    if (s->depth-- == s->caseless)
        s->caseless = 0;
    return copy(s, 1);
}

/* {n}, {n,} or {n,m}, not followed by what PCRE2 reads as lazy or possessive. */
static ft_status translate_braces(translator *s)
{
    const char *digits = "0123456789";
    size_t from = strspn(s->at + 1, digits), bytes = 1 + from;
    if (from > 0 && s->at[bytes] == ',')
        bytes += 1 + strspn(s->at + bytes + 1, digits);
    if (from == 0 || s->at[bytes] != '}')
        return reject(s, 1);
    bytes++;
    if (s->at[bytes] == '?' || s->at[bytes] == '+')
        return reject(s, (int) bytes + 1);
    return copy(s, bytes);
}

ft_status ft_regex_translate(const char *pattern, ft_strbuf *out, char why[FT_REGEX_ERROR_SIZE])
{
    translator s = { .pattern = pattern, .at = pattern, .out = out, .why = why };
    while (*s.at != '\0') {
        switch (*s.at) {
        case '\\':
            FT_TRY(translate_escape(&s, false));
            break;
        case '[':
            FT_TRY(translate_class(&s));
            break;
        case '(':
            FT_TRY(translate_group(&s));
            break;
        case ')':
            FT_TRY(translate_end_of_group(&s));
            break;
        case '{':
            FT_TRY(translate_braces(&s));
            break;
        default:
            FT_TRY(copy(&s, 1));
        }
    }
    return FT_OK;
}
