/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates: dlopen, the note, and packed calls in both directions. */
#define _GNU_SOURCE
#include "core/candidate.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clean_text.h"

/* Programs that load candidates link core/ffi_environment.c; others never get here, and link without it. */
#pragma weak TVMFFIErrorSetRaisedFromCStr
#include <fk/candidate.h>
#include <fk/door.h>

struct fk_candidate {
    void *library;
    fk_packed_fn call;
    const fk_op *op;
    bool has_note;
    fk_impl impl;
    char path[];
};

static _Thread_local fk_ctx *current;
static _Thread_local char raised[1024];

fk_ctx *fkp_candidate_ctx(void)
{
    return current;
}

void fkp_candidate_raise(const char *kind, const char *message)
{
    snprintf(raised, sizeof raised, "%s: %s", kind, message);
    fkp_clean_text(raised);
}

/* The first place where two signatures part, field by field. */
static void describe_difference(const char *wanted, const char *found, char *buf, size_t size)
{
    size_t field = 0, i = 0;
    while (wanted[i] && wanted[i] == found[i]) {
        if (wanted[i] == ';') field = i + 1;
        i++;
    }
    snprintf(buf, size, "this build has \"%.*s\", the candidate \"%.*s\"", (int)strcspn(wanted + field, ";"), wanted + field,
             (int)strcspn(found + field, ";"), found + field);
}

static fk_status check_note(const char *path, const fk_op *op, const fk_candidate_note *note)
{
    if (note->magic != FK_CANDIDATE_MAGIC)
        return fk_fail(FK_ERROR_CANDIDATE, "%s: fk_candidate_note_%s is not a candidate's note", path, op->name);
    if (note->abi != FK_CANDIDATE_ABI)
        return fk_fail(FK_ERROR_CANDIDATE, "%s was built for candidate ABI %u, this build has %u", path, note->abi,
                       FK_CANDIDATE_ABI);
    if (strcmp(note->signature, op->signature) == 0) return FK_OK;
    char difference[400];
    describe_difference(op->signature, note->signature, difference, sizeof difference);
    return fk_fail(FK_ERROR_CANDIDATE, "%s was built for another signature of %s: %s", path, op->name, fkp_clean_text(difference));
}

#if defined __x86_64__
#define OUR_MACHINE EM_X86_64
#elif defined __aarch64__
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

/* What dlopen does not say, or does not live to say: a library of another processor, or one that was cut off, whose missing
 * pages raise SIGBUS. What is no library at all is left to it. */
static fk_status check_library(const char *path)
{
    Elf64_Ehdr h;
    struct stat info;
    fk_status status = FK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return FK_OK;
    if (fstat(fd, &info) != 0 || pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) goto done;
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || (OUR_MACHINE != EM_NONE && h.e_machine != OUR_MACHINE)) {
        status = fk_fail(FK_ERROR_CANDIDATE, "cannot load: %s is for another processor (ELF machine %d, here %d)", path, h.e_machine, OUR_MACHINE);
        goto done;
    }
    uint64_t size = (uint64_t)info.st_size, end = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
    bool cut_off = end > size || end < h.e_shoff;
    for (int i = 0; i < h.e_phnum && !cut_off; i++) {
        Elf64_Phdr p;
        cut_off = pread(fd, &p, sizeof p, (off_t)(h.e_phoff + (uint64_t)i * sizeof p)) != (ssize_t)sizeof p || p.p_offset > size ||
                  (p.p_type != PT_GNU_STACK && p.p_filesz > size - p.p_offset);
    }
    if (cut_off) status = fk_fail(FK_ERROR_CANDIDATE, "cannot load: %s is cut off, it has %llu bytes", path, (unsigned long long)size);
done:
    close(fd);
    return status;
}

/* Other operators whose symbol the library has, for the message. */
static void list_symbols(void *library, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < fk_op_count(); i++) {
        char symbol[128];
        snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", fk_op_at(i)->name);
        if (dlsym(library, symbol) && n < size) n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "; it has ", symbol);
    }
}

