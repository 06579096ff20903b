"""Plan a training before it is paid for: parameters, memory, operations, hours and disk."""
