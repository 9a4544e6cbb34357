from stepscope.native.event_arguments cimport Arguments
from stepscope.native.event_reader cimport EventReader
from stepscope.native.event_rows cimport Rows
from stepscope.native.json_numbers cimport Numbers
from stepscope.native.json_values cimport Values
from stepscope.native.strings cimport Strings
