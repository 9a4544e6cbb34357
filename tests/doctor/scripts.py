"""Training scripts with one mistake each, by the code of the check that must notice, and scripts without any."""

from __future__ import annotations

TORCH = """
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
"""
LOOP = """
    for step, batch in enumerate(loader):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
"""

WRONG: dict[str, list[str]] = {
    "script-syntax": ["print 'hello'\n"],
    "profiler-never-started": [
        TORCH + "prof = profile(on_trace_ready=tensorboard_trace_handler('logs'))\nfor batch in loader:\n    train(batch)\n",
        "from torch.profiler import profile\ntrain()\n",
        "import torch.profiler\nimport torch\ntorch.ones(3)\n",
        "import stepscope\nprof = stepscope.Profiler('logs')\ntrain()\n",
    ],
    "profiler-never-stopped": [
        TORCH + "prof = profile(on_trace_ready=tensorboard_trace_handler('logs'))\nprof.start()\ntrain()\n",
        "import tensorflow as tf\ntf.profiler.experimental.start('logs')\ntrain()\n",
        "import jax\njax.profiler.start_trace('logs')\ntrain().block_until_ready()\n",
        "import tensorflow as tf\ntf.summary.trace_on(graph=True, profiler=True)\ntrain()\n",
    ],
    "stop-skipped-on-error": [
        "import jax\njax.profiler.start_trace('logs')\nfor i in range(5):\n    with jax.profiler.StepTraceAnnotation('t', step_num=i):\n"
        "        x = train_step(x)\nx.block_until_ready()\njax.profiler.stop_trace()\n",
    ],
    "profiler-in-traced-function": [
        "import tensorflow as tf\n@tf.function\ndef step(x):\n    with tf.profiler.experimental.Trace('s', step_num=1, _r=1):\n        return x\n",
        "import jax\nfrom functools import partial\n@partial(jax.jit, static_argnums=0)\ndef f(n, x):\n    with jax.profiler.TraceAnnotation('f'):\n"
        "        return x\n",
        "import jax\ndef f(x):\n    with jax.profiler.TraceAnnotation('f'):\n        return x\nstep = jax.jit(f)\n",
    ],
    "two-profilers": [
        TORCH + "with profile() as outer:\n    with profile() as inner:\n        train()\nouter.export_chrome_trace('a.json')\ninner.export_chrome_trace('b.json')\n",
    ],
    "schedule-without-step": [
        TORCH + "with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=tensorboard_trace_handler('logs')) as prof:" + LOOP,
        "import stepscope\nwith stepscope.profile('logs', schedule=stepscope.schedule(skip=1, warmup=1, active=2)):\n    train()\n",
    ],
    "no-step-marker": [
        TORCH + "with profile(on_trace_ready=tensorboard_trace_handler('logs')) as prof:" + LOOP,
        "import tensorflow as tf\ntf.profiler.experimental.start('logs')\nfor x in data:\n    train_step(x)\ntf.profiler.experimental.stop()\n",
        "import jax\nwith jax.profiler.trace('logs'):\n    for x in data:\n        state = train_step(state, x)\n    state.block_until_ready()\n",
    ],
    "trace-without-root": [
        "import tensorflow as tf\nfor step in range(5):\n    with tf.profiler.experimental.Trace('train', step_num=step):\n        train()\n",
    ],
    "no-warmup": [
        TORCH + "with profile(schedule=schedule(wait=1, warmup=0, active=2), on_trace_ready=tensorboard_trace_handler('logs')) as prof:"
        + LOOP + "        prof.step()\n",
    ],
    "window-never-reached": [
        TORCH + "with profile(schedule=schedule(wait=8, warmup=2, active=2), on_trace_ready=tensorboard_trace_handler('logs')) as prof:\n"
        "    for step in range(10):\n        train()\n        prof.step()\n",
    ],
    "long-window": [
        TORCH + "with profile(schedule=schedule(wait=1, warmup=1, active=500), on_trace_ready=tensorboard_trace_handler('logs')) as prof:"
        + LOOP + "        prof.step()\n",
        TORCH + "with profile(on_trace_ready=tensorboard_trace_handler('logs')) as prof:" + LOOP + "        prof.step()\n",
    ],
    "export-after-handover": [
        TORCH + "with profile(on_trace_ready=tensorboard_trace_handler('logs')) as prof:\n    train()\nprof.export_chrome_trace('t.json')\n",
        TORCH + "def ready(p):\n    p.export_chrome_trace('a.json')\nwith profile(on_trace_ready=ready) as prof:\n    train()\nprof.export_chrome_trace('b.json')\n",
    ],
    "export-before-stop": [TORCH + "with profile() as prof:\n    train()\n    prof.export_chrome_trace('t.json')\n"],
    "trace-thrown-away": [
        TORCH + "with profile(record_shapes=True) as prof:\n    train()\n",
        TORCH + "with profile():\n    train()\n",
    ],
    "one-logdir-for-all-ranks": [
        TORCH + "import torch.distributed as dist\ndist.init_process_group()\nwith profile() as prof:\n    train()\nprof.export_chrome_trace('trace.json')\n",
        TORCH + "import torch.distributed as dist\ndist.init_process_group()\ndef ready(p):\n    p.export_chrome_trace(f'trace_{p.step_num}.json')\n"
        "with profile(on_trace_ready=ready):\n    train()\n",
        TORCH + "from torch.nn.parallel import DistributedDataParallel\nmodel = DistributedDataParallel(model)\n"
        "with profile(on_trace_ready=tensorboard_trace_handler('logs', worker_name='worker0')):\n    train()\n",
        "import jax\njax.distributed.initialize()\nwith jax.profiler.trace('logs'):\n    train().block_until_ready()\n",
    ],
    "option-missing": [
        TORCH + "with profile() as prof:\n    train()\nprof.export_stacks('s.txt')\n",
        TORCH + "with profile(profile_memory=True) as prof:\n    train()\nprof.export_memory_timeline('m.html')\n",
        TORCH + "with profile() as prof:\n    train()\nprint(prof.key_averages(group_by_input_shape=True).table())\n",
        TORCH + "with profile(with_modules=True, on_trace_ready=tensorboard_trace_handler('logs')):\n    train()\n",
    ],
    "no-device-activity": [
        TORCH + "model.to('cuda')\nwith profile(activities=[ProfilerActivity.CPU], on_trace_ready=tensorboard_trace_handler('logs')):\n    train()\n",
    ],
    "device-tracer-off": [
        "import tensorflow as tf\no = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, device_tracer_level=0)\n",
        "import jax\no = jax.profiler.ProfileOptions()\no.device_tracer_level = 0\n",
    ],
    "no-block-until-ready": [
        "import jax\nf = jax.jit(g)\njax.profiler.start_trace('logs')\ny = f(x)\njax.profiler.stop_trace()\n",
    ],
    "keras-profile-batch": [
        "import tensorflow as tf\nc = tf.keras.callbacks.TensorBoard('logs', profile_batch=1)\n",
        "import keras\nc = keras.callbacks.TensorBoard('logs', profile_batch=(1, 5))\n",
    ],
    "nothing-records": [
        "import torch\nfor x in data:\n    train(x)\n",
        "import keras\nmodel.fit(x, callbacks=[keras.callbacks.TensorBoard('logs')])\n",
    ],
}  # fmt: skip

