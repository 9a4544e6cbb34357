"""PyTorch's execution traces: graphs of ops and tensors without times, which say more of the ops of a Kineto trace."""
