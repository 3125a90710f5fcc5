// A door to Gloo that has C's calling convention. It moves bytes; what they mean is known to the caller alone.
// Every function returns 0, or writes why it failed. One communicator may be used by several threads at the same time.

#include <gloo/allgatherv.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

using std::chrono::milliseconds;

namespace {

// Where processes meet: the caller's table of values by name. Its functions return 0, or something else when they fail.
struct Table {
  void* table;
  int (*set)(void* table, const char* name, const char* value, size_t length);
  // Waits for a value, and gives it to `take` once.
  int (*get)(void* table, const char* name, uint64_t wait, void* into, void (*take)(void* into, const char* value, size_t length));
};

class Meeting : public gloo::rendezvous::Store {
 public:
  Meeting(Table table, milliseconds patience) : table_(table), patience_(patience) {}

  void set(const std::string& name, const std::vector<char>& value) override {
    if (table_.set(table_.table, name.c_str(), value.data(), value.size())) throw std::runtime_error("the store has gone");
  }

  std::vector<char> get(const std::string& name) override { return get(name, patience_); }

  void wait(const std::vector<std::string>& names) override { wait(names, patience_); }

  void wait(const std::vector<std::string>& names, const milliseconds& limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (const auto& name : names) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
      get(name, std::max(left, milliseconds(1)));
    }
  }

 private:
  std::vector<char> get(const std::string& name, milliseconds limit) {
    std::vector<char> value;
    const auto take = [](void* into, const char* from, size_t length) {
      static_cast<std::vector<char>*>(into)->assign(from, from + length);
    };
    if (table_.get(table_.table, name.c_str(), limit.count(), &value, take)) {
      throw std::runtime_error("a process has not come in time");
    }
    return value;
  }

  Table table_;
  milliseconds patience_;
};

struct Communicator {
  std::shared_ptr<gloo::rendezvous::Context> context;
};

// Messages between two processes have a slot of their own, which no collective uses.
constexpr uint64_t kMessages = uint64_t(0x70) << 56;
constexpr uint64_t kChunks = uint64_t(0x71) << 56;

template <class Act>
int guarded(char* why, size_t room, Act act) {
  try {
    act();
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(why, room, "%s", e.what());
  } catch (...) {
    std::snprintf(why, room, "an exception of an unknown kind");
  }
  return 1;
}

}  // namespace

