/* SPDX-License-Identifier: Apache-2.0 */
/* ChatML (<|im_start|>role, newline, content<|im_end|>, newline for each message) in the forms that model
 * files carry. */
#include "text/chat_template.h"

#include <stdlib.h>
#include <string.h>

struct fk_chat_template {
    const char *name;
    const char *source;         /* as in the model file, byte for byte but for newlines */
    const char *default_system; /* put first when the first message is not a system message; NULL: nothing */
};

#define CHATML_MESSAGE                                                                                       \
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
#define CHATML_PROMPT "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

static const fk_chat_template templates[] = {
    {"smollm2",
     "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
     "'<|im_start|>system\nYou are "
     "a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}" CHATML_MESSAGE
         CHATML_PROMPT,
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {"chatml", "{% for message in messages %}" CHATML_MESSAGE CHATML_PROMPT, NULL},
};

/* Takes one character of a template off the front; -1 at the end. Inside Jinja strings a newline may stand as
 * it is or as a backslash and an n, and files have both. */
static int next_character(fk_piece *source)
{
    if (source->bytes == 0) return -1;
    size_t taken = source->bytes > 1 && source->data[0] == '\\' && source->data[1] == 'n' ? 2 : 1;
    int character = taken == 2 ? '\n' : (uint8_t)source->data[0];
    source->data += taken;
    source->bytes -= taken;
    return character;
}

static bool same_source(fk_piece a, fk_piece b)
{
    for (;;) {
        int character = next_character(&a);
        if (character != next_character(&b)) return false;
        if (character < 0) return true;
    }
}

fk_status fk_chat_template_find(fk_piece source, const fk_chat_template **out)
{
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        if (!same_source(fk_piece_of(templates[i].source), source)) continue;
        *out = &templates[i];
        return FK_OK;
    }
    if (source.bytes == 0) return fk_fail(FK_ERROR_UNSUPPORTED, "the model has no chat template");
    return fk_fail(FK_ERROR_UNSUPPORTED,
                   "unknown chat template of %zu bytes, beginning '%.*s' (known: smollm2, chatml)",
                   source.bytes, (int)(source.bytes < 100 ? source.bytes : 100), source.data);
}

const char *fk_chat_template_name(const fk_chat_template *t)
{
    return t->name;
}

static fk_status write(fk_chat_prompt *p, fk_piece text, bool from_template)
{
    FK_TRY(fk_bytes_append(&p->text, text.data, text.bytes));
    if (p->num_stretches > 0 && p->stretches[p->num_stretches - 1].from_template == from_template) {
        p->stretches[p->num_stretches - 1].bytes += text.bytes;
        return FK_OK;
    }
    void *storage = p->stretches;
    FK_TRY(fkp_grow(&storage, &p->stretches_capacity, p->num_stretches + 1, sizeof *p->stretches));
    p->stretches = storage;
    p->stretches[p->num_stretches++] = (fk_chat_stretch){text.bytes, from_template};
    return FK_OK;
}

static fk_status write_template(fk_chat_prompt *p, const char *text)
{
    return write(p, fk_piece_of(text), true);
}

static bool is_system(fk_piece role)
{
    return role.bytes == 6 && memcmp(role.data, "system", 6) == 0;
}

fk_status fk_chat_render(const fk_chat_template *t, const fk_chat_message *messages, size_t count,
                         bool add_generation_prompt, fk_chat_prompt *out)
{
    fk_bytes_clear(&out->text);
    out->num_stretches = 0;
    if (count == 0) return fk_fail(FK_ERROR_INVALID, "a chat needs at least one message");
    if (t->default_system && !is_system(messages[0].role)) {
        FK_TRY(write_template(out, "<|im_start|>system\n"));
        FK_TRY(write_template(out, t->default_system));
        FK_TRY(write_template(out, "<|im_end|>\n"));
    }
    for (size_t i = 0; i < count; i++) {
        FK_TRY(write_template(out, "<|im_start|>"));
        FK_TRY(write(out, messages[i].role, false));
        FK_TRY(write_template(out, "\n"));
        FK_TRY(write(out, messages[i].content, false));
        FK_TRY(write_template(out, "<|im_end|>\n"));
    }
    if (add_generation_prompt) FK_TRY(write_template(out, "<|im_start|>assistant\n"));
    return FK_OK;
}

void fk_chat_prompt_deinit(fk_chat_prompt *p)
{
    fk_bytes_deinit(&p->text);
    free(p->stretches);
    *p = (fk_chat_prompt){0};
}

fk_status fk_chat_encode(fk_encoder *e, const fk_chat_prompt *prompt, unsigned flags, fk_token_list *out)
{
    fk_text_span *spans = calloc(prompt->num_stretches + 1, sizeof *spans);
    if (!spans)
        return fk_fail(FK_ERROR_MEMORY, "no memory for a prompt of %zu stretches", prompt->num_stretches);
    const char *text = prompt->text.data;
    for (size_t i = 0; i < prompt->num_stretches; i++) {
        const fk_chat_stretch *s = &prompt->stretches[i];
        spans[i] = (fk_text_span){text, s->bytes, s->from_template || (flags & FK_ENCODE_PARSE_SPECIAL)};
        text += s->bytes;
    }
    fk_status status = fk_encoder_encode_spans(e, spans, prompt->num_stretches, flags, out);
    free(spans);
    return status;
}
