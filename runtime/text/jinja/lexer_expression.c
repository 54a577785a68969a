/*
 * lexer_expression.c - names, numbers, strings and operators inside a tag.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/lexer.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"
#include "runtime/text/unicode/unicode.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ft_jinja_run *run;
    const char *text;
    size_t bytes, at;
    ft_jinja_token_list *tokens;
    char open[FT_JINJA_MAX_DEPTH]; /* brackets that are open */
    size_t depth;
} lexer;

void ft_jinja_add_token(ft_jinja_run *run, ft_jinja_token_list *list, ft_jinja_token token)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 64;
        ft_jinja_token *grown = ft_jinja_alloc(run, capacity, sizeof *grown);
        if (list->count > 0)
            memcpy(grown, list->token, list->count * sizeof *grown);
        list->token = grown;
        list->capacity = capacity;
    }
    list->token[list->count++] = token;
}

static char peek(const lexer *l, size_t ahead)
{
    return l->at + ahead < l->bytes ? l->text[l->at + ahead] : '\0';
}

static void add(lexer *l, ft_jinja_token_kind kind, size_t bytes)
{
    ft_jinja_add_token(
        l->run, l->tokens,
        (ft_jinja_token){
            .kind = kind, .line = l->run->line, .text = l->text + l->at, .bytes = bytes });
    l->at += bytes;
}

/* ---- Numbers ------------------------------------------------------------------------------ */

/* Append digits to `to`, without underscores between them. */
static size_t copy_digits(lexer *l, char *to, size_t count, int base)
{
    while (isalnum((unsigned char) peek(l, 0)) || peek(l, 0) == '_') {
        char c = peek(l, 0);
        int digit = c == '_' ? -1 : isdigit((unsigned char) c) ? c - '0' : tolower(c) - 'a' + 10;
        bool joins = c == '_' && isxdigit((unsigned char) peek(l, 1)) && l->at > 0;
        if (digit >= base || (c == '_' && !joins))
            break;
        if (c != '_')
            to[count++] = c;
        l->at++;
    }
    to[count] = '\0';
    return count;
}

static int64_t to_integer(lexer *l, const char *digits, int base)
{
    errno = 0;
    long long value = strtoll(digits, NULL, base);
    bool octal_like = base == 10 && digits[0] == '0' && value != 0;
    if (errno == ERANGE || digits[0] == '\0' || octal_like)
        ft_jinja_fail(l->run, FT_EFORMAT, "\"%.40s\" is no integer of 64 bits", digits);
    return value;
}

static int base_of(char letter)
{
    letter = (char) tolower((unsigned char) letter);
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
}

/* The part of a float behind its first digits; false: it is an integer. */
static bool copy_fraction(lexer *l, char *digits, size_t *count, bool after_dot)
{
    bool fraction = peek(l, 0) == '.' && isdigit((unsigned char) peek(l, 1)) && !after_dot;
    if (fraction) {
        digits[(*count)++] = '.';
        l->at++;
        *count = copy_digits(l, digits, *count, 10);
    }
    bool sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    bool exponent = tolower((unsigned char) peek(l, 0)) == 'e' && !after_dot &&
                    isdigit((unsigned char) peek(l, 1 + sign));
    if (exponent) {
        for (int i = 0; i < 1 + sign; i++)
            digits[(*count)++] = peek(l, (size_t) i);
        l->at += 1 + (size_t) sign;
        *count = copy_digits(l, digits, *count, 10);
    }
    return fraction || exponent;
}

static void lex_number(lexer *l)
{
    size_t start = l->at, count = 0;
    bool after_dot = start > 0 && l->text[start - 1] == '.';
    int base = peek(l, 0) == '0' ? base_of(peek(l, 1)) : 10;
    char *digits = ft_jinja_alloc(l->run, l->bytes - l->at + 1, 1);
    l->at += base != 10 ? 2 : 0;
    count = copy_digits(l, digits, count, base);
    bool is_float = base == 10 && copy_fraction(l, digits, &count, after_dot);
    ft_jinja_value value =
        is_float ? ft_jinja_float(strtod(digits, NULL)) : ft_jinja_int(to_integer(l, digits, base));
    ft_jinja_add_token(l->run, l->tokens,
                       (ft_jinja_token){ .kind = FT_JINJA_TOKEN_NUMBER,
                                         .line = l->run->line,
                                         .text = l->text + start,
                                         .bytes = l->at - start,
                                         .value = value });
}

/* ---- Strings ------------------------------------------------------------------------------ */

