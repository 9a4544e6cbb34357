"""Classifies images that arrive in requests. Each is scaled down pixel by pixel, in Python, and classified alone."""

import time

import torch

import stepscope

ROUNDS, REQUESTS, SIZE, SMALL = 24, 8, 256, 32


def scale_down(image):
    """The mean of each block of pixels."""
    block = SIZE // SMALL
    small = []
    for top in range(0, SIZE, block):
        row = []
        for left in range(0, SIZE, block):
            total = 0.0
            for y in range(top, top + block):
                for value in image[y][left : left + block]:
                    total += value
            row.append(total / block**2)
        small.append(row)
    return torch.tensor(small)


def answer(model, images):
    """A class for each image."""
    return [model(scale_down(image.tolist()).flatten()).argmax().item() for image in images]


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
