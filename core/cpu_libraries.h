/* SPDX-License-Identifier: Apache-2.0 */
/* Implementations that come from libraries found at run time: entries of the CPU backend's table beside our own kernels. */
#ifndef FK_CORE_CPU_LIBRARIES_H
#define FK_CORE_CPU_LIBRARIES_H

#include <fk/op.h>

/* The table of library implementations. An entry whose library is not there supports no call. */
const fk_impl *const *fkp_cpu_library_impls(int *count);

/* Name, version and kernels of the OpenBLAS in use ("OpenBLAS 0.3.21 ... Zen"), NULL when there is none. Loads it. */
const char *fkp_openblas_version(void);

#endif
