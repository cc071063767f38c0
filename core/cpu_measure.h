/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU is and what it does at best. */
#ifndef FK_CORE_CPU_MEASURE_H
#define FK_CORE_CPU_MEASURE_H

#include <fk/backend.h>

fk_status fkp_cpu_describe(fk_backend *backend, fk_device_info *info);
/* Copies and reads a buffer of several cache sizes on all threads; multiplies matrices through the registry's best linear. */
fk_status fkp_cpu_measure(fk_backend *backend, fk_roofline *roofline);
fk_status fkp_cpu_flush_cache(fk_backend *backend, void *stream);

#endif
