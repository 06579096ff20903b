"""Train the rows of the paper's table on prepared text: which numbers, in which order, in how much time.

What a row is stands in the scripts of ``recipes/own``, which lie in the installed package, too; the modules here choose
their numbers, start them beside each other and report.
"""
