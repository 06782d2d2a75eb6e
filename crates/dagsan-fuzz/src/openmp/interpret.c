// Interprets a program, whose text it reads. What reads it has no hooks.

enum { CODES = 256, OPS = 1 << 14, USES = 5, ITEMS = 8 };
enum {
    ACCESS, DID, END, CREATE, INCLUDE, INCLUDED, TASKWAIT, GROUP, GROUPED, TAKE, GIVE, FORK, PIECE, PIECE_DONE, MASKED,
    MASKED_DONE, PASS, DEAL, CHUNK, CHUNK_DONE, DEALT, TASKLOOP, LOOPED
};
enum { STATIC, STATIC_CHUNK, DYNAMIC, GUIDED, SECTIONS };
enum { WORD, PACKED, EACH, COPY, ATOMIC };
enum { UNDEFERRED = 1, FINAL = 2, UNTIED = 4 };

// What the numbers mean is written where they are used. `end` is the number of the operation behind a block.
struct op {
    int kind, a, b, c, d, end, dependences;
    int count[USES], on[USES][ITEMS];
};

static struct op ops[OPS];
static const struct op *codes[CODES];

static UNSEEN void read_program(void) {
    int code_count, op = 0;
    if (scanf("%d", &code_count) != 1 || code_count > CODES) exit(3);
    for (int code = 0; code < code_count; code++) {
        int op_count;
        if (scanf("%d", &op_count) != 1 || op + op_count > OPS) exit(3);
        codes[code] = &ops[op];
        for (int end = op + op_count; op < end; op++) {
            struct op *o = &ops[op];
            if (scanf("%d%d%d%d%d%d%d", &o->kind, &o->a, &o->b, &o->c, &o->d, &o->end, &o->dependences) != 7) exit(3);
            for (int item = 0; item < o->dependences; item++) {
                int how, on;
                if (scanf("%d%d", &how, &on) != 2 || o->count[how] == ITEMS) exit(3);
                o->on[how][o->count[how]++] = on;
            }
        }
    }
}

// Of this kind, by the form that `a` says, at `b`, `c` bytes; a write if `d`.
#define WIDTHS(what, form, at) \
    switch (o->c) { case 1: what(form(1, 8), at); break; case 2: what(form(2, 16), at); break; \
                    case 4: what(form(4, 32), at); break; case 8: what(form(8, 64), at); break; }
#define PLAIN(bytes, bits) uint##bits##_t
#define UNALIGNED(bytes, bits) packed_##bytes

static void touch(const struct op *o) {
    switch (o->a * 2 + o->d) {
        case WORD * 2: WIDTHS(READ, PLAIN, o->b); break;
        case WORD * 2 + 1: WIDTHS(WRITE, PLAIN, o->b); break;
        case PACKED * 2: WIDTHS(READ_PACKED, UNALIGNED, o->b); break;
        case PACKED * 2 + 1: WIDTHS(WRITE_PACKED, UNALIGNED, o->b); break;
        case EACH * 2: READ_EACH(o->b, o->c); break;
        case EACH * 2 + 1: WRITE_EACH(o->b, o->c); break;
        case COPY * 2: READ_COPY(o->b, o->c); break;
        case COPY * 2 + 1: WRITE_SET(o->b, o->c); break;
        case ATOMIC * 2: WIDTHS(READ_ATOMIC, PLAIN, o->b); break;
        case ATOMIC * 2 + 1: WIDTHS(WRITE_ATOMIC, PLAIN, o->b); break;
    }
}

#define DEPEND_ON(how, use) depend(iterator(int i = 0 : o->count[how]), use : d[o->on[how][i]])
#define DEPEND DEPEND_ON(0, in) DEPEND_ON(1, out) DEPEND_ON(2, inout) DEPEND_ON(3, mutexinoutset) DEPEND_ON(4, inoutset)
#define DO_PRAGMA(text) _Pragma(#text)
#define TASK(clauses) DO_PRAGMA(omp task firstprivate(me, code, at) if(!(o->a & UNDEFERRED)) final(o->a & FINAL) clauses)

static int run(int me, const struct op *code, int at);

// What a task does: its own code, or, as part of another, what comes next there.
static void body(int me, const struct op *code, int at) {
    if (code[at].kind != INCLUDE) {
        run(me, code, at);
    } else {
        did(me, at);
        int last = run(me, code, at + 1);
        did(me, last);
    }
}

static void spawn(const struct op *o, int me, const struct op *code, int at) {
    if (o->dependences && (o->a & UNTIED)) {
        TASK(untied DEPEND)
        body(me, code, at);
    } else if (o->dependences) {
        TASK(DEPEND)
        body(me, code, at);
    } else if (o->a & UNTIED) {
        TASK(untied)
        body(me, code, at);
    } else {
        TASK()
        body(me, code, at);
    }
}

static int section(int me, const struct op *code, int at) {
    did(me, at);
    int last = run(me, code, at + 1);
    did(me, last);
    return last;
}

