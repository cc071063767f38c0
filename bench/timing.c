/* SPDX-License-Identifier: Apache-2.0 */
/* The timed part of a trial. A batch calls one side once in each of many slots whose values, poison and canaries were
 * written before the caches were flushed, so that every call meets new values in cold memory. Batches alternate baseline,
 * candidate, candidate, baseline; a pair is one sample of each side on the same values. Every timed output is looked at:
 * compared with the other side's, and a subset chosen after the run with the golden. A small effect is measured again by
 * new processes before it is believed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/trial.h"
#include "core/threads.h"

#define PROBE_SLOTS 4
#define MIN_SAMPLE_S 10e-6 /* shorter calls are timed several at a time: the clock ticks in some 20 ns */
#define MIN_SAMPLE_DEVICE_S 80e-6 /* a stamp and the beginning of a graph are work for a device, too */
#define QUEUE_S 1.5e-3     /* of the host's sending: some 700 launches; drivers queue 1000 */
#define MIN_BLOCKS 6
#define LEAST_BLOCKS 3     /* however slow a call is */
#define MAX_PAIRS 8192     /* of one pair of processes */
#define MAX_HALVES 4096
#define STRETCHES 2        /* pairs of processes at most */
#define STRETCHES_DEVICE 5 /* many short samples, and a placement of code and scratch for each process */
#define NARROW 0.01 /* relative width of the interval that ends the measurement */
#define MIN_HALVES_FOR_CLOCKS 24 /* twice the fewest that a case has: a short measurement accuses nobody */
#define CLOCK_SLACK_S 1e-3 /* ARBITRARY: what loading and page faults of an honest process were seen to take, twice over */
#define GOLDEN_SHARE 0.2 /* of the time budget, for goldens of timed calls */

typedef struct timing {
    fkp_trial *t;
    int calls;            /* slots used in a batch */
    int calls_per_sample;
    int dropped;          /* samples at a batch's begin that count for nothing: they fetch the code */
    bool flush_each;      /* before each sample instead of once a batch */
    bool device;          /* not the CPU: samples are queued, see bench/runner.c */
    bool replay;          /* as graphs: what a host's sending costs differs by 5 % between processes of the same code */
    bool keep;            /* false while probing */
    int32_t *order;
    double *seconds[2];   /* [baseline, candidate][pair], of calls_per_sample calls */
    int pairs;
    double claimed[2];    /* last batch: what the time stamps add up to */
    double shortest[2];   /* last batch: shortest sample */
    double enqueue_s;     /* longest that a host took to send a call */
    int unqueued;         /* batches whose first samples did not find everything queued */
    double *hidden[2];    /* [side][half]: processor time of the runner beyond what its time stamps can hold */
    double batch_s;       /* last batch of the baseline, by the judge's clock */
    double started, golden_spent;
    int halves;
    int threads;          /* that a runner may use */
} timing;

static int samples_of(const timing *m)
{
    return m->calls / m->calls_per_sample - m->dropped; /* a last, shorter sample counts for nothing */
}

static fkp_run_head run_head(const timing *m)
{
    return (fkp_run_head){m->calls, m->calls_per_sample, m->flush_each, m->device, m->replay};
}

/* Both sides keep the calls of the batch as graphs, or neither does. The values do not exist yet: what a side does while it
 * records is of no use to it. */
static fkp_case_status record_batch(timing *m)
{
    fkp_trial *t = m->t;
    fkp_side *sides[2] = {t->baseline, t->candidate};
    fkp_run_head head = run_head(m);
    for (int i = 0; i < 2 && m->replay; i++) {
        fkp_case_status result = fkp_side_record(sides[i], &head, m->order, t->options->timeout_s, t->record, &m->replay);
        if (result != FKP_PASSED) return result;
    }
    return FKP_PASSED;
}

