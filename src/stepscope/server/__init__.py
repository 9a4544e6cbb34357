"""One WSGI app for `stepscope serve`, the TensorBoard tab and notebooks: runs, their reports and tables, and the page."""
