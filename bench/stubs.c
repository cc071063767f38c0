/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a stub together. */
#define _GNU_SOURCE
#include "bench/stubs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/compile.h"

/* Element i of contiguous tensors; a stub holds those that its body calls. */
static void write_helpers(FILE *f, bool cuda, const char *body)
{
    const char *where = cuda ? "__device__ static inline" : "static inline";
    bool loads = strstr(body, "load(") != NULL, stores = strstr(body, "store(") != NULL, ints = strstr(body, "load_int(") != NULL;
    if (loads || stores || ints) fputs("/* Element i of a contiguous tensor: float32, bfloat16 or float16; int32 or int64. */\n", f);
    if (loads)
        fprintf(f,
                "%s float load(const fk_tensor *t, int64_t i)\n"
                "{\n"
                "    if (t->dtype == FK_F32) return ((const float *)t->data)[i];\n"
                "    uint16_t bits = ((const uint16_t *)t->data)[i];\n"
                "    return t->dtype == FK_BF16 ? %s : %s;\n"
                "}\n\n",
                where, cuda ? "__bfloat162float(__ushort_as_bfloat16(bits))" : "fk_f32_from_bf16(bits)",
                cuda ? "__half2float(__ushort_as_half(bits))" : "fk_f32_from_f16(bits)");
    if (stores)
        fprintf(f,
                "%s void store(const fk_tensor *t, int64_t i, float value)\n"
                "{\n"
                "    if (t->dtype == FK_F32) ((float *)t->data)[i] = value;\n"
                "    else ((uint16_t *)t->data)[i] = t->dtype == FK_BF16 ? %s : %s;\n"
                "}\n\n",
                where, cuda ? "__bfloat16_as_ushort(__float2bfloat16(value))" : "fk_bf16_from_f32(value)",
                cuda ? "__half_as_ushort(__float2half(value))" : "fk_f16_from_f32(value)");
    if (ints)
        fprintf(f,
                "%s int64_t load_int(const fk_tensor *t, int64_t i)\n"
                "{\n"
                "    return t->dtype == FK_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];\n"
                "}\n\n",
                where);
}

static const char *kind_name(fk_field_kind kind)
{
    static const char *const names[] = {"out", "out", "in and out", "state, in and out", "in", "in, from the context", "weight",
                                        "constructor argument", "from the config", "attribute", "attribute, from the context"};
    return names[kind];
}

void fkp_stub_fields(FILE *f, const fk_op *op, const char *margin)
{
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *field = &op->fields[i];
        static const char *const types[] = {"", "bool", "int64_t", "float", "const char *"};
        if (fk_field_is_tensor(field))
            fprintf(f, "%sa->%-14s %s %s, %s%s: %s\n", margin, field->name, field->shape, field->dtypes_text, kind_name(field->kind),
                    field->optional ? ", NULL when absent" : "", field->doc);
        else fprintf(f, "%sa->%-14s %s, %s: %s\n", margin, field->name, types[field->attr_type], kind_name(field->kind), field->doc);
    }
}

void fkp_stub_cases(FILE *f, const fk_op *op, const fkp_case_list *cases, const char *margin)
{
    int shown = 0;
    for (int i = 0; cases && i < cases->count; i++) {
        const fkp_case *c = &cases->items[i];
        if (c->op == op && shown++ < 20) fprintf(f, "%s%lldx %s\n", margin, (long long)c->count, c->text);
    }
    if (shown > 20) fprintf(f, "%sand %d more\n", margin, shown - 20);
}

static bool has_cases(const fk_op *op, const fkp_case_list *cases)
{
    for (int i = 0; cases && i < cases->count; i++)
        if (cases->items[i].op == op) return true;
    return false;
}

/* ops/<family>/<op>_stub.<extension> without its licence line, which is not the author's; NULL when there is none. */
static char *read_body(const fk_op *op, const char *ops, const char *extension)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%.*s_stub.%s", ops, (int)(strlen(op->family) - 4), op->family, extension);
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    char *text = NULL;
    size_t capacity = 0;
    if (getline(&text, &capacity, f) < 0 || getdelim(&text, &capacity, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

/* A body that says what is to be done: it compiles, loads, and its error is the judge's detail. */
static char *missing_body(const fk_op *op)
{
    char *text;
    int n = asprintf(&text,
                     "FK_CANDIDATE(%s)\n"
                     "{\n"
                     "    (void)a; /* Fill in: read the inputs above, write every output whole. */\n"
                     "    return fk_candidate_error(\"%s: this stub has no body yet; fill in candidate()\");\n"
                     "}\n",
                     op->name, op->name);
    return n < 0 ? NULL : text;
}

static void write_comment(FILE *f, const fk_op *op, const fkp_case_list *cases)
{
    fprintf(f, "/* %s (L%d): %s\n", op->name, op->level, op->formula);
    if (op->mirrors_symbol) fprintf(f, " * the interface of %s's %s\n", op->mirrors_library, op->mirrors_symbol);
    fkp_stub_fields(f, op, " *   ");
    if (op->uses[0]) fputs(" * Lower operators that it may call:", f);
    for (const char *const *use = op->uses; *use; use++) fprintf(f, " fk_lower_%s", *use);
    if (op->uses[0]) fputc('\n', f);
    if (has_cases(op, cases)) fputs(" * Captured calls:\n", f);
    fkp_stub_cases(f, op, cases, " *   ");
    fputs(" * Judge it: fastkernels bench --candidates THIS_FILE */\n#include <fk/candidate.h>\n", f);
}

fk_status fkp_stub_write(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, fkp_stub *out)
{
    char include[1024], ops[1024];
    FK_TRY(fkp_candidate_includes(include, ops));
    snprintf(out->path, sizeof out->path, "%.1000s/%s.%s", folder, op->name, cuda ? "cu" : "c");
    char *body = read_body(op, ops, cuda ? "cu" : "c");
    if (!body && cuda && fk_op_is_composition(op)) body = read_body(op, ops, "c"); /* lower calls only: the same on every device */
    out->complete = body != NULL;
    if (!body) body = missing_body(op);
    if (!body) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    FILE *f = fopen(out->path, "wx"); /* x: an author's file is never overwritten */
    if (!f) {
        free(body);
        if (errno == EEXIST) return fk_fail(FK_ERROR_INVALID, "%s exists", out->path);
        return fk_fail(FK_ERROR_IO, "cannot write %s: %s", out->path, strerror(errno));
    }
    write_comment(f, op, cases);
    if (cuda) fputs("\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n", f);
    fputc('\n', f);
    if (out->complete) write_helpers(f, cuda, body);
    fputs(body, f);
    free(body);
    bool failed = ferror(f) != 0;
    if (fclose(f) == 0 && !failed) return FK_OK;
    remove(out->path);
    return fk_fail(FK_ERROR_IO, "cannot write %s: %s", out->path, strerror(errno));
}
