"""Problems of TensorBoard and its plugins."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

ENTRIES = (
    Entry(
        "tensorboard-other-python",
        "warning",
        "The command `tensorboard` belongs to another Python",
        "TensorBoard finds plugins in the Python that runs it. A plugin installed elsewhere never appears, and the Profile tab says that it has "
        "moved, or is missing.",
        "{python} -m tensorboard.main --logdir DIR",
        {
            "none-here": Case(
                fix="{other} -m pip install stepscope xprof, or {python} -m pip install tensorboard and {python} -m tensorboard.main --logdir DIR",
                severity="info",
            )
        },
        {"other": "OTHER_PYTHON"},
    ),
    Entry(
        "no-profile-plugin",
        "warning",
        "TensorBoard has no plugin that shows profiles",
        "TensorBoard itself shows no profiles: its Profile tab only says that the plugin has moved. The plugin must be installed in the Python "
        "that runs TensorBoard. stepscope adds its own tab, and stepscope serve opens the profile without TensorBoard.",
        "{python} -m pip install stepscope",
    ),
    Entry(
        "plugin-broken",
        "error",
        "A plugin of TensorBoard cannot be imported",
        "TensorBoard loads every plugin when it starts. One that fails stops TensorBoard, or is skipped with one line in the log: the tab is "
        "missing without an explanation.",
        "{python} -m pip install --force-reinstall {package}, or uninstall it.",
        example={"package": "PACKAGE"},
    ),
    Entry(
        "plugin-name-twice",
        "error",
        "Two plugins of TensorBoard have the same name",
        "TensorBoard refuses to start: `Duplicate plugins for name`. tensorboard-plugin-profile and xprof both use the name profile.",
        "{python} -m pip uninstall {package}",
        example={"package": "PACKAGE"},
    ),
    Entry(
        "duplicate-tensorboard",
        "error",
        "Several packages provide TensorBoard",
        "tensorboard and tb-nightly overwrite each other's files. TensorBoard detects it and exits: `Found more than one`.",
        "{python} -m pip uninstall -y {packages} && {python} -m pip install tensorboard",
        example={"packages": "tensorboard tb-nightly"},
    ),
    Entry(
        "pkg-resources-missing",
        "error",
        "TensorBoard needs pkg_resources, which setuptools no longer includes",
        "TensorBoard up to 2.20 imports pkg_resources when it starts; setuptools 82 removed it: `No module named 'pkg_resources'`.",
        "{python} -m pip install 'setuptools<81', or TensorBoard 2.21 or newer.",
    ),
    Entry(
        "tensorboard-broken",
        "error",
        "TensorBoard cannot be imported",
        "A dependency is missing or has the wrong version.",
        "{python} -m pip install --force-reinstall tensorboard",
    ),
    Entry(
        "wrong-platform-wheel",
        "error",
        "XProf was installed from a wheel for another system",
        "Some wheels of xprof hold a binary for Windows only and are tagged for any system. pip installs them where no other fits, and the import "
        "ends in `_pywrap_profiler_plugin (unknown location)`.",
        "pip install 'xprof>=2.24' on glibc 2.35 or newer; elsewhere uninstall it and use stepscope.",
    ),
    Entry(
        "torch-tb-profiler",
        "info",
        "The PyTorch plugin of TensorBoard is no longer maintained",
        "torch-tb-profiler was removed from its project in 2026; it fails on large traces and omits the input pipeline of new formats.",
        "Open the same files with stepscope report.",
    ),
    Entry(
        "notebook-proxy",
        "info",
        "TensorBoard behind a notebook's proxy may stay blank",
        "Hosted notebooks serve other ports through a proxy; XProf's pages request absolute addresses and get 403 or 404.",
        "Write a page instead: stepscope report PATH -o report.html, or stepscope.report(PATH) in a cell.",
    ),
)
