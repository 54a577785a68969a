/*
 * regex-t.c - regular expressions of tokenizers: which are supported, what they
 * match, and that matching terminates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/text/unicode/regex.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ft_regex compiled(const char *pattern)
{
    ft_regex regex = { 0 };
    char why[FT_REGEX_ERROR_SIZE] = "";
    if (ft_regex_compile(&regex, pattern, why) != FT_OK)
        bail_out("%s: expected %s", pattern, why);
    return regex;
}

/* All matches as "0-2 3-3", or the status that ends them. */
static const char *matches_of(const ft_regex *regex, const char *text, size_t bytes)
{
    static char out[512];
    ft_regex_search search = { .regex = regex, .text = text, .bytes = bytes };
    ft_regex_workspace room;
    size_t start, end, used = 0;
    bool found;
    ft_status rc = ft_regex_workspace_init(&room, bytes, 1);
    out[0] = '\0';
    while (rc == FT_OK) {
        rc = ft_regex_next(&search, &room, &found, &start, &end);
        if (rc != FT_OK || !found || used >= sizeof out)
            break;
        used += (size_t) snprintf(out + used, sizeof out - used, "%s%zu-%zu", used > 0 ? " " : "",
                                  start, end);
    }
    ft_regex_workspace_fini(&room);
    return rc == FT_OK ? out : ft_status_name(rc);
}

static void matches(const char *pattern, const char *text, const char *expected)
{
    ft_regex regex = compiled(pattern);
    is_str(matches_of(&regex, text, strlen(text)), expected,
           "%s matches the expected parts of the text", pattern);
    ft_regex_fini(&regex);
}

static void test_matches(void)
{
    matches("a+", "baab a", "1-3 5-6");
    matches("x?", "ab", "0-0 1-1 2-2");
    matches("x*", "axxb", "0-0 1-3 4-4");
    matches("a|b?", "a\u00e9b", "0-1 3-4");
    matches("^a", "a\na\nba", "0-1 2-3");
    matches("b$", "ab\nb", "1-2 3-4");
    matches(".", "a\n\r\u2028", "0-1 2-3 3-6");
    matches("\\s", "a\u180e\u00a0\u2028b", "4-6 6-9");
    matches("[\\S]", "a\u180e ", "0-1 1-4");
    matches("\\S", "a\u180e ", "0-1 1-4");
    matches("\\D", "1a\u0663", "1-2");
    matches("\\P{L}", "a\u00e91", "3-4");
    matches("\\u00e9|\\x{20ac}", "\u00e9\u20ac", "0-2 2-5");
    matches("(?i:'S|ll)", "'s'\u017fLLlL", "0-2 2-5 5-7 7-9");
    matches("(?i:(?:a)b)B", "ABBabb", "0-3");
    matches("a{2}|b{2,}|c{1,2}", "aaabbbccc", "0-2 3-6 6-8 8-9");
    matches("(?<=a)b(?!c)", "abcab", "4-5");
    matches("[^\\]\\-a]", "]-ab", "3-4");
    matches("a++b|a?+c", "aabac", "0-3 3-5");
    matches("\\.\\+\\ \\#", "a.+ #", "1-5");
    matches("(?>a|ab)c", "acabc", "0-2");
}

static void test_literals(void)
{
    ft_regex regex = { 0 };
    char why[FT_REGEX_ERROR_SIZE] = "";
    is_int(ft_regex_literal(&regex, "a.+[", why), FT_OK,
           "a literal pattern is compiled without interpreting its characters");
    is_str(matches_of(&regex, "xa.+[a.+[aab[", 13), "1-5 5-9",
           "a literal pattern matches only its exact text");
    ft_regex_fini(&regex);
    is_int(ft_regex_literal(&regex, "", why), FT_EUNSUPPORTED,
           "an empty literal pattern is refused");
}

/* Syntax that Oniguruma and PCRE2 interpret differently, or whose interpretations have not been
 * compared. */
