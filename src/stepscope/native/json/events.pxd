from stepscope.native.json.event_arguments cimport Arguments
from stepscope.native.json.event_reader cimport EventReader
from stepscope.native.json.event_rows cimport Rows
from stepscope.native.json.gaps cimport Gaps
from stepscope.native.json.numbers cimport Numbers
from stepscope.native.json.values cimport Values
from stepscope.native.strings cimport Strings
