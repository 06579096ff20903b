"""A study: every row of the paper's table at every bitext size and seed, searched, trained, resumed and reported.

budget.py    what a study spends: sizes, seeds, most updates; presets and NAME=VALUE
search.py    which settings a row is trained with: the search of recipes/PROTOCOL.md
recipe.py    what decides a run besides: the numbers of the recipes' scripts, which language models
task.py      what a recipe folder offers: its rows, its corpus
plan.py      the models that are wanted, and what each waits for
layout.py    where a run lies, and what its row script is told
rules.smk    the rules; Snakemake decides what runs when
step.py      one job of the rules: a row's script, then a mark
results.py   what is committed of finished runs, and not run again
report.py    the page of tables and figures
command.py   the command line of study.sh, which also the rules read
"""
