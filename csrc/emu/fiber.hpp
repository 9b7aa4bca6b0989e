// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Fibers: one CUDA thread each, all on one thread of the host.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define MC_EMU_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define MC_EMU_TSAN 1
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
}
#endif
#if !defined(__x86_64__)
#define MC_EMU_UCONTEXT 1
#include <ucontext.h>
#endif

namespace cuda_emu {

// Where a fiber's registers are while another one runs. On x86-64 the switch is a few pushes;
// elsewhere it is swapcontext, which makes system calls and takes ten times as long.
#if defined(MC_EMU_UCONTEXT)
struct Registers {
  ucontext_t context;
};
#else
struct Registers {
  void* stack_pointer = nullptr;
};
extern "C" void mc_emu_switch(void** save, void* load);
asm(R"(
  .text
  .weak mc_emu_switch
  .type mc_emu_switch,@function
mc_emu_switch:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size mc_emu_switch, .-mc_emu_switch
)");
#endif

// ThreadSanitizer takes each fiber for a thread. Only what CUDA says orders memory does: barriers,
// __syncwarp and the end of a launch, by order_before and order_after on the same address. Switches
// and shuffles do not.
#if MC_EMU_TSAN
inline void order_before(void* point) { __tsan_release(point); }
inline void order_after(void* point) { __tsan_acquire(point); }
// The emulator's own bookkeeping, which all fibers share, is not what is looked at.
struct Unwatched {
  Unwatched() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
};
#else
inline void order_before(void*) {}
inline void order_after(void*) {}
struct Unwatched {
  Unwatched() {}  // so that an unused one is no warning
};
#endif

struct Fiber {
  Registers registers;
  // Of the host's own stack these are unknown until a sanitizer says them.
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* thread = nullptr;      // ThreadSanitizer's

  void prepare(unsigned char* memory, size_t bytes, void (*entry)()) {
    *this = Fiber{};
    stack = memory;
    stack_bytes = bytes;
#if MC_EMU_TSAN
    thread = __tsan_create_fiber(0);
#endif
#if defined(MC_EMU_UCONTEXT)
    getcontext(&registers.context);
    registers.context.uc_stack.ss_sp = memory;
    registers.context.uc_stack.ss_size = bytes;
    registers.context.uc_link = nullptr;
    makecontext(&registers.context, entry, 0);
#else
    const auto end = reinterpret_cast<uintptr_t>(memory + bytes) & ~uintptr_t(15);
    auto top = reinterpret_cast<void**>(end);
    *--top = nullptr;  // alignment as after a call
    *--top = reinterpret_cast<void*>(entry);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    registers.stack_pointer = top;
#endif
  }
};

// Leaves `from`, which never runs again if it `ends`, and continues `to`.
inline void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool ends) {
#if MC_EMU_ASAN
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#if MC_EMU_TSAN
  if (!from.thread) from.thread = __tsan_get_current_fiber();  // the host's
  __tsan_switch_to_fiber(to.thread, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(MC_EMU_UCONTEXT)
  swapcontext(&from.registers.context, &to.registers.context);
#else
  mc_emu_switch(&from.registers.stack_pointer, to.registers.stack_pointer);
#endif
#if MC_EMU_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// To be called first in a fiber; `host` is the one that started it.
inline void enter_fiber([[maybe_unused]] Fiber& host) {
#if MC_EMU_ASAN
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!host.stack) host.stack = bottom, host.stack_bytes = bytes;
#endif
}

// Memory for the stacks of a block's threads.
class Stacks {
 public:
  Stacks(size_t count, size_t bytes) : bytes_(bytes), total_(count * bytes) { map(); }
  Stacks(const Stacks&) = delete;
  ~Stacks() { munmap(memory_, total_); }

  unsigned char* of(size_t i) const { return memory_ + i * bytes_; }
  size_t bytes() const { return bytes_; }
  // Sanitizers remember what the fibers of the last block left on them.
  void forget() {
#if MC_EMU_ASAN
    __asan_unpoison_memory_region(memory_, total_);
#elif MC_EMU_TSAN
    munmap(memory_, total_);
    map();
#endif
  }

 private:
  void map() {
    void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("cuda_emu: no memory for the stacks");
      std::abort();
    }
    memory_ = static_cast<unsigned char*>(memory);
  }

  unsigned char* memory_;
  size_t bytes_, total_;
};

}  // namespace cuda_emu
