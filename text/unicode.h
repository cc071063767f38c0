/* SPDX-License-Identifier: Apache-2.0 */
/* General categories as of Unicode 16, whichever of Unicode 15 to 16 the installed utf8proc knows: what the regular
 * expressions of the `tokenizers` package go by. */
#ifndef FK_TEXT_UNICODE_H
#define FK_TEXT_UNICODE_H

#include <stdint.h>
#include <utf8proc.h>

#ifdef __cplusplus
extern "C" {
#endif

utf8proc_category_t fkp_category(uint32_t code_point);

#ifdef __cplusplus
}
#endif
#endif
