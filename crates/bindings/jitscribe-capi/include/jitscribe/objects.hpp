// Object files of all code that is alive, in C++17. See jitscribe/objects.h.
#ifndef JITSCRIBE_OBJECTS_HPP
#define JITSCRIBE_OBJECTS_HPP

#include <jitscribe.hpp>
#include <jitscribe/objects.h>

#include <string_view>

namespace jitscribe {

/// Writes all code that is alive to a new object file for a loader: see `jitscribe_write_object`.
inline result write_object(const scribe &scribe, std::string_view path,
                           jitscribe_object_format format) noexcept
{
    return jitscribe_write_object(scribe.raw(), text(path), format);
}

} // namespace jitscribe

#endif // JITSCRIBE_OBJECTS_HPP
