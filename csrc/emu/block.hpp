// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The threads of one block: who runs next, who waits where, and what is a mistake.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "emu/fiber.hpp"

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline thread_local uint3 threadIdx{}, blockIdx{};
inline thread_local dim3 blockDim{}, gridDim{};

namespace cuda_emu {

enum class Order { forward, reverse, random };

struct Options {
  Order order = Order::forward;
  uint64_t seed = 0;
  size_t stack_bytes = 64 * 1024;
  size_t shared_limit = 48 * 1024;
};
inline Options& options() {
  static Options chosen;
  return chosen;
}

// A collective in the kernel's source.
struct Site {
  const char* what = "";
  const char* file = "";
  int line = 0;

  bool operator==(const Site& o) const {
    return line == o.line && !std::strcmp(what, o.what) && !std::strcmp(file, o.file);
  }
};

[[noreturn]] inline void fail(const char* mistake, const Site& at = {}) {
  std::fprintf(stderr, "cuda_emu: %s: %s (%s:%d) in block (%u,%u,%u), thread (%u,%u,%u)\n", mistake,
               at.what, at.file, at.line, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
               threadIdx.y, threadIdx.z);
  std::fflush(stderr);
  std::abort();
}

struct Thread {
  enum class State { ready, waiting, done };
  Fiber fiber;
  unsigned number = 0;  // within the block
  uint3 index{};
  State state = State::ready;
  Site at;                // where it waits
  unsigned barriers = 0;  // __syncthreads passed
};

// Lanes of a warp that meet under one mask. Two buffers in turn: a lane can be one meeting ahead of
// another that still reads.
struct Meeting {
  explicit Meeting(uint32_t m) : mask(m) {}
  uint32_t mask, arrived = 0, generation = 0;
  Site at;
  char order = 0;  // its address is where __syncwarp orders memory
  alignas(16) unsigned char buffer[2][32][64];
};

class Block {
 public:
  Block(dim3 threads, const std::function<void()>& body)
      : body_(body),
        threads_(size_t(threads.x) * threads.y * threads.z),
        stacks_(threads_.size(), options().stack_bytes),
        priority_(threads_.size()),
        meetings_((threads_.size() + 31) / 32),
        random_(options().seed + 0x9e3779b97f4a7c15ull) {}
#if MC_EMU_TSAN
  ~Block() {
    for (void* thread : ended_) __tsan_destroy_fiber(thread);
    order_after(&exit_order_);
  }
#endif

  static Block*& current() {
    static thread_local Block* block = nullptr;
    return block;
  }

  void run(uint3 index) {
    blockIdx = index;
    for (auto& warp : meetings_) warp.clear();
    shared_.clear();
    shared_bytes_ = 0;
    live_ = unsigned(threads_.size());
    at_barrier_ = 0;
    for (unsigned i = 0; i < live_; ++i) {
      threads_[i] = Thread{};
      threads_[i].number = i;
      threads_[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                           i / blockDim.x / blockDim.y};
      threads_[i].fiber.prepare(stacks_.of(i), stacks_.bytes(), &thread_main);
    }
    draw_priorities();
    for (auto& thread : threads_) make_ready(thread);
    while (live_) run_next();
    for (auto& thread : threads_)
      if (thread.barriers != threads_[0].barriers)
        fail("threads of a block passed different numbers of __syncthreads");
    stacks_.forget();
#if MC_EMU_TSAN
    // Not destroyed yet: a slot that is used again counts as the same thread, which would hide races
    // between blocks. It has 8,128 of them.
    for (auto& thread : threads_) ended_.push_back(thread.fiber.thread);
    for (; ended_.size() > 4096; ended_.pop_front()) __tsan_destroy_fiber(ended_.front());
#endif
  }

  Thread& self() { return *running_; }
  size_t size() const { return threads_.size(); }
  std::mt19937_64& random() { return random_; }

