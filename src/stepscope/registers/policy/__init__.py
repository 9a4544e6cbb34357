"""What is worth showing, how long lists may be, and from which share on stepscope speaks: decisions, each with its reason."""
