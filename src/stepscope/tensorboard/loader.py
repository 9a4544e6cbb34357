"""What TensorBoard imports when it starts. Nothing here may fail: an error would keep TensorBoard from starting.

So this module imports nothing of ours at its top, and whatever goes wrong later is shown on the tab instead.
"""

from __future__ import annotations

import argparse
import logging
import traceback
from typing import Any

from tensorboard.plugins import base_plugin

_FLAGS: dict[str, dict[str, Any]] = {
    "--stepscope_capture": {
        "action": "store_true",
        "help": "Let the stepscope tab record from running jobs of this user.",
    },
    "--stepscope_capture_server": {
        "action": "append",
        "metavar": "HOST:PORT",
        "help": "A profiler server of TensorFlow or JAX that the stepscope tab may record from, with --stepscope_capture. "
        "Repeat it, or separate several with commas.",
    },
    "--stepscope_allow_host": {
        "action": "append",
        "metavar": "NAME",
        "help": "A name under which the stepscope tab answers SQL and capture, besides loopback names and --host: that of a "
        "proxy. Repeat it, or separate several with commas.",
    },
}


class Loader(base_plugin.TBLoader):
    """Makes the plugin, or one that says why there is none."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        """Our flags. One that another plugin defines already is left to it."""
        group = parser.add_argument_group("stepscope plugin")
        for flag, settings in _FLAGS.items():
            try:
                group.add_argument(flag, **settings)
            except argparse.ArgumentError:
                pass

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin:
        """The plugin."""
        try:
            from stepscope.tensorboard.plugin import StepscopePlugin

            return StepscopePlugin(context)
        except Exception as error:
            logging.getLogger(__name__).warning("stepscope cannot show its tab", exc_info=True)
            return _broken(context, error)


def _broken(context: base_plugin.TBContext, error: Exception) -> base_plugin.TBPlugin:
    reason = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))

    class Broken(base_plugin.TBPlugin):
        """A tab that shows why it is empty."""

        plugin_name = "stepscope"

        def get_plugin_apps(self) -> dict[str, Any]:
            from stepscope.tensorboard.reason import app

            return {"/*": app(reason, text)}

        def is_active(self) -> bool:
            return True

        def frontend_metadata(self) -> base_plugin.FrontendMetadata:
            return base_plugin.FrontendMetadata(
                es_module_path="/index.js", tab_name="stepscope", disable_reload=True
            )

    return Broken(context)
