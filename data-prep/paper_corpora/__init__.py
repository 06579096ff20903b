"""The corpora of the paper, from download to fairseq's data: newscrawl, WMT'18 en-de and en-tr, CNN-DailyMail.

sources.py, fetch.py     the table of sources; downloads that resume and are verified
stages.py, workspace.py  what is done and what is left; folders, sizes and settings of a run
dedup.py, newscrawl.py   monolingual text: filtered and deduplicated from disk
parallel.py, sgm.py, select_pairs.py   bitext and test sets
stories.py               news stories with highlights
vocabulary.py, ids.py    sample, BPE, encoding, binarization
wmt18_ende.py, wmt18_entr.py, cnn_dm.py   the stages of each corpus in order
"""
