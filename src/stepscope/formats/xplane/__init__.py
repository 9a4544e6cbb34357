"""XSpace files of TensorFlow and JAX."""
