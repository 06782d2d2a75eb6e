/* The OpenMP API of DagSan's runtime. */
#ifndef DAGSAN_OMP_H
#define DAGSAN_OMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define DAGSAN_OMP_NOTHROW noexcept
#else
#define DAGSAN_OMP_NOTHROW
#endif

/* Zeroes are a lock that nobody has. */
typedef struct omp_lock_t { uint64_t word, owner; } omp_lock_t;
typedef struct omp_nest_lock_t { uint64_t word, owner; } omp_nest_lock_t;

typedef enum omp_sync_hint_t {
    omp_sync_hint_none = 0,
    omp_lock_hint_none = omp_sync_hint_none,
    omp_sync_hint_uncontended = 1,
    omp_lock_hint_uncontended = omp_sync_hint_uncontended,
    omp_sync_hint_contended = 2,
    omp_lock_hint_contended = omp_sync_hint_contended,
    omp_sync_hint_nonspeculative = 4,
    omp_lock_hint_nonspeculative = omp_sync_hint_nonspeculative,
    omp_sync_hint_speculative = 8,
    omp_lock_hint_speculative = omp_sync_hint_speculative
} omp_sync_hint_t;
typedef omp_sync_hint_t omp_lock_hint_t;

typedef enum omp_sched_t {
    omp_sched_static = 1,
    omp_sched_dynamic = 2,
    omp_sched_guided = 3,
    omp_sched_auto = 4,
    omp_sched_monotonic = (int)0x80000000U
} omp_sched_t;

typedef enum omp_proc_bind_t {
    omp_proc_bind_false = 0,
    omp_proc_bind_true = 1,
    omp_proc_bind_master = 2,
    omp_proc_bind_primary = 2,
    omp_proc_bind_close = 3,
    omp_proc_bind_spread = 4
} omp_proc_bind_t;

typedef enum omp_pause_resource_t { omp_pause_soft = 1, omp_pause_hard = 2 } omp_pause_resource_t;

typedef enum omp_event_handle_t { omp_allow_completion_event = 0, omp_task_fullfill_event = 1, DAGSAN_OMP_EVENT = UINTPTR_MAX } omp_event_handle_t;

typedef void *omp_depend_t;

typedef uintptr_t omp_uintptr_t;

/* clang looks for this type by its name. All allocators are the heap. */
typedef enum omp_allocator_handle_t {
    omp_null_allocator = 0,
    omp_default_mem_alloc = 1,
    omp_large_cap_mem_alloc = 2,
    omp_const_mem_alloc = 3,
    omp_high_bw_mem_alloc = 4,
    omp_low_lat_mem_alloc = 5,
    omp_cgroup_mem_alloc = 6,
    omp_pteam_mem_alloc = 7,
    omp_thread_mem_alloc = 8,
    KMP_ALLOCATOR_MAX_HANDLE = UINTPTR_MAX
} omp_allocator_handle_t;

extern int omp_get_thread_num(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_num_threads(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_max_threads(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_num_threads(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_num_procs(void) DAGSAN_OMP_NOTHROW;
extern int omp_in_parallel(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_dynamic(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_dynamic(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_nested(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_nested(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_max_active_levels(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_max_active_levels(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_supported_active_levels(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_level(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_active_level(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_ancestor_thread_num(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_team_size(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_thread_limit(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_cancellation(void) DAGSAN_OMP_NOTHROW;
extern int omp_in_final(void) DAGSAN_OMP_NOTHROW;
extern int omp_in_explicit_task(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_num_teams(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_team_num(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_max_teams(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_num_teams(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_teams_thread_limit(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_teams_thread_limit(int) DAGSAN_OMP_NOTHROW;
extern double omp_get_wtime(void) DAGSAN_OMP_NOTHROW;
extern double omp_get_wtick(void) DAGSAN_OMP_NOTHROW;
extern int omp_is_initial_device(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_num_devices(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_initial_device(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_default_device(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_default_device(int) DAGSAN_OMP_NOTHROW;
extern int omp_get_device_num(void) DAGSAN_OMP_NOTHROW;
extern omp_proc_bind_t omp_get_proc_bind(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_num_places(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_place_num(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_partition_num_places(void) DAGSAN_OMP_NOTHROW;
extern int omp_get_max_task_priority(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_schedule(omp_sched_t, int) DAGSAN_OMP_NOTHROW;
extern void omp_get_schedule(omp_sched_t *, int *) DAGSAN_OMP_NOTHROW;
extern void omp_display_env(int) DAGSAN_OMP_NOTHROW;
extern int omp_pause_resource(omp_pause_resource_t, int) DAGSAN_OMP_NOTHROW;
extern int omp_pause_resource_all(omp_pause_resource_t) DAGSAN_OMP_NOTHROW;
extern void omp_fulfill_event(omp_event_handle_t) DAGSAN_OMP_NOTHROW;

extern void omp_init_lock(omp_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_init_lock_with_hint(omp_lock_t *, omp_sync_hint_t) DAGSAN_OMP_NOTHROW;
extern void omp_destroy_lock(omp_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_set_lock(omp_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_unset_lock(omp_lock_t *) DAGSAN_OMP_NOTHROW;
extern int omp_test_lock(omp_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_init_nest_lock(omp_nest_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_init_nest_lock_with_hint(omp_nest_lock_t *, omp_sync_hint_t) DAGSAN_OMP_NOTHROW;
extern void omp_destroy_nest_lock(omp_nest_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_set_nest_lock(omp_nest_lock_t *) DAGSAN_OMP_NOTHROW;
extern void omp_unset_nest_lock(omp_nest_lock_t *) DAGSAN_OMP_NOTHROW;
extern int omp_test_nest_lock(omp_nest_lock_t *) DAGSAN_OMP_NOTHROW;

extern omp_allocator_handle_t omp_get_default_allocator(void) DAGSAN_OMP_NOTHROW;
extern void omp_set_default_allocator(omp_allocator_handle_t) DAGSAN_OMP_NOTHROW;
#ifdef __cplusplus
extern void *omp_alloc(size_t, omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
extern void *omp_calloc(size_t, size_t, omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
extern void omp_free(void *, omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
extern void *omp_aligned_alloc(size_t, size_t, omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
extern void *omp_aligned_calloc(size_t, size_t, size_t, omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
extern void *omp_realloc(void *, size_t, omp_allocator_handle_t = omp_null_allocator,
                         omp_allocator_handle_t = omp_null_allocator) DAGSAN_OMP_NOTHROW;
#else
extern void *omp_alloc(size_t, omp_allocator_handle_t);
extern void *omp_calloc(size_t, size_t, omp_allocator_handle_t);
extern void omp_free(void *, omp_allocator_handle_t);
extern void *omp_aligned_alloc(size_t, size_t, omp_allocator_handle_t);
extern void *omp_aligned_calloc(size_t, size_t, size_t, omp_allocator_handle_t);
extern void *omp_realloc(void *, size_t, omp_allocator_handle_t, omp_allocator_handle_t);
#endif

#undef DAGSAN_OMP_NOTHROW
#ifdef __cplusplus
}
#endif
#endif
