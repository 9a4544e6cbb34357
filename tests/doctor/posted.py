"""Scripts as people post them: snippets without imports, notebooks exported to .py, aliases, class methods, TensorFlow 1."""

from __future__ import annotations

_SESSION = """
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(1000):
            if i % 100 == 99:
                run_options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                run_metadata = tf.RunMetadata()
                summary, _ = sess.run([merged, train_step], feed_dict=feed(True), options=run_options, run_metadata=run_metadata)
                train_writer.add_run_metadata(run_metadata, 'step%03d' % i)
            else:
                sess.run([merged, train_step], feed_dict=feed(True))
"""

WRONG: dict[str, list[str]] = {
    "profiler-never-started": [
        # The import that Stack Overflow answers recommend, and nothing that uses it.
        "import tensorflow as tf\nfrom tensorflow.python.profiler import profiler\n\nmodel = tf.keras.Sequential()\nmodel.fit(x, y, epochs=3)\n",
        "from tensorflow.python.profiler import profiler_v2 as profiler\nimport tensorflow as tf\nagent.train(experience)\n",
        "import tensorflow as tf\nimport tensorflow.python.profiler.profiler as tfprof\nmodel.fit(x, y)\n",
        "from tensorflow.profiler.experimental import Profile\nmodel.fit(x, y)\n",
        "from jax import profiler\nstate = train_step(state)\n",
        # A snippet without its import.
        "prof = torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler('./log'))\nfor x in loader:\n    train(x)\n",
    ],
    "profiler-never-stopped": [
        "tf.profiler.experimental.start('logs')\nfor x in data:\n    train_step(x)\n    with tf.profiler.experimental.Trace('t', step_num=1, _r=1):\n        pass\n",
        "from tensorflow.python.profiler import profiler_v2 as profiler\nprofiler.start('logs')\nagent.train(experience)\n",
        "class Trainer:\n    def fit(self):\n        self.prof = torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler('l'))\n"
        "        self.prof.start()\n        self.loop()\n",
    ],
    "profiler-inside-function": [
        "import tensorflow as tf\n\n@tf.function\ndef train_step(x):\n    tf.profiler.experimental.start('logs')\n    y = model(x)\n"
        "    tf.profiler.experimental.stop()\n    return y\n",
        "from tensorflow import function\nimport tensorflow.profiler.experimental as prof\n@function(jit_compile=True)\ndef f(x):\n"
        "    with prof.Profile('logs'):\n        return x + x\n",
        # A method, traced where the object is made.
        "class Agent:\n    def __init__(self):\n        self.train = tf.function(self._train)\n    def _train(self, batch):\n"
        "        with tf.profiler.experimental.Profile('logs'):\n            return self.update(batch)\n",
        # Keras compiles the steps of a model.
        "from tensorflow import keras\nclass MyModel(keras.Model):\n    def train_step(self, data):\n        tf.profiler.experimental.start('logs')\n"
        "        loss = self.compute(data)\n        tf.profiler.experimental.stop()\n        return loss\n",
        # In a function that the traced one calls.
        "def begin():\n    jax.profiler.start_trace('logs')\n@jax.jit\ndef step(x):\n    begin()\n    return x * x\ny = step(x).block_until_ready()\n"
        "jax.profiler.stop_trace()\n",
    ],
    "profiler-in-traced-function": [
        "@tf.function\ndef step(x):\n    with tf.profiler.experimental.Trace('s', step_num=1, _r=1):\n        return x\n"
        "with tf.profiler.experimental.Profile('logs'):\n    step(1)\n",
    ],
    "profiler-name-unknown": [
        "from tensorflow.python.profiler import profiler\nimport tensorflow as tf\nprofiler.start('logs')\nmodel.fit(x)\nprofiler.stop()\n",
        "with tf.profiler.experimental.Profiler('logs'):\n    model.fit(x)\n",
        "import tensorflow as tf\nprofiler = tf.profiler.Profiler(graph)\nmodel.fit(x)\n",
        "from tensorflow.profiler.experimental import profile\nwith profile('logs'):\n    model.fit(x)\n",
        "import tensorflow as tf\ntf.contrib.tfprof.model_analyzer.print_model_analysis(graph)\n",
    ],
    "step-on-legacy-profiler": [
        "import torch\nwith torch.autograd.profiler.profile() as prof:\n    for x in loader:\n        train(x)\n        prof.step()\nprint(prof.key_averages().table())\n",
        "from torch.autograd import profiler\nwith profiler.profile(record_shapes=True) as p:\n    for x in loader:\n        loss(x).backward()\n"
        "        p.step()\np.export_chrome_trace('t.json')\n",
        "import torch.autograd.profiler as profiler\nwith profiler.profile(on_trace_ready=handler) as p:\n    train()\nprint(p)\n",
    ],
    "trace-without-root": [
        "import tensorflow as tf\ntf.profiler.experimental.start('logs')\ntry:\n    for step in range(100):\n"
        "        with tf.profiler.experimental.Trace('train'):\n            train_step(next(it))\nfinally:\n    tf.profiler.experimental.stop()\n",
        "from tensorflow.profiler.experimental import Profile, Trace\nwith Profile('logs'):\n    while go():\n        with Trace('train', _r=1):\n            train_step()\n",
    ],
    "window-never-reached": [
        "import tensorflow as tf\ncb = tf.keras.callbacks.TensorBoard('logs', profile_batch=(500, 520))\n"
        "model.fit(data, steps_per_epoch=100, epochs=2, callbacks=[cb])\n",
        "from tensorflow.keras.callbacks import TensorBoard\nimport numpy as np\nBATCH_SIZE = 64\nEPOCHS = 2\nx = np.random.rand(1024, 32).astype('float32')\n"
        "y = np.zeros((1024, 1))\nmodel.fit(x, y, batch_size=BATCH_SIZE, epochs=EPOCHS, callbacks=[TensorBoard('logs', profile_batch='40,60')])\n",
        "import keras\nimport numpy as np\nmodel.fit(np.ones((320, 4)), np.ones(320), callbacks=[keras.callbacks.TensorBoard('l', profile_batch=100)])\n",
        "WAIT, STEPS = 20, 10\nN = 10\nwith torch.profiler.profile(schedule=torch.profiler.schedule(wait=N, warmup=2, active=3),\n"
        "        on_trace_ready=torch.profiler.tensorboard_trace_handler('l')) as prof:\n    for i in range(N):\n        train()\n        prof.step()\n",
    ],
    "one-logdir-for-all-ranks": [
        "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\nLOGDIR = '/mnt/nfs/logs'\nwith strategy.scope():\n"
        "    model = build()\ntf.profiler.experimental.start(logdir=LOGDIR)\nmodel.fit(data)\ntf.profiler.experimental.stop()\n",
        "import json, os\nimport tensorflow as tf\ncfg = json.loads(os.environ['TF_CONFIG'])\n"
        "model.fit(data, callbacks=[tf.keras.callbacks.TensorBoard(log_dir='logs', profile_batch=(10, 20))])\n",
        "import os, torch\nlocal_rank = int(os.environ['LOCAL_RANK'])\nOUT = os.path.join('traces', 'run1.json')\nwith torch.profiler.profile() as p:\n"
        "    train(local_rank)\np.export_chrome_trace(OUT)\n",
        "import torch\nimport torch.multiprocessing as mp\ndef worker(i):\n    with torch.profiler.profile() as p:\n        train(i)\n"
        "    p.export_chrome_trace('trace.json')\nmp.spawn(worker, nprocs=4)\n",
    ],
    "no-step-marker": [
        # As Colab saves a notebook.
        "!pip install -U tensorboard-plugin-profile\n%load_ext tensorboard\n\nwith tf.profiler.experimental.Profile('logs'):\n    for x in ds:\n        train_step(x)\n"
        "\n%tensorboard --logdir logs\n",
    ],
}  # fmt: skip