/* The code point of `count` hexadecimal digits, or of at most 3 octal ones. */
static uint32_t read_code(lexer *l, int base, size_t count)
{
    uint32_t code = 0;
    size_t read = 0;
    for (; read < count && isxdigit((unsigned char) peek(l, 0)); read++, l->at++) {
        char c = peek(l, 0);
        int digit = isdigit((unsigned char) c) ? c - '0' : tolower((unsigned char) c) - 'a' + 10;
        if (digit >= base)
            break;
        code = code * (uint32_t) base + (uint32_t) digit;
    }
    bool complete = base == 8 || read == count;
    if (!complete || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        ft_jinja_fail(l->run, FT_EFORMAT, "a string has an escape that is no character");
    return code;
}

/* The escape behind a backslash, as in Python. */
static void lex_escape(lexer *l, ft_jinja_builder *to)
{
    static const char letters[] = "abfnrtv\\'\"", codes[] = "\a\b\f\n\r\t\v\\'\"";
    char c = peek(l, 0);
    const char *simple = c == '\0' ? NULL : strchr(letters, c);
    if (c >= '0' && c <= '7') {
        ft_jinja_put_char(to, read_code(l, 8, 3), false);
        return;
    }
    l->at++;
    if (simple != NULL)
        ft_jinja_put(to, codes + (simple - letters), 1, false);
    else if (c == 'x' || c == 'u' || c == 'U')
        ft_jinja_put_char(to, read_code(l, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8), false);
    else if (c == 'N')
        ft_jinja_fail_unknown(l->run, "escape", "\\N", 2);
    else if (c != '\n') {
        ft_jinja_put_text(to, "\\");
        ft_jinja_put(to, &c, 1, false);
    }
}

static void lex_string(lexer *l)
{
    char quote = peek(l, 0);
    ft_jinja_builder text = { .run = l->run };
    size_t start = l->at++;
    while (l->at < l->bytes && peek(l, 0) != quote) {
        bool escape = peek(l, 0) == '\\';
        size_t plain = l->at;
        while (l->at < l->bytes && peek(l, 0) != quote && peek(l, 0) != '\\')
            l->at++;
        ft_jinja_put(&text, l->text + plain, l->at - plain, false);
        if (!escape)
            continue;
        l->at++;
        lex_escape(l, &text);
    }
    if (l->at >= l->bytes)
        ft_jinja_fail(l->run, FT_EFORMAT, "a string has no end");
    l->at++;
    const ft_jinja_string *string = ft_jinja_built(&text);
    ft_jinja_add_token(l->run, l->tokens,
                       (ft_jinja_token){ .kind = FT_JINJA_TOKEN_STRING,
                                         .line = l->run->line,
                                         .text = string->data,
                                         .bytes = string->bytes });
    for (size_t i = start; i < l->at; i++)
        l->run->line += l->text[i] == '\n';
}

/* ---- Operators ---------------------------------------------------------------------------- */

static void balance(lexer *l, char bracket)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *closes = strchr(closing, bracket);
    if (strchr(opening, bracket) != NULL) {
        if (l->depth == FT_JINJA_MAX_DEPTH)
            ft_jinja_fail(l->run, FT_ELIMIT, "more than %d brackets are open", FT_JINJA_MAX_DEPTH);
        l->open[l->depth++] = bracket;
    } else if (closes != NULL) {
        if (l->depth == 0 || l->open[l->depth - 1] != opening[closes - closing])
            ft_jinja_fail(l->run, FT_EFORMAT, "found \"%c\" without its opening bracket", bracket);
        l->depth--;
    }
}

static void lex_operator(lexer *l)
{
    static const char *const pairs[] = { "//", "**", "==", "!=", ">=", "<=" };
    char c = peek(l, 0);
    for (size_t i = 0; i < FT_COUNT(pairs); i++)
        if (c == pairs[i][0] && peek(l, 1) == pairs[i][1]) {
            add(l, FT_JINJA_TOKEN_OPERATOR, 2);
            return;
        }
    if (c == '\0' || strchr("+-/*%~[](){}><=.:|,;", c) == NULL)
        ft_jinja_fail(l->run, FT_EFORMAT, "found the character 0x%02x, expected an expression",
                      (unsigned) (unsigned char) c);
    balance(l, c);
    add(l, FT_JINJA_TOKEN_OPERATOR, 1);
}

/* ---- All ---------------------------------------------------------------------------------- */

/* Bytes of the name at the current place, 0: none. */
static size_t name_length(const lexer *l)
{
    const char *start = l->text + l->at, *end = l->text + l->bytes, *at = start, *next = at;
    while (at < end && ft_char_is_word(ft_utf8_decode_next(&next)))
        at = next;
    return (size_t) (at - start);
}

static bool closes(const lexer *l, const char *close)
{
    size_t sign = peek(l, 0) == '-' || (peek(l, 0) == '+' && close[0] == '%');
    return l->depth == 0 && peek(l, sign) == close[0] && peek(l, sign + 1) == close[1];
}

static void lex_token(lexer *l)
{
    const char *next = l->text + l->at;
    if (ft_jinja_is_space(ft_utf8_decode_next(&next))) {
        l->run->line += peek(l, 0) == '\n';
        l->at = (size_t) (next - l->text);
        return;
    }
    size_t name = name_length(l);
    if (isdigit((unsigned char) peek(l, 0)))
        lex_number(l);
    else if (name > 0)
        add(l, FT_JINJA_TOKEN_NAME, name);
    else if (peek(l, 0) == '"' || peek(l, 0) == '\'')
        lex_string(l);
    else
        lex_operator(l);
}

size_t ft_jinja_lex_expression(ft_jinja_run *run, const char *text, size_t bytes, const char *close,
                               ft_jinja_token_list *tokens)
{
    lexer l = { .run = run, .text = text, .bytes = bytes, .tokens = tokens };
    while (!closes(&l, close)) {
        if (l.at >= bytes)
            ft_jinja_fail(run, FT_EFORMAT, "a tag has no end, expected %s", close);
        lex_token(&l);
    }
    return l.at;
}
