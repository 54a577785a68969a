/*
 * scripts.h - the scripts of characters, as UnicodeScripts of the `tokenizers` library has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_SCRIPTS_H
#define FT_RUNTIME_TEXT_UNICODE_SCRIPTS_H

#include <stdint.h>

/*
 * A number of the script of a character. The three scripts of Japanese have one number. Digits and
 * punctuation are a script of their own, and so are combining marks. 0 goes with any script: a
 * space and what Unicode 9 does not assign.
 */
enum { FT_SCRIPT_ANY = 0 };
int ft_char_script(uint32_t c);

#endif
