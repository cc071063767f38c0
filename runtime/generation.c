/* SPDX-License-Identifier: Apache-2.0 */
/* Reading generation_config.json; field names and defaults are those of transformers' GenerationConfig. */
#include "runtime/generation.h"

#include <string.h>

static fk_status out_of_range(const char *field, double value, const char *expected)
{
    return fk_fail(FK_ERROR_INVALID, "generation_config.json: %s is %g, expected %s", field, value, expected);
}

fk_status fk_generation_sampling(const fk_config *config, fk_sampling *sampling)
{
    memset(sampling, 0, sizeof *sampling);
    sampling->top_p = 1;
    const fk_config *from = fk_config_object(config, "generation_config");
    if (!from) return FK_OK;
    bool do_sample = false;
    double temperature = 1, top_p = 1, min_p = 0, repetition_penalty = 1;
    fk_status status = fk_config_bool_optional(from, "do_sample", &do_sample);
    int64_t top_k = do_sample ? 50 : 0;
    if (status == FK_OK) status = fk_config_float_optional(from, "temperature", &temperature);
    if (status == FK_OK) status = fk_config_float_optional(from, "top_p", &top_p);
    if (status == FK_OK) status = fk_config_float_optional(from, "min_p", &min_p);
    if (status == FK_OK) status = fk_config_float_optional(from, "repetition_penalty", &repetition_penalty);
    if (status == FK_OK) status = fk_config_int_optional(from, "top_k", -1, &top_k);
    if (status != FK_OK) return fk_fail_context(status, "generation_config.json");
    if (!(temperature >= 0 && temperature <= 100)) return out_of_range("temperature", temperature, "0 to 100");
    if (!(top_p >= 0 && top_p <= 1)) return out_of_range("top_p", top_p, "0 to 1");
    if (!(min_p >= 0 && min_p <= 1)) return out_of_range("min_p", min_p, "0 to 1");
    if (!(repetition_penalty > 0 && repetition_penalty <= 10)) return out_of_range("repetition_penalty", repetition_penalty, "above 0, to 10");
    sampling->temperature = do_sample ? (float)temperature : 0;
    sampling->top_p = (float)top_p;
    sampling->min_p = (float)min_p;
    sampling->repetition_penalty = (float)repetition_penalty;
    sampling->top_k = top_k > 0 ? (int32_t)top_k : 0;
    return FK_OK;
}
