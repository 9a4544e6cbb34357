"""Classifies images that are decoded and augmented in the training process."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--epochs", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
size = 128 if device == "cuda" else 48


class Photos(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        image = torch.randint(0, 256, (3, size + 32, size + 32), generator=g, dtype=torch.uint8).float()
        top, left = torch.randint(0, 32, (2,), generator=g).tolist()
        image = image[:, top : top + size, left : left + size]
        if index % 2:
            image = image.flip(2)
        image = (image / 255 - 0.5) / 0.25
        return image, index % 10


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU())


model = nn.Sequential(
    block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(Photos(), batch_size=args.batch if device == "cuda" else 8, shuffle=True)
if __name__ == "__main__":
    for epoch in range(args.epochs):
        for images, labels in loader:
            loss = criterion(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
