"""Second look at a device (temporary)."""
import sys, time, traceback, importlib.util, pathlib, cProfile, pstats, io
from dataclasses import replace
sys.argv = sys.argv[:1]
spec = importlib.util.spec_from_file_location("gpu_bench", pathlib.Path(__file__).parent / "gpu.py"); b = importlib.util.module_from_spec(spec); spec.loader.exec_module(b)
import acegames as ace
from acegames.engines.gpu import compiling as C, device as D, recipes as R, tables as T
say = b.say
card = D.open_card(0)
say(card.name)
big = b.random_game(10, 45, 1500, largest=50)
mid = b.random_game(14, 100, 330)
def run(what):
    try: what()
    except BaseException: traceback.print_exc(limit=8)
def same(game, concept):
    first, _ = b.timed(lambda: ace.solve(game, concept, engine=ace.GPUEngine(smallest=0)))
    second, there = b.timed(lambda: ace.solve(game, concept, engine=ace.GPUEngine(smallest=0)))
    took, here = b.timed(lambda: ace.solve(game, concept))
    say(concept, there.stats.pairs, "GPU first %.2f second %.3f CPU %.3f" % (first, second, took), "same" if b.digest(here) == b.digest(there) else "DIFFERENT")
for game in (mid, big):
    for c in (ace.CE(), ace.CCE()):
        run(lambda: same(game, c))
def prof(game, c):
    p = cProfile.Profile(); p.enable(); ace.solve(game, c, engine=ace.GPUEngine(smallest=0)); p.disable()
    o = io.StringIO(); pstats.Stats(p, stream=o).sort_stats("tottime").print_stats(22); print("\n".join(l[:150] for l in o.getvalue().splitlines()[4:]), flush=True)
run(lambda: prof(big, ace.CE())); run(lambda: prof(mid, ace.CCE())); run(lambda: prof(b.random_game(4, 12, 24), ace.CCE()))
usual = R.plain
took = {}
launch = D.Card.launch
def timed_launch(self, recipe, blocks, given):
    self.prepare(recipe, given); self.synchronise()
    s, _ = b.timed(lambda: (launch(self, recipe, blocks, given), self.synchronise()))
    took[recipe.name] = took.get(recipe.name, 0.0) + s
    if recipe.name == "left":
        took["#left"] = took.get("#left", 0) + int(self.fetch(given.waiting.counts)[1])
D.Card.launch = timed_launch
def variant(name, make):
    R.plain = make; T.recipe.cache_clear()
    for c in (ace.CE(), ace.CCE()):
        took.clear()
        s = ace.solve(big, c, engine=ace.GPUEngine(smallest=0))
        say(name, c, {k: (f"{1e3 * x:.0f} ms" if k[0] != "#" else x) for k, x in took.items() if k in ("plain", "left", "#left", "cells", "reach")}, "%.3g plain/s" % (s.stats.programs / took["plain"]))
run(lambda: variant("table and whole shared, 32", usual))
run(lambda: variant("table, whole, memory shared, 32", lambda s: replace(usual(s), beside=("group.table", "group.whole", "group.memory"))))
run(lambda: variant("all local, 64", lambda s: replace(usual(s), threads=64, beside=())))
run(lambda: variant("table shared, 32", lambda s: replace(usual(s), beside=("group.table",))))
run(lambda: variant("table and whole shared, 64", lambda s: replace(usual(s), threads=64)))
