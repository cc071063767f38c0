/* SPDX-License-Identifier: Apache-2.0 */
/* Mutation fuzzing of the readers of foreign bytes, seeded with the goldens: damaged files are accepted or
 * refused, but never crash and never read outside (build with FK_ASAN for that). fuzz_formats [ROUNDS [SEED]]
 * default 20000 rounds a format, seed 1; each run prints its seed Built with -fsanitize=fuzzer -DFK_LIBFUZZER
 * it is a libFuzzer target instead; the first byte picks the reader. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_map.h"
#include "format_readers.h"

#ifndef FK_SOURCE_DIR
#define FK_SOURCE_DIR "."
#endif

typedef fk_status (*reader)(const uint8_t *data, size_t size);

#ifdef FK_LIBFUZZER

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const reader readers[] = {read_gguf, read_safetensors, read_json};
    if (size > 0) readers[data[0] % 3](data + 1, size - 1);
    return 0;
}

#else

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
static long fuzz(reader read, const uint8_t *seed, size_t size, long rounds)
{
    long refused = 0;
    for (long i = 0; i < rounds; i++) {
        uint8_t *data = malloc(size);
        if (!data) abort();
        memcpy(data, seed, size);
        size_t now = size;
        for (size_t changes = 1 + random_below(4); changes > 0; changes--) now = mutate(data, now);
        uint8_t *exact = realloc(data, now); /* so that one byte too far is seen */
        if (!exact) abort();
        refused += read(exact, now) != FK_OK;
        free(exact);
    }
    return refused;
}

static bool fuzz_file(const char *what, reader read, const char *path, size_t skip, size_t limit, long rounds)
{
    fkp_file_map map;
    if (fkp_file_map_open(&map, path) != FK_OK) {
        fprintf(stderr, "%s\n", fk_error_message());
        return false;
    }
    size_t size = map.size - skip < limit ? map.size - skip : limit;
    bool valid = read(map.data + skip, size) == FK_OK; /* a seed that is refused at once tests nothing */
    long refused = fuzz(read, map.data + skip, size, rounds);
    printf("%s: %ld of %ld damaged files refused\n", what, refused, rounds);
    fkp_file_map_close(&map);
    return valid && refused > rounds / 4 && refused < rounds;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (rounds < 1) {
        fprintf(stderr, "usage: fuzz_formats [ROUNDS [SEED]], ROUNDS at least 1\n");
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)random_state);
    const char *gguf = FK_SOURCE_DIR "/tests/goldens/gguf_small.gguf";
    const char *safetensors = FK_SOURCE_DIR "/tests/goldens/gguf_small.safetensors";
    fkp_file_map map;
    if (fkp_file_map_open(&map, safetensors) != FK_OK) {
        fprintf(stderr, "%s\n", fk_error_message());
        return 1;
    }
    size_t header = (size_t)map.data[0] | (size_t)map.data[1] << 8; /* length of the JSON, below 64 KiB */
    fkp_file_map_close(&map);
    bool good = fuzz_file("gguf", read_gguf, gguf, 0, SIZE_MAX, rounds);
    good &= fuzz_file("safetensors", read_safetensors, safetensors, 0, SIZE_MAX, rounds);
    good &= fuzz_file("json", read_json, safetensors, 8, header, rounds);
    return good ? 0 : 1;
}

#endif
