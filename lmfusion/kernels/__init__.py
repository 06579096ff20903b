"""What is only faster: without this package :mod:`lmfusion.plain_operations` computes the same more slowly.

:mod:`lmfusion.operations` chooses between the two, and nothing else outside imports from here.
"""
