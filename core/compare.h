/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a result with the expected one, within what the arithmetic explains. With eps the distance of neighbouring
 * values of the storage dtype relative to their size, u = 2^-24, K the terms accumulated and r the roundings to the
 * storage dtype (both from FK_NUMERICS), and rms the root mean square of the expected row:
 *   element   |difference| <= eps |expected|        the last rounding: two correct results may be neighbours; 3 eps where the
 *                                                   storage dtype is that of the arithmetic, whose own steps (exp, division,
 *                                                   product) then round as coarsely as the last one
 *                           + 8 (0.29 sqrt(r - 1) eps + sqrt(K) u) s rms
 *                                                   roundings before it, each of which spreads over many terms and adds an
 *                                                   error of deviation eps / sqrt(12), and K float32 additions in any order, a
 *                                                   random walk; 8 deviations (ARBITRARY, chosen to be safe over 10^9
 *                                                   elements). Both are larger for a feature whose operands are: s is the rms
 *                                                   of the element's column over that of the tensor, at least 1
 *                           + tiny                  the smallest normal number: flushing denormals is allowed; one step of
 *                                                   2^-24 for f16, where denormals are common
 *   row       rms of differences <= 0.6 r eps rms + 4 sqrt(K) u rms + tiny    errors of a right result do not agree: rows
 *                                                   of 16 and more elements must be better on the whole than each alone
 * Integers, bool and outputs with r = 0 are exact, bit for bit. NaN must stand in the same places, infinities too, except
 * that an infinity counts as the next power of two beyond the largest finite value. */
#ifndef FK_CORE_COMPARE_H
#define FK_CORE_COMPARE_H

#include <fk/op.h>

typedef struct fk_tolerance {
    bool exact;
    double of_element; /* relative to the expected element */
    double of_row;     /* relative to the row's rms */
    double row_rms;    /* rms of a row's differences, relative to the row's rms */
    double absolute;
} fk_tolerance;

/* Tolerance of the output field `field` of a call. */
fk_tolerance fk_tolerance_for(const fk_op *op, const void *args, int field);

#define FK_MAX_MISMATCHES 8

typedef struct fk_mismatch {
    int64_t index[FK_MAX_NDIM];
    double expected, actual, allowed; /* allowed difference */
} fk_mismatch;

typedef struct fk_comparison {
    int64_t elements, mismatched;
    int64_t bad_rows;      /* rows whose rms of differences is too large */
    int64_t first_bad_row; /* flat row number, -1 */
    double bad_row_error, bad_row_allowed;
    double max_abs_error;
    double max_rel_error; /* |difference| / max(|expected|, row rms) */
    double rms_error, rms_expected;
    int num_mismatches;   /* of those kept below */
    fk_mismatch mismatches[FK_MAX_MISMATCHES];
} fk_comparison;

/* Compares host tensors of one shape and dtype, any strides. True when all is within tolerance. */
bool fk_compare(const fk_tensor *expected, const fk_tensor *actual, const fk_tolerance *tolerance, fk_comparison *out);
/* "[3, 17]: expected 0.25, got 0.5, allowed difference 0.001" into buf; returns buf. */
const char *fk_mismatch_format(const fk_mismatch *m, int ndim, char *buf, size_t size);
/* Share of elements within tolerance; 1 for an empty tensor. */
static inline double fk_comparison_matched(const fk_comparison *c)
{
    return c->elements ? 1 - (double)c->mismatched / (double)c->elements : 1;
}
/* True when a tensor of two or more elements holds one value only: a comparison with it shows nothing. */
bool fk_tensor_is_constant(const fk_tensor *t);

#endif
