/* SPDX-License-Identifier: Apache-2.0 */
/* The measured ceilings of a device, kept in the cache folder as <cache>/roofline/<device name>.json: `doctor --measure`
 * writes them, bench and eval read them. */
#ifndef FK_BENCH_ROOFLINE_H
#define FK_BENCH_ROOFLINE_H

#include <jansson.h>

#include <fk/backend.h>

/* What was saved for this kind of device (by its name, processors and threads); FK_ERROR_MISSING says how to measure. */
fk_status fk_roofline_load(fk_device device, const char *cache_dir, fk_roofline *roofline);
/* Measures (seconds of work on an idle device) and saves. */
fk_status fk_roofline_measure(fk_device device, const char *cache_dir, fk_roofline *roofline);
/* Loads, or measures and saves when nothing was saved. A cache that cannot be written is no failure. */
fk_status fk_roofline_get(fk_device device, const char *cache_dir, fk_roofline *roofline);

/* {copy_gb_s, read_gb_s, fp32_gflops, bf16_gflops, empty_call_us, empty_replay_us}; a rate that the device has not is null. */
json_t *fk_roofline_json(const fk_roofline *roofline);

/* Least seconds that this work takes at the ceilings: the slower of memory and arithmetic. `bf16`: matrix products in
 * bf16 or f16. 0 when nothing is known. */
double fk_roofline_seconds(const fk_roofline *roofline, const fk_cost *cost, bool bf16);

#endif