extern "C" {

// Meets the others and connects to each of them; `host` is this machine's address.
int sampan_gloo_connect(Communicator** made, const char* host, int rank, int size, uint64_t patience, uint64_t timeout,
                        Table table, char* why, size_t room) {
  return guarded(why, room, [&] {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(milliseconds(patience));
    Meeting meeting(table, milliseconds(patience));
    context->connectFullMesh(meeting, device);
    context->setTimeout(milliseconds(timeout));
    *made = new Communicator{context};
  });
}

// Nobody uses the communicator any more.
void sampan_gloo_free(Communicator* of) { delete of; }

// Closes the connections: the others notice it.
int sampan_gloo_close(Communicator* of, char* why, size_t room) {
  return guarded(why, room, [&] { of->context->closeConnections(); });
}

int sampan_gloo_barrier(Communicator* of, uint32_t tag, char* why, size_t room) {
  return guarded(why, room, [&] {
    gloo::BarrierOptions options(of->context);
    options.setTag(tag);
    gloo::barrier(options);
  });
}

int sampan_gloo_broadcast(Communicator* of, uint32_t tag, int root, char* data, size_t length, char* why, size_t room) {
  return guarded(why, room, [&] {
    gloo::BroadcastOptions options(of->context);
    options.setTag(tag);
    options.setRoot(root);
    options.setOutput(data, length);
    gloo::broadcast(options);
  });
}

// Everybody's bytes, one after the other; `lengths` has one number for each process.
int sampan_gloo_gather(Communicator* of, uint32_t tag, char* mine, char* all, const size_t* lengths, char* why, size_t room) {
  return guarded(why, room, [&] {
    const auto& context = of->context;
    gloo::AllgathervOptions options(context);
    options.setTag(tag);
    options.setInput(mine, lengths[context->rank]);
    options.setOutput(all, std::vector<size_t>(lengths, lengths + context->size));
    gloo::allgatherv(options);
  });
}

// Gives each process a part of `from`, and takes one from each into `to`; parts lie one after the other.
int sampan_gloo_exchange(Communicator* of, uint32_t tag, char* from, const int64_t* give, char* to, const int64_t* take,
                         char* why, size_t room) {
  return guarded(why, room, [&] {
    const auto size = of->context->size;
    gloo::AlltoallvOptions options(of->context);
    options.setTag(tag);
    options.setInput(from, std::vector<int64_t>(give, give + size));
    options.setOutput(to, std::vector<int64_t>(take, take + size));
    gloo::alltoallv(options);
  });
}

// Reduces in chunks that follow each other on the wire. Of each chunk every process reduces one piece: it takes the others' shares of
// it, lets `sum` add them to its own, and gives the result to all. The shares of a chunk are under way before the result of the one
// before it is. `room` has place for the shares of two chunks.
int sampan_gloo_reduce(Communicator* of, uint32_t tag, char* data, size_t length, size_t chunk, char* room_for_shares, void* summing,
                       void (*sum)(void* summing, const char* shares, char* own, size_t length), char* why, size_t room) {
  return guarded(why, room, [&] {
    const auto& context = of->context;
    const size_t size = context->size, rank = context->rank;
    const size_t chunks = (length + chunk - 1) / chunk;
    struct Part {
      size_t at, length;
    };
    // The same pieces as those of the other engines: no element is cut.
    const auto piece = [&](size_t k, size_t j) {
      const size_t whole = std::min(chunk, length - k * chunk);
      const size_t each = ((whole + size - 1) / size + 63) / 64 * 64;
      const size_t from = std::min(j * each, whole), to = std::min((j + 1) * each, whole);
      return Part{k * chunk + from, to - from};
    };
    const size_t slot_room = size * piece(0, 0).length;
    using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
    // Two of each: messages of one chunk are told from those of the next by the buffer they belong to.
    Buffer given[2], taken[2], results[2];
    for (int i = 0; i < 2; i++) {
      given[i] = context->createUnboundBuffer(data, length);
      taken[i] = context->createUnboundBuffer(room_for_shares + i * slot_room, slot_room);
      results[i] = context->createUnboundBuffer(data, length);
    }
    const auto slot = [&](size_t k, bool result) { return kChunks | uint64_t(tag) << 24 | ((k << 1 | result) & 0xffffff); };
    const auto timeout = context->getTimeout();
    const auto share = [&](size_t k) {
      const Part own = piece(k, rank);
      for (size_t j = 1; j < size; j++) {
        const size_t to = (rank + j) % size, from = (rank + size - j) % size;
        const Part theirs = piece(k, to);
        if (theirs.length) given[k % 2]->send(to, slot(k, false), theirs.at, theirs.length);
        if (own.length) taken[k % 2]->recv(from, slot(k, false), from * own.length, own.length);
      }
    };
    const auto count = [&](size_t k, bool others) {
      size_t found = 0;
      for (size_t j = 0; j < size; j++) found += j != rank && piece(k, others ? j : rank).length > 0;
      return found;
    };
    const auto finish = [&](size_t k) {
      for (size_t n = count(k, true); n > 0; n--) results[k % 2]->waitRecv(timeout);
      for (size_t n = count(k, false); n > 0; n--) results[k % 2]->waitSend(timeout);
    };
    share(0);
    for (size_t k = 0; k < chunks; k++) {
      if (k + 1 < chunks) share(k + 1);
      for (size_t n = count(k, false); n > 0; n--) taken[k % 2]->waitRecv(timeout);
      for (size_t n = count(k, true); n > 0; n--) given[k % 2]->waitSend(timeout);
      const Part own = piece(k, rank);
      if (own.length) sum(summing, room_for_shares + k % 2 * slot_room, data + own.at, own.length);
      for (size_t j = 1; j < size; j++) {
        const size_t to = (rank + j) % size, from = (rank + size - j) % size;
        const Part theirs = piece(k, from);
        if (own.length) results[k % 2]->send(to, slot(k, true), own.at, own.length);
        if (theirs.length) results[k % 2]->recv(from, slot(k, true), theirs.at, theirs.length);
      }
      if (k > 0) finish(k - 1);
    }
    finish(chunks - 1);
  });
}

int sampan_gloo_send(Communicator* of, int to, char* data, size_t length, char* why, size_t room) {
  return guarded(why, room, [&] {
    auto buffer = of->context->createUnboundBuffer(data, length);
    buffer->send(to, kMessages);
    buffer->waitSend(of->context->getTimeout());
  });
}

int sampan_gloo_recv(Communicator* of, int from, char* data, size_t length, char* why, size_t room) {
  return guarded(why, room, [&] {
    auto buffer = of->context->createUnboundBuffer(data, length);
    buffer->recv(from, kMessages);
    buffer->waitRecv(of->context->getTimeout());
  });
}

}  // extern "C"
