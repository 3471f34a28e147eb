# The version of an interpreter, and whether it was compiled with frame pointers: `3 13 False`.
def python_facts():
    import sys, sysconfig

    of = sysconfig.get_config_vars()
    flags = " ".join(str(of.get(name)) for name in ("CONFIGURE_CFLAGS", "CFLAGS", "PY_CORE_CFLAGS"))
    return "%d %d %s" % (*sys.version_info[:2], "-fno-omit-frame-pointer" in flags)

