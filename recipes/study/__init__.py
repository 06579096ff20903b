"""A study: every row of the paper's table at every bitext size and seed, planned, run, resumed and reported.

budget.py    what a study spends: sizes, seeds, grids, most updates; presets and NAME=VALUE
recipe.py    what decides a run besides: the numbers of the recipes' scripts, which language models
task.py      what a recipe folder offers: its rows, its corpus
plan.py      the runs in the order in which they tell most
layout.py    where a run lies, and what its row script is told
choice.py    dropouts by the validation loss
machine.py   how many runs at a time; estimate.py: how long they take
runner.py    starts them, continues after a failed one, ends them when it is ended
results.py   what is committed of finished runs, and not run again
report.py    the page of tables and figures
"""
