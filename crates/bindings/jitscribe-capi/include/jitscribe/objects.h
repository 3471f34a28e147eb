/*
 * All code that is alive as an object file for a loader. Not on Windows.
 * Results, ownership, units and pointers are as in jitscribe.h.
 *
 * This file is generated from the library's source by cbindgen. Do not edit it.
 */

#ifndef JITSCRIBE_OBJECTS_H
#define JITSCRIBE_OBJECTS_H

#include <jitscribe.h>


// A format of object files.
enum jitscribe_object_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // An ELF shared object, for dlopen.
    JITSCRIBE_OBJECT_FORMAT_ELF = 0,
    // A dynamic-link library for Windows, for LoadLibrary.
    JITSCRIBE_OBJECT_FORMAT_PE = 1,
    // A dynamic library for macOS, unsigned.
    JITSCRIBE_OBJECT_FORMAT_MACH_O = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum jitscribe_object_format jitscribe_object_format;
#else
typedef uint32_t jitscribe_object_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Writes all code that is alive to a new object file for a loader. With dlopen and dlsym, the same code runs in another process,
// as far as it refers to nothing outside itself. If several codes have the same name, dlsym finds the one that was announced
// last. The call is slow: milliseconds for thousands of codes.
//
// @param path    of the file, which must not exist. Only this user can access it.
// @param format  a jitscribe_object_format.
// @return JITSCRIBE_RESULT_ERROR_NO_CODE, JITSCRIBE_RESULT_ERROR_FILE, JITSCRIBE_RESULT_ERROR_FORMAT, or
//         JITSCRIBE_RESULT_ERROR_ARGUMENT for a format that this library does not know.
jitscribe_result jitscribe_write_object(const jitscribe_scribe *scribe,
                                        jitscribe_str path,
                                        uint32_t format);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JITSCRIBE_OBJECTS_H */
