/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others in our messages: what a candidate raises, what a compiler or a runner writes. It is shown on terminals and
 * kept in JSON, so it may steer neither. */
#ifndef FK_CORE_CLEAN_TEXT_H
#define FK_CORE_CLEAN_TEXT_H

/* Replaces in place by '?': control characters but newline and tab, and bytes that are no UTF-8. Returns text. */
char *fkp_clean_text(char *text);

#endif