static fkp_case_status run_batch(timing *m, int which)
{
    fkp_trial *t = m->t;
    fkp_side *side = which ? t->candidate : t->baseline;
    double timeout_s = t->options->timeout_s + 50 * m->batch_s;
    fkp_run_head head = run_head(m);
    fkp_case_status result;
    if (!m->flush_each && !m->device) {
        result = fkp_side_ask(side, FKP_MESSAGE_FLUSH, NULL, 0, -1, t->options->timeout_s, t->record);
        if (result != FKP_PASSED) return result;
    }
    double start = fkp_now(), processor_start = fkp_process_cpu_seconds(&side->process);
    result = fkp_side_run(side, &head, m->order, timeout_s, t->record);
    if (result != FKP_PASSED) return result;
    double processor = fkp_process_cpu_seconds(&side->process) - processor_start;
    if (!which) m->batch_s = fkp_now() - start;
    const double *seconds = fkp_side_seconds(side);
    const fkp_reply *reply = fkp_side_reply(side);
    m->claimed[which] = 0;
    m->shortest[which] = INFINITY;
    for (int i = 0; i < reply->num_samples; i++) {
        if (!(seconds[i] >= 0) || !isfinite(seconds[i]))
            return fkp_record_end(t->record, FKP_REWARD_HACK, "the %s's process reports a time of %g s", side->role, seconds[i]);
        m->claimed[which] += seconds[i];
        m->shortest[which] = fmin(m->shortest[which], seconds[i]);
    }
    m->enqueue_s = fmax(m->enqueue_s, reply->enqueue_s / m->calls);
    if (!m->keep) return FKP_PASSED;
    m->unqueued += m->device && !reply->queued;
    m->hidden[which][m->halves] = processor - m->claimed[which] * m->threads;
    memcpy(m->seconds[which] + m->pairs, seconds + m->dropped, (size_t)samples_of(m) * sizeof *seconds);
    return FKP_PASSED;
}

/* Looks at what both sides wrote. */
static fkp_case_status check_batch(timing *m)
{
    fkp_trial *t = m->t;
    /* Goldens of this batch, as many as their share of the budget allows; which ones nobody knew before. */
    double allowed = GOLDEN_SHARE * fmin(fkp_now() - m->started, t->options->time_budget_s) - m->golden_spent;
    int wanted = t->golden_s > 0 && allowed / t->golden_s < m->calls ? (int)(allowed / t->golden_s) : m->calls;
    if (wanted < 1 && m->halves == 0) wanted = 1;
    int skip = wanted > 0 ? (int)fkp_random_below(&t->random, m->calls) : 0;
    for (int i = 0; i < m->calls; i++) {
        int slot = m->order[(i + skip) % m->calls];
        fkp_case_status result = fkp_trial_collect(t, t->baseline, slot);
        if (result == FKP_PASSED) result = fkp_trial_collect(t, t->candidate, slot);
        if (result != FKP_PASSED) return result;
        bool agree = fkp_trial_sides_agree(t);
        if (!agree || i < wanted) {
            double start = fkp_now();
            result = fkp_trial_golden(t, slot);
            if (result == FKP_PASSED) result = fkp_trial_compare(t, t->baseline); /* first: what it gets wrong accuses nobody */
            if (result == FKP_PASSED) result = fkp_trial_compare(t, t->candidate);
            if (result == FKP_INCORRECT_NUMERICAL) strncat(t->record->detail, " of a timed call", sizeof t->record->detail - strlen(t->record->detail) - 1);
            if (result != FKP_PASSED) return result;
            m->golden_spent += fkp_now() - start;
            if (m->golden_spent > GOLDEN_SHARE * t->options->time_budget_s) wanted = 0;
            t->record->timed_golden++;
        }
    }
    fkp_case_status result = fkp_trial_check_shared(t, t->baseline);
    return result == FKP_PASSED ? fkp_trial_check_shared(t, t->candidate) : result;
}

/* One batch of each side on the same fresh values. */
static fkp_case_status half_block(timing *m, bool candidate_first)
{
    fkp_trial *t = m->t;
    for (int s = 0; s < m->calls; s++) m->order[s] = s;
    for (int i = m->calls - 1; i > 0; i--) {
        int j = (int)fkp_random_below(&t->random, i + 1);
        int32_t swap = m->order[i];
        m->order[i] = m->order[j];
        m->order[j] = swap;
    }
    fkp_case_status result = record_batch(m);
    for (int s = 0; s < m->calls && result == FKP_PASSED; s++) {
        fkp_trial_prepare(t, s, FKP_VALUES_NORMAL);
        result = fkp_trial_write_slot(t, t->baseline, s);
        if (result == FKP_PASSED) result = fkp_trial_write_slot(t, t->candidate, s);
    }
    if (result == FKP_PASSED) result = run_batch(m, candidate_first);
    if (result == FKP_PASSED) result = run_batch(m, !candidate_first);
    if (result == FKP_PASSED) result = check_batch(m);
    if (result != FKP_PASSED) return result;
    if (m->keep) {
        m->pairs += samples_of(m);
        t->record->timed_calls += m->calls;
        m->halves++;
    }
    return FKP_PASSED;
}

