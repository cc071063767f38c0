/* SPDX-License-Identifier: Apache-2.0 */
/* A folder under /tmp for the files of a test. */
#ifndef FK_TESTS_SCRATCH_FOLDER_H
#define FK_TESTS_SCRATCH_FOLDER_H

/* Its path. */
extern char scratch_folder[];

/* Group setup and teardown of cmocka: make the folder, remove it with all in it. */
int scratch_make(void **state);
int scratch_remove(void **state);

/* The path of a file in it, valid until the next call. */
const char *scratch_path(const char *name);
void scratch_write(const char *name, const char *text);

#endif
