/* SPDX-License-Identifier: Apache-2.0 */
/* Mutation fuzzing of the readers of foreign bytes, from the seeds in tests/fuzz/corpus: damaged files are accepted or
 * refused, but never crash and never read outside (build with FK_ASAN for that).
 *
 *   fuzz_smoke [TARGET|all [ROUNDS [SEED]]]     all targets, each with its own number of rounds, seed 1; each run prints it
 *   fuzz_smoke TARGET FILE                      the file alone, as a fuzzer left it */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_map.h"
#include "tests/fuzz/targets.h"

typedef struct target {
    const char *name;
    fk_status (*read)(const uint8_t *data, size_t size);
    long rounds;
} target;

static const target targets[] = {
#define TARGET(name, function, rounds) {#name, function, rounds},
    FUZZ_TARGETS(TARGET)
#undef TARGET
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static uint64_t random_state;

static uint64_t random_u64(void) /* splitmix64 */
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t random_below(size_t limit)
{
    return (size_t)(random_u64() % limit);
}

/* One change to data[0, size); returns the new size, never larger. The header is hit more often than the
 * data. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const uint64_t edges[] = {0,          1,          7,          8,          0x7f,
                                     0x80,       0xffff,     1u << 30,   1u << 31,   UINT32_MAX,
                                     1ull << 61, 1ull << 62, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    static const char punctuation[] = "{}[]\",:0-9.e\\u ";
    size_t reach = random_below(4) ? (size < 512 ? size : 512) : size;
    size_t at = random_below(reach), left = size - at;
    uint64_t edge = edges[random_below(sizeof edges / sizeof edges[0])];
    switch (random_below(7)) {
    case 0:
        data[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        data[at] = (uint8_t)random_u64();
        break;
    case 2:
        data[at] = (uint8_t)punctuation[random_below(sizeof punctuation - 1)];
        break;
    case 3:
        memcpy(data + at, &edge, left < 8 ? left : 8);
        break;
    case 4:
        memcpy(data + at, &edge, left < 4 ? left : 4);
        break;
    case 5: { /* another part of the file over this one */
        size_t from = random_below(size), most = left < size - from ? left : size - from;
        memmove(data + at, data + from, 1 + random_below(most < 64 ? most : 64));
        break;
    }
    default: /* a part cut out */
        if (left > 1) {
            size_t cut = 1 + random_below(left < 32 ? left : 32);
            memmove(data + at, data + at + cut, left - cut);
            size -= cut;
        }
    }
    return size > 0 ? size : 1;
}

/* Returns how many damaged copies were refused. */
static long fuzz(const target *t, const uint8_t *seed, size_t size, long rounds)
{
    long refused = 0;
    for (long i = 0; i < rounds; i++) {
        uint8_t *data = malloc(size + 1);
        if (!data) abort();
        memcpy(data, seed, size);
        if (size == 0) data[0] = 0;
        size_t now = size > 0 ? size : 1;
        for (size_t changes = 1 + random_below(4); changes > 0; changes--) now = mutate(data, now);
        uint8_t *exact = realloc(data, now); /* so that one byte too far is seen */
        if (!exact) abort();
        refused += t->read(exact, now) != FK_OK;
        free(exact);
    }
    return refused;
}

typedef struct tally {
    int seeds, accepted;
    long damaged, refused;
} tally;

/* The file as it is, then `rounds` damaged copies. */
static bool fuzz_file(const target *t, const char *path, long rounds, tally *sum)
{
    fkp_file_map map;
    if (fkp_file_map_open(&map, path) != FK_OK) {
        fprintf(stderr, "%s\n", fk_error_message());
        return false;
    }
    sum->seeds++;
    sum->accepted += t->read(map.data, map.size) == FK_OK;
    sum->refused += fuzz(t, map.data, map.size, rounds);
    sum->damaged += rounds;
    fkp_file_map_close(&map);
    return true;
}

static int is_seed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Seeds that are all refused at once, or damage that is never noticed, test nothing. */
static bool fuzz_target(const target *t, long rounds)
{
    char folder[400], path[800];
    struct dirent **entries;
    tally sum = {0};
    bool good = true;
    snprintf(folder, sizeof folder, FK_SOURCE_DIR "/tests/fuzz/corpus/%s", t->name);
    int count = scandir(folder, &entries, is_seed, alphasort);
    if (count <= 0) {
        fprintf(stderr, "no seeds in %s\n", folder);
        return false;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        good &= fuzz_file(t, path, (rounds + count - 1) / count, &sum);
        free(entries[i]);
    }
    free(entries);
    printf("%s: %d of %d seeds accepted, %ld of %ld damaged copies refused\n", t->name, sum.accepted, sum.seeds, sum.refused, sum.damaged);
    return good && sum.accepted > 0 && sum.refused > sum.damaged / 8 && sum.refused < sum.damaged;
}

static int replay(const target *t, const char *path)
{
    tally sum = {0};
    if (!fuzz_file(t, path, 0, &sum)) return 2;
    printf("%s: %s\n", t->name, sum.accepted ? "accepted" : fk_error_message());
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "all";
    char *end = NULL;
    long rounds = argc > 2 ? strtol(argv[2], &end, 10) : 0;
    bool is_file = end && *end, good = true, found = false;
    random_state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    if (!is_file) printf("seed %llu\n", (unsigned long long)random_state);
    for (int i = 0; i < TARGETS; i++) {
        if (strcmp(name, "all") != 0 && strcmp(name, targets[i].name) != 0) continue;
        if (is_file) return replay(&targets[i], argv[2]);
        found = true;
        good &= fuzz_target(&targets[i], rounds > 0 ? rounds : targets[i].rounds);
    }
    if (found) return good ? 0 : 1;
    fprintf(stderr, "usage: fuzz_smoke [TARGET|all [ROUNDS [SEED]]] or fuzz_smoke TARGET FILE; targets:");
    for (int i = 0; i < TARGETS; i++) fprintf(stderr, " %s", targets[i].name);
    fprintf(stderr, "\n");
    return 2;
}
