"""The same classifier. Four worker processes fetch batches ahead of the training loop."""

import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH = 24, 8


class Images(Dataset):
    """Samples that take 10 ms to arrive, as from a network file system or an object store."""

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        time.sleep(0.01)
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 32, 32, generator=generator), index % 10


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 7 * 7, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(Images(), batch_size=BATCH, num_workers=4, prefetch_factor=4)
    begin = time.perf_counter()
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.perf_counter() - begin
    print(f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
