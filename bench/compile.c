/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling candidates in a child process, with a cache by content. */
#define _GNU_SOURCE
#include "bench/compile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/guard.h"
#include "bench/protocol.h"
#include "core/seeded.h"

static uint64_t hash_file(const char *path, uint64_t hash, bool *good)
{
    char buf[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0) hash = fkp_mix64(hash ^ fkp_fnv1a64(buf, (uint64_t)n));
    if (n < 0) *good = false;
    if (fd >= 0) close(fd);
    return hash;
}

/* All headers and declarations below a folder, in the order of their names. */
static uint64_t hash_headers(const char *folder, uint64_t hash)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[2048];
        struct stat info;
        bool ignored = true;
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, name);
        bool there = *name != '.' && stat(path, &info) == 0;
        if (there && S_ISDIR(info.st_mode)) hash = hash_headers(path, hash);
        else if (there && dot && (strcmp(dot, ".h") == 0 || strcmp(dot, ".def") == 0)) hash = hash_file(path, hash, &ignored);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return hash;
}

fk_status fkp_candidate_includes(char include[1024], char ops[1024])
{
    /* build/fastkernels in the source tree; bin/fastkernels of an installed bundle, whose declarations are among the headers. */
    static const char *const declarations[] = {"ops", "include/ops"};
    char folder[900], probe[1100];
    FK_TRY(fkp_executable_folder(folder, sizeof folder));
    snprintf(include, 1024, "%s/../include", folder);
    snprintf(probe, sizeof probe, "%s/fk/candidate.h", include);
    bool header = access(probe, R_OK) == 0;
    for (int i = 0; i < 2 && header; i++) {
        snprintf(ops, 1024, "%s/../%s", folder, declarations[i]);
        snprintf(probe, sizeof probe, "%s/ops.def", ops);
        if (access(probe, R_OK) == 0) return FK_OK;
    }
    return fk_fail(FK_ERROR_MISSING, "the headers for candidates are not beside the program: no %s", probe);
}

#define LEAST_SPACE_BYTES ((uint64_t)64 << 10)
#define MAX_COMPILER_WORDS 16
#define BLANKS " \t\n"

/* A command line, of which the output and the input are still to come. */
typedef struct plan {
    char compiler[1024]; /* its words */
    char include_flags[2][1100];
    char *argv[FKP_GUARD_MAX_ARGUMENTS + 1];
    int num_flags;     /* compiler and flags: they decide what is made */
    int num_arguments; /* with the include folders, whose contents decide */
} plan;

/* The compiler that the environment names, which may be several words, as for make: "ccache gcc". */
static fk_status plan_compiler(plan *p, const char *variable, const char *usual)
{
    const char *text = getenv(variable);
    if (!text || !text[strspn(text, BLANKS)]) text = usual;
    if ((size_t)snprintf(p->compiler, sizeof p->compiler, "%s", text) >= sizeof p->compiler)
        return fk_fail(FK_ERROR_INVALID, "%s '%s' is too long", variable, text);
    char *rest = NULL;
    for (char *word = strtok_r(p->compiler, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest)) {
        if (p->num_flags == MAX_COMPILER_WORDS)
            return fk_fail(FK_ERROR_INVALID, "%s '%s' has more than %d words", variable, text, MAX_COMPILER_WORDS);
        p->argv[p->num_flags++] = word;
    }
    return FK_OK;
}

static fk_status plan_init(plan *p, fkp_candidate_kind kind, const char *include, const char *ops)
{
    static char *const c[] = {"-std=gnu17", "-O3", "-march=native", "-fPIC", "-shared", "-fdiagnostics-color=never", NULL};
    static char *const cuda[] = {"-O3", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "shared",
                                 "-Xcompiler", "-fPIC", "-shared", NULL};
    *p = (plan){0};
    if (kind == FKP_CANDIDATE_C) FK_TRY(plan_compiler(p, "CC", "cc"));
    else FK_TRY(plan_compiler(p, "FK_NVCC", access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : "nvcc"));
    for (char *const *flag = kind == FKP_CANDIDATE_C ? c : cuda; *flag; flag++) p->argv[p->num_flags++] = *flag;
    snprintf(p->include_flags[0], sizeof p->include_flags[0], "-I%s", include);
    snprintf(p->include_flags[1], sizeof p->include_flags[1], "-I%s", ops);
    p->num_arguments = p->num_flags;
    for (int i = 0; i < 2; i++) p->argv[p->num_arguments++] = p->include_flags[i];
    return FK_OK;
}

static fk_status make_folders(const char *path)
{
    char buf[1100];
    snprintf(buf, sizeof buf, "%s", path);
    for (char *slash = buf + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(buf, 0777) != 0 && errno != EEXIST) break;
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return FK_OK;
    return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", path, strerror(errno));
}

