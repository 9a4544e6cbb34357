"""Trains a small network with Keras. `run_eagerly=True` was left in after debugging."""

import time

import keras
import numpy as np

STEPS, BATCH = 40, 32


def main():
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(STEPS * BATCH, 64)).astype("float32")
    y = rng.integers(0, 10, STEPS * BATCH)
    layers = [keras.layers.Dense(64, activation="relu") for _ in range(4)]
    model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10)])
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    model.train_on_batch(x[:BATCH], y[:BATCH])  # builds everything, so that the time below is that of steps
    begin = time.perf_counter()
    history = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
    seconds = time.perf_counter() - begin
    print(
        f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; loss {history.history['loss'][-1]:.3f}"
    )


if __name__ == "__main__":
    main()
