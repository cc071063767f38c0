/* SPDX-License-Identifier: Apache-2.0 */
/* Text, logs and JSON lines. Writes that fail are noticed once, at the end; a reader that went away is no failure. */
#define _GNU_SOURCE
#include "cli/output.h"

#include <fk/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/supervise.h"

static int write_error; /* errno of the first failed write of text or JSON to stdout */
static FILE *own_stdout; /* NULL: stdout */

static FILE *text_stream(void)
{
    return own_stdout ? own_stdout : stdout;
}

/* Beside candidates, stdout is ours: what they print goes to stderr. */
static fk_status separate_stdout(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    own_stdout = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (own_stdout && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) return FK_OK;
    return fk_fail(FK_ERROR_IO, "cannot write to stdout: %s", strerror(errno));
}

fk_status fkp_output_open(fkp_cli *cli)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    cli->color = !cli->common.no_color && !(no_color && *no_color) && isatty(STDOUT_FILENO) &&
                 !(term && strcmp(term, "dumb") == 0);
    if (fkp_supervised()) FK_TRY(separate_stdout());
    if (!cli->common.json) return FK_OK;
    if (!*cli->common.json) {
        cli->json = stdout;
        return FK_OK;
    }
    cli->json = fopen(cli->common.json, "w");
    if (!cli->json) return fk_fail(FK_ERROR_IO, "cannot write %s: %s", cli->common.json, strerror(errno));
    return FK_OK;
}

static void note_failure(fkp_cli *cli, FILE *stream)
{
    if ((stream == stdout || stream == own_stdout) && errno == EPIPE) cli->pipe_closed = true;
    else if (!write_error) write_error = errno ? errno : EIO;
}

fk_status fkp_output_close(fkp_cli *cli)
{
    fk_status status = FK_OK;
    if (cli->json && cli->json != stdout) {
        bool failed = ferror(cli->json) != 0;
        if (fclose(cli->json) != 0 || failed)
            status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", cli->common.json,
                             strerror(write_error ? write_error : errno));
        cli->json = NULL;
    }
    if (!cli->pipe_closed && fflush(text_stream()) != 0) note_failure(cli, text_stream());
    if (status == FK_OK && write_error) status = fk_fail(FK_ERROR_IO, "cannot write to stdout: %s", strerror(write_error));
    json_decref(cli->header);
    cli->header = NULL;
    return status;
}

bool fkp_prints(const fkp_cli *cli)
{
    return cli->json != stdout && !cli->pipe_closed;
}

void fkp_print(fkp_cli *cli, const char *format, ...)
{
    if (!fkp_prints(cli)) return;
    fkp_progress_hide();
    va_list args;
    va_start(args, format);
    errno = 0;
    if (vfprintf(text_stream(), format, args) < 0) note_failure(cli, text_stream());
    va_end(args);
}

void fkp_flush(fkp_cli *cli)
{
    errno = 0;
    if (fkp_prints(cli) && fflush(text_stream()) != 0) note_failure(cli, text_stream());
}

static void log_line(const char *prefix, const char *format, va_list args)
{
    fkp_progress_hide();
    errno = 0; /* where both streams go to one place, their lines stand in the order of what happened */
    if (fflush(text_stream()) != 0 && errno != EPIPE && !write_error) write_error = errno ? errno : EIO;
    fputs(prefix, stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void fkp_info(const fkp_cli *cli, const char *format, ...)
{
    if (cli->common.quiet) return;
    va_list args;
    va_start(args, format);
    log_line("", format, args);
    va_end(args);
}

void fkp_debug(const fkp_cli *cli, const char *format, ...)
{
    if (!cli->common.verbose) return;
    va_list args;
    va_start(args, format);
    log_line("", format, args);
    va_end(args);
}

void fkp_warn(const fkp_cli *cli, const char *format, ...)
{
    (void)cli;
    va_list args;
    va_start(args, format);
    log_line("warning: ", format, args);
    va_end(args);
}

const char *fkp_style_on(const fkp_cli *cli, fkp_style style)
{
    static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[36m"};
    return cli->color ? codes[style] : "";
}

const char *fkp_style_off(const fkp_cli *cli, fkp_style style)
{
    return cli->color && style != FKP_PLAIN ? "\033[0m" : "";
}

static json_t *make_header(fkp_cli *cli)
{
    json_t *header = json_object();
    fk_device device;
    char name[32];
    bool known = fkp_cli_device(cli, &device) == FK_OK;
    json_object_set_new(header, "version", json_string(fkp_version));
    json_object_set_new(header, "commit", json_string(fkp_commit));
    json_object_set_new(header, "device", known ? json_string(fk_device_format(device, name, sizeof name)) : json_null());
    json_object_set_new(header, "environment", fkp_environment(cli, known ? &device : NULL));
    json_object_set_new(header, "command", fkp_json_text(cli->line));
    return header;
}

json_t *fkp_result_full(fkp_cli *cli, const char *kind)
{
    json_t *result = json_object();
    json_object_set_new(result, "schema", json_sprintf("fastkernels/%s/1", kind));
    if (!cli->header) { /* looking for devices fails here and there: the failure that is being told stays the last one */
        char message[2048];
        snprintf(message, sizeof message, "%s", fk_error_message());
        cli->header = make_header(cli);
        fk_fail(FK_OK, "%s", message);
    }
    json_object_update(result, cli->header);
    return result;
}

json_t *fkp_result(fkp_cli *cli, const char *kind)
{
    if (cli->json) return fkp_result_full(cli, kind);
    json_t *result = json_object(); /* nobody will read it */
    json_object_set_new(result, "schema", json_sprintf("fastkernels/%s/1", kind));
    return result;
}

void fkp_emit(fkp_cli *cli, json_t *result)
{
    if (cli->json && !(cli->json == stdout && cli->pipe_closed)) {
        char *text = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(12));
        fkp_progress_hide();
        errno = text ? 0 : ENOMEM;
        if (text && fkp_supervised()) {
            if (fkp_supervised_line(text) != FK_OK) write_error = ENOMEM;
        } else if (!text || fputs(text, cli->json) < 0 || fputc('\n', cli->json) < 0 || fflush(cli->json) != 0)
            note_failure(cli, cli->json);
        free(text);
        cli->lines_written++;
    }
    json_decref(result);
}

json_t *fkp_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Length of the UTF-8 sequence at s, 0 when it is none. Rejects overlong forms, surrogates and what is above U+10FFFF. */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

json_t *fkp_json_text(const char *text)
{
    if (!text) return json_null();
    json_t *whole = json_string(text);
    if (whole) return whole;
    char *clean = malloc(3 * strlen(text) + 1), *out = clean;
    if (!clean) return json_null();
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        memcpy(out, n ? (const char *)s : "\xef\xbf\xbd", n ? n : 3);
        out += n ? n : 3;
        s += n ? n : 1;
    }
    *out = 0;
    whole = json_string(clean);
    free(clean);
    return whole;
}