/* Gives both sides new memory. Where pages happen to lie makes one side faster than the other by several percent for as
 * long as they lie there; over many placements that averages out, and the interval shows what is left of it. */
static fkp_case_status move_memory(timing *m)
{
    fkp_trial *t = m->t;
    fkp_side *sides[2] = {t->baseline, t->candidate};
    for (int i = 0; i < 2; i++) {
        fkp_side *side = sides[(i + m->halves / 2) % 2];
        fkp_case_status result = fkp_side_share(side, &t->layout, t->c, t->options->timeout_s, t->record);
        if (result == FKP_PASSED) result = fkp_trial_write_all(t, side);
        if (result != FKP_PASSED) return result;
    }
    return FKP_PASSED;
}

/* The first calls of new processes, which load code and choose algorithms (no graph can hold that): they count for nothing. */
static fkp_case_status warm_up(timing *m)
{
    int calls = m->calls;
    bool replay = m->replay;
    m->keep = m->replay = false;
    if (m->calls > PROBE_SLOTS) m->calls = PROBE_SLOTS;
    fkp_case_status result = half_block(m, false);
    m->calls = calls;
    m->replay = replay;
    m->keep = true;
    return result;
}

/* How long a call takes, hence how many go into a batch and a sample. */
static fkp_case_status probe(timing *m)
{
    fkp_trial *t = m->t;
    m->calls = t->layout.num_slots;
    m->calls_per_sample = 1;
    fkp_case_status result = warm_up(m);
    m->enqueue_s = 0; /* of the first calls: far from what it will be */
    if (result == FKP_PASSED && m->device) result = warm_up(m);
    if (result != FKP_PASSED) return result;
    int probed = m->calls < PROBE_SLOTS ? m->calls : PROBE_SLOTS;
    double longest = fmax(m->claimed[0], m->claimed[1]) / probed, shortest = fmin(m->claimed[0], m->claimed[1]) / probed;
    if (m->device) shortest = fmin(m->shortest[0], m->shortest[1]);
    double fit = longest > 0 ? t->options->time_budget_s / 4 / longest : m->calls;
    if (m->device && m->enqueue_s > 0) fit = fmin(fit, QUEUE_S / m->enqueue_s);
    m->calls = fit < 1 ? 1 : fit > m->calls ? m->calls : (int)fit;
    int group = shortest > 0 ? (int)ceil((m->device ? MIN_SAMPLE_DEVICE_S : MIN_SAMPLE_S) / shortest) : 8;
    int fewest = m->device ? 3 : 8, most = m->calls / fewest > 1 ? m->calls / fewest : 1; /* samples of a batch */
    m->calls_per_sample = m->flush_each || group < 1 ? 1 : group > most ? most : group;
    m->dropped = m->device && !m->flush_each && m->calls / m->calls_per_sample >= 3;
    m->replay = m->device && !m->flush_each; /* one call alone is shorter than the beginning of a graph */
    return FKP_PASSED;
}

static double least(const double *values, int n)
{
    double best = values[0];
    for (int i = 1; i < n; i++) best = fmin(best, values[i]);
    return best;
}

/* A runner that works outside its time stamps, on other threads or before and after, spends processor time that they
 * cannot hold. Both sides do the same besides the calls, so the candidate may spend about what the baseline does. The least
 * over batches, since interruptions add to either now and then; too few batches say nothing. */
static fkp_case_status check_clocks(timing *m)
{
    if (m->flush_each || m->device || m->halves < MIN_HALVES_FOR_CLOCKS) return FKP_PASSED; /* flushing and waiting are work outside the stamps too */
    double baseline = least(m->hidden[0], m->halves), candidate = least(m->hidden[1], m->halves);
    if (candidate <= fmax(3 * baseline, 0) + 0.3 * m->claimed[1] * m->threads + CLOCK_SLACK_S) return FKP_PASSED;
    return fkp_record_end(m->t->record, FKP_IMPLAUSIBLE,
                          "its process works at least %.3f ms of processor time outside the time stamps of every batch (baseline: %.3f ms)",
                          1e3 * candidate, 1e3 * fmax(baseline, 0));
}

