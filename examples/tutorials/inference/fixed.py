"""Classifies images that arrive in requests. All that wait are scaled down and classified as one batch."""

import time

import torch

import stepscope

ROUNDS, REQUESTS, SIZE, SMALL = 24, 8, 256, 32


def scale_down(images):
    """The mean of each block of pixels."""
    return torch.nn.functional.avg_pool2d(images[:, None], SIZE // SMALL)[:, 0]


@torch.inference_mode()
def answer(model, images):
    """A class for each image."""
    return model(scale_down(images).flatten(1)).argmax(dim=1).tolist()


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(SMALL**2, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    begin = time.perf_counter()
    for _ in range(ROUNDS):
        images = torch.rand(REQUESTS, SIZE, SIZE)  # what has arrived since the last round
        answers = answer(model, images)
        stepscope.step()
    seconds = time.perf_counter() - begin
    print(
        f"{ROUNDS * REQUESTS} images in {seconds:.2f} s, {seconds / ROUNDS * 1e3:.1f} ms for {len(answers)}"
    )


if __name__ == "__main__":
    main()
