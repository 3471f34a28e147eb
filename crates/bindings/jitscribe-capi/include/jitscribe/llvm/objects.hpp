// jitscribe for LLVM: the objects of a JIT that are alive, and what of them is announced. Included by llvm.hpp and
// llvm_plugin.hpp.
//
// An object that is loaded while the scribe is off can be announced when the scribe is turned on (`jitscribe ctl -p PID on`).
// For that, it has to be kept: a copy of its object file, until it is announced or freed. A program that wants this makes an
// `llvm_replay` first, and passes it to its scribe and to its listeners and plugins:
//
//     auto &replay = *new jitscribe::llvm_replay;          // lives as long as the process
//     const auto scribe = jitscribe::scribe::open(
//         jitscribe::settings().add(JITSCRIBE_FLAG_OFF).add(JITSCRIBE_FLAG_CONTROL_THREAD).replay(replay));
//     layer->addPlugin(std::make_unique<jitscribe::llvm_plugin>(scribe, "llvm", &replay));
//
// Without JITSCRIBE_FLAG_CONTROL_THREAD, the next object that is loaded, or scribe::poll, applies the request.
#ifndef JITSCRIBE_LLVM_OBJECTS_HPP
#define JITSCRIBE_LLVM_OBJECTS_HPP

#include <jitscribe.hpp>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace jitscribe {
namespace llvm_detail {

/// Objects that can be announced when the scribe is turned on.
class replayed {
public:
    virtual void replay() = 0;

protected:
    ~replayed() = default;
};

using codes = std::vector<loaded_code>;

/// Announces an object. It owns all that it needs.
using announcer = std::function<codes()>;

} // namespace llvm_detail

/// Announces what was loaded while the scribe was off. See the top of this file.
class llvm_replay {
public:
    llvm_replay() = default;
    llvm_replay(const llvm_replay &) = delete;
    llvm_replay &operator=(const llvm_replay &) = delete;

    /// For `settings::replay`.
    void operator()(scribe) noexcept
    {
        // Held while they announce: none of them may be destroyed during that time. An announcement that finds another request on
        // the same thread comes back here.
        const std::lock_guard<std::recursive_mutex> guard(mutex_);
        for (llvm_detail::replayed *one : members_) {
            one->replay();
        }
    }

    void add(llvm_detail::replayed &one)
    {
        const std::lock_guard<std::recursive_mutex> guard(mutex_);
        members_.push_back(&one);
    }
    void remove(llvm_detail::replayed &one)
    {
        const std::lock_guard<std::recursive_mutex> guard(mutex_);
        members_.erase(std::remove(members_.begin(), members_.end(), &one), members_.end());
    }

private:
    std::recursive_mutex mutex_;
    std::vector<llvm_detail::replayed *> members_;
};

namespace llvm_detail {

/// The objects of a listener or plugin, by its keys.
template <typename Key>
class live_objects final : public replayed {
public:
    explicit live_objects(llvm_replay *replay) : replay_(replay)
    {
        if (replay_ != nullptr) {
            replay_->add(*this);
        }
    }
    live_objects(const live_objects &) = delete;
    live_objects &operator=(const live_objects &) = delete;
    ~live_objects()
    {
        if (replay_ != nullptr) {
            replay_->remove(*this);
        }
    }

    /// Whether an object that cannot be announced now should be added with an announcer.
    bool keeps() const noexcept { return replay_ != nullptr; }

    void add(Key key, codes announced)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        append(objects_[key].announced, std::move(announced));
    }
    void add(Key key, announcer later)
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        objects_[key].kept.push_back(std::move(later));
    }

    /// Announces that objects are gone.
    void remove(Key key)
    {
        // Unloaded without the lock.
        object gone;
        std::unique_lock<std::mutex> guard(mutex_);
        // Their memory may be freed when this returns.
        while (replaying_ == key && is_replaying_) {
            replayed_.wait(guard);
        }
        const auto found = objects_.find(key);
        if (found != objects_.end()) {
            gone = std::move(found->second);
            objects_.erase(found);
        }
        guard.unlock();
    }

    void transfer(Key to, Key from)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        while (replaying_ == from && is_replaying_) {
            replayed_.wait(guard);
        }
        const auto found = objects_.find(from);
        if (found == objects_.end()) {
            return;
        }
        object moved = std::move(found->second);
        objects_.erase(found);
        object &known = objects_[to];
        append(known.announced, std::move(moved.announced));
        for (announcer &one : moved.kept) {
            known.kept.push_back(std::move(one));
        }
    }

    void replay() override
    {
        std::unique_lock<std::mutex> guard(mutex_);
        is_asked_ = true;
        if (is_replaying_) {
            return;
        }
        while (is_asked_) {
            is_asked_ = false;
            std::vector<Key> keys;
            for (const auto &[key, object] : objects_) {
                if (!object.kept.empty()) {
                    keys.push_back(key);
                }
            }
            for (const Key key : keys) {
                replay(key, guard);
            }
        }
    }

private:
    struct object {
        codes announced;
        std::vector<announcer> kept;
    };

    void replay(Key key, std::unique_lock<std::mutex> &guard)
    {
        const auto found = objects_.find(key);
        if (found == objects_.end()) {
            return;
        }
        std::vector<announcer> kept = std::move(found->second.kept);
        found->second.kept.clear();
        replaying_ = key;
        is_replaying_ = true;
        guard.unlock();
        codes announced;
        std::vector<announcer> again;
        for (announcer &one : kept) {
            codes written = one();
            const bool is_off = std::none_of(written.begin(), written.end(),
                                             [](const loaded_code &code) { return bool(code); });
            if (is_off && !written.empty()) {
                again.push_back(std::move(one));
            } else {
                append(announced, std::move(written));
            }
        }
        guard.lock();
        is_replaying_ = false;
        object &known = objects_[key];
        append(known.announced, std::move(announced));
        for (announcer &one : again) {
            known.kept.push_back(std::move(one));
        }
        replayed_.notify_all();
    }

    static void append(codes &known, codes more)
    {
        for (loaded_code &code : more) {
            known.push_back(std::move(code));
        }
    }

    llvm_replay *replay_;
    std::mutex mutex_;
    std::unordered_map<Key, object> objects_;
    /// The objects that are being announced, without the lock.
    Key replaying_{};
    bool is_replaying_ = false;
    /// Since the objects that are being announced were collected.
    bool is_asked_ = false;
    std::condition_variable replayed_;
};

} // namespace llvm_detail
} // namespace jitscribe

#endif // JITSCRIBE_LLVM_OBJECTS_HPP
