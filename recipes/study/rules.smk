# A study as rules of Snakemake: data -> language models -> tune -> choose -> train -> translate and score. The report is
# made by study.sh, of what there is, also when a rule failed. Each rule calls one script of recipes/; which settings it
# is given is in search.py and layout.py. Marks in OUT/done stand for run folders, which resume by themselves.
import shlex
import sys

from study import command

PLAN = command.make_plan(command.parse_args([str(word) for word in config["words"]]))
DONE = f"{PLAN.out}/done"
LOG = f"{PLAN.out}/logs"
CELL = "bitext-{size}/seed-{seed}/{row}"
STEP = f"{shlex.quote(sys.executable)} -m study.step {shlex.quote(str(PLAN.out))}"


wildcard_constraints:
    size=r"\d+",
    seed=r"\d+",
    number=r"\d+",
    row=r"\w+",


rule all:
    input:
        PLAN.targets(),


rule data:
    output:
        f"{DONE}/data-{{size}}",
    log:
        f"{LOG}/data-{{size}}.log",
    resources:
        mem_mb=2000,
    shell:
        STEP + " data - {wildcards.size} 0 {output} >>{log} 2>&1"


rule language_model:
    output:
        f"{DONE}/language-model-{{kind}}",
    log:
        f"{LOG}/language-model-{{kind}}.log",
    resources:
        mem_mb=2000,
        gpu_mb=3000,
    shell:
        STEP + " language-model {wildcards.kind} 0 0 {output} >>{log} 2>&1"


rule tune:
    input:
        lambda cell: PLAN.before_try(cell.row, int(cell.size), int(cell.number)),
        lambda cell: PLAN.data(int(cell.size)) + PLAN.language_models(cell.row),
    output:
        f"{DONE}/{CELL}/try-{{number}}",
    log:
        f"{LOG}/{CELL}/try-{{number}}.log",
    resources:
        mem_mb=2000,
        gpu_mb=3000,
    shell:
        STEP + " try {wildcards.row} {wildcards.size} {wildcards.seed} {output} {wildcards.number} >>{log} 2>&1"


rule choose:
    input:
        lambda cell: PLAN.before_choice(cell.row, int(cell.size)),
    output:
        f"{DONE}/{CELL}/choice",
    log:
        f"{LOG}/{CELL}/choice.log",
    shell:
        STEP + " choice {wildcards.row} {wildcards.size} {wildcards.seed} {output} >>{log} 2>&1"


rule train:
    input:
        lambda cell: PLAN.before_training(cell.row, int(cell.size), int(cell.seed)),
    output:
        f"{DONE}/{CELL}/train",
    log:
        f"{LOG}/{CELL}/train.log",
    resources:
        mem_mb=2000,
        gpu_mb=3000,
    shell:
        STEP + " train {wildcards.row} {wildcards.size} {wildcards.seed} {output} >>{log} 2>&1"


rule translate_and_score:
    input:
        lambda cell: f"{DONE}/{CELL}/train".format(**cell) if int(cell.size) else [],
    output:
        f"{DONE}/{CELL}/score",
    log:
        f"{LOG}/{CELL}/score.log",
    resources:
        mem_mb=2000,
        gpu_mb=3000,
    shell:
        STEP + " score {wildcards.row} {wildcards.size} {wildcards.seed} {output} >>{log} 2>&1"


rule translate_blind_test:
    input:
        f"{DONE}/{CELL}/train",
    output:
        f"{DONE}/{CELL}/blind",
    log:
        f"{LOG}/{CELL}/blind.log",
    resources:
        mem_mb=2000,
        gpu_mb=3000,
    shell:
        STEP + " blind {wildcards.row} {wildcards.size} {wildcards.seed} {output} >>{log} 2>&1"
