/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario files: the ones of the tree open, a full one is read whole, and every mistake is named with its line. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "bench/scenario.h"
#include "core/seeded.h"

#define FOLDER FK_SOURCE_DIR "/scenarios"

/* Opens a file with this text. */
static fk_status open_text(const char *text, size_t bytes, fkp_scenario **out)
{
    char path[] = "/tmp/fk_scenario_XXXXXX.yaml";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
    close(fd);
    fk_status status = fkp_scenario_open(path, FOLDER, out);
    unlink(path);
    return status;
}

static void test_scenarios_of_the_tree(void **state)
{
    (void)state;
    DIR *dir = opendir(FOLDER);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0) continue;
        *dot = 0;
        fkp_scenario *s;
        assert_ok(fkp_scenario_open(e->d_name, FOLDER, &s));
        assert_string_equal(s->name, e->d_name);
        assert_non_null(s->description);
        fkp_scenario_close(s);
        count++;
    }
    closedir(dir);
    assert_true(count >= 3);
}

static void test_whole(void **state)
{
    (void)state;
    static const char text[] = "description: \"all of it\"\nmodel: llama:tiny\nmax_num_seqs: 4\nmax_tokens: 9\nrequests:\n"
                               "  - prompt: \"a\\nb\"\n    system: s\n  - prompt: c\n    raw: true\n    max_tokens: 3\n"
                               "  - prompt_ids: [7, 0]\n  - random_ids: 5\n    count: 2\n";
    fkp_scenario *s;
    assert_ok(open_text(text, sizeof text - 1, &s));
    assert_string_equal(s->description, "all of it");
    assert_string_equal(s->model, "llama:tiny");
    assert_int_equal(s->max_num_seqs, 4);
    assert_int_equal(s->num_requests, 4);
    assert_string_equal(s->requests[0].prompt, "a\nb");
    assert_string_equal(s->requests[0].system, "s");
    assert_int_equal(s->requests[0].max_tokens, 9);
    assert_true(s->requests[1].raw && s->requests[1].max_tokens == 3);
    assert_true(s->requests[2].num_ids == 2 && s->requests[2].ids[0] == 7 && s->requests[2].ids[1] == 0);
    assert_true(s->requests[3].random_ids == 5 && s->requests[3].count == 2);
    fkp_scenario_close(s);
}

static void test_requests(void **state)
{
    (void)state;
    fkp_scenario *s;
    fk_model *model;
    fk_engine *engine;
    assert_ok(fkp_scenario_open("tiny", FOLDER, &s));
    assert_ok(fk_model_open(s->model, &(fk_model_options){.device = {FK_CPU, 0}}, &model));
    fkp_requests all, two;
    assert_ok(fkp_requests_create(s, model, 0, &all));
    assert_ok(fkp_requests_create(s, model, 2, &two));
    assert_int_equal(all.count, 5);
    assert_int_equal(two.count, 2);
    assert_int_equal(two.max_num_seqs, 2);
    assert_int_equal(all.longest, 52);
    assert_memory_equal(two.items[1].ids, all.items[1].ids, 40 * sizeof(int32_t));
    assert_memory_not_equal(all.items[0].ids, all.items[1].ids, 40 * sizeof(int32_t));
    assert_int_equal(all.items[3].ids[4], 8);

    fk_engine_options options = fkp_requests_engine(&all);
    assert_ok(fk_engine_create(model, &options, &engine));
    fkp_answers once, twice;
    assert_ok(fkp_requests_run(&all, engine, NULL, &once));
    assert_ok(fkp_requests_run(&all, engine, NULL, &twice));
    assert_int_equal(once.tokens, 12 * 4 + 20);
    for (int64_t i = 0; i < all.count; i++) {
        assert_int_equal(once.lengths[i], all.items[i].max_tokens);
        assert_memory_equal(once.ids[i], twice.ids[i], (size_t)once.lengths[i] * sizeof(int32_t));
        assert_true(0 < once.first_s[i] && once.first_s[i] < once.last_s[i] && once.last_s[i] <= once.seconds);
    }
    fkp_answers_deinit(&once);
    fkp_answers_deinit(&twice);
    fk_engine_destroy(engine);
    fkp_requests_deinit(&all);
    fkp_requests_deinit(&two);
    fkp_scenario_close(s);
    /* A prompt in words needs a tokenizer, which seeded weights do not bring. */
    static const char words[] = "model: llama:tiny\nrequests:\n  - prompt: hello\n";
    assert_ok(open_text(words, sizeof words - 1, &s));
    assert_int_equal(fkp_requests_create(s, model, 0, &all), FK_ERROR_INVALID);
    assert_message("llama:tiny has no tokenizer");
    assert_message("request 1");
    fkp_scenario_close(s);
    fk_model_close(model);
}