// The chunk of that number of shared work.
static UNSEEN int chunk(const struct op *code, int at, int number) {
    for (at++; number > 0; number--) at = code[at].end;
    return at;
}

#define FOR(clauses) DO_PRAGMA(omp for clauses) \
    for (int i = 0; i < chunks * length; i++) if (i % length == 0) section(me, code, chunk(code, at, i / length));
#define SECTION(number) if (number < chunks) section(me, code, chunk(code, at, number));
#define ALL_SECTIONS \
    { \
        _Pragma("omp section") { SECTION(0) } _Pragma("omp section") { SECTION(1) } _Pragma("omp section") { SECTION(2) } \
        _Pragma("omp section") { SECTION(3) } _Pragma("omp section") { SECTION(4) } _Pragma("omp section") { SECTION(5) } \
    }

// Shared work: dealt out as `a` says, `b` chunks of `c` iterations; without a barrier if `d`.
static void deal(int me, const struct op *code, int at) {
    const struct op *o = &code[at];
    int chunks = o->b, length = o->c;
    switch (o->a * 2 + o->d) {
        case STATIC * 2: FOR(schedule(static)) break;
        case STATIC * 2 + 1: FOR(schedule(static) nowait) break;
        case STATIC_CHUNK * 2: FOR(schedule(static, length)) break;
        case STATIC_CHUNK * 2 + 1: FOR(schedule(static, length) nowait) break;
        case DYNAMIC * 2: FOR(schedule(dynamic, length)) break;
        case DYNAMIC * 2 + 1: FOR(schedule(dynamic, length) nowait) break;
        case GUIDED * 2: FOR(schedule(guided)) break;
        case GUIDED * 2 + 1: FOR(schedule(guided) nowait) break;
        case SECTIONS * 2:
#pragma omp sections
            ALL_SECTIONS
            break;
        case SECTIONS * 2 + 1:
#pragma omp sections nowait
            ALL_SECTIONS
            break;
    }
}

// Runs operations up to the end of the block, whose number is returned.
static int run(int me, const struct op *code, int at) {
    for (;; at++) {
        const struct op *o = &code[at];
        switch (o->kind) {
            case ACCESS: touch(o); break;
            case DID: did(me, at); break;
            case END: did(me, at); return at;
            case INCLUDED: case GROUPED: case GIVE: case PIECE_DONE: case MASKED_DONE: case CHUNK_DONE:
                return at;
            case CREATE: spawn(o, make(me, at, 1), codes[o->b], 0); break;
            case INCLUDE:
                spawn(o, me, code, at);
                at = o->end - 1;
                break;
            case TASKWAIT:
                if (o->dependences) {
#pragma omp taskwait DEPEND_ON(0, in) DEPEND_ON(1, out) DEPEND_ON(2, inout)
                } else {
#pragma omp taskwait
                }
                did(me, at);
                break;
            case GROUP:
                did(me, at);
#pragma omp taskgroup
                { at = run(me, code, at + 1); }
                did(me, at);
                break;
            case TAKE:
                if (o->a == 2) {
#pragma omp critical(c2)
                    { at = section(me, code, at); }
                } else if (o->a == 4) {
#pragma omp critical(c4)
                    { at = section(me, code, at); }
                } else {
                    omp_set_lock(&locks[o->a]);
                    at = section(me, code, at);
                    omp_unset_lock(&locks[o->a]);
                }
                break;
            case FORK: {
                int team = make(me, at, o->a);
#pragma omp parallel num_threads(o->a) firstprivate(team)
                { run(team + omp_get_thread_num(), codes[o->b], 0); }
                break;
            }
            case PIECE:
                if (o->a) {
#pragma omp single nowait
                    { section(me, code, at); }
                } else {
#pragma omp single
                    { section(me, code, at); }
                }
                at = o->end - 1;
                break;
            case MASKED:
#pragma omp masked filter(o->a)
                { run(me, code, at + 1); }
                at = o->end - 1;
                break;
            case DEAL:
                deal(me, code, at);
                at = o->end - 1;
                break;
            // With the codes from `a` on, `b` of them; without a group if `c`.
            case TASKLOOP: {
                int tasks = make(me, at, o->b), count = o->b, first = o->a;
                if (o->c) {
#pragma omp taskloop num_tasks(count) nogroup
                    for (int i = 0; i < count; i++) run(tasks + i, codes[first + i], 0);
                } else {
#pragma omp taskloop num_tasks(count)
                    for (int i = 0; i < count; i++) run(tasks + i, codes[first + i], 0);
                }
                break;
            }
            case LOOPED: did(me, at); break;
            case PASS:
                if (!o->a) {
#pragma omp barrier
                }
                did(me, at);
                break;
        }
    }
}

int main(void) {
    start();
    read_program();
    run(0, codes[0], 0);
    tell();
    return 0;
}
