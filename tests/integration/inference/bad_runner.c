// A runner that goes wrong at one sample: --fault=crash:5, hang:5 or cut:5 (by its own name, since
// the command line is the engine's: k230_runner-crash-5). Its logits are zeros; its files and frames
// are those of docs/formats.md.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kValues = 5 };

static uint32_t crc32_of(uint32_t crc, const void *data, size_t count) {
  const uint8_t *bytes = data;
  crc = ~crc;
  for (size_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

static void frame(const char *body) {
  uint16_t crc = 0xFFFF;
  for (const char *at = body; *at; ++at) {
    crc ^= (uint16_t)(uint8_t)*at << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
  }
  printf("%s*%04x\n", body, crc);
  fflush(stdout);
}

static const char *flag(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; ++i)
    if (!strncmp(argv[i] + 2, name, strlen(name)) && argv[i][2 + strlen(name)] == '=')
      return argv[i] + 3 + strlen(name);
  return "";
}

static char *read_file(const char *path, size_t most, size_t *count) {
  char *data = calloc(1, most + 1);
  FILE *file = fopen(path, "rb");
  *count = file ? fread(data, 1, most, file) : 0;
  if (file) fclose(file);
  return data;
}

static void put32(uint8_t *at, uint32_t value) { memcpy(at, &value, 4); }

int main(int argc, char **argv) {
  const char *model = flag(argc, argv, "model_path"), *run = flag(argc, argv, "run_id");
  const char *fault = strrchr(argv[0], '-') - 1;
  while (*fault != '-') --fault;
  const unsigned long bad = strtoul(strrchr(argv[0], '-') + 1, NULL, 10);
  size_t list_size, head_size;
  char *list = read_file(flag(argc, argv, "inputs_list"), 1 << 20, &list_size);
  char *head = read_file(model, 4096, &head_size);
  struct stat info;
  if (stat(model, &info) != 0) return 1;
  const uint64_t model_size = info.st_size;

  uint8_t header[64] = "K230RES1";
  put32(header + 8, sizeof header);
  put32(header + 12, kValues);
  strncpy((char *)header + 16, run, 32);
  put32(header + 48, crc32_of(crc32_of(0, head, head_size), &model_size, 8));
  put32(header + 52, crc32_of(0, list, list_size));
  put32(header + 60, crc32_of(0, header, 60));
  FILE *results = fopen(flag(argc, argv, "results_file"), "wb");
  fwrite(header, 1, sizeof header, results);

  char body[120];
  unsigned total = 0, seq = 0;
  for (char *at = list; (at = strchr(at, '\n')) && at[1]; ++at) ++total;
  snprintf(body, sizeof body, "@K230 begin run=%s total=%u resumed=0", run, total);
  frame(body);
  for (char *line = strchr(list, '\n'); line && line[1]; line = strchr(line + 1, '\n'), ++seq) {
    unsigned long id, offset;
    unsigned crc;
    char name[256];
    sscanf(line + 1, "%lu %255s %lu %x", &id, name, &offset, &crc);
    if (id == bad && !strncmp(fault, "-crash", 6)) {
      fflush(results);
      abort();
    }
    while (id == bad && !strncmp(fault, "-hang", 5)) sleep(1);
    uint8_t record[40 + 4 * kValues + 4] = {0};
    put32(record, 0x4352324B);
    put32(record + 4, seq);
    memcpy(record + 8, &id, 8);
    put32(record + 20, kValues);
    put32(record + 24, 1000000);
    put32(record + 32, crc);
    put32(record + 36, 1);
    put32(record + sizeof record - 4, crc32_of(0, record, sizeof record - 4));
    const int cut = id == bad && !strncmp(fault, "-cut", 4);
    fwrite(record, 1, cut ? sizeof record / 2 : sizeof record, results);
    fflush(results);
    if (cut) break;
    snprintf(body, sizeof body, "@K230 item run=%s seq=%u id=%lu status=0 ms=1.000", run, seq, id);
    frame(body);
  }
  fclose(results);
  snprintf(body, sizeof body, "@K230 end run=%s ok=%u failed=0 records=%u load_ms=0.100", run, seq, seq);
  frame(body);
  return 0;
}