RIGHT: dict[str, str] = {
    "torch with a schedule": TORCH
    + """
def main():
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=tensorboard_trace_handler("logs"),
        record_shapes=True, profile_memory=True, with_stack=True,
    ) as prof:
        for step, batch in enumerate(loader):
            if step >= 10:
                break
            with record_function("forward"):
                loss = model(batch.cuda()).sum()
            loss.backward()
            optimizer.step()
            prof.step()
    print(prof.key_averages(group_by_input_shape=True).table(sort_by="self_cuda_time_total"))
""",
    "torch started and stopped": TORCH
    + """
prof = profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=tensorboard_trace_handler("logs"))
prof.start()
try:
    for batch in loader:
        train(batch)
        prof.step()
finally:
    prof.stop()
""",
    "torch without a schedule": TORCH
    + """
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        model(inputs)
prof.export_chrome_trace("trace.json")
""",
    "torch in a class, handed to others": TORCH
    + """
class Trainer:
    def __init__(self, enabled):
        self.prof = profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=self.ready) if enabled else None
    def ready(self, p):
        p.export_chrome_trace(f"rank{self.rank}.json")
    def fit(self):
        if self.prof is not None:
            self.prof.start()
        for batch in self.loader:
            self.train_step(batch)
            if self.prof:
                self.prof.step()
        if self.prof:
            self.prof.stop()
""",
    "torch handed to a function": TORCH
    + """
def epoch(p, loader):
    for batch in loader:
        train(batch)
        p.step()
def make(rank):
    return profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=tensorboard_trace_handler("logs"))
with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=tensorboard_trace_handler("logs")) as prof:
    epoch(prof, loader)
trainer.fit(make(0))
run(profiler=profile(schedule=schedule(wait=1, warmup=1, active=1)))
""",
    "torch on the first rank only": TORCH
    + """
import contextlib
import torch.distributed as dist
dist.init_process_group()
rank = dist.get_rank()
prof = profile(schedule=schedule(wait=1, warmup=1, active=2)) if rank == 0 else contextlib.nullcontext()
with prof as p:
    for batch in loader:
        train(batch)
        if p is not None:
            p.step()
if rank == 0:
    p.export_chrome_trace("trace.json")
""",
    "torch on a stack of contexts": TORCH
    + """
import contextlib
with contextlib.ExitStack() as stack:
    prof = stack.enter_context(profile(on_trace_ready=tensorboard_trace_handler("logs")))
    for step in range(8):
        train(step)
        prof.step()
""",
    "torch, a handler that only prints": TORCH
    + """
def ready(p):
    print(p.key_averages().table())
with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
    for step in range(8):
        train(step)
        prof.step()
prof.export_chrome_trace("trace.json")
""",
    "torch, names with the rank": TORCH
    + """
import os
import torch.distributed as dist
rank = int(os.environ["RANK"])
with profile() as prof:
    train()
prof.export_chrome_trace(f"trace_{rank}.json")
""",
    "torch, entered only if wanted": TORCH
    + """
from contextlib import nullcontext
prof = profile(record_shapes=True) if enabled else None
with prof or nullcontext():
    train()
if prof:
    prof.export_chrome_trace("trace.json")
""",
    "tensorflow by functions": """
import tensorflow as tf
@tf.function
def train_step(x):
    with tf.name_scope("forward"):
        return model(x)
tf.profiler.experimental.start("logs")
try:
    for step, x in enumerate(data.take(10)):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(x)
finally:
    tf.profiler.experimental.stop()
""",
    "keras": """
import tensorflow as tf
model.fit(data, callbacks=[tf.keras.callbacks.TensorBoard("logs", profile_batch=(10, 15))])
""",
    "jax": """
import jax
@jax.jit
def train_step(state, x):
    with jax.named_scope("forward"):
        return state
with jax.profiler.trace("logs"):
    for i in range(8):
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            state = train_step(state, x)
    jax.block_until_ready(state)
""",
    "jax by functions": """
import jax
from jax import profiler
profiler.start_trace("logs")
try:
    for i in range(8):
        with profiler.StepTraceAnnotation("train", step_num=i):
            loss = train_step(x)
    print(float(loss))
finally:
    profiler.stop_trace()
""",
    "stepscope": """
import stepscope
with stepscope.profile("logs/run1") as prof:
    for batch in prof.input(loader):
        with stepscope.annotate("forward"):
            model(batch)
        loss.backward()
        prof.step()
p = stepscope.Profiler("logs/run1", schedule=stepscope.schedule(skip=10, warmup=2, active=5, repeat=1), memory=True)
p.start()
for batch in loader:
    train(batch)
    p.step()
p.stop()
@stepscope.profile("logs")
def main():
    train()
""",
    "a wrapper of contexts": TORCH
    + """
from contextlib import contextmanager
@contextmanager
def maybe_profile(config):
    if config.enabled:
        with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=handler) as prof:
            yield prof
    else:
        yield None
""",
}
