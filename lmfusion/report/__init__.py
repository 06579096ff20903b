"""Run folders: how they are filled (live.py, run_folder.py), read (train_log.py, hypotheses.py) and shown."""