static void test_refused(void)
{
    static const struct {
        const char *pattern, *what;
        int at;
    } refused[] = {
        { "\\w", "\\w", 0 },
        { "a\\b", "\\b", 1 },
        { "\\h", "\\h", 0 },
        { "[\\v]", "\\v", 1 },
        { "\\K", "\\K", 0 },
        { "(a)\\1", "\\1", 3 },
        { "\\p{Han}", "\\p{Han}", 0 },
        { "\\p{^L}", "\\p{^L}", 0 },
        { "\\p{Mn}", "\\p{Mn}", 0 },
        { "\\pL", "\\pL", 0 },
        { "[\\P{L}]", "\\P{L}", 1 },
        { "[\\D]", "\\D", 1 },
        { "[[:alpha:]]", "[", 1 },
        { "[a&&b]", "&&", 2 },
        { "[]a]", "]", 1 },
        { "[^]a]", "]", 2 },
        { "[a", "", 2 },
        { "[a\\", "\\", 2 },
        { "a{,2}", "{", 1 },
        { "a{", "{", 1 },
        { "a{1,2}?", "{1,2}?", 1 },
        { "a{2}+", "{2}+", 1 },
        { "(?m:a)", "(?m", 0 },
        { "(?i)a", "(?i", 0 },
        { "(?<n>a)", "(?<", 0 },
        { "(*UTF)a", "(*U", 0 },
        { "(?i:\\p{Lu})", "\\p{Lu}", 4 },
        { "\\u12", "\\u", 0 },
        { "\\", "\\", 0 },
    };
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        ft_regex regex = { 0 };
        char why[FT_REGEX_ERROR_SIZE] = "", expected[FT_REGEX_ERROR_SIZE];
        ft_status rc = ft_regex_compile(&regex, refused[i].pattern, why);
        snprintf(expected, sizeof expected, "a pattern without %s, found at byte %d",
                 refused[i].what, refused[i].at);
        ok(rc == FT_EUNSUPPORTED && regex.code == NULL, "the pattern %s is refused",
           refused[i].pattern);
        is_str(why, expected, "the error names the unsupported syntax and its position in %s",
               refused[i].pattern);
    }
    char *pattern = malloc(FT_REGEX_MAX_PATTERN + 2), why[FT_REGEX_ERROR_SIZE] = "";
    ft_regex regex = { 0 };
    memset(pattern, 'a', FT_REGEX_MAX_PATTERN + 1);
    pattern[FT_REGEX_MAX_PATTERN + 1] = '\0';
    is_int(ft_regex_compile(&regex, pattern, why), FT_EUNSUPPORTED,
           "a pattern that is too long is refused");
    is_str(why, "a pattern of 1 to 4096 bytes, found 4097",
           "the error names the length of a pattern that is too long");
    free(pattern);
}

static void test_invalid(void)
{
    static const char *const pattern[] = { "(a",    "a)",       "*",          "a**",
                                           "[b-a]", "(?<=a*)b", "\\x{110000}" };
    for (size_t i = 0; i < FT_COUNT(pattern); i++) {
        ft_regex regex = { 0 };
        char why[FT_REGEX_ERROR_SIZE] = "";
        is_int(ft_regex_compile(&regex, pattern[i], why), FT_EFORMAT,
               "%.12s is refused as an invalid pattern", pattern[i]);
        has(why, "a valid pattern: ", "the error of an invalid pattern says that it is invalid");
    }
}

static void test_nesting(void)
{
    enum { DEPTH = 65 };
    char pattern[2 * DEPTH + 1] = "", why[FT_REGEX_ERROR_SIZE] = "";
    ft_regex regex = { 0 };
    memset(pattern, '(', DEPTH);
    memset(pattern + DEPTH, ')', DEPTH);
    is_int(ft_regex_compile(&regex, pattern, why), FT_EFORMAT, "65 nested groups are refused");
    has(why, "parentheses are too deeply nested", "the error of nested groups names the limit");
    is_int(ft_regex_compile(&regex, pattern + 1, why), FT_EFORMAT,
           "an unmatched closing parenthesis is refused");
    pattern[2 * DEPTH - 1] = '\0';
    is_int(ft_regex_compile(&regex, pattern + 1, why), FT_OK, "64 nested groups are accepted");
    ft_regex_fini(&regex);
}

/* ---- Limits: without them each of these would run for hours or overflow the stack ---------- */

static char *repeated(const char *unit, size_t bytes)
{
    size_t step = strlen(unit);
    char *text = malloc(bytes + 1);
    if (text == NULL)
        bail_out("no memory");
    for (size_t i = 0; i < bytes; i++)
        text[i] = unit[i % step];
    text[bytes] = '\0';
    return text;
}

static void ends(const char *pattern, const char *unit, size_t bytes, const char *expected,
                 const char *sentence)
{
    ft_regex regex = compiled(pattern);
    char *text = repeated(unit, bytes);
    text[bytes - 1] = '!';
    is_str(matches_of(&regex, text, bytes), expected, "%s", sentence);
    free(text);
    ft_regex_fini(&regex);
}

