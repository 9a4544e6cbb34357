"""A transformer whose layers are checkpointed although it would fit."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
d, layers, batch, length = (1024, 10, 16, 1024) if device == "cuda" else (64, 2, 2, 32)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d, d // 64, 4 * d, dropout=0.0, batch_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x.mean(1))


model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x, y = torch.randn(batch, length, d, device=device), torch.randint(0, 10, (batch,), device=device)
for step in range(100_000):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