RIGHT: dict[str, str] = {
    "tensorflow 1, a session with a full trace": "import tensorflow as tf\ndef main(_):" + _SESSION,
    "tensorflow 1, by its names in 2": "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nif True:"
    + _SESSION,
    "tensorflow 1, a timeline": """
import tensorflow as tf
from tensorflow.python.client import timeline
options = tf.compat.v1.RunOptions(trace_level=3)
sess.run(op, options=options, run_metadata=metadata)
open("t.json", "w").write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
""",
    "tensorflow 1, its graph profiler": """
import tensorflow as tf
sess = tf.compat.v1.Session()
profiler = tf.compat.v1.profiler.Profiler(sess.graph)
profiler.profile_operations(options=tf.compat.v1.profiler.ProfileOptionBuilder.float_operation())
""",
    "a private module of tensorflow": """
from tensorflow.python.profiler import profiler_v2 as profiler
profiler.start("logs")
try:
    agent.train(experience)
finally:
    profiler.stop()
""",
    "regions inside of steps": """
import tensorflow as tf
with tf.profiler.experimental.Profile("logs"):
    for step in range(10):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            with tf.profiler.experimental.Trace("forward"):
                train_step()
""",
    "keras that reaches its batches": """
import tensorflow as tf
import numpy as np
x, y = np.ones((640, 4)), np.ones(640)
data = np.random.rand(640, 4)
model.fit(data, y, epochs=2, callbacks=[tf.keras.callbacks.TensorBoard("logs", profile_batch=(30, 35))])
""",
    "our own profiler stops by itself": """
import stepscope
prof = stepscope.Profiler("logs")
prof.start()
for batch in loader:
    train(batch)
    prof.step()
""",
    "a name that is not TensorFlow": """
tf = transforms.Compose([])
for x in data:
    tf.profiler.experimental.start("x")
with stepscope.profile("logs") as prof:
    train()
""",
    "old torch, as documented": """
with torch.autograd.profiler.profile(use_device="cuda") as prof:
    for x in loader:
        loss(x).backward()
print(prof.key_averages().table())
""",
    "exported notebook": """
# coding: utf-8
# In[1]:
get_ipython().run_line_magic('load_ext', 'tensorboard')
import jax
# In[2]:
with jax.profiler.trace("logs"):
    for i in range(8):
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            state = train_step(state, x)
    state.block_until_ready()
""",
}
