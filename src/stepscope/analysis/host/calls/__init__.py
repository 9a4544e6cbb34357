"""What a function calls again and again in the turns of a loop: modules of one class, and passes of a model for one input after the other."""
