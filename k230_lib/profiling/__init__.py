"""Where the time of a model goes: ETDump and ETRecord to tables, comparisons and reports."""