static void test_limits(void)
{
    ends("(a+)+$", "a", 100, "FT_ELIMIT", "nested repetitions exceed the step limit");
    ends("(a|aa)+$", "a", 1000, "FT_ELIMIT", "overlapping alternatives exceed the step limit");
    ends("\\s*\\s*\\s*\\s*[xy]", " ", 4000, "FT_ELIMIT",
         "quartic backtracking exceeds the step limit");
    ends("a*[xy]|a!", "a", 1 << 18, "FT_ELIMIT", "quadratic backtracking exceeds the step limit");
    ends("a*+[xy]|a!", "a", 1 << 18, "FT_ELIMIT",
         "quadratic matching with possessive quantifiers exceeds the step limit");
    ends("(?=a*[xy])|a!", "a", 1 << 18, "FT_ELIMIT",
         "quadratic matching in a lookahead exceeds the step limit");
    ends("(?=.*.*.*.*y)a", "a", 300, "FT_ELIMIT",
         "a backtracking lookahead at many start positions exceeds the step limit");
    ends("(?=.*+)(?=.*+)(?=.*+)(?=.*+)y", "ay", 1 << 16, "FT_ELIMIT",
         "long lookaheads at many start positions exceed the step limit");
    ends("a{60000}x|y", "a", 1 << 16, "FT_ELIMIT",
         "repetitions that are too short at many start positions exceed the step limit");
    ends("x|a!", "a", 1 << 22, "4194302-4194304", "a match at the end of 4 MiB of text is found");
    ends("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", " ", 1 << 20, "0-1048574 1048574-1048575",
         "a megabyte of blanks is one match");
    ends("(?:a|b)*", "ab", 1 << 20, "0-1048575 1048576-1048576",
         "a million iterations of a group do not overflow the stack");
}

/* ---- Published patterns, which must stay below the limit for any text ---------------------- */

#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED(first, rest)                                                                         \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]" first                             \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]" rest "(?:'s|'t|'re|'ve|'m|'ll|'d)?"

static const struct {
    const char *name, *pattern;
} published[] = {
    { "GPT-2",
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
    { "Llama 3", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" LETTERS
                 "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS },
    { "Qwen2",
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS },
    { "GPT-4o",
      CASED("*", "+") "|" CASED("+", "*") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS },
};

/* Worst-case texts: words, single characters, and one long match. */
static const char *const units[] = {
    "The quick brown fox jumps over the lazy dog, and it's 12345 years old.\n",
    "int main(int argc, char **argv) { return x[i] + 17; }\n\t",
    "a1!",
    "1",
    " ",
    "\n ",
    "A",
    "'l",
    "'d",
    "  \n\n x",
    "\u5b57",
    "\u0301",
    "\u20ac!",
    "\u00e9 ",
};

/* The steps per byte to match all of the text, or 1e9 if matching fails. */
static double steps_of(const ft_regex *regex, const char *text, size_t bytes)
{
    ft_regex_search search = { .regex = regex, .text = text, .bytes = bytes };
    ft_regex_workspace room;
    size_t start, end, last = 0;
    bool found = true;
    ft_status rc = ft_regex_workspace_init(&room, bytes, 1);
    uint64_t steps = room.steps_left;
    while (rc == FT_OK && found &&
           (rc = ft_regex_next(&search, &room, &found, &start, &end)) == FT_OK)
        last = found ? end : last;
    steps -= room.steps_left;
    ft_regex_workspace_fini(&room);
    return rc == FT_OK && last == bytes ? (double) steps / (double) bytes : 1e9;
}

static void test_published(void)
{
    enum { LARGE = 1 << 18, LARGEST = 1 << 24 };
    for (size_t i = 0; i < FT_COUNT(published); i++) {
        ft_regex regex = compiled(published[i].pattern);
        double most = 0;
        for (size_t j = 0; j < FT_COUNT(units); j++) {
            size_t unit = strlen(units[j]), bytes = LARGE / unit * unit;
            char *text = repeated(units[j], bytes);
            double steps = steps_of(&regex, text, bytes);
            most = steps > most ? steps : most;
            free(text);
        }
        ok(most < 28,
           "the pattern of %s takes less than 28 of 32 steps per byte for every text: %.1f",
           published[i].name, most);
        char *text = repeated(units[1], LARGEST);
        double steps = steps_of(&regex, text, LARGEST);
        ok(steps < 28,
           "the pattern takes less than 28 of 32 steps per byte for 16 MiB of text: %.1f", steps);
        free(text);
        ft_regex_fini(&regex);
    }
}

int main(void)
{
    test_matches();
    test_literals();
    test_refused();
    test_invalid();
    test_nesting();
    test_limits();
    test_published();
    return done_testing();
}
