/* SPDX-License-Identifier: Apache-2.0 */
/* Lets jansson's archive be linked into our shared library. Debian compiles the archive for programs, where the address
 * of libc's `stdin` is known at link time; in a shared library this one reference cannot be expressed. The linker
 * (--wrap=stdin, CMakeLists.txt) points it here. jansson only compares it, to call that stream "<stdin>" in messages of
 * json_loadf, which is not used. */
#include <stdio.h>

extern FILE *__wrap_stdin;
__attribute__((visibility("hidden"))) FILE *__wrap_stdin = NULL;
