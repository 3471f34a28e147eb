import cppyy

cppyy.cppdef("""
__attribute__((noinline)) long inner(long n) { long s = 0; for (long i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
long work(long n) { long s = 0; for (long i = 0; i < n; i++) s += inner(10000 + i % 7); return s; }
""")
cppyy.gbl.work(20000)