/* A full disk also takes the compiler's words. */
static bool no_space(const fkp_compiled *out)
{
    char folder[sizeof out->library];
    struct statvfs disk;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(out->library, '/') - out->library), out->library);
    bool full = statvfs(folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < LEAST_SPACE_BYTES;
    return full || strstr(out->messages, strerror(ENOSPC));
}

/* Runs it to its end; its words are in `messages`. */
static fk_status wait_for_compiler(fkp_process *process, int log, double timeout_s, bool (*stop)(void), fkp_compiled *out)
{
    bool ended = fkp_process_wait(process, fkp_now() + timeout_s, stop), stopped = !ended && stop && stop();
    out->timed_out = !ended && !stopped;
    fkp_process_ask_to_end(process);
    fkp_process_kill(process);
    out->good = ended && process->exit_code == 0;
    fkp_log_head(log, out->messages, sizeof out->messages);
    return stopped ? fk_fail(FK_ERROR_INTERRUPTED, "interrupted") : FK_OK;
}

static fk_status run_compiler(char *argv[], double timeout_s, bool (*stop)(void), fkp_compiled *out)
{
    fkp_process process;
    int log = fkp_log_create();
    fk_status status = fkp_guard_start(&process, argv, log);
    if (status == FK_OK) status = wait_for_compiler(&process, log, timeout_s, stop, out);
    if (log >= 0) close(log);
    FK_TRY(status);
    if (!out->good && no_space(out)) /* no fault of the source */
        return fk_fail(FK_ERROR_IO, "%s: %s", out->library, strerror(ENOSPC));
    if (process.exit_code == FKP_GUARD_NO_COMMAND && !out->messages[0])
        return fk_fail(FK_ERROR_MISSING, "no compiler %s: it is needed to build this candidate", argv[0]);
    if (!out->good && !out->messages[0]) {
        char how[128];
        snprintf(out->messages, sizeof out->messages, "%s: %s", argv[0], out->timed_out ? "took too long" : fkp_process_end(&process, how, sizeof how));
    }
    return FK_OK;
}

/* Fills in the plan too, for whoever goes on to compile. */
static fk_status identify(const fkp_candidate_file *file, const char *cache_dir, plan *p, fkp_compiled *out)
{
    *out = (fkp_compiled){0};
    bool readable = true;
    out->hash = hash_file(file->path, 1, &readable);
    if (!readable) return fk_fail(FK_ERROR_INVALID, "%s: %s", file->path, strerror(errno));
    if (file->kind == FKP_CANDIDATE_LIBRARY) {
        char *whole = realpath(file->path, NULL);
        if (!whole) return fk_fail(FK_ERROR_INVALID, "%s: %s", file->path, strerror(errno));
        snprintf(out->library, sizeof out->library, "%s", whole);
        free(whole);
        out->good = true;
        return FK_OK;
    }
    char include[1024], ops[1024], folder[1024];
    FK_TRY(fkp_candidate_includes(include, ops));
    FK_TRY(plan_init(p, file->kind, include, ops));
    out->hash = hash_headers(include, out->hash);
    out->hash = hash_headers(ops, out->hash);
    for (int i = 0; i < p->num_flags; i++) out->hash = fkp_mix64(out->hash ^ fkp_fnv1a64(p->argv[i], strlen(p->argv[i]) + 1));
    snprintf(folder, sizeof folder, "%s/candidates", cache_dir);
    FK_TRY(make_folders(folder));
    char *whole = realpath(folder, NULL);
    if (!whole) return fk_fail(FK_ERROR_IO, "%s: %s", folder, strerror(errno));
    snprintf(out->library, sizeof out->library, "%s/%s-%016" PRIx64 ".so", whole, file->op->name, out->hash);
    free(whole);
    out->good = access(out->library, R_OK) == 0;
    return FK_OK;
}

fk_status fkp_candidate_identify(const fkp_candidate_file *file, const char *cache_dir, fkp_compiled *out)
{
    plan p;
    return identify(file, cache_dir, &p, out);
}

fk_status fkp_candidate_compile(const fkp_candidate_file *file, const char *cache_dir, double timeout_s, bool (*stop)(void),
                                fkp_compiled *out)
{
    plan p;
    char made[1140];
    FK_TRY(identify(file, cache_dir, &p, out));
    if (out->good) return FK_OK;
    snprintf(made, sizeof made, "%s.%ld", out->library, (long)getpid());
    char *const files[] = {"-o", made, (char *)(uintptr_t)file->path, file->kind == FKP_CANDIDATE_C ? "-lm" : NULL, NULL};
    for (char *const *argument = files; *argument; argument++) p.argv[p.num_arguments++] = *argument;
    fk_status status = run_compiler(p.argv, timeout_s, stop, out);
    if (status == FK_OK && out->good && rename(made, out->library) != 0)
        status = fk_fail(FK_ERROR_IO, "%s: %s", out->library, strerror(errno));
    unlink(made);
    return status;
}
