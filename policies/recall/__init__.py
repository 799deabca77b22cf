"""Recall: which of the verbatim lines that a view no longer shows belong beside the newest message.

`terms` makes the words of a text comparable, `query` weighs those of the newest message, `places`
is what an index tells of a message that holds one, `ranking` orders the messages and takes what a
budget has room for, `passages` cuts the best part out of a long one. All of it is pure: the index
and the messages are read by who calls.
"""