static fkp_case_status conclude(timing *m)
{
    fkp_trial *t = m->t;
    fkp_record *r = t->record;
    r->pairs = m->pairs;
    r->calls_per_sample = m->calls_per_sample;
    r->verdict = fkp_ratio_verdict(&r->speedup);
    r->baseline_ms = 1e3 * fkp_midmean(m->seconds[0], m->pairs) / m->calls_per_sample;
    r->candidate_ms = 1e3 * fkp_midmean(m->seconds[1], m->pairs) / m->calls_per_sample;
    double least_ms = fmin(r->baseline_ms, r->candidate_ms), most_ms = fmax(r->baseline_ms, r->candidate_ms);
    r->replayed = m->replay;
    double start_ms = 1e3 * (m->replay ? t->options->roofline.empty_replay_s : t->options->roofline.empty_call_s);
    if (m->device && most_ms < 0.3 * start_ms) {
        r->speedup = (fkp_ratio){0};
        r->verdict = FKP_VERDICT_NONE;
        r->baseline_ms = r->candidate_ms = 0;
        r->pairs = 0; /* not timed */
        return fkp_record_end(r, FKP_PASSED, "neither side has anything to do: nothing to time");
    }
    r->launch_bound = m->device && (least_ms < 1.2 * start_ms || m->unqueued > m->halves);
    if (r->launch_bound)
        snprintf(r->detail, sizeof r->detail, "launch-bound: %.4g ms a call is about what starting a kernel takes (%.4g ms)", least_ms,
                 start_ms);
    fkp_case_status result = check_clocks(m);
    if (result != FKP_PASSED) return result;
    const fk_roofline *roofline = &t->options->roofline;
    fk_cost cost = fk_op_cost(t->c->op, t->c->args);
    double bytes_s = fmax(roofline->copy_bytes_s, roofline->read_bytes_s);
    double flops_s = fkp_case_dtype(t->c) == FK_F32 ? roofline->f32_flops : fmax(roofline->bf16_flops, roofline->f32_flops);
    double floor_s = bytes_s > 0 ? (cost.read_bytes + cost.write_bytes) / bytes_s : 0;
    if (flops_s > 0) floor_s = fmax(floor_s, cost.flops / flops_s);
    if (floor_s > 0 && r->candidate_ms > 0) r->roofline_fraction = 1e3 * floor_s / r->candidate_ms;
    if (roofline->copy_bytes_s > 0 && r->candidate_ms > 0)
        r->copy_fraction = (cost.read_bytes + cost.write_bytes) / roofline->copy_bytes_s / (1e-3 * r->candidate_ms);
    /* A processor's caches are bigger than one flush empties for sure, and its roofline was measured at another time, perhaps beside
     * other programs: between hours machines differ by a factor of two. Where the baseline is beyond the roofline too, the roofline
     * is what is wrong. */
    double slack = t->options->device.type == FK_CPU ? 3 : 1.05;
    if (floor_s > 0 && r->baseline_ms > 0) slack *= fmax(1, 1e3 * floor_s / r->baseline_ms);
    if (r->roofline_fraction > slack)
        return fkp_record_end(r, FKP_IMPLAUSIBLE, "%.4g ms is %.2f times faster than this device can move the data and do the arithmetic",
                              r->candidate_ms, r->roofline_fraction);
    return FKP_PASSED;
}

/* Blocks until the interval is narrow or the budget spent. */
static fkp_case_status measure(timing *m, fkp_ratio *out)
{
    fkp_trial *t = m->t;
    const fkp_judge_options *options = t->options;
    int first_pair = m->pairs, first_half = m->halves;
    double begin = fkp_now(), next_look = 0;
    for (int half = 0;; half++) {
        fkp_case_status result = half > 0 && half % 2 == 0 ? move_memory(m) : FKP_PASSED;
        if (result == FKP_PASSED) result = half_block(m, half % 2);
        if (result != FKP_PASSED) return result;
        if (half % 2 == 0) continue; /* A B, B A: whole blocks only */
        double elapsed = fkp_now() - begin;
        int blocks = (m->halves - first_half) / 2, pairs = m->pairs - first_pair;
        bool interrupted = options->interrupted && options->interrupted();
        bool spent = elapsed > options->time_budget_s && (blocks >= MIN_BLOCKS || elapsed > 10 * options->time_budget_s + 5);
        bool stop = spent || pairs >= MAX_PAIRS || m->halves - first_half + 2 > MAX_HALVES || interrupted;
        if (interrupted && blocks < LEAST_BLOCKS) return fkp_record_end(t->record, FKP_NOT_RUN, "interrupted");
        if (blocks < LEAST_BLOCKS || (!stop && (blocks < MIN_BLOCKS || elapsed < next_look))) continue;
        if (!fkp_ratio_of_blocks(m->seconds[0] + first_pair, m->seconds[1] + first_pair, pairs, pairs / blocks, out))
            return fkp_record_end(t->record, FKP_NOT_RUN, "out of memory for statistics");
        if (stop || (out->high - out->low) / out->ratio < NARROW) return FKP_PASSED;
        next_look = 1.5 * elapsed;
    }
}

