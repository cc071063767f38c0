/* SPDX-License-Identifier: Apache-2.0 */
/* The shared library of a candidate's file, compiled when that is a source. */
#ifndef FK_BENCH_COMPILE_H
#define FK_BENCH_COMPILE_H

#include "bench/candidate_files.h"

typedef struct fkp_compiled {
    bool good;             /* false: the source does not compile */
    bool timed_out;
    char library[1100];    /* path of the shared library */
    uint64_t hash;         /* of the source (or library), headers and flags */
    char messages[4096];   /* the compiler's, from the beginning */
} fkp_compiled;

/* Compiles into `cache_dir`/candidates, or finds it there. FK_ERROR_MISSING: no compiler, or no headers of ours; a source
 * that does not compile is FK_OK with good = false. `stop` (may be NULL) ends it early: FK_ERROR_INTERRUPTED. */
fk_status fkp_candidate_compile(const fkp_candidate_file *file, const char *cache_dir, double timeout_s, bool (*stop)(void),
                                fkp_compiled *out);
/* The same without a compiler: `good` says whether the library is there already. */
fk_status fkp_candidate_identify(const fkp_candidate_file *file, const char *cache_dir, fkp_compiled *out);

/* Folders with our headers and operator declarations, for whoever compiles a candidate. */
fk_status fkp_candidate_includes(char include[1024], char ops[1024]);

#endif