#define HEAD "model: m\nrequests:\n  - "

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words[3];
    } cases[] = {
        {"", {"is empty"}},
        {"- a\n", {"line 1", "no mapping"}},
        {"model: [a\n", {"line 2"}},
        {"requests:\n  - prompt: a\n", {"model is missing"}},
        {"model: m\n", {"no requests"}},
        {"model: m\nrequests: []\n", {"line 2", "no requests"}},
        {"model: m\nrequests: 5\n", {"line 2", "no list"}},
        {"model: m\nmodel: n\nrequests: []\n", {"line 2", "twice"}},
        {"modle: m\n", {"line 1", "'modle'", "did you mean 'model'"}},
        {"model: m\nmax_num_seqs: many\n", {"line 2", "'many'"}},
        {"model: m\nmax_num_seqs: 0\n", {"line 2", "max_num_seqs is 0"}},
        {"model: m\nmax_tokens: 99999999999999999999\n", {"99999999999999999999"}},
        {HEAD "prompt: a\n    prmpt_ids: [1]\n", {"line 4", "'prmpt_ids'", "did you mean 'prompt_ids'"}},
        {HEAD "raw: true\n", {"line 3", "one of prompt"}},
        {HEAD "prompt: a\n    random_ids: 3\n", {"line 3", "one of prompt"}},
        {HEAD "prompt: \"\"\n", {"line 3", "prompt is empty"}},
        {HEAD "prompt: [a]\n", {"line 3", "no text"}},
        {HEAD "prompt: a\n    raw: yes\n", {"line 4", "'yes'", "true or false"}},
        {HEAD "random_ids: 3\n    raw: true\n", {"line 3", "prompt only"}},
        {HEAD "prompt_ids: [1, x]\n", {"line 3", "'x'"}},
        {HEAD "prompt_ids: [-1]\n", {"line 3", "-1"}},
        {HEAD "prompt_ids: []\n", {"line 3", "empty"}},
        {HEAD "just a word\n", {"line 3", "no mapping"}},
        {HEAD "random_ids: 1\n    count: 100001\n", {"line 4", "100001"}},
        {HEAD "prompt: \"a\\0b\"\n", {"line 3", "NUL"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fkp_scenario *s;
        if (open_text(cases[i].text, strlen(cases[i].text), &s) != FK_ERROR_INVALID) fail_msg("accepted: %s", cases[i].text);
        for (int w = 0; w < 3 && cases[i].words[w]; w++)
            if (!strstr(fk_error_message(), cases[i].words[w]))
                fail_msg("'%s' does not say '%s'", fk_error_message(), cases[i].words[w]);
    }
    fkp_scenario *s;
    assert_int_equal(fkp_scenario_open("dmo", FOLDER, &s), FK_ERROR_INVALID);
    assert_message("did you mean 'demo'");
    assert_int_equal(fkp_scenario_open("/nowhere/x.yaml", FOLDER, &s), FK_ERROR_INVALID);
    assert_message("/nowhere/x.yaml");
}

/* Deep nesting is refused in no time. */
static void test_depth(void **state)
{
    (void)state;
    static const char *const shapes[] = {"[", "{", "- ", "[\n"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        size_t n = strlen(shapes[i]), count = 50000;
        char *text = malloc(n * count);
        assert_non_null(text);
        for (size_t k = 0; k < count; k++) memcpy(text + k * n, shapes[i], n);
        clock_t start = clock();
        fkp_scenario *s;
        assert_int_equal(open_text(text, n * count, &s), FK_ERROR_INVALID);
        assert_true(clock() - start < CLOCKS_PER_SEC);
        assert_message("more than 16 collections");
        assert_message(i == 3 ? "line 17" : "line 1");
        free(text);
    }
}

/* A good file with bytes changed, cut or doubled: refused or read, never a crash or a leak (run under ASan too). */
static void test_mutations(void **state)
{
    (void)state;
    char text[4096], mutated[4096];
    FILE *f = fopen(FOLDER "/tiny.yaml", "rb");
    assert_non_null(f);
    size_t size = fread(text, 1, sizeof text, f);
    fclose(f);
    for (uint64_t n = 0; n < 400; n++) {
        uint64_t random = fkp_mix64(n + 5);
        memcpy(mutated, text, size);
        size_t bytes = n % 4 == 0 ? random % size : size;
        for (int k = 0; k < 3; k++) mutated[fkp_mix64(random + (uint64_t)k) % size] = "\0:-[]{}&*!|>'\"%@`\xff\t #9a"[(random >> (8 * k)) % 24];
        fkp_scenario *s;
        if (open_text(mutated, bytes, &s) == FK_OK) fkp_scenario_close(s);
        else assert_true(fk_error_message()[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scenarios_of_the_tree), cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_requests), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_depth),
                                       cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