static fk_status run(fk_ctx *ctx, const void *args, void *user)
{
    const fk_candidate *candidate = user;
    const fk_op *op = candidate->op;
    TVMFFIAny values[FK_MAX_FIELDS], result;
    DLTensor tensors[FK_MAX_FIELDS];
    memset(&result, 0, sizeof result);
    fk_candidate_pack(op->fields, op->num_fields, args, values, tensors);
    fk_ctx *caller = current;
    current = ctx;
    raised[0] = 0;
    int status = candidate->call(NULL, values, op->num_fields, &result);
    current = caller;
    if (status == 0) return FK_OK;
    return fk_fail(FK_ERROR_CANDIDATE, "candidate %s failed: %s", candidate->path, raised[0] ? raised : "no message");
}

fk_status fk_candidate_open(const char *path, const fk_op *op, fk_device_type device, fk_candidate **out)
{
    char symbol[160], others[512];
    fk_status status = FK_OK;
    *out = NULL;
    fk_candidate *candidate = calloc(1, sizeof *candidate + strlen(path) + 1);
    if (!candidate) return fk_fail(FK_ERROR_MEMORY, "out of memory for a candidate");
    strcpy(candidate->path, path);
    candidate->op = op;
    status = check_library(path);
    if (status != FK_OK) goto done;
    candidate->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!candidate->library) {
        status = fk_fail(FK_ERROR_CANDIDATE, "cannot load: %s", dlerror());
        goto done;
    }
    snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", op->name);
    *(void **)&candidate->call = dlsym(candidate->library, symbol);
    if (!candidate->call) {
        list_symbols(candidate->library, others, sizeof others);
        status = fk_fail(FK_ERROR_CANDIDATE, "%s has no symbol %s%s", path, symbol, others);
        goto done;
    }
    snprintf(symbol, sizeof symbol, "fk_candidate_note_%s", op->name);
    const fk_candidate_note *note = dlsym(candidate->library, symbol);
    candidate->has_note = note != NULL;
    if (note) status = check_note(path, op, note);
    candidate->impl = (fk_impl){.op = op->name, .name = "candidate", .device = device, .run = run, .user = candidate};
done:
    if (status == FK_OK) *out = candidate;
    else fk_candidate_close(candidate);
    return status;
}

void fk_candidate_close(fk_candidate *candidate)
{
    if (!candidate) return;
    if (candidate->library) dlclose(candidate->library);
    free(candidate);
}

const fk_impl *fk_candidate_impl(const fk_candidate *candidate)
{
    return &candidate->impl;
}

bool fk_candidate_has_note(const fk_candidate *candidate)
{
    return candidate->has_note;
}

int fkp_call_packed(fk_ctx *ctx, const fk_op *op, const TVMFFIAny *values, int32_t num_values)
{
    _Alignas(8) char args[FK_MAX_FIELDS * sizeof(void *)];
    fk_tensor tensors[FK_MAX_FIELDS];
    const fk_op *caller = fk_door_current(ctx);
    if (caller && op->level >= caller->level) { /* itself among them: that would never end */
        char text[256];
        snprintf(text, sizeof text, "a candidate of %s (L%d) may call lower operators only, not %s (L%d)", caller->name,
                 caller->level, op->name, op->level);
        fkp_candidate_raise("RuntimeError", text);
        return -1;
    }
    memset(args, 0, sizeof args);
    if (fk_candidate_unpack(op->name, op->fields, op->num_fields, values, num_values, args, tensors) != 0) return -1;
    fk_door_call(ctx, op, args, FK_OUTPUTS_GIVEN, NULL);
    if (fk_ctx_status(ctx) == FK_OK) return 0;
    fkp_candidate_raise("RuntimeError", fk_ctx_error(ctx));
    return -1;
}
