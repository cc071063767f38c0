/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions (RoFormer, arXiv:2104.09864) and the scalings that stretch them; field names and formulas are those of
 * transformers' modeling_rope_utils. */
#include "models/rotary_table.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586
#define MAX_HEAD_DIM 8192                  /* bounds for configs from anywhere */
#define MAX_ELEMENTS ((int64_t)1 << 28) /* of the table: two million positions of 128 features */

typedef struct rope {
    const fk_config *scaling; /* NULL: none */
    const char *field;        /* its name, for messages */
    double theta, factor, attention_factor;
    int64_t head_dim, half, positions;
    double *frequencies;      /* [half] */
} rope;

static fk_status read_scaling(const fk_config *config, rope *r)
{
    r->field = "rope_scaling";
    r->scaling = fk_config_object(config, r->field);
    if (!r->scaling) {
        r->field = "rope_parameters";
        r->scaling = fk_config_object(config, r->field);
    }
    FK_TRY(fk_config_object_optional(config, "rope_scaling"));
    FK_TRY(fk_config_object_optional(config, "rope_parameters"));
    r->theta = 10000;
    FK_TRY(fk_config_float_optional(config, "rope_theta", &r->theta));
    double part = 1;
    FK_TRY(fk_config_float_optional(config, "partial_rotary_factor", &part));
    if (r->scaling) {
        FK_TRY(fk_config_float_optional(r->scaling, "rope_theta", &r->theta));
        FK_TRY(fk_config_float_optional(r->scaling, "partial_rotary_factor", &part));
    }
    if (!(r->theta > 1)) return fk_fail(FK_ERROR_INVALID, "config field rope_theta is %g, not above 1", r->theta);
    if (part != 1) return fk_fail(FK_ERROR_UNSUPPORTED, "config field partial_rotary_factor is %g; only 1 is supported", part);
    return FK_OK;
}

static fk_status read_factor(rope *r)
{
    FK_TRY(fk_config_float(r->scaling, "factor", &r->factor));
    if (r->factor >= 1) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s factor %g is below 1", r->field, r->factor);
}

/* Context of the model before it was stretched: beside the scaling, in it, or max_position_embeddings. */
static fk_status read_original(const rope *r, const fk_config *config, double *original)
{
    *original = (double)r->positions;
    FK_TRY(fk_config_float_optional(r->scaling, "original_max_position_embeddings", original));
    FK_TRY(fk_config_float_optional(config, "original_max_position_embeddings", original));
    if (*original >= 1) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s original_max_position_embeddings %g is below 1", r->field, *original);
}

static fk_status scale_linear(rope *r)
{
    FK_TRY(read_factor(r));
    for (int64_t i = 0; i < r->half; i++) r->frequencies[i] /= r->factor;
    r->positions = (int64_t)fmin((double)r->positions * r->factor, (double)MAX_ELEMENTS);
    return FK_OK;
}

/* Wavelengths above original/low turn `factor` times slower, those below original/high stay, and between them the two
 * frequencies mix linearly. */
static fk_status scale_llama3(rope *r, const fk_config *config)
{
    double low, high, original;
    FK_TRY(read_factor(r));
    FK_TRY(fk_config_float(r->scaling, "low_freq_factor", &low));
    FK_TRY(fk_config_float(r->scaling, "high_freq_factor", &high));
    FK_TRY(read_original(r, config, &original));
    if (!(high > low && low > 0))
        return fk_fail(FK_ERROR_INVALID, "%s needs 0 < low_freq_factor %g < high_freq_factor %g", r->field, low, high);
    for (int64_t i = 0; i < r->half; i++) {
        double wavelength = TWO_PI / r->frequencies[i], smooth = (original / wavelength - low) / (high - low);
        smooth = fmin(fmax(smooth, 0), 1);
        r->frequencies[i] = smooth * r->frequencies[i] + (1 - smooth) * r->frequencies[i] / r->factor;
    }
    return FK_OK;
}

static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* The pair, as a real number, that turns `rotations` times within the original context. */
static double yarn_pair(const rope *r, double rotations, double original)
{
    return (double)r->head_dim * log(original / (rotations * TWO_PI)) / (2 * log(r->theta));
}

/* YaRN (arXiv:2309.00071): pairs that turn often stay, those that turn seldom are slowed down by the factor, between them a
 * ramp; cosines and sines grow by attention_factor. */
