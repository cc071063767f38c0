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

static const char helpers[] =
    "%s float load(const fk_tensor *t, int64_t i)\n"
    "{\n"
    "    if (t->dtype == FK_F32) return ((const float *)t->data)[i];\n"
    "    uint16_t bits = ((const uint16_t *)t->data)[i];\n"
    "    return t->dtype == FK_BF16 ? %s : %s;\n"
    "}\n\n"
    "%s void store(const fk_tensor *t, int64_t i, float value)\n"
    "{\n"
    "    if (t->dtype == FK_F32) ((float *)t->data)[i] = value;\n"
    "    else ((uint16_t *)t->data)[i] = t->dtype == FK_BF16 ? %s : %s;\n"
    "}\n\n"
    "%s int64_t load_int(const fk_tensor *t, int64_t i)\n"
    "{\n"
    "    return t->dtype == FK_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];\n"
    "}\n\n";

/* Element i of contiguous tensors; what is not used costs nothing. */
static void write_helpers(FILE *f, bool cuda)
{
    fputs("/* Element i of a contiguous tensor: float32, bfloat16 or float16; int32 or int64. */\n", f);
    if (cuda)
        fprintf(f, helpers, "__device__ static inline", "__bfloat162float(__ushort_as_bfloat16(bits))", "__half2float(__ushort_as_half(bits))",
                "__device__ static inline", "__bfloat16_as_ushort(__float2bfloat16(value))", "__half_as_ushort(__float2half(value))",
                "__device__ static inline");
    else
        fprintf(f, helpers, "static inline", "fk_f32_from_bf16(bits)", "fk_f32_from_f16(bits)", "static inline",
                "fk_bf16_from_f32(value)", "fk_f16_from_f32(value)", "static inline");
}

static const char *kind_name(fk_field_kind kind)
{
    static const char *const names[] = {"out", "out", "in and out", "state, in and out", "in", "in, from the context", "weight",
                                        "constructor argument", "from the config", "attribute", "attribute, from the context"};
    return names[kind];
}

static void write_signature(FILE *f, const fk_op *op)
{
    fprintf(f, "/* %s (L%d): %s\n", op->name, op->level, op->formula);
    if (op->mirrors_symbol) fprintf(f, " * the interface of %s's %s\n", op->mirrors_library, op->mirrors_symbol);
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *field = &op->fields[i];
        static const char *const types[] = {"", "bool", "int64_t", "float", "const char *"};
        if (fk_field_is_tensor(field))
            fprintf(f, " *   a->%-14s %s %s, %s%s: %s\n", field->name, field->shape, field->dtypes_text, kind_name(field->kind),
                    field->optional ? ", NULL when absent" : "", field->doc);
        else fprintf(f, " *   a->%-14s %s, %s: %s\n", field->name, types[field->attr_type], kind_name(field->kind), field->doc);
    }
}

static void write_cases(FILE *f, const fk_op *op, const fkp_case_list *cases)
{
    int shown = 0;
    for (int i = 0; cases && i < cases->count; i++) {
        const fkp_case *c = &cases->items[i];
        if (c->op != op) continue;
        if (shown++ == 0) fputs(" * Captured calls:\n", f);
        if (shown <= 20) fprintf(f, " *   %lldx %s\n", (long long)c->count, c->text);
    }
    if (shown > 20) fprintf(f, " *   and %d more\n", shown - 20);
}

fk_status fkp_stub_write(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, char path[1200])
{
    char include[1024], ops[1024], body_path[1300];
    FK_TRY(fkp_candidate_includes(include, ops));
    snprintf(body_path, sizeof body_path, "%s/%.*s_stub.%s", ops, (int)(strlen(op->family) - 4), op->family, cuda ? "cu" : "c");
    snprintf(path, 1200, "%.1000s/%s.%s", folder, op->name, cuda ? "cu" : "c");
    FILE *body = fopen(body_path, "r");
    if (!body) return fk_fail(FK_ERROR_UNSUPPORTED, "no body to start from in %s yet", cuda ? "CUDA" : "C");
    FILE *f = fopen(path, "wx"); /* x: an author's file is never overwritten */
    if (!f) {
        fclose(body);
        if (errno == EEXIST) return fk_fail(FK_ERROR_INVALID, "%s exists", path);
        return fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    }
    write_signature(f, op);
    write_cases(f, op, cases);
    fputs(" * Judge it: fastkernels bench --candidates THIS_FILE */\n#include <fk/candidate.h>\n", f);
    if (cuda) fputs("\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n", f);
    fputc('\n', f);
    if (op->level == 1) write_helpers(f, cuda);
    char buf[4096];
    if (!fgets(buf, sizeof buf, body)) buf[0] = 0; /* our licence line is not the author's */
    for (size_t n; (n = fread(buf, 1, sizeof buf, body)) > 0;) fwrite(buf, 1, n, f);
    fclose(body);
    bool failed = ferror(f) != 0;
    if (fclose(f) == 0 && !failed) return FK_OK;
    remove(path);
    return fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}
