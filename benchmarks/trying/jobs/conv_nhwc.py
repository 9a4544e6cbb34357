"""A ResNet-like network under autocast, in the default memory layout."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
wide, batch, size = (128, 64, 56) if device == "cuda" else (8, 2, 16)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, c, 3, padding=1, bias=False),
            nn.BatchNorm2d(c),
            nn.ReLU(inplace=True),
            nn.Conv2d(c, c, 3, padding=1, bias=False),
            nn.BatchNorm2d(c),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


model = nn.Sequential(
    nn.Conv2d(3, wide, 7, stride=1, padding=3),
    *(Residual(wide) for _ in range(6)),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(wide, 100),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = (
    torch.randn(batch, 3, size, size, device=device),
    torch.randint(0, 100, (batch,), device=device),
)
for step in range(100_000):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
