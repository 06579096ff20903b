"""The sections of ``lmfusion bench gpu``: each measures one thing and returns tables and figures."""