  // Shared arrays start as NaN (all bytes 0xff); `tag` tells the declarations apart.
  void* shared(const void* tag, size_t bytes) {
    const Unwatched scope;
    for (auto& array : shared_)
      if (array.tag == tag) return array.memory.get();
    shared_bytes_ += bytes;
    if (shared_bytes_ > options().shared_limit) fail("more shared memory than a block has");
    auto* memory = static_cast<unsigned char*>(::operator new[](bytes, std::align_val_t(128)));
    std::memset(memory, 0xff, bytes);
    shared_.push_back({tag, {memory, &free_shared}});
    return memory;
  }

  void barrier(const Site& site) {
    order_before(&barrier_order_);
    arrive(site);
    order_after(&barrier_order_);
  }

  // __syncwarp: a meeting that orders memory.
  void sync_warp(uint32_t mask, const Site& site) {
    char* order;
    {
      const Unwatched scope;
      order = &find_meeting(running_->number >> 5, mask, site).order;
    }
    order_before(order);
    const unsigned char nothing = 0;
    meet(mask, &nothing, 1, site);
    order_after(order);
  }

  // Brings the lanes of `mask` together; returns what each has brought, 64 bytes a lane. Whoever
  // reads it is Unwatched.
  const unsigned char (*meet(uint32_t mask, const void* value, size_t bytes,
                             const Site& site))[64] {
    const Unwatched scope;
    const unsigned lane = running_->number & 31, warp = running_->number >> 5;
    const size_t lanes = std::min<size_t>(32, threads_.size() - warp * 32);
    if (!(mask >> lane & 1)) fail("the calling lane is not in its own mask", site);
    if (lanes < 32 && mask >> lanes) fail("the mask names lanes that do not exist", site);
    Meeting& meeting = find_meeting(warp, mask, site);
    if (meeting.arrived == 0)
      meeting.at = site;
    else if (!(meeting.at == site))
      fail("lanes of one mask meet at different places", site);
    auto* buffer = meeting.buffer[meeting.generation & 1];
    std::memcpy(buffer[lane], value, bytes);
    meeting.arrived |= 1u << lane;
    if (meeting.arrived != mask) {
      wait(site);
    } else {
      meeting.arrived = 0;
      ++meeting.generation;
      for (unsigned l = 0; l < lanes; ++l)
        if ((mask >> l & 1) && l != lane) make_ready(threads_[warp * 32 + l]);
      yield();
    }
    return buffer;
  }

 private:
  void arrive(const Site& site) {
    const Unwatched scope;
    ++running_->barriers;
    if (at_barrier_ == 0)
      barrier_site_ = site;
    else if (!(barrier_site_ == site))
      fail("threads meet at different __syncthreads", site);
    ++at_barrier_;
    if (at_barrier_ < live_) return wait(site);
    at_barrier_ = 0;
    for (auto& thread : threads_)
      if (thread.state == Thread::State::waiting && thread.at == site) make_ready(thread);
    yield();
  }

  struct SharedArray {
    const void* tag;
    std::unique_ptr<unsigned char, void (*)(unsigned char*)> memory;
  };
  static void free_shared(unsigned char* p) { ::operator delete[](p, std::align_val_t(128)); }

  static void thread_main() {
    Block& block = *current();
    enter_fiber(block.host_);
    block.body_();
    order_before(&block.exit_order_);
    Thread& self = block.end_running();
    switch_fiber(self.fiber, block.host_, true);
  }

  Thread& end_running() {
    const Unwatched scope;
    running_->state = Thread::State::done;
    --live_;
    if (live_ && at_barrier_ == live_)
      fail("a thread ended while all others wait for it", barrier_site_);
    return *running_;
  }