static fk_status scale_yarn(rope *r, const fk_config *config)
{
    double original, beta_fast = 0, beta_slow = 0, mscale = 0, mscale_all_dim = 0, given = 0;
    bool truncate = true;
    FK_TRY(read_original(r, config, &original));
    r->factor = (double)r->positions / original;
    FK_TRY(fk_config_float_optional(r->scaling, "factor", &r->factor));
    FK_TRY(fk_config_float_optional(r->scaling, "beta_fast", &beta_fast));
    FK_TRY(fk_config_float_optional(r->scaling, "beta_slow", &beta_slow));
    FK_TRY(fk_config_float_optional(r->scaling, "mscale", &mscale));
    FK_TRY(fk_config_float_optional(r->scaling, "mscale_all_dim", &mscale_all_dim));
    FK_TRY(fk_config_float_optional(r->scaling, "attention_factor", &given));
    FK_TRY(fk_config_bool_optional(r->scaling, "truncate", &truncate));
    if (beta_fast == 0) beta_fast = 32;
    if (beta_slow == 0) beta_slow = 1;
    if (!(r->factor >= 1)) return fk_fail(FK_ERROR_INVALID, "%s factor %g is below 1", r->field, r->factor);
    if (!(beta_fast >= beta_slow && beta_slow > 0))
        return fk_fail(FK_ERROR_INVALID, "%s needs 0 < beta_slow %g <= beta_fast %g", r->field, beta_slow, beta_fast);
    if (given != 0) r->attention_factor = given;
    else if (mscale != 0 && mscale_all_dim != 0)
        r->attention_factor = yarn_mscale(r->factor, mscale) / yarn_mscale(r->factor, mscale_all_dim);
    else r->attention_factor = yarn_mscale(r->factor, 1);

    double low = yarn_pair(r, beta_fast, original), high = yarn_pair(r, beta_slow, original);
    if (truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0);
    high = fmin(high, (double)r->head_dim - 1);
    if (low == high) high += 0.001; /* a step */
    for (int64_t i = 0; i < r->half; i++) {
        double slowed = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        r->frequencies[i] = slowed * r->frequencies[i] / r->factor + (1 - slowed) * r->frequencies[i];
    }
    r->positions = (int64_t)fmin(original * r->factor, (double)MAX_ELEMENTS);
    return FK_OK;
}

static fk_status scale_frequencies(rope *r, const fk_config *config)
{
    const char *type = fk_config_string(r->scaling, "rope_type");
    if (!type) type = fk_config_string(r->scaling, "type");
    if (!type && (fk_config_object(r->scaling, "full_attention") || fk_config_object(r->scaling, "sliding_attention")))
        return fk_fail(FK_ERROR_UNSUPPORTED, "%s differs by layer type, which is not supported", r->field);
    if (!type && strcmp(r->field, "rope_scaling") == 0)
        return fk_fail(FK_ERROR_INVALID, "rope_scaling has neither rope_type nor type");
    if (!type || strcmp(type, "default") == 0) return FK_OK;
    if (strcmp(type, "linear") == 0) return scale_linear(r);
    if (strcmp(type, "llama3") == 0) return scale_llama3(r, config);
    if (strcmp(type, "yarn") == 0) return scale_yarn(r, config);
    /* Frequencies change with the length of a sequence, from max_position_embeddings on, which is where our context ends. */
    if (strcmp(type, "dynamic") == 0) return read_factor(r);
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s rope_type '%s' is none of default, linear, dynamic, llama3, yarn", r->field, type);
}

fk_status fk_rotary_table(fk_weights *weights, const fk_config *config, int64_t head_dim, int64_t *positions, fk_tensor *cos_sin_cache)
{
    rope r = {.head_dim = head_dim, .half = head_dim / 2, .positions = *positions, .attention_factor = 1};
    FK_TRY(read_scaling(config, &r));
    if (head_dim > MAX_HEAD_DIM)
        return fk_fail(FK_ERROR_UNSUPPORTED, "head_dim %lld is above %d", (long long)head_dim, MAX_HEAD_DIM);
    r.frequencies = fk_weights_alloc(weights, (size_t)r.half * sizeof *r.frequencies);
    if (!r.frequencies) return fk_weights_status(weights);
    for (int64_t i = 0; i < r.half; i++) r.frequencies[i] = pow(r.theta, -(double)i / (double)r.half);
    if (r.scaling) FK_TRY(scale_frequencies(&r, config));
    if (r.positions > MAX_ELEMENTS / head_dim)
        return fk_fail(FK_ERROR_UNSUPPORTED, "a context of %lld tokens (max_position_embeddings, with its scaling) is above %lld",
                       (long long)r.positions, (long long)(MAX_ELEMENTS / head_dim));

    int64_t shape[2] = {r.positions, head_dim};
    float *values = fk_weights_alloc(weights, (size_t)shape[0] * (size_t)shape[1] * sizeof *values);
    if (!values) return fk_weights_status(weights);
    for (int64_t p = 0; p < r.positions; p++)
        for (int64_t i = 0; i < r.half; i++) {
            /* The angle is float32 in production: position and frequency each rounded, then their product. */
            double angle = (double)((float)p * (float)r.frequencies[i]);
            values[p * head_dim + i] = (float)cos(angle) * (float)r.attention_factor;
            values[p * head_dim + r.half + i] = (float)sin(angle) * (float)r.attention_factor;
        }
    *positions = r.positions;
    *cos_sin_cache = fk_weights_table(weights, FK_F32, 2, shape, values);
    return fk_weights_status(weights);
}
