"""The tab in TensorBoard: a loader that cannot stop TensorBoard, and the plugin that mounts the server's app."""
