/* SPDX-License-Identifier: Apache-2.0 */
/* Medians by selection; the bootstrap resamples blocks of pairs. */
#include "bench/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"

#define RESAMPLES 1000
#define TAIL 0.025

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

bool fkp_ratio_of_medians(const double *baseline, const double *candidate, int n, int block, uint64_t seed, fkp_ratio *out)
{
    int blocks = n / block;
    n = blocks * block;
    size_t bytes = (size_t)n * sizeof *baseline, part = (size_t)block * sizeof *baseline;
    double *b = malloc(bytes), *c = malloc(bytes), ratios[RESAMPLES];
    bool good = b && c;
    if (good) {
        memcpy(b, baseline, bytes);
        memcpy(c, candidate, bytes);
        out->ratio = fkp_median(b, n) / fkp_median(c, n);
        fk_random random = {seed};
        for (int r = 0; r < RESAMPLES; r++) {
            for (int i = 0; i < blocks; i++) {
                int64_t pick = fkp_random_below(&random, blocks) * block;
                memcpy(b + i * block, baseline + pick, part);
                memcpy(c + i * block, candidate + pick, part);
            }
            ratios[r] = fkp_median(b, n) / fkp_median(c, n);
        }
        qsort(ratios, RESAMPLES, sizeof ratios[0], compare);
        out->low = ratios[(int)(TAIL * RESAMPLES)];
        out->high = ratios[RESAMPLES - 1 - (int)(TAIL * RESAMPLES)];
    }
    free(b);
    free(c);
    return good;
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
