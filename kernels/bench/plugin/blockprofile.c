// QEMU user-mode plugin (plugin API version 1): how often each translated block ran and which
// cache lines it missed, cut into phases at every call of a marker function.
//
//   out=FILE        where the profile goes
//   mark=SYMBOL     function whose entries separate phases (default k230_bench_mark)
//   cache=on        also simulate the data caches (several times slower)
//
// Debian ships no plugin header, so the functions in use are declared here.
//
// Output, one record per line:
//   phase N                                      phase N begins
//   run BLOCK COUNT L1-LOADS L1-STORES L2-LOADS L2-STORES   what a block did in this phase
//   block BLOCK PC VTYPE SYMBOL WORD...          at the end: the instructions of each block, hex
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
typedef uint32_t mem_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
typedef void (*translated_cb)(plugin_id, struct qemu_plugin_tb*);
typedef void (*executed_cb)(unsigned, void*);
typedef void (*memory_cb)(unsigned, mem_info, uint64_t, void*);
typedef void (*exit_cb)(plugin_id, void*);

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, translated_cb);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int op, void*,
                                                     uint64_t);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn*, executed_cb,
                                                   int flags, void*);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*, memory_cb, int flags,
                                             int access, void*);
extern void qemu_plugin_register_atexit_cb(plugin_id, exit_cb, void*);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
extern const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
extern const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn*);
extern bool qemu_plugin_mem_is_store(mem_info);

#define EXPORT __attribute__((visibility("default")))
enum { kAddU64 = 0, kNoRegs = 0, kLoadsAndStores = 3 };

EXPORT int qemu_plugin_version = 1;

enum { L1_LOAD, L1_STORE, L2_LOAD, L2_STORE, MISS_KINDS };

struct Block {
  struct Block* next;
  unsigned number;
  uint64_t pc;
  uint32_t vtype;
  const char* symbol;
  size_t length;
  uint32_t* words;
  uint64_t count, counted;                        // executions, and those already written
  uint64_t miss[MISS_KINDS], missed[MISS_KINDS];  // likewise
};

static struct Block* blocks;
static unsigned block_count;
static unsigned phase;
static uint32_t vtype;  // of the last vset* executed
static bool with_cache;
static const char* mark = "k230_bench_mark";
static FILE* out;

// Two levels, 64-byte lines, least recently used: 32 KiB 4-way and 256 KiB 16-way.
enum { L1_SETS = 128, L1_WAYS = 4, L2_SETS = 256, L2_WAYS = 16 };
static uint64_t l1[L1_SETS][L1_WAYS], l2[L2_SETS][L2_WAYS];

static bool touch(uint64_t* set, int ways, uint64_t line) {
  int found = ways - 1;
  bool hit = false;
  for (int i = 0; i < ways; i++) {
    if (set[i] == line) {
      found = i;
      hit = true;
      break;
    }
  }
  for (int i = found; i > 0; i--) set[i] = set[i - 1];
  set[0] = line;
  return hit;
}

static void on_memory(unsigned cpu, mem_info info, uint64_t address, void* data) {
  static uint64_t last;
  struct Block* block = data;
  const uint64_t line = (address >> 6) + 1;  // 0 marks an empty way
  (void)cpu;
  if (line == last) return;
  last = line;
  const bool store = qemu_plugin_mem_is_store(info);
  if (touch(l1[line % L1_SETS], L1_WAYS, line)) return;
  block->miss[store ? L1_STORE : L1_LOAD]++;
  if (touch(l2[line % L2_SETS], L2_WAYS, line)) return;
  block->miss[store ? L2_STORE : L2_LOAD]++;
}

static void on_vset(unsigned cpu, void* data) {
  (void)cpu;
  vtype = (uint32_t)(uintptr_t)data;
}

static void write_phase(void) {
  for (struct Block* b = blocks; b != NULL; b = b->next) {
    if (b->count == b->counted) continue;
    fprintf(out, "run %u %" PRIu64, b->number, b->count - b->counted);
    for (int i = 0; i < MISS_KINDS; i++) {
      fprintf(out, " %" PRIu64, b->miss[i] - b->missed[i]);
      b->missed[i] = b->miss[i];
    }
    fputc('\n', out);
    b->counted = b->count;
  }
}

static void on_mark(unsigned cpu, void* data) {
  (void)cpu;
  (void)data;
  write_phase();
  fprintf(out, "phase %u\n", ++phase);
}

static void on_translation(plugin_id id, struct qemu_plugin_tb* tb) {
  (void)id;
  const size_t n = qemu_plugin_tb_n_insns(tb);
  struct qemu_plugin_insn* first = qemu_plugin_tb_get_insn(tb, 0);
  const char* symbol = qemu_plugin_insn_symbol(first);
  struct Block* b = calloc(1, sizeof *b);
  b->number = block_count++;
  b->pc = qemu_plugin_insn_vaddr(first);
  b->vtype = vtype;
  b->symbol = symbol != NULL ? strdup(symbol) : "?";
  b->length = n;
  b->words = calloc(n, sizeof *b->words);
  b->next = blocks;
  blocks = b;
  for (size_t i = 0; i < n; i++) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    uint32_t w = 0;
    memcpy(&w, qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
    b->words[i] = w;
    if ((w & 0x707f) == 0x7057) {  // vsetvli, vsetivli, vsetvl (whose vtype is in a register)
      const uint32_t now = !(w >> 31) ? (w >> 20) & 0x7ff : (w >> 30) == 3 ? (w >> 20) & 0x3ff : 0;
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_vset, kNoRegs, (void*)(uintptr_t)now);
    }
    if (with_cache) {
      qemu_plugin_register_vcpu_mem_cb(insn, on_memory, kNoRegs, kLoadsAndStores, b);
    }
  }
  if (strcmp(b->symbol, mark) == 0) {
    qemu_plugin_register_vcpu_insn_exec_cb(first, on_mark, kNoRegs, NULL);
  }
  qemu_plugin_register_vcpu_tb_exec_inline(tb, kAddU64, &b->count, 1);
}

static void on_exit_(plugin_id id, void* data) {
  (void)id;
  (void)data;
  write_phase();
  for (struct Block* b = blocks; b != NULL; b = b->next) {
    fprintf(out, "block %u %" PRIx64 " %x %s", b->number, b->pc, b->vtype, b->symbol);
    for (size_t i = 0; i < b->length; i++) fprintf(out, " %x", b->words[i]);
    fputc('\n', out);
  }
  fclose(out);
}

EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
    if (strncmp(argv[i], "mark=", 5) == 0) mark = strdup(argv[i] + 5);
    if (strcmp(argv[i], "cache=on") == 0) with_cache = true;
  }
  if (out == NULL) {
    fputs("blockprofile: out=FILE is missing or cannot be written\n", stderr);
    return 1;
  }
  fputs("phase 0\n", out);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
  return 0;
}
