/* A Vulkan layer that does to its process what broken drivers do, for tests: no mock, the program and the driver below
   are the real ones.

   What it does depends on the size of a buffer that is created: TROUBLE + 4 times one of the numbers below. With
   TROUBLE_START in the environment it does that when an instance is created, and with TROUBLE_DEVICE only on devices
   with this text in their names. What is declared here is the binary interface of Vulkan 1.0. */

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader_interface.h"

typedef struct { int32_t type; const void *next; uint32_t flags; uint64_t size; } BufferInfo;

enum { LOST = -4, TROUBLE = 7000 };
enum { NONE, EXITS, ABORTS, SLEEPS, GARBAGE, LEAKS_FILES, LEAVES_A_CHILD, LOSES_THE_DEVICE, IS_KILLED, FLOODS,
       CRASHES_LATER, GROWS, CLOSES_FILES, CRASHES_IN_A_SUBMIT };
enum { PROPERTIES_SIZE = 824, NAME_OFFSET = 20, GOOD_SUBMITS = 3 };

static GetProcAddr next_instance;
static Handle instance;
static int lost, buffers, submits_left, is_spared;

static void crash(void) { raise(SIGSEGV); }

static void make_trouble(long what) {
  struct stat status;
  char text[256];
  switch (what) {
  case EXITS: _exit(3);
  case ABORTS: fprintf(stderr, "driver: assertion 'false' failed\n"); abort();
  case SLEEPS: {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) pause();
  }
  case GARBAGE:
    for (int each = 3; each < 64; each++)
      if (!fstat(each, &status) && S_ISSOCK(status.st_mode) && write(each, "\xff{\n", 3) < 0) crash();
    for (;;) pause();
  case LEAKS_FILES:
    while (open("/dev/null", O_RDONLY) >= 0) {}
    break;
  case LEAVES_A_CHILD: {
    pid_t child = fork();
    if (!child) { execlp("sleep", "sleep", "1000", NULL); _exit(1); }
    FILE *file = fopen(getenv("TROUBLE_FILE"), "w");
    fprintf(file, "%d", child);
    fclose(file);
    crash();
    break;
  }
  case LOSES_THE_DEVICE: lost = 1; break;
  case IS_KILLED: raise(SIGKILL); break;
  case FLOODS:
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 20000; i++) fwrite(text, 1, sizeof text, stderr);
    fprintf(stderr, "\nthe last words\n");
    crash();
    break;
  case CRASHES_LATER: if (buffers > 1) crash(); break;
  case GROWS: memset(malloc(64 << 20), 1, 64 << 20); break;
  case CLOSES_FILES: for (int each = 3; each < 64; each++) close(each); for (;;) pause();
  case CRASHES_IN_A_SUBMIT: submits_left = GOOD_SUBMITS; break;
  default: break;
  }
}

static VkResult layer_vkCreateInstance(const void *info, const void *allocator, Handle *out) {
  const char *start = getenv("TROUBLE_START");
  if (start) make_trouble(strtol(start, NULL, 10));
  VkResult code = create_instance(info, allocator, out, &next_instance);
  if (code >= 0) instance = *out;
  return code;
}

static VkResult layer_vkCreateDevice(Handle physical, const void *info, const void *allocator, Handle *out) {
  LayerInfo *chain = link_of(info, LOADER_DEVICE);
  if (!chain) return -3;
  GetProcAddr below = chain->link.device->get_instance;
  const char *meant = getenv("TROUBLE_DEVICE");
  char properties[PROPERTIES_SIZE];
  ((void (*)(Handle, void *))below(instance, "vkGetPhysicalDeviceProperties"))(physical, properties);
  is_spared = meant && !strstr(properties + NAME_OFFSET, meant);
  return create_device(instance, physical, info, allocator, out);
}

static VkResult layer_vkCreateBuffer(Handle owner, const BufferInfo *info, const void *allocator, void *out) {
  buffers++;
  if (!is_spared && info->size > TROUBLE && info->size < TROUBLE + 100) make_trouble((long)(info->size - TROUBLE) / 4);
  return ((VkResult (*)(Handle, const void *, const void *, void *))next_device(device, "vkCreateBuffer"))(
      owner, info, allocator, out);
}

static VkResult layer_vkQueueSubmit(Handle queue, uint32_t count, const void *infos, Handle fence) {
  if (lost) return LOST;
  if (submits_left && !--submits_left) crash();
  return ((VkResult (*)(Handle, uint32_t, const void *, Handle))next_device(device, "vkQueueSubmit"))(
      queue, count, infos, fence);
}

static const Entry instance_functions[] = {ENTRY(vkCreateInstance) ENTRY(vkCreateDevice)};
static const Entry device_functions[] = {ENTRY(vkCreateBuffer) ENTRY(vkQueueSubmit)};

GET_FUNCTIONS(next_instance)
