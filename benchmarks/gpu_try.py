"""First look at a device (temporary)."""
import sys, time, traceback, importlib.util, pathlib, threading, os
sys.argv = sys.argv[:1]
spec = importlib.util.spec_from_file_location("gpu_bench", pathlib.Path(__file__).parent / "gpu.py"); b = importlib.util.module_from_spec(spec); spec.loader.exec_module(b)
import acegames as ace
from acegames.engines.gpu import compiling as C, device as D
say = b.say
card = D.open_card(0)
say(card.name, card.capability, card.processors, card.free / 2**30)
cl, ll = C.compile_ltoir, C.link
kept = {}
def compile_ltoir(r, g, c):
    t = time.time(); x = cl(r, g, c); kept[r.name] = x; say("compiled", r.name, "%.1f s" % (time.time() - t)); return x
def link(x, c, **k):
    t = time.time(); y = ll(x, c, **k); say("linked %.1f s" % (time.time() - t), len(y)); return y
C.compile_ltoir, C.link = compile_ltoir, link
for name, f in (("tiny", lambda: b.files_agree("tiny", b.random_game(3, 4, 6), ace.CE(), ace.GPUEngine(smallest=0))),
                ("small", lambda: b.files_agree("small", b.random_game(4, 12, 24), ace.CE(), ace.GPUEngine(smallest=0))),
                ("fair", lambda: b.files_agree("fair", b.random_game(4, 12, 24), ace.CE("fair"), ace.GPUEngine(smallest=0))),
                ("times", lambda: b.times(large=False)), ("parts", b.parts)):
    try: f()
    except BaseException: traceback.print_exc(limit=8)
from cuda.bindings import nvjitlink as nj
for opts in (["-O1"], ["-O0"], ["-O3", "-maxrregcount=128"], ["-O3", "-split-compile=0"]):
    try:
        o = ["-arch=sm_90", "-lto", "-fma=0", *opts]
        h = nj.create(len(o), o); x = kept["left"]; nj.add_data(h, nj.InputType.LTOIR, x, len(x), "k"); t = time.time(); nj.complete(h); say(opts, "%.1f s" % (time.time() - t), nj.get_linked_cubin_size(h))
    except BaseException: traceback.print_exc(limit=3)
