// Hospitals of villages, one above the other: who falls ill waits, is looked at, is treated or sent to the hospital above. A task for each village of a day.
//
// RACE: patients are put on the list of the hospital above without its lock.
#define SIZE 5
#include "kernel.h"

enum { BRANCHES = 4, DAYS = 60, SERIAL = 2, LOOK = 3, TREAT = 10 };

typedef struct patient {
    struct patient *next;
    uint64_t seed;
    int left, visits;
} patient;

typedef struct village {
    struct village *above, *below[BRANCHES];
    int level, staff;
    patient *healthy, *waiting, *looked_at, *treated, *sent;
    omp_lock_t lock;
} village;

static village *capital;

// One in so many.
static int happens(patient *who, uint64_t one_in) {
    who->seed = mixed(who->seed);
    return who->seed % one_in == 0;
}

static void put(patient **list, patient *who) {
    who->next = *list;
    *list = who;
}

// Takes out all whose time is over; the others have a day less.
static patient *over(patient **list) {
    patient *done = NULL;
    while (*list) {
        patient *who = *list;
        if (--who->left > 0) {
            list = &who->next;
        } else {
            *list = who->next;
            put(&done, who);
        }
    }
    return done;
}

static patient *take(patient **list) {
    patient *first = *list;
    if (first) {
        *list = first->next;
    }
    return first;
}

static void send(village *to, patient *who) {
    if (!SEEDED) {
        omp_set_lock(&to->lock);
    }
    put(&to->sent, who);
    if (!SEEDED) {
        omp_unset_lock(&to->lock);
    }
}

static void hospital(village *here) {
    patient *who;
    for (patient *done = over(&here->treated); (who = take(&done));) {
        here->staff++;
        put(&here->healthy, who);
    }
    for (patient *done = over(&here->looked_at); (who = take(&done));) {
        if (here->above && happens(who, 3)) {
            here->staff++;
            send(here->above, who);
        } else if (happens(who, 2)) {
            who->left = TREAT;
            put(&here->treated, who);
        } else {
            here->staff++;
            put(&here->healthy, who);
        }
    }
    while (here->staff > 0 && (who = take(&here->waiting))) {
        here->staff--;
        who->left = LOOK;
        who->visits++;
        put(&here->looked_at, who);
    }
}

static void day(village *here) {
    if (here->level > SERIAL) {
        for (int i = 0; i < BRANCHES; i++) {
            village *below = here->below[i];
#pragma omp task
            day(below);
        }
    } else if (here->level > 1) {
        for (int i = 0; i < BRANCHES; i++) {
            day(here->below[i]);
        }
    }
    hospital(here);
#pragma omp taskwait
    patient *who;
    while ((who = take(&here->sent))) {
        put(&here->waiting, who);
    }
    for (patient **list = &here->healthy; *list;) {
        if (happens(*list, 20)) {
            who = *list;
            *list = who->next;
            put(&here->waiting, who);
        } else {
            list = &(*list)->next;
        }
    }
}

static village *found(village *above, long level, uint64_t seed) {
    village *here = allocate(sizeof *here);
    here->above = above;
    here->level = (int)level;
    here->staff = 4 << level;
    omp_init_lock(&here->lock);
    for (int i = 0; i < 32; i++) {
        patient *who = allocate(sizeof *who);
        who->seed = mixed(seed * 64 + (uint64_t)i);
        put(&here->healthy, who);
    }
    for (int i = 0; i < BRANCHES && level > 1; i++) {
        here->below[i] = found(here, level - 1, seed * BRANCHES + (uint64_t)i + 1);
    }
    return here;
}

static void prepare(long levels) { capital = found(NULL, levels, 0); }

static void work(long levels) {
    (void)levels;
#pragma omp parallel
#pragma omp single
    for (int today = 0; today < DAYS; today++) {
        day(capital);
    }
}

static void count(const village *here, long long *villages, long long *people, long long *visits) {
    ++*villages;
    const patient *lists[] = {here->healthy, here->waiting, here->looked_at, here->treated, here->sent};
    for (int i = 0; i < 5; i++) {
        for (const patient *who = lists[i]; who; who = who->next) {
            ++*people;
            *visits += who->visits;
        }
    }
    for (int i = 0; i < BRANCHES && here->level > 1; i++) {
        count(here->below[i], villages, people, visits);
    }
}

// Nobody was lost, and nobody is in two places. How many visits there were depends on who was sent first.
static int check(long levels, long long *result) {
    (void)levels;
    long long villages = 0, visits = 0;
    count(capital, &villages, result, &visits);
    return *result == 32 * villages && visits > villages;
}
