"""Trains with Lightning. The area under the ROC curve is computed after each batch, pair by pair, in Python."""

import time

import lightning
import torch
from torch.utils.data import DataLoader

STEPS, BATCH = 24, 2048


def area_under_curve(scores, labels):
    """The share of pairs of a positive and a negative sample in which the positive one has the higher score."""
    positive = [score for score, label in zip(scores.tolist(), labels.tolist()) if label == 1]
    negative = [score for score, label in zip(scores.tolist(), labels.tolist()) if label == 0]
    higher = 0
    for high in positive:
        for low in negative:
            if high > low:
                higher += 1
    return higher / (len(positive) * len(negative))


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch, _):
        x, y = batch
        scores = self.model(x)[:, 0]
        self.log("auc", area_under_curve(scores.detach(), y))
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def main():
    lightning.seed_everything(0, verbose=False)
    batches = [(x, (x.sum(dim=1) > 0).float()) for x in torch.randn(STEPS, BATCH, 32)]
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(Classifier(), DataLoader(batches, batch_size=None))
    seconds = time.perf_counter() - begin
    auc = trainer.callback_metrics["auc"]
    print(f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; area {auc:.3f}")


if __name__ == "__main__":
    main()
