/* SPDX-License-Identifier: Apache-2.0 */
/* What samples of two alternated sides say: ratio of medians, its confidence interval, the verdict. */
#ifndef FK_BENCH_STATISTICS_H
#define FK_BENCH_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fkp_ratio {
    double ratio;     /* median(baseline) / median(candidate): above 1 the candidate is faster */
    double low, high; /* 95 % confidence interval */
} fkp_ratio;

typedef enum fkp_verdict { FKP_VERDICT_NONE, FKP_FASTER, FKP_SAME, FKP_SLOWER, FKP_UNDECIDED } fkp_verdict;

/* Mean of the two middle values for even n; n at least 1. Reorders `values`. */
double fkp_median(double *values, int n);
/* Interval by bootstrap over pairs (baseline[i], candidate[i]), percentile method, repeatable from `seed`. Pairs come in
 * blocks of `block` neighbours that met the same state of the machine and are resampled together: single pairs would
 * pretend to know more than they do. Times are positive; n is at least 2 blocks. False when memory runs out. */
bool fkp_ratio_of_medians(const double *baseline, const double *candidate, int n, int block, uint64_t seed, fkp_ratio *out);
/* SAME when the whole interval lies within 0.98 to 1.02; else FASTER above 1, SLOWER below 1, UNDECIDED across it. */
fkp_verdict fkp_ratio_verdict(const fkp_ratio *ratio);
const char *fkp_verdict_name(fkp_verdict verdict); /* "" for none */

#endif
