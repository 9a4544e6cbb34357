"""Problems of a machine's software: frameworks, protobuf, stepscope itself, and the output folder."""

from __future__ import annotations

from stepscope.problems.entry import Entry

ENTRIES = (
    Entry(
        "no-framework",
        "info",
        "None of PyTorch, TensorFlow and JAX is installed in this Python",
        "The doctor examines one interpreter, by default the one that runs stepscope. The job may use another.",
        "stepscope doctor --python PATH, with the Python that runs the job.",
    ),
    Entry(
        "framework-broken",
        "error",
        "A framework is listed as installed, but its files are missing",
        "An uninstall or upgrade was interrupted, or two packages that provide the same module (tensorflow and tensorflow-cpu) were installed and "
        "one of them removed, which deletes the other's files.",
        "{python} -m pip install --force-reinstall --no-deps {package}",
        example={"package": "PACKAGE"},
    ),
    Entry(
        "duplicate-tensorflow",
        "error",
        "Several packages provide TensorFlow",
        "They overwrite each other's files; which one is imported depends on the order of installation.",
        "{python} -m pip uninstall -y {packages} && {python} -m pip install tensorflow",
        example={"packages": "tensorflow tensorflow-cpu"},
    ),
    Entry(
        "torch-empty-stacks",
        "info",
        "This PyTorch records no stacks",
        "From 2.0 to 2.4 with_stack=True leaves key_averages() and export_stacks() without stacks unless an experimental setting is given "
        "(pytorch#117515).",
        "Install PyTorch 2.5 or newer; or pass experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True).",
    ),
    Entry(
        "torch-old-clock",
        "info",
        "This PyTorch writes inconsistent times",
        "Before 2.4 the ends of events were rounded separately, so children outlive their parents and self times become negative; before 1.12 "
        "the ids that link ops and kernels have another meaning.",
        "Install PyTorch 2.4 or newer.",
    ),
    Entry(
        "jax-versions",
        "warning",
        "The versions of the JAX packages do not match",
        "jax refuses a newer jaxlib at import; jaxlib ignores a newer CUDA plugin with a warning, and the job runs on the CPU without device "
        "events.",
        "Install them together: {python} -m pip install -U 'jax[{extra}]'",
        example={"extra": "cuda13"},
    ),
    Entry(
        "installed-twice",
        "warning",
        "A package is installed twice",
        "Two folders of sys.path hold the same package, often the user's site-packages and a virtual environment. Python imports the first one, "
        "whatever pip upgrades in the other.",
        "Remove the one that you do not need: {python} -m pip uninstall {package} removes the first.",
        example={"package": "PACKAGE"},
    ),
    Entry(
        "protobuf-version",
        "error",
        "The version of protobuf does not fit",
        "Code generated for one major version of protobuf refuses another: `Descriptors cannot be created directly`, `VersionError`, or a Profile "
        "tab that is missing. stepscope itself does not use protobuf.",
        "{python} -m pip install -U 'protobuf{specifier}'",
        example={"specifier": ">=6.31.1,<8"},
    ),
    Entry(
        "protobuf-in-python",
        "info",
        "protobuf runs as plain Python",
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python hides version conflicts and makes TensorBoard and XProf read profiles many times slower.",
        "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
    ),
    Entry(
        "slow-path",
        "warning",
        "stepscope's hot loops run interpreted",
        "No C compiler was found when stepscope was installed. Everything works, but many times slower.",
        "Install a C compiler, then: pip install --force-reinstall --no-deps --no-binary stepscope stepscope",
    ),
    Entry(
        "disk-nearly-full",
        "warning",
        "The disk is nearly full",
        "A profile with stacks takes 100 MB and more for a few steps; a full disk leaves a truncated file.",
        "Free some space, or choose a folder on another disk.",
    ),
)
