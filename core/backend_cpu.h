/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FK_CORE_BACKEND_CPU_H
#define FK_CORE_BACKEND_CPU_H

#include <fk/backend.h>

/* The CPU as a backend; one for the process. */
fk_status fkp_backend_cpu_create(fk_backend **out);

#endif
