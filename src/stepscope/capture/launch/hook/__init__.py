"""The folder that `stepscope run` puts on PYTHONPATH: it holds nothing but the module that every Python imports first."""