/* An effect beyond its interval may still be the process's: where its code and heap lie makes a small one, and two threads
 * that the system keeps on one processor a large one, of short calls above all. And it may be chance when it is not far
 * beyond. */
static bool doubtful(const timing *m, const fkp_ratio *r)
{
    double effect = fabs(log(r->ratio)), half_width = 0.5 * log(r->high / r->low);
    bool short_call = !m->device && fmin(m->claimed[0], m->claimed[1]) / m->calls < 10e-3;
    return (r->low > 1 || r->high < 1) && effect > 0.005 && (short_call || effect < 0.05 || effect < 3 * half_width);
}

static fkp_case_status renew_processes(timing *m)
{
    fkp_trial *t = m->t;
    double timeout_s = t->options->timeout_s + 20;
    fkp_side_stop(t->baseline);
    fkp_side_stop(t->candidate);
    fkp_case_status result = fkp_side_start(t->baseline, timeout_s, t->record);
    if (result == FKP_PASSED) result = fkp_side_start(t->candidate, timeout_s, t->record);
    if (result == FKP_PASSED) result = move_memory(m);
    return result == FKP_PASSED ? warm_up(m) : result;
}

static fkp_case_status measure_all(timing *m)
{
    fkp_record *r = m->t->record;
    fkp_ratio parts[STRETCHES_DEVICE];
    int most = m->device ? STRETCHES_DEVICE : STRETCHES;
    fkp_case_status result = probe(m);
    for (r->processes = 0; result == FKP_PASSED && r->processes < most;) {
        if (r->processes > 0) result = renew_processes(m);
        if (result == FKP_PASSED) result = measure(m, &parts[r->processes]);
        if (result != FKP_PASSED) break;
        fkp_ratio_join(parts, ++r->processes, &r->speedup);
        bool stop = m->t->options->interrupted && m->t->options->interrupted();
        /* Calls on so much data that preparing it takes seconds are long: processes hardly differ on them. */
        stop = stop || (m->device && fkp_now() - m->started > STRETCHES_DEVICE * (m->t->options->time_budget_s + 1));
        if (stop || !(doubtful(m, &r->speedup) || (m->device && fkp_ratio_verdict(&r->speedup) == FKP_UNDECIDED))) break;
    }
    return result;
}

fkp_case_status fkp_trial_time(fkp_trial *t)
{
    timing m = {.t = t, .started = fkp_now()};
    size_t slots = (size_t)t->layout.num_slots;
    for (int f = 0; f < t->c->op->num_fields; f++) m.flush_each = m.flush_each || t->layout.shared[f];
    m.device = t->options->device.type != FK_CPU;
    m.threads = t->options->threads > 0 ? t->options->threads : fkp_threads_available();
    m.order = calloc(slots, sizeof *m.order);
    for (int i = 0; i < 2; i++) {
        m.seconds[i] = calloc(STRETCHES_DEVICE * (MAX_PAIRS + 2 * slots), sizeof(double));
        m.hidden[i] = calloc(STRETCHES_DEVICE * MAX_HALVES, sizeof(double));
    }
    fkp_case_status result;
    if (!m.order || !m.seconds[0] || !m.seconds[1] || !m.hidden[0] || !m.hidden[1])
        result = fkp_record_end(t->record, FKP_NOT_RUN, "out of memory for samples");
    else result = measure_all(&m);
    if (result == FKP_PASSED) result = conclude(&m);
    free(m.order);
    for (int i = 0; i < 2; i++) {
        free(m.seconds[i]);
        free(m.hidden[i]);
    }
    return result;
}
