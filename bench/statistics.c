/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and midmeans by selection; Yuen's interval of a trimmed mean (Biometrika 61, 1974). */
#include "bench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIM 0.2 /* of the blocks at either end */

/* The k-th smallest; everything before it is no larger. */
static double select_kth(double *v, int n, int k)
{
    int low = 0, high = n - 1;
    while (low < high) {
        double pivot = v[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i > j) break;
            double swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return v[k];
}

double fkp_median(double *values, int n)
{
    double upper = select_kth(values, n, n / 2);
    if (n % 2) return upper;
    double lower = values[0];
    for (int i = 1; i < n / 2; i++)
        if (values[i] > lower) lower = values[i];
    return 0.5 * (lower + upper);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fkp_midmean(double *values, int n)
{
    int cut = n / 4, kept = n - 2 * cut;
    double sum = 0;
    select_kth(values, n, cut);
    if (kept > 1) select_kth(values + cut, n - cut, kept - 1);
    for (int i = cut; i < cut + kept; i++) sum += values[i];
    return sum / kept;
}

/* The 97.5 % quantile of Student's t. */
static double student(int freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    int known = (int)(sizeof table / sizeof table[0]);
    return freedom <= known ? table[freedom - 1] : 1.96 + 2.5 / freedom; /* within 0.002 of it from there on */
}

/* Mean without the outer fifths, and half the width of its interval. */
static void trimmed_mean(double *values, int n, double *mean, double *half_width)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    int cut = (int)(TRIM * n), kept = n - 2 * cut;
    double sum = 0, all = 0, squares = 0;
    for (int i = cut; i < n - cut; i++) sum += values[i];
    for (int i = 0; i < cut; i++) { /* winsorized: the outer values count as the last that are kept */
        values[i] = values[cut];
        values[n - 1 - i] = values[n - 1 - cut];
    }
    for (int i = 0; i < n; i++) all += values[i];
    for (int i = 0; i < n; i++) squares += (values[i] - all / n) * (values[i] - all / n);
    *mean = sum / kept;
    *half_width = student(kept - 1) * sqrt(squares / ((double)kept * (kept - 1)));
}

bool fkp_ratio_of_blocks(const double *baseline, const double *candidate, int n, int block, fkp_ratio *out)
{
    int blocks = n / block;
    size_t part = (size_t)block * sizeof *baseline;
    double *b = malloc(part), *c = malloc(part), *logs = malloc((size_t)blocks * sizeof *logs);
    bool good = b && c && logs;
    if (good) {
        double mean, half_width;
        for (int i = 0; i < blocks; i++) {
            memcpy(b, baseline + i * block, part);
            memcpy(c, candidate + i * block, part);
            logs[i] = log(fkp_midmean(b, block) / fkp_midmean(c, block));
        }
        trimmed_mean(logs, blocks, &mean, &half_width);
        *out = (fkp_ratio){exp(mean), exp(mean - half_width), exp(mean + half_width)};
    }
    free(b);
    free(c);
    free(logs);
    return good;
}

void fkp_ratio_join(const fkp_ratio *parts, int n, fkp_ratio *out)
{
    double mean = 0, squares = 0, within = 0, low = 0, high = 0;
    for (int i = 0; i < n; i++) {
        double half_width = 0.5 * log(parts[i].high / parts[i].low);
        mean += log(parts[i].ratio) / n;
        within += half_width * half_width / ((double)n * n);
        low = fmin(i ? low : 1e300, log(parts[i].low));
        high = fmax(i ? high : -1e300, log(parts[i].high));
    }
    for (int i = 0; i < n; i++) squares += (log(parts[i].ratio) - mean) * (log(parts[i].ratio) - mean);
    if (n > 2) { /* of two, Student's t says nothing: the interval covers both */
        double half_width = fmax(sqrt(within), student(n - 1) * sqrt(squares / ((double)n * (n - 1))));
        low = mean - half_width;
        high = mean + half_width;
    }
    *out = (fkp_ratio){exp(mean), exp(low), exp(high)};
}

fkp_verdict fkp_ratio_verdict(const fkp_ratio *r)
{
    if (r->low > 0.98 && r->high < 1.02) return FKP_SAME;
    if (r->low > 1) return FKP_FASTER;
    if (r->high < 1) return FKP_SLOWER;
    return FKP_UNDECIDED;
}

const char *fkp_verdict_name(fkp_verdict verdict)
{
    static const char *const names[] = {"", "FASTER", "SAME", "SLOWER", "UNDECIDED"};
    return names[verdict];
}