  // The ready thread of highest priority runs, so a warp runs ahead of the others until it must
  // wait. With turns of equal length every warp would write before any reads, and hide that a
  // barrier is missing.
  void draw_priorities() {
    const size_t n = threads_.size();
    for (size_t first = 0; first < n; first += 32) {
      const uint64_t warp = random_() << 32;
      for (size_t i = first; i < std::min(first + 32, n); ++i) switch (options().order) {
          case Order::forward: priority_[i] = n - i; break;
          case Order::reverse: priority_[i] = i; break;
          case Order::random: priority_[i] = warp | uint32_t(random_());
        }
    }
  }
  void make_ready(Thread& thread) {
    if (options().order == Order::random && (random_() & 15) == 0) draw_warp(thread.number & ~31u);
    thread.state = Thread::State::ready;
    ready_.emplace_back(priority_[thread.number], thread.number);
    std::push_heap(ready_.begin(), ready_.end());
  }
  void draw_warp(unsigned first) {
    const uint64_t warp = random_() << 32;
    for (size_t i = first; i < std::min<size_t>(first + 32, priority_.size()); ++i)
      priority_[i] = warp | uint32_t(random_());
  }

  void run_next() {
    if (ready_.empty()) report_deadlock();
    std::pop_heap(ready_.begin(), ready_.end());
    running_ = &threads_[ready_.back().second];
    ready_.pop_back();
    threadIdx = running_->index;
    switch_fiber(host_, running_->fiber, false);
  }
  void wait(const Site& site) {
    running_->state = Thread::State::waiting;
    running_->at = site;
    switch_fiber(running_->fiber, host_, false);
  }
  // The last to arrive has no head start over those it woke.
  void yield() {
    make_ready(*running_);
    switch_fiber(running_->fiber, host_, false);
  }

  [[noreturn]] void report_deadlock() {
    std::fprintf(stderr, "cuda_emu: deadlock, %u threads wait:\n", live_);
    int shown = 0;
    for (auto& thread : threads_)
      if (thread.state == Thread::State::waiting && shown++ < 8)
        std::fprintf(stderr, "  thread %u at %s (%s:%d)\n", thread.number, thread.at.what,
                     thread.at.file, thread.at.line);
    std::fflush(stderr);
    std::abort();
  }

  Meeting& find_meeting(unsigned warp, uint32_t mask, const Site& site) {
    for (auto& meeting : meetings_[warp]) {
      if (meeting->mask == mask) return *meeting;
      if ((meeting->mask & mask) && meeting->arrived) fail("masks overlap", site);
    }
    meetings_[warp].push_back(std::make_unique<Meeting>(mask));
    return *meetings_[warp].back();
  }

  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  Stacks stacks_;
  Fiber host_;
  Thread* running_ = nullptr;
  std::vector<std::pair<uint64_t, unsigned>> ready_;  // a heap
  std::vector<uint64_t> priority_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;
  std::vector<SharedArray> shared_;
  size_t shared_bytes_ = 0;
  unsigned live_ = 0, at_barrier_ = 0;
  Site barrier_site_;
  std::mt19937_64 random_;
  char barrier_order_ = 0, exit_order_ = 0;  // their addresses are where memory is ordered
  std::deque<void*> ended_;                  // ThreadSanitizer's fibers of earlier blocks
};

inline void launch(dim3 grid, dim3 threads, const std::function<void()>& body) {
  const size_t per_block = size_t(threads.x) * threads.y * threads.z;
  if (per_block == 0 || per_block > 1024) fail("a block has 1 to 1024 threads");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) fail("the grid is empty");
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) fail("the grid is too large");
  const Unwatched scope;
  gridDim = grid;
  blockDim = threads;
  Block block(threads, body);
  std::vector<size_t> order(size_t(grid.x) * grid.y * grid.z);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (options().order == Order::reverse) std::reverse(order.begin(), order.end());
  if (options().order == Order::random) std::shuffle(order.begin(), order.end(), block.random());
  Block::current() = &block;
  for (size_t i : order)
    block.run({unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y)});
  Block::current() = nullptr;
}

}  // namespace cuda_emu
