/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that holds all of one task: what to compute and how it is judged, the stub, and the headers to build it with. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <fk/op_layout.h>

#include "bench/compile.h"
#include "bench/stubs.h"
#include "core/compare.h"

static fk_status make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 ? FK_OK : fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", path, strerror(errno));
}

static fk_status copy_file(const char *from, const char *to)
{
    char buf[1 << 14];
    FILE *in = fopen(from, "r"), *out = in ? fopen(to, "wx") : NULL;
    bool good = out != NULL;
    for (size_t n; good && (n = fread(buf, 1, sizeof buf, in)) > 0;) good = fwrite(buf, 1, n, out) == n;
    good = good && !ferror(in);
    if (in) fclose(in);
    if (out && fclose(out) != 0) good = false;
    return good ? FK_OK : fk_fail(FK_ERROR_IO, "cannot copy %s to %s: %s", from, to, strerror(errno));
}

/* Headers and declarations below `from`, in the same folders below `to`. */
static fk_status copy_headers(const char *from, const char *to)
{
    struct dirent **entries;
    int n = scandir(from, &entries, NULL, alphasort);
    if (n < 0) return fk_fail(FK_ERROR_IO, "%s: %s", from, strerror(errno));
    fk_status status = make_folder(to);
    for (int i = 0; i < n; i++) {
        char source[2048], target[2048];
        struct stat info;
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        snprintf(source, sizeof source, "%s/%s", from, name);
        snprintf(target, sizeof target, "%s/%s", to, name);
        if (status == FK_OK && *name != '.' && stat(source, &info) == 0) {
            if (S_ISDIR(info.st_mode)) status = copy_headers(source, target);
            else if (dot && (strcmp(dot, ".h") == 0 || strcmp(dot, ".def") == 0)) status = copy_file(source, target);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Of each output, at the shapes of one call: it depends on the dtype and on the terms summed. */
static void write_tolerance(FILE *f, const fk_op *op, const fkp_case *c)
{
    fprintf(f, "For `%s`:\n\n", c->text);
    for (int i = 0; i < op->num_fields; i++) {
        fk_tensor *tensor = NULL;
        if (!fk_field_is_tensor(&op->fields[i]) || !fk_field_is_written(&op->fields[i])) continue;
        memcpy(&tensor, (const char *)c->args + fk_fields_offset(op->fields, i), sizeof tensor);
        if (!tensor) continue;
        fk_tolerance t = fk_tolerance_for(op, c->args, i);
        if (t.exact) fprintf(f, "- `%s`: exact, bit for bit\n", op->fields[i].name);
        else
            fprintf(f, "- `%s`: |difference| <= %.3g |expected| + %.3g (rms of its row) + %.3g; rms of a row's differences <= %.3g (rms of the row)\n",
                    op->fields[i].name, t.of_element, t.of_row, t.absolute, t.row_rms);
    }
}

static void write_task(FILE *f, const fk_op *op, bool cuda, const fkp_case_list *cases, const fkp_case_list *declared, const fkp_stub *stub)
{
    const char *file = strrchr(stub->path, '/') + 1, *device = cuda ? "cuda" : "cpu";
    const fkp_case *largest = NULL;
    bool captured = false;
    for (int i = 0; cases && i < cases->count; i++)
        if (cases->items[i].op == op && !captured) {
            largest = &cases->items[i];
            captured = true;
        }
    if (!largest && declared->count) largest = &declared->items[declared->count - 1];
    fprintf(f, "# %s\n\nMake `%s` compute, as fast as possible:\n\n    %s\n\nLevel L%d", op->name, file, op->formula, op->level);
    if (op->mirrors_symbol) fprintf(f, ", with the interface of %s's `%s`", op->mirrors_library, op->mirrors_symbol);
    fputs(".\n\n## Declaration\n\n", f);
    fkp_stub_fields(f, op, "    ");
    fprintf(f, "\nTensors are row-major views; FK_FLOATS is f32, f16 or bf16, FK_AS(x) the dtype of x. Memory is the caller's: write every\n"
               "output whole, change no input, take scratch memory with `fk_scratch_alloc`%s.\n"
               "`include/fk/candidate.h` has the rest.\n",
            cuda ? ", launch on `fk_candidate_stream`, do not synchronize" : "");
    fprintf(f, "\n## %s\n\n", captured ? "Captured calls" : "Shapes");
    if (captured) fkp_stub_cases(f, op, cases, "    ");
    else fkp_stub_cases(f, op, declared, "    ");
    fprintf(f, "\n## The stub\n\n%s\n", stub->complete ? "It is right, and slow: start from it." : "It compiles and returns an error: its body is to be written.");
    fputs("\n## What is judged\n\n"
          "- Correct: on fresh values in every round, each output agrees with the reference within the tolerance below; integers exactly;\n"
          "  NaN and infinities stand in the same places. Nothing beyond the outputs may change.\n"
          "- Fast: time against the production baseline, both sides interleaved, with a 95 % interval: FASTER, SAME, SLOWER or UNDECIDED.\n"
          "- A candidate that skips work, keeps results or meddles with the measurement is no candidate.\n\n## Tolerance\n\n", f);
    if (largest) write_tolerance(f, op, largest);
    fputs("\n## Commands\n\nIn this folder:\n\n", f);
    if (cuda) fprintf(f, "    nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -cudart shared -Xcompiler -fPIC -shared -Iinclude -Iinclude/ops -o /tmp/%s.so %s\n", op->name, file);
    else fprintf(f, "    cc -std=gnu17 -O3 -march=native -fPIC -shared -Iinclude -Iinclude/ops -o /tmp/%s.so %s -lm\n", op->name, file);
    fprintf(f, "    fastkernels bench --candidates %s --device %s%s\n\n"
               "The first command only shows what the compiler says; `bench` compiles by itself.%s\n",
            file, device, captured ? " --captures CAPTURE" : "", captured ? " CAPTURE is the capture's folder." : "");
}

fk_status fkp_stub_write_task(const fk_op *op, bool cuda, const char *folder, const fkp_case_list *cases, fkp_stub *out)
{
    char include[1024], ops[1024], task[1100], path[1200];
    FK_TRY(fkp_candidate_includes(include, ops));
    snprintf(task, sizeof task, "%.900s/%s", folder, op->name);
    if (mkdir(task, 0777) != 0 && errno == EEXIST) return fk_fail(FK_ERROR_INVALID, "%s exists", task);
    struct stat info;
    if (stat(task, &info) != 0) return fk_fail(FK_ERROR_IO, "cannot make the folder %s: %s", task, strerror(errno));
    FK_TRY(fkp_stub_write(op, cuda, task, cases, out));
    snprintf(path, sizeof path, "%s/include", task);
    FK_TRY(make_folder(path));
    snprintf(path, sizeof path, "%s/include/fk", task);
    strcat(include, "/fk");
    FK_TRY(copy_headers(include, path));
    snprintf(path, sizeof path, "%s/include/ops", task);
    FK_TRY(copy_headers(ops, path));
    fkp_case_list declared = {0};
    fk_status status = fkp_cases_declared(&declared, op, cuda ? FK_BF16 : FK_F32);
    snprintf(path, sizeof path, "%s/TASK.md", task);
    FILE *f = status == FK_OK ? fopen(path, "wx") : NULL;
    if (f) {
        write_task(f, op, cuda, cases, &declared, out);
        bool failed = ferror(f) != 0;
        if (fclose(f) != 0 || failed) status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    } else if (status == FK_OK) status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    fkp_case_list_deinit(&declared);
    return status;
}
