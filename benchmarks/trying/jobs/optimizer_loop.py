"""Fine-tunes many small adapters; foreach was turned off once to save memory."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
width, count = (512, 120) if device == "cuda" else (32, 20)


class Adapters(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = x + 0.01 * torch.tanh(layer(x))
        return x


model = Adapters().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, foreach=False)
x, y = torch.randn(256, width, device=device), torch.randn(256, width, device=device)
for step in range(100_000):
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
