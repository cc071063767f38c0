/* SPDX-License-Identifier: Apache-2.0 */
/* What samples of two alternated sides say: the ratio of their times, its confidence interval, the verdict. */
#ifndef FK_BENCH_STATISTICS_H
#define FK_BENCH_STATISTICS_H

#include <stdbool.h>

typedef struct fkp_ratio {
    double ratio;     /* baseline / candidate: above 1 the candidate is faster */
    double low, high; /* 95 % confidence interval */
} fkp_ratio;

typedef enum fkp_verdict { FKP_VERDICT_NONE, FKP_FASTER, FKP_SAME, FKP_SLOWER, FKP_UNDECIDED } fkp_verdict;

/* Mean of the two middle values for even n; n at least 1. Reorders `values`. */
double fkp_median(double *values, int n);
/* Mean of the middle half of the values: as steady as a median, but no slave of the clock's ticks. Reorders `values`. */
double fkp_midmean(double *values, int n);
/* Samples come in blocks of `block` pairs (baseline[i], candidate[i]) that met one state of the machine and one placement
 * in memory. Each block says one ratio, of the midmeans; the estimate is the mean of their logarithms without the outer
 * fifths, and the interval is Yuen's: Student's t of what the blocks differ by, so that what a block shares widens it.
 * Times are positive; n is at least 2 blocks. False when memory runs out. */
bool fkp_ratio_of_blocks(const double *baseline, const double *candidate, int n, int block, fkp_ratio *out);
/* Measurements by n pairs of processes, which differ in where code and heap lie: the geometric mean. The interval of two
 * covers both; that of more is Student's t of what they differ by, and no narrower than their own intervals allow. */
void fkp_ratio_join(const fkp_ratio *parts, int n, fkp_ratio *out);
/* SAME when the whole interval lies within 0.98 to 1.02; else FASTER above 1, SLOWER below 1, UNDECIDED across it. */
fkp_verdict fkp_ratio_verdict(const fkp_ratio *ratio);
const char *fkp_verdict_name(fkp_verdict verdict); /* "" for none */

#endif
