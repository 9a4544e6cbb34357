"""The same agent. Returns are accumulated backwards, for all pendulums at once."""

import time

import torch

UPDATES, ENVIRONMENTS, HORIZON, DISCOUNT = 24, 2048, 32, 0.99


class Pendulums:
    """Inverted pendulums, stepped together; the reward of each is 1 while it is upright."""

    def __init__(self, count):
        self.angle, self.speed = 0.01 * (torch.arange(count) % 7 - 3), torch.zeros(count)

    def step(self, action):
        self.speed = self.speed + 0.05 * (9.8 * self.angle + 12.0 * action - 6.0)
        self.angle = self.angle + 0.05 * self.speed
        upright = self.angle.abs() < 0.5
        self.angle, self.speed = self.angle * upright, self.speed * upright
        return torch.stack([self.angle, self.speed], dim=1), upright.float()


def play(policy, pendulums, states):
    """HORIZON steps of all pendulums: log-probabilities of the actions, and rewards."""
    chosen, rewards = [], []
    for _ in range(HORIZON):
        scores = policy(states).log_softmax(dim=1)
        actions = torch.multinomial(scores.exp(), 1)
        chosen.append(scores.gather(1, actions)[:, 0])
        states, reward = pendulums.step(actions[:, 0])
        rewards.append(reward)
    return torch.stack(chosen), torch.stack(rewards)


def discounted_returns(rewards):
    """For each step and pendulum, the sum of later rewards, each discounted by its distance."""
    returns = torch.empty_like(rewards)
    total = torch.zeros_like(rewards[0])
    for step in reversed(range(len(rewards))):
        total = rewards[step] + DISCOUNT * total
        returns[step] = total
    return returns


def main():
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    begin = time.perf_counter()
    for _ in range(UPDATES):
        chosen, rewards = play(policy, Pendulums(ENVIRONMENTS), torch.zeros(ENVIRONMENTS, 2))
        returns = discounted_returns(rewards)
        loss = -(chosen * (returns - returns.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(
        f"{UPDATES} updates in {seconds:.2f} s, {seconds / UPDATES * 1e3:.1f} ms each; return {returns[0].mean():.1f}"
    )


if __name__ == "__main__":
    main()
